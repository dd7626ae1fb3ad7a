"""Classes as rectangles: a census by age and schooling, cut under k, l and t, in the colour of the rich in each class."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "learn_sanitising_adult.py"


def rectangles() -> list[dict[str, Any]]:
    """Each class of each step: what it covers, and its share of incomes over 50,000."""
    example = runpy.run_path(str(EXAMPLE))
    table = example["people"](made_up=True)
    columns, rich = example["coordinates"](table), np.array(table["rich"])
    found = []
    for name, models in example["STEPS"].items():
        classes = example["ours"](table, models)
        for rows in classes:
            (left, low), (right, high) = columns[rows].min(axis=0), columns[rows].max(axis=0)
            found.append(
                {
                    "step": f"{name}: {len(classes)} classes",
                    "left": float(left) - 0.5,
                    "right": float(right) + 0.5,
                    "low": float(low) - 0.5,
                    "high": float(high) + 0.5,
                    "share": round(float(rich[rows].mean()), 3),
                }
            )
    return found


def chart() -> alt.FacetChart:
    """A map for each step."""
    values = rectangles()
    steps = list(dict.fromkeys(each["step"] for each in values))
    return (
        alt.Chart(alt.Data(values=values))
        .mark_rect(stroke="white", strokeWidth=0.4)
        .encode(
            x=alt.X("left:Q", title="age", scale=alt.Scale(domain=[16.5, 90.5], nice=False)),
            x2="right:Q",
            y=alt.Y("low:Q", title="years of schooling", scale=alt.Scale(domain=[0.5, 16.5], nice=False)),
            y2="high:Q",
            color=alt.Color(
                "share:Q",
                title="over 50K",
                scale=alt.Scale(domain=[0, 0.24, 1], range=["#3f6c8f", "#efe9df", "#c9714f"], interpolate="rgb"),
                legend=alt.Legend(format="%"),
            ),
        )
        .properties(width=230, height=200)
        .facet(alt.Column("step:N", title=None, sort=steps))
    )
