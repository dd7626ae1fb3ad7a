"""Never-married people by age in Adult's training rows, and in synthetic rows from pairs and from independent columns."""

from __future__ import annotations

import re
from pathlib import Path

import altair as alt

import cloister as cl
from cloister.noise import Random

PAGE = Path(__file__).resolve().parents[1] / "learn" / "synthetic-data.md"
COLOURS = {"Adult": "#8b8378", "pairs": "#3f6c8f", "independent columns": "#c9714f"}


def counts() -> tuple[list[int], list[int]]:
    """How many people of each age from 17 to 90 there are, and how many of them never married, as the page has them."""
    text = PAGE.read_text(encoding="utf-8")
    found = [re.search(rf'{name} = """([\d\s]+)"""', text) for name in ("by_age", "never_married")]
    persons, single = ([int(each) for each in part[1].split()] for part in found if part)
    return persons, single


def chart() -> alt.Chart:
    """One line a table, at ε = 1."""
    persons, single = counts()
    ages = [age for age, count in enumerate(persons, 17) for _ in range(count)]
    never = [place < alone for alone, count in zip(single, persons, strict=True) for place in range(count)]
    declared = {"age": cl.Integer(17, 90), "never": cl.Boolean()}
    rows = [{"age": age, "people": alone, "table": "Adult"} for age, alone in enumerate(single, 17)]
    for name, method in (("pairs", "pairs"), ("independent columns", "independent")):
        model = cl.synth.fit_frame(
            {"age": ages, "never": never},
            declared,
            epsilon=1,
            method=method,  # type: ignore[arg-type]
            random=Random.deterministic(4),
        )
        drawn = model.sample(len(ages), given={"never": True}, random=Random.deterministic(5))["age"].tolist()
        share = float(model.mixture.marginal((1,))[1])
        rows += [
            {"age": age, "people": drawn.count(age) * share * model.rows / len(ages), "table": name} for age in range(17, 91)
        ]
    names = list(COLOURS)
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X("age:Q", scale=alt.Scale(domain=[17, 90]), title="age"),
            y=alt.Y("people:Q", title="people who never married"),
            color=alt.Color("table:N", title=None, sort=names, scale=alt.Scale(domain=names, range=list(COLOURS.values()))),
            strokeDash=alt.StrokeDash(
                "table:N", legend=None, sort=names, scale=alt.Scale(domain=names, range=[[1, 0], [6, 2], [2, 2]])
            ),
        )
        .properties(width=520, height=260)
    )
