"""Who earns more than 50,000? Naive Bayes and logistic regression on five columns of Adult, beside the published figures.

Needs the files adult/adult_train.csv.gz and adult_test.csv.gz in the folder that CLOISTER_DATA names; says so where they are not.

python examples/learn_adult.py
"""

from __future__ import annotations

import csv
import gzip
import os
from functools import cache
from pathlib import Path

import numpy as np

from cloister.learn import GaussianNB, LogisticRegression
from cloister.noise import Random

FOLDER = Path(os.environ.get("CLOISTER_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")) / "adult"
COLUMNS = ("age", "education-num", "capital-gain", "capital-loss", "hours-per-week")
BOUNDS = ([17, 1, 0, 0, 1], [90, 16, 99_999, 4_356, 99])
"""Declared: the code book's, and not the rows'."""
PUBLISHED = {
    "GaussianNB": {None: 0.7964, "1": 0.7859, "0.01": 0.7035},
    "LogisticRegression": {None: 0.8104, "1": 0.8093, "0.01": 0.7401},
}
TIMES = 10


@cache
def rows(part: str) -> tuple[np.ndarray, np.ndarray]:
    """Five columns, and whether the income is high."""
    with gzip.open(FOLDER / f"adult_{part}.csv.gz", "rt", encoding="utf-8", newline="") as lines:
        found = list(csv.DictReader(lines))
    X = np.array([[float(row[name]) for name in COLUMNS] for row in found])
    return X, np.array([row["income"].strip().startswith(">") for row in found]).astype(int)


def accuracies(
    kind: type[GaussianNB | LogisticRegression], epsilon: str | None, times: int = TIMES, *, random: Random | None = None
) -> list[float]:
    """On the test rows, once for each model."""
    (X, y), (X_test, y_test) = rows("train"), rows("test")
    promise = {"privacy": None} if epsilon is None else {"epsilon": epsilon, "random": random}
    return [
        float(kind(bounds=BOUNDS, classes=[0, 1], **promise).fit(X, y).score(X_test, y_test))
        for _ in range(times if epsilon else 1)
    ]


def main() -> None:
    """A line for each model and each ε."""
    if not (FOLDER / "adult_train.csv.gz").is_file():
        print("the Adult files are not here: set CLOISTER_DATA to the folder that holds adult/")
        return
    guess = 1 - rows("test")[1].mean()
    print(f"the larger class alone: {guess:.2%}")
    for kind in (GaussianNB, LogisticRegression):
        for epsilon, published in PUBLISHED[kind.__name__].items():
            found = accuracies(kind, epsilon)
            words = "no privacy" if epsilon is None else f"ε = {epsilon}"
            ours = f"ours {np.mean(found):.2%}, one run ± {np.std(found):.2%}"
            print(f"{kind.__name__:<19} {words:<10} published {published:.2%}, {ours}")


if __name__ == "__main__":
    main()
