"""Four places to perturb on one model, by ε: the rows, the objective, each gradient, the finished weights."""

from __future__ import annotations

import runpy
from pathlib import Path

import altair as alt

from scripts.curves import COLOURS, INK

RUNS = 10
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "learn_four_places.py"


def chart() -> alt.LayerChart:
    """The curve of the example, as lines."""
    example = runpy.run_path(str(EXAMPLE))
    found = example["four_places"](times=RUNS)
    names = list(example["PLACES"])
    points = [
        {"epsilon": float(epsilon), "accuracy": accuracy, "place": place}
        for place in names
        for epsilon, accuracy in zip(example["EPSILONS"], found[place], strict=True)
    ]
    y = alt.Y("accuracy:Q", title="accuracy on other patients", scale=alt.Scale(zero=False))
    lines = (
        alt.Chart(alt.Data(values=points))
        .mark_line(strokeWidth=2.5, point=True)
        .encode(
            x=alt.X("epsilon:Q", title="ε (less is more private)", scale=alt.Scale(type="log", nice=False, padding=12)),
            y=y,
            color=alt.Color(
                "place:N",
                title="noise on the",
                sort=names,
                scale=alt.Scale(domain=names, range=list(COLOURS[:4])),
                legend=alt.Legend(orient="top"),
            ),
        )
    )
    rules = []
    for name, words, dashes in (("none", "without privacy", [6, 4]), ("guess", "guess: the larger class", [2, 3])):
        here = alt.Chart(alt.Data(values=[{"accuracy": found[name][0], "at": 0.1, "words": words}]))
        rules.append(here.mark_rule(color=INK, strokeDash=dashes).encode(y=y))
        rules.append(here.mark_text(align="left", dy=-6, color=INK).encode(x="at:Q", y=y, text="words:N"))
    return alt.layer(lines, *rules).properties(width=440, height=250)
