"""A quotient of two released numbers: with their shared noise counted once, and as if their errors were independent."""

from __future__ import annotations

import math

import altair as alt

import cloister as cl
from cloister.session import Combined, Count, Named, Operation, Question, Sum

SIZES = [100, 150, 200, 300, 500, 1_000, 2_000, 5_000, 10_000]
COLOURS = {"as if independent": "#c9714f", "shared noise counted once": "#3f6c8f"}


def chart() -> alt.Chart:
    """Two lines on logarithmic axes."""
    share = Operation("divide", (Named("sum_stay"), Named("count")))
    question = Question(table="visits", statistics=(Count(), Sum(column="stay"), Combined(name="nights", expression=share)))
    visits = cl.PrivateTable({"stay": [3]}, columns={"stay": cl.Integer(0, 60)})
    points = []
    with cl.Session({"visits": visits}, budget=cl.PureDP(1)) as session:
        plan = session.explain(question, spend=1)
        for size in SIZES:
            margins = plan.margin(group_size=size)
            apart = math.hypot(float(margins["sum_stay"][0]) / size, 30 * float(margins["count"][0]) / size)
            both = (apart, float(margins["nights"][0]))
            points += [{"size": size, "margin": margin, "way": name} for name, margin in zip(COLOURS, both, strict=True)]
    return (
        alt.Chart(alt.Data(values=points))
        .mark_line(strokeWidth=2.5)
        .encode(
            x=alt.X(
                "size:Q",
                title="visits",
                scale=alt.Scale(type="log", nice=False),
                axis=alt.Axis(values=[100, 200, 500, 1_000, 2_000, 5_000, 10_000]),
            ),
            y=alt.Y("margin:Q", title="95 % margin of the nights a visit", scale=alt.Scale(type="log")),
            color=alt.Color(
                "way:N", title=None, sort=list(COLOURS), scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values()))
            ),
        )
        .properties(width=400, height=260)
    )
