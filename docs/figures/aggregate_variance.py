"""The margin of a standard deviation against the size of the group."""

from __future__ import annotations

import altair as alt

import cloister as cl
from cloister.session import Question, Variance

SIZES = [20, 30, 50, 70, 100, 150, 200, 300, 500, 1_000, 2_000, 5_000, 10_000, 20_000]
COLOURS = {"0.1": "#c9714f", "1": "#3f6c8f"}


def chart() -> alt.Chart:
    """A line for each ε, both axes logarithmic."""
    people = cl.PrivateTable({"age": [40]}, columns={"age": cl.Integer(17, 90)})
    question = Question(table="people", statistics=(Variance(column="age", root=True),))
    with cl.Session({"people": people}, budget=cl.PureDP(1)) as session:
        plans = {epsilon: session.explain(question, spend=epsilon) for epsilon in COLOURS}
        points = [
            {"size": size, "margin": float(plan.margin(group_size=size)["stddev_age"][0]), "epsilon": f"ε = {epsilon}"}
            for epsilon, plan in plans.items()
            for size in SIZES
        ]
    names = [f"ε = {epsilon}" for epsilon in COLOURS]
    return (
        alt.Chart(alt.Data(values=points))
        .mark_line(strokeWidth=2.5)
        .encode(
            x=alt.X("size:Q", title="rows in the group", scale=alt.Scale(type="log", nice=False)),
            y=alt.Y("margin:Q", title="95 % margin of the standard deviation, in years", scale=alt.Scale(type="log")),
            color=alt.Color("epsilon:N", title=None, scale=alt.Scale(domain=names, range=list(COLOURS.values()))),
        )
        .properties(width=440, height=260)
    )
