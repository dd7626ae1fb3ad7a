"""Age and schooling under k = 3, l = 2 and t = 0.2: Mondrian as it is published, and ours.

Takes adult/adult.csv.gz in the folder that CLOISTER_DATA names; without it, as many people of a seeded generator, whose columns
have the same frequencies (their income follows schooling alone).

python examples/learn_sanitising_adult.py
"""

from __future__ import annotations

import csv
import gzip
import os
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cloister import samples
from cloister.anonymize import Anonymizer, KAnonymity, LDiversity, TCloseness
from cloister.anonymize.models.base import PrivacyModel

Ints = npt.NDArray[np.int64]

FILE = Path(os.environ.get("CLOISTER_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")) / "adult" / "adult.csv.gz"
STEPS: dict[str, list[PrivacyModel]] = {
    "k = 3": [KAnonymity(3)],
    "and l = 2": [KAnonymity(3), LDiversity(2)],
    "and t = 0.2": [KAnonymity(3), LDiversity(2), TCloseness("0.2")],
}


@cache
def people(*, made_up: bool = False) -> dict[str, list[int]]:
    """Age, years of schooling, and whether the income is over 50,000."""
    if FILE.is_file() and not made_up:
        with gzip.open(FILE, "rt", encoding="utf-8", newline="") as lines:
            rows = list(csv.DictReader(lines))
        ages, years, rich = ([row[name] for row in rows] for name in ("age", "education-num", "income"))
    else:
        held = samples.census().source.origin
        places = {name: place for place, name in enumerate(samples.EDUCATION, 1)}
        ages, years, rich = held["age"], [places[name] for name in held["education"]], held["income"]
    return {
        "age": [int(age) for age in ages],
        "schooling": [int(each) for each in years],
        "rich": [int(str(income).startswith(">")) for income in rich],
    }


def ours(table: dict[str, list[int]], models: Sequence[PrivacyModel]) -> list[Ints]:
    """The rows of each class, by ours."""
    asked = Anonymizer(quasi=["age", "schooling"], sensitive=["rich"], models=models, search="mondrian")
    of_row = asked.recode(table).classes.of_row
    return np.split(np.argsort(of_row, kind="stable"), np.cumsum(np.bincount(of_row))[:-1])


def published(table: dict[str, list[int]], name: str) -> list[Ints]:
    """The rows of each class, by the published way: the widest column is cut, below its median and from its median on.

    The test of t asks for k besides, and not for l, as it does there.
    """
    columns, rich = coordinates(table), np.array(table["rich"])
    width, overall = np.ptp(columns, axis=0), rich.mean()
    tests: dict[str, Callable[[Ints], bool]] = {
        "k = 3": lambda rows: len(rows) >= 3,
        "and l = 2": lambda rows: len(rows) >= 3 and len(np.unique(rich[rows])) >= 2,
        "and t = 0.2": lambda rows: len(rows) >= 3 and abs(rich[rows].mean() - overall) <= 0.2,
    }
    passes, waiting, done = tests[name], [np.arange(len(rich))], []
    while waiting:
        rows = waiting.pop()
        for column in np.argsort(-np.ptp(columns[rows], axis=0) / width, kind="stable"):
            values = columns[rows, column]
            sides = [rows[values < np.median(values)], rows[values >= np.median(values)]]
            if all(passes(side) for side in sides):
                waiting += sides
                break
        else:
            done.append(rows)
    return done


def coordinates(table: dict[str, list[int]]) -> Ints:
    """The two quasi-identifiers, side by side."""
    return np.column_stack([table["age"], table["schooling"]]).astype(np.int64)


def penalty(table: dict[str, list[int]], classes: list[Ints]) -> float:
    """What is lost: the width of each person's intervals in that of the whole columns, on average."""
    columns = coordinates(table)
    widths = sum(len(rows) * (np.ptp(columns[rows], axis=0) / np.ptp(columns, axis=0)).mean() for rows in classes)
    return float(widths / len(columns))


def told(table: dict[str, list[int]], classes: list[Ints]) -> int:
    """How many people are in a class of one income."""
    rich = np.array(table["rich"])
    return sum(len(rows) for rows in classes if len(np.unique(rich[rows])) == 1)


def distance(table: dict[str, list[int]], classes: list[Ints]) -> float:
    """The largest distance of a class's share of the rich from everybody's: t, for two values."""
    rich = np.array(table["rich"])
    return max(abs(float(rich[rows].mean() - rich.mean())) for rows in classes)


def main() -> None:
    """A line for each step, with each way."""
    table = people()
    rich = float(np.mean(table["rich"]))
    print(f"{len(table['rich']):,} people, {1 - rich:.2f} up to 50K, {rich:.2f} over 50K; in every table below, too\n")
    for name, models in STEPS.items():
        for words, classes in (("published", published(table, name)), ("ours", ours(table, models))):
            print(
                f"{name:<12} {words:<9} {len(classes):>4} classes of {min(map(len, classes))} and more, lost "
                f"{penalty(table, classes):7.2%}, told {told(table, classes):>5,}, t = {distance(table, classes):.3f}"
            )


if __name__ == "__main__":
    main()
