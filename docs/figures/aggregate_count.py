"""Counts of persons over groups: what each noise costs when one person may be counted in many of them."""

from __future__ import annotations

from fractions import Fraction

import altair as alt

import cloister as cl
from cloister.privacy import zcdp_within
from cloister.session import Persons, Question

GROUPS = [1, 2, 3, 4, 6, 8, 10, 12, 16, 24, 32, 48, 64]
DELTA = "1e-6"
COLOURS = {"Laplace": "#c9714f", "Gaussian": "#3f6c8f", "taken under (1, 10⁻⁶)": "#2d2823"}
DASHES = [[1, 0], [1, 0], [2, 4]]


def chart() -> alt.Chart:
    """Three lines: either noise, and the one that the plan chooses."""
    gaussian = zcdp_within(epsilon=Fraction(1), delta=Fraction(DELTA))
    budgets = dict(zip(COLOURS, (cl.PureDP(1), gaussian, cl.ApproxDP(1, DELTA)), strict=True))
    points = [
        {"groups": groups, "margin": margin(groups, budget), "noise": name}
        for groups in GROUPS
        for name, budget in budgets.items()
    ]
    names = list(COLOURS)
    return (
        alt.Chart(alt.Data(values=points))
        .mark_line(strokeWidth=2.5)
        .encode(
            x=alt.X("groups:Q", title="groups that one person may be counted in"),
            y=alt.Y("margin:Q", title="95 % margin of each count, ε = 1"),
            color=alt.Color("noise:N", title=None, scale=alt.Scale(domain=names, range=list(COLOURS.values()))),
            strokeDash=alt.StrokeDash("noise:N", title=None, scale=alt.Scale(domain=names, range=DASHES)),
        )
        .properties(width=440, height=260)
    )


def margin(groups: int, budget: cl.PureDP | cl.ApproxDP | cl.ZCDP) -> float:
    """From the plan: nothing is spent."""
    days = cl.PrivateTable(
        {"person": ["a"], "day": ["2026-01-01"]},
        columns={"day": cl.Date("2026-01-01", "2026-12-31")},
        unit="person",
        max_rows=groups,
    )
    with cl.Session({"days": days}, budget=budget) as session:
        plan = session.explain(Question(table="days", by=("day",), statistics=(Persons(),)), spend=budget)
    return float(plan.margin()["persons"][0])
