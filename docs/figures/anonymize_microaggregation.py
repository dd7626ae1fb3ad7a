"""Microaggregation as a picture: records, the rectangles of their groups of five, and the middles that are published."""

from __future__ import annotations

import altair as alt
import numpy as np

from cloister.anonymize.perturbing import Microaggregation

K = 5


def records() -> dict[str, list[float]]:
    """Ages and pays of sixty people."""
    generator = np.random.default_rng(11)
    age = generator.uniform(20, 65, 60)
    pay = 900 + 45 * (age - 20) + generator.gamma(2.0, 300.0, 60)
    return {"age": age.round(1).tolist(), "pay": pay.round().tolist()}


def chart() -> alt.LayerChart:
    """Groups as rectangles, people as dots, means as diamonds."""
    table = records()
    done = Microaggregation(columns=["age", "pay"], k=K).apply(table, shuffle=False)
    groups = [np.flatnonzero(done.groups == group) for group in range(int(done.groups.max()) + 1)]
    age, pay = np.array(table["age"]), np.array(table["pay"])
    boxes = [
        {
            "left": float(age[rows].min()) - 0.4,
            "right": float(age[rows].max()) + 0.4,
            "low": float(pay[rows].min()) - 30,
            "high": float(pay[rows].max()) + 30,
            "age": float(age[rows].mean()),
            "pay": float(pay[rows].mean()),
        }
        for rows in groups
    ]
    people = [{"age": float(a), "pay": float(p)} for a, p in zip(age, pay, strict=True)]
    x, y = alt.X("age:Q", title="age", scale=alt.Scale(zero=False)), alt.Y("pay:Q", title="pay a month")
    rectangles = (
        alt.Chart(alt.Data(values=boxes))
        .mark_rect(color="#3f6c8f", opacity=0.14, stroke="#3f6c8f", strokeOpacity=0.6)
        .encode(
            x=alt.X("left:Q", title="age", scale=alt.Scale(zero=False)),
            x2="right:Q",
            y=alt.Y("low:Q", title="pay a month"),
            y2="high:Q",
        )
    )
    dots = alt.Chart(alt.Data(values=people)).mark_point(filled=True, size=28, color="#8a7f70", opacity=1).encode(x=x, y=y)
    middles = (
        alt.Chart(alt.Data(values=boxes))
        .mark_point(filled=True, shape="diamond", size=90, color="#c9714f", opacity=1)
        .encode(x=x, y=y)
    )
    return alt.layer(rectangles, dots, middles).properties(width=460, height=300)
