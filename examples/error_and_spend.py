"""What precision costs: margins for several spends, said beforehand for nothing, and the least spend for a wanted margin.

python examples/error_and_spend.py
"""

from __future__ import annotations

import cloister as cl


def main() -> None:
    """Print the price list of one question, then buy a count that is good to ± 50."""
    people = cl.PrivateTable({"age": [34, 51, 29] * 1000}, columns={"age": cl.Integer(17, 90)})
    question = "SELECT COUNT(*) AS n, SUM(age) AS years FROM people"
    with cl.Session({"people": people}, budget=cl.PureDP(1)) as session:
        print("    ε     people     years")
        for spend in ("0.01", "0.05", "0.1", "0.5"):
            margin = session.explain(question, spend=spend).margin()
            print(f"{spend:>5}   ± {margin['n'][0]:>6,.0f}  ± {margin['years'][0]:>6,.0f}")
        answer = session.sql("SELECT COUNT(*) AS n FROM people", within=50)
        print(f"\nthe number of people, good to ± 50:\n{answer}")


if __name__ == "__main__":
    main()
