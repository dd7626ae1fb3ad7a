"""Visits to a restaurant by day: the question with which most libraries for differential privacy begin, in SQL.

A visitor comes several times a week. The unit is the visitor, and at most four visits of each count. Visits and money come from
one measurement, so asking for both is cheaper than asking twice; which days there are is public, so an empty day shows as well.

python examples/tutorials_restaurant.py
"""

from __future__ import annotations

import numpy as np

import cloister as cl


def week(visitors: int = 2_000) -> cl.PrivateTable:
    """A week of invented visits."""
    draw = np.random.default_rng(1)
    often = draw.integers(1, 6, visitors)
    visitor = np.repeat(np.arange(visitors), often)
    return cl.PrivateTable(
        {
            "visitor": visitor,
            "day": draw.choice(np.arange(1, 8), visitor.size, p=[0.1, 0.1, 0.12, 0.13, 0.17, 0.2, 0.18]),
            "minutes": np.clip(np.round(draw.normal(32, 12, visitor.size)), 5, 60).astype(np.int64),
            "euros": np.clip(np.round(draw.gamma(4, 6, visitor.size)), 0, 60).astype(np.int64),
        },
        columns={"day": cl.Integer(1, 7), "minutes": cl.Integer(0, 60), "euros": cl.Integer(0, 60)},
        unit="visitor",
        max_rows=4,
    )


def main() -> None:
    """What would two spends buy? Then one of them is bought."""
    question = "SELECT day, COUNT(*) AS visits, SUM(euros) AS money, AVG(minutes) AS stay FROM visits GROUP BY day"
    with cl.Session({"visits": week()}, budget=cl.PureDP(2)) as session:
        for spend in ("0.5", "1"):
            print(f"The margins that ε = {spend} would give, where 300 visits fall on a day:\n")
            print(f"{session.explain(question, spend=spend).margin(group_size=300)}\n")
        print("Visits, money and mean stay by day:\n")
        print(session.sql(question, spend=1))
        print(f"\nleft of the budget: {session.remaining}")


if __name__ == "__main__":
    main()
