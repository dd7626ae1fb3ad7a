"""Members of a library by age: counts of ranges, a mean by group, and a condition, each as one line of SQL.

One row is one member. Ages are declared from 0 to 100, so the decades are known before anybody looks.

python examples/tutorials_library.py
"""

from __future__ import annotations

import numpy as np

import cloister as cl

LEVELS = ["up-to-high-school", "high-school-diploma", "bachelors-associate", "masters-degree", "doctorate-professional"]


def library(members: int = 10_000) -> cl.PrivateTable:
    """Invented members."""
    draw = np.random.default_rng(5)
    return cl.PrivateTable(
        {
            "age": np.clip(np.round(draw.normal(38, 18, members)), 4, 100).astype(np.int64),
            "education": np.array(LEVELS, dtype=object)[draw.choice(5, members, p=[0.2, 0.3, 0.3, 0.15, 0.05])],
            "books": np.minimum(draw.geometric(0.07, members), 100),
        },
        columns={"age": cl.Integer(0, 100), "education": cl.Category(LEVELS), "books": cl.Integer(0, 100)},
    )


def main() -> None:
    """Three questions of a first tutorial, with one budget."""
    questions = {
        "Members": "SELECT COUNT(*) AS n FROM members",
        "Minors": "SELECT COUNT(*) AS n FROM members WHERE age < 18",
        "Members by decade": "SELECT FLOOR(age / 10) * 10 AS decade, COUNT(*) AS n FROM members GROUP BY FLOOR(age / 10) * 10",
        "Loans by education": "SELECT education, COUNT(*) AS n, AVG(books) AS books FROM members GROUP BY education",
    }
    with cl.Session({"members": library()}, budget=cl.PureDP(1)) as session:
        for title, question in questions.items():
            print(f"{title}:\n\n{session.sql(question, spend='0.25')}\n")


if __name__ == "__main__":
    main()
