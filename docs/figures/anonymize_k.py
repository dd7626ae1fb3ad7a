"""Classes as rectangles: people by age and years of school, and the groups of at least three in which each is published."""

from __future__ import annotations

import altair as alt

AGES = [23, 25, 29, 31, 34, 38, 41, 44, 47, 52, 55, 63]
YEARS = [9, 13, 10, 13, 9, 14, 9, 10, 13, 9, 13, 10]
BOXES = [(20, 30, 8, 15, 3), (30, 40, 8, 15, 3), (40, 50, 8, 15, 3), (50, 65, 8, 15, 3)]


def chart() -> alt.LayerChart:
    """Points in boxes; a dashed line is a target whose age and school are known from elsewhere."""
    people = [{"age": age, "years": years} for age, years in zip(AGES, YEARS, strict=True)]
    boxes = [{"left": a, "right": b, "low": c, "high": d, "k": f"k = {k}"} for a, b, c, d, k in BOXES]
    x = alt.X("left:Q", title="age", scale=alt.Scale(domain=[18, 67]))
    y = alt.Y("low:Q", title="years of school", scale=alt.Scale(domain=[7, 16]))
    box = (
        alt.Chart(alt.Data(values=boxes))
        .mark_rect(color="#3f6c8f", opacity=0.18, stroke="#3f6c8f")
        .encode(x=x, x2="right:Q", y=y, y2="high:Q")
    )
    name = (
        alt.Chart(alt.Data(values=boxes))
        .mark_text(align="left", dx=5, dy=10, color="#3f6c8f")
        .encode(x=x, y="high:Q", text="k:N")
    )
    point = (
        alt.Chart(alt.Data(values=people))
        .mark_point(filled=True, size=80, color="#c9714f", opacity=1)
        .encode(x=alt.X("age:Q"), y=alt.Y("years:Q"))
    )
    known = alt.Chart(alt.Data(values=[{"age": 34}])).mark_rule(strokeDash=[4, 3], color="#777").encode(x="age:Q")
    return (box + known + point + name).properties(
        width=420, height=230, title="everybody in a box looks alike in the published table"
    )
