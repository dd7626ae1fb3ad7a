"""How many rows of the Adult training data are older than 50? The answer at five ε, with its margin.

python examples/learn_counting.py

Where the environment variable CLOISTER_DATA names a folder with adult/adult_train.csv.gz, the real file is asked; otherwise the
same ages are rebuilt from its published histogram.
"""

from __future__ import annotations

import csv
import gzip
import os
from pathlib import Path

import cloister as cl

AGES = {17: 1657, 25: 8054, 35: 8613, 45: 7175, 50: 602, 55: 3816, 65: 2015, 75: 508, 85: 78, 90: 43}
QUESTION = "SELECT COUNT(*) AS n FROM adult WHERE age > 50"


def ages() -> list[int]:
    """The age of each of the 32,561 persons, to the decade where the file is not at hand."""
    path = Path(os.environ.get("CLOISTER_DATA", "")) / "adult" / "adult_train.csv.gz"
    if path.is_file():
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            return [int(row["age"]) for row in csv.DictReader(lines)]
    return [age for age, persons in AGES.items() for _ in range(persons)]


def main() -> None:
    """Buy the count again and again, from coarse to fine: each larger spend pays the difference only."""
    held = ages()
    print(f"the truth, which only its owner may see: {sum(age > 50 for age in held)} of {len(held):,}\n")
    adult = cl.PrivateTable({"age": held}, columns={"age": cl.Integer(17, 90)})
    with cl.Session({"adult": adult}, budget=cl.PureDP(1)) as session:
        for spend in ("0.001", "0.01", "0.1", "1"):
            answer = session.sql(QUESTION, spend=spend)
            count, margin = answer["n"][0], answer.margin()["n"][0]
            print(f"ε = {spend:>5}: {count:>6,} ± {margin:>5,.0f}    spent {session.spent}")


if __name__ == "__main__":
    main()
