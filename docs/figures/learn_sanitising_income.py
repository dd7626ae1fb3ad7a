"""The share of the rich in each class, before and after: t-closeness draws the classes to the share of the whole table."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "learn_sanitising_adult.py"


def shares() -> tuple[list[dict[str, Any]], float]:
    """Of each step, how many people are in a class of each share, by steps of 2 %; and the share of the whole table."""
    example = runpy.run_path(str(EXAMPLE))
    table = example["people"](made_up=True)
    rich = np.array(table["rich"])
    _, alike = np.unique(example["coordinates"](table), axis=0, return_inverse=True)
    raw = np.split(np.argsort(alike, kind="stable"), np.cumsum(np.bincount(alike))[:-1])
    steps = {"before": raw} | {name: example["ours"](table, models) for name, models in example["STEPS"].items()}
    rows = []
    for name, classes in steps.items():
        people = np.zeros(50)
        for members in classes:
            people[min(49, int(50 * rich[members].mean()))] += len(members) / len(rich)
        rows += [
            {"step": name, "from": place / 50, "to": (place + 1) / 50, "none": 0, "people": share}
            for place, share in enumerate(people.tolist())
            if share
        ]
    return rows, float(rich.mean())


def chart() -> alt.FacetChart:
    """A row of bars for each step."""
    rows, overall = shares()
    steps = list(dict.fromkeys(row["step"] for row in rows))
    bars = (
        alt.Chart()
        .mark_rect(color="#3f6c8f")
        .encode(
            x=alt.X("from:Q", title="share of one's class with more than 50,000", axis=alt.Axis(format="%")),
            x2="to:Q",
            y=alt.Y("none:Q", title="people", axis=alt.Axis(format="%", tickCount=3)),
            y2="people:Q",
        )
        .transform_filter("isValid(datum.to)")
    )
    whole = alt.Chart().mark_rule(color="#c9714f", strokeWidth=2).encode(x="from:Q").transform_filter("!isValid(datum.to)")
    lines = [{"step": name, "from": overall} for name in steps]
    return (
        alt.layer(bars, whole, data=alt.Data(values=rows + lines))
        .properties(width=430, height=70)
        .facet(row=alt.Row("step:N", title=None, sort=steps, header=alt.Header(labelAngle=0, labelAlign="left")))
    )
