"""The margin of a correlation against the size of the group: first nothing is known, then soon very much."""

from __future__ import annotations

import altair as alt

import cloister as cl
from cloister.session import Correlation, Question

SIZES = [round(10 ** (place / 8)) for place in range(16, 41)]
COLOURS = {"0.1": "#c9714f", "1": "#3f6c8f"}


def chart() -> alt.Chart:
    """A line for each ε, both axes logarithmic."""
    people = cl.PrivateTable({"age": [40], "hours": [40]}, columns={"age": cl.Integer(17, 90), "hours": cl.Integer(1, 99)})
    question = Question(table="people", statistics=(Correlation(x="age", y="hours", name="r"),))
    with cl.Session({"people": people}, budget=cl.PureDP(1)) as session:
        plans = {epsilon: session.explain(question, spend=epsilon) for epsilon in COLOURS}
        points = [
            {"size": size, "margin": float(plan.margin(group_size=size)["r"][0]), "epsilon": f"ε = {epsilon}"}
            for epsilon, plan in plans.items()
            for size in SIZES
        ]
    names = [f"ε = {epsilon}" for epsilon in COLOURS]
    return (
        alt.Chart(alt.Data(values=points))
        .mark_line(strokeWidth=2.5)
        .encode(
            x=alt.X("size:Q", title="rows in the group", scale=alt.Scale(type="log", nice=False)),
            y=alt.Y("margin:Q", title="95 % margin of a correlation of 0", scale=alt.Scale(type="log")),
            color=alt.Color("epsilon:N", title=None, scale=alt.Scale(domain=names, range=list(COLOURS.values()))),
        )
        .properties(width=440, height=260)
    )
