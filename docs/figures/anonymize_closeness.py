"""The earth mover's distance along an order: the area between the running shares of a class and those of the table."""

from __future__ import annotations

import altair as alt

PAY = [3, 4, 5, 6, 7, 8, 9, 10, 11]
CLASSES = {"3, 4, 5: t = 0.375": [3, 4, 5], "6, 8, 11: t = 0.167": [6, 8, 11]}


def chart() -> alt.FacetChart:
    """The example of the paper: nine salaries, and two classes of three."""
    rows = []
    for name, inside in CLASSES.items():
        for place, value in enumerate(PAY, 1):
            mine = sum(each <= value for each in inside) / len(inside)
            rows.append(
                {
                    "class": name,
                    "pay": value,
                    "low": min(mine, place / 9),
                    "high": max(mine, place / 9),
                    "Q": mine,
                    "P": place / 9,
                }
            )
    x = alt.X("pay:Q", title="salary (thousands)")
    area = (
        alt.Chart()
        .mark_area(opacity=0.3, color="#c9714f", interpolate="step-after")
        .encode(x=x, y=alt.Y("low:Q", title="running share"), y2="high:Q")
    )
    table = alt.Chart().mark_line(color="#3f6c8f", interpolate="step-after").encode(x=x, y="P:Q")
    group = alt.Chart().mark_line(color="#c9714f", interpolate="step-after").encode(x=x, y="Q:Q")
    return (
        alt.layer(area, table, group, data=alt.Data(values=rows))
        .properties(width=230, height=180)
        .facet(alt.Column("class:N", title=None, sort=list(CLASSES)))
    )
