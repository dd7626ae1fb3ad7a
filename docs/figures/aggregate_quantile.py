"""The margin of a median, off a hierarchy, against ε, for groups of three sizes."""

from __future__ import annotations

import altair as alt

import cloister as cl
from cloister.session import Quantile, Question

EPSILONS = ["0.01", "0.02", "0.03", "0.05", "0.07", "0.1", "0.2", "0.3", "0.5", "0.7", "1", "2"]
COLOURS = {100: "#c9714f", 1_000: "#3f6c8f", 10_000: "#8a9a5b"}


def chart() -> alt.Chart:
    """A line for each size, both axes logarithmic."""
    people = cl.PrivateTable({"age": [40]}, columns={"age": cl.Integer(17, 90)})
    question = Question(table="people", statistics=(Quantile(column="age"), Quantile(column="age", at="0.9")))
    points = []
    with cl.Session({"people": people}, budget=cl.PureDP(10)) as session:
        for epsilon in EPSILONS:
            plan = session.explain(question, spend=epsilon)
            points += [
                {
                    "epsilon": float(epsilon),
                    "margin": float(plan.margin(group_size=size)["median_age"][0]),
                    "rows": f"{size:,} rows",
                }
                for size in COLOURS
            ]
    names = [f"{size:,} rows" for size in COLOURS]
    return (
        alt.Chart(alt.Data(values=[point for point in points if point["margin"] > 0]))
        .mark_line(strokeWidth=2.5, point=True, interpolate="step-after")
        .encode(
            x=alt.X("epsilon:Q", title="ε", scale=alt.Scale(type="log", nice=False)),
            y=alt.Y("margin:Q", title="95 % margin of a median age, in years", scale=alt.Scale(type="log", domain=[1, 100])),
            color=alt.Color("rows:N", title=None, scale=alt.Scale(domain=names, range=list(COLOURS.values())), sort=names),
        )
        .properties(width=440, height=260)
    )
