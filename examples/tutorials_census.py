"""Income by education and sex, from a survey in which persons repeat and values are missing.

The unit is the person, of whose rows four count. A missing income is no income of 0: COUNT(income) says how many are known, and
AVG is over those. The count of rows, the count of incomes and the mean come from one measurement.

python examples/tutorials_census.py
"""

from __future__ import annotations

import numpy as np

import cloister as cl

SCHOOLS = ["none", "school", "college", "university"]


def survey(persons: int = 4_000) -> cl.PrivateTable:
    """Invented answers, one to four of a person."""
    draw = np.random.default_rng(3)
    person = np.repeat(np.arange(persons), draw.integers(1, 5, persons))
    school = draw.choice(4, persons, p=[0.15, 0.4, 0.25, 0.2])[person]
    income = np.minimum(np.round(draw.lognormal(9.6 + 0.35 * school, 0.6)), 200_000)
    return cl.PrivateTable(
        {
            "person": person,
            "school": np.array(SCHOOLS, dtype=object)[school],
            "sex": np.array(["female", "male"], dtype=object)[draw.integers(0, 2, persons)[person]],
            "income": np.where(draw.random(person.size) < 0.06, np.nan, income),
        },
        columns={
            "school": cl.Category(SCHOOLS),
            "sex": cl.Category(["female", "male"]),
            "income": cl.Real(0, 200_000, step=1, nullable=True),
        },
        unit="person",
        max_rows=4,
    )


def main() -> None:
    """One question, its plan, its answer."""
    question = (
        "SELECT school, sex, COUNT(*) AS n, COUNT(income) AS known, AVG(income) AS income"
        " FROM survey GROUP BY school, sex ORDER BY school, sex"
    )
    with cl.Session({"survey": survey()}, budget=cl.PureDP(2)) as session:
        print(f"{session.explain(question, spend=1)}\n")
        print(session.sql(question, spend=1))


if __name__ == "__main__":
    main()
