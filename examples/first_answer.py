"""One table, one question, one answer: with its guarantee, its error and its cost.

python examples/first_answer.py
"""

from __future__ import annotations

import cloister as cl


def main() -> None:
    """Ask how old the people of each sex are."""
    people = cl.PrivateTable(
        {"age": [34, 51, 29, 44, 62, 38] * 500, "sex": ["Female", "Male", "Female"] * 1000},
        columns={"age": cl.Integer(17, 90), "sex": cl.Category(["Female", "Male"])},
    )
    question = "SELECT sex, COUNT(*) AS n, AVG(age) AS age FROM people GROUP BY sex"
    with cl.Session({"people": people}, budget=cl.PureDP(1)) as session:
        print("Before anything is spent:\n")
        print(session.explain(question, spend="0.1"))
        print("\nThe answer:\n")
        print(session.sql(question, spend="0.1"))
        print(f"\nleft of the budget: {session.remaining}")


if __name__ == "__main__":
    main()
