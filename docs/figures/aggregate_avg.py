"""An average from two sides of a bounded column, against one from a sum and a count that share the spend."""

from __future__ import annotations

import math

import altair as alt

import cloister as cl
from cloister.noise import DiscreteLaplace
from cloister.session import Mean, Question

SIZES = [10, 20, 30, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000]
EPSILON = "0.1"
LOW, HIGH = 17, 90
COLOURS = {"a sum and a count, half the spend each": "#c9714f", "two sides, measured together": "#3f6c8f"}


def chart() -> alt.LayerChart:
    """Two lines and the width of the range."""
    people = cl.PrivateTable({"age": [40]}, columns={"age": cl.Integer(LOW, HIGH)})
    with cl.Session({"people": people}, budget=cl.PureDP(1)) as session:
        ours = session.explain(Question(table="people", statistics=(Mean(column="age"),)), spend=EPSILON)
        points = [
            {"size": size, "margin": margin, "way": name}
            for size in SIZES
            for name, margin in zip(COLOURS, (apart(size), float(ours.margin(group_size=size)["mean_age"][0])), strict=True)
        ]
    lines = (
        alt.Chart(alt.Data(values=points))
        .mark_line(strokeWidth=2.5)
        .encode(
            x=alt.X("size:Q", title="rows in the group", scale=alt.Scale(type="log", nice=False)),
            y=alt.Y("margin:Q", title="95 % margin of an average age, in years", scale=alt.Scale(type="log", domain=[0.1, 100])),
            color=alt.Color(
                "way:N",
                title=None,
                sort=list(COLOURS),
                scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values())),
                legend=alt.Legend(orient="top", labelLimit=300),
            ),
        )
    )
    here = alt.Chart(alt.Data(values=[{"text": "the whole range"}]))
    rule = here.mark_rule(color="#2d2823", strokeDash=[4, 4]).encode(y=alt.datum(HIGH - LOW))
    text = here.mark_text(align="right", dy=-8, color="#2d2823").encode(
        x=alt.datum(SIZES[-1]), y=alt.datum(HIGH - LOW), text="text:N"
    )
    return alt.layer(lines, rule, text).properties(width=440, height=260)


def apart(size: int) -> float:
    """The textbook's way, in the middle of the range: a sum of ages less the lowest, and a count, each for half of ε."""
    half = float(EPSILON) / 2
    total = DiscreteLaplace(scale=(HIGH - LOW) / half)
    count = DiscreteLaplace(scale=1 / half)
    deviation = math.sqrt(float(total.variance) + ((HIGH - LOW) / 2) ** 2 * float(count.variance))
    return min(1.96 * deviation / size, HIGH - LOW)
