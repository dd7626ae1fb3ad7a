"""Logistic regression and the support vector machine: test accuracy by ε, ours and diffprivlib's with the same bounds.

Adult (five columns, and all with declared categories), breast cancer, digits. Both are given rows scaled by declared bounds; the
norm that theirs needs (`data_norm`) is the longest that those bounds allow.
"""

from __future__ import annotations

import csv
import gzip
import math
import os
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from _diffprivlib import RELEASE, available, fits
from _learn_problems import DATA, Problem, adult, adult_is_here, cancer, digits
from _report import report

from cloister.learn import LinearSVC, LogisticRegression

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
RUNS = 8 if QUICK else 50
SLACK = 0.02 if QUICK else 0.0
NUMBERS = {"age": (17, 90), "education-num": (1, 16), "capital-gain": (0, 99_999), "capital-loss": (0, 4_356)}
NUMBERS["hours-per-week"] = (1, 99)
CATEGORIES = ("workclass", "education", "marital-status", "occupation", "relationship", "race", "sex", "native-country")


@dataclass(frozen=True, kw_only=True)
class Promise:
    """An accuracy to reach."""

    name: str
    problem: Callable[[int], Problem]
    epsilon: str
    least: float
    delta: str | None = None
    compared: bool = True
    runs: int = RUNS


def main() -> None:
    """Each promise, then the other methods and the support vector machine beside it."""
    promises = [
        Promise(name="breast cancer", problem=cancer, epsilon="1", least=0.85),
        Promise(name="breast cancer", problem=cancer, epsilon="8", least=0.93),
        Promise(name="breast cancer", problem=cancer, epsilon="1", delta="1e-5", least=0.94),
        Promise(name="breast cancer", problem=cancer, epsilon="8", delta="1e-5", least=0.95),
        Promise(name="digits", problem=digits, epsilon="1", least=0.50),
        Promise(name="digits", problem=digits, epsilon="8", least=0.85),
        Promise(name="digits", problem=digits, epsilon="1", delta="1e-5", least=0.88),
        Promise(name="digits", problem=digits, epsilon="8", delta="1e-5", least=0.91),
    ]
    if adult_is_here():
        five, every = adult(), adult_with_categories()
        promises += [
            Promise(name="Adult, 5 columns", problem=lambda _: five, epsilon="1", least=0.809),
            Promise(name="Adult, 5 columns", problem=lambda _: five, epsilon="0.01", least=0.78),
            Promise(
                name="Adult, all columns",
                problem=lambda _: every,
                epsilon="1",
                delta="1e-5",
                least=0.84,
                compared=False,
                runs=2 if QUICK else 20,
            ),
        ]
    else:
        print("*** ADULT IS NOT HERE: its promises were not measured ***")
    for promise in promises:
        measure(promise)


def measure(promise: Promise) -> None:
    """Ours, theirs, and the same problem for the support vector machine."""
    ours, machine, plain, theirs, seconds = [], [], [], [], []
    for seed in range(promise.runs):
        given = promise.problem(seed)
        low, high = (np.asarray(side, dtype=float) for side in given.bounds)
        shared = {"epsilon": promise.epsilon, "delta": promise.delta, "bounds": given.bounds, "classes": given.classes}
        ours.append(LogisticRegression(**shared).fit(given.X, given.y).score(given.X_test, given.y_test))
        machine.append(LinearSVC(**shared).fit(given.X, given.y).score(given.X_test, given.y_test))
        if seed < 3:
            without = LogisticRegression(privacy=None, bounds=given.bounds, classes=given.classes)
            plain.append(without.fit(given.X, given.y).score(given.X_test, given.y_test))
        if promise.compared and promise.delta is None and available():
            found = fits(
                "LogisticRegression",
                {"epsilon": float(promise.epsilon), "data_norm": math.sqrt(len(low))},
                np.clip((given.X - low) / (high - low), 0, 1),
                given.y,
                np.clip((given.X_test - low) / (high - low), 0, 1),
                given.y_test,
                runs=1,
                first=seed,
            )
            theirs.append(found.score)
            seconds.append(found.second)
    mean, error = float(np.mean(ours)), float(np.std(ours) / math.sqrt(len(ours)))
    label = f"logistic regression, {promise.name}, ε = {promise.epsilon}" + (f", δ = {promise.delta}" if promise.delta else "")
    detail = f"mean of {len(ours)} runs ± {error:.4f}; support vector machine {np.mean(machine):.4f}"
    detail += f"; without privacy {np.mean(plain):.4f}"
    if theirs:
        detail += f"; {RELEASE} {np.mean(theirs):.4f}"
        report(f"{label}: accuracy over theirs", mean / float(np.mean(theirs)), 1, detail)
    report(f"{label}: accuracy", mean, promise.least - SLACK, detail)


def adult_with_categories() -> Problem:
    """All columns but the sampling weight; a category is a feature for each value, "?" among them."""
    rows = {part: _rows(part) for part in ("train", "test")}
    domains = {name: sorted({row[name] for part in rows.values() for row in part}) for name in CATEGORIES}
    (X, y), (X_test, y_test) = (_encoded(rows[part], domains) for part in ("train", "test"))
    size = sum(len(values) for values in domains.values())
    bounds = (
        [float(low) for low, _ in NUMBERS.values()] + [0.0] * size,
        [float(high) for _, high in NUMBERS.values()] + [1.0] * size,
    )
    return Problem(X=X, y=y, X_test=X_test, y_test=y_test, bounds=bounds, classes=[0, 1], size=32_000)


def _rows(part: str) -> list[dict[str, str]]:
    with gzip.open(DATA / "adult" / f"adult_{part}.csv.gz", "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _encoded(rows: list[dict[str, str]], domains: dict[str, list[str]]) -> tuple[np.ndarray, np.ndarray]:
    numbers = np.array([[float(row[name]) for name in NUMBERS] for row in rows])
    parts = [np.array([row[name] for row in rows])[:, None] == np.array(values) for name, values in domains.items()]
    y = np.array([row["income"].startswith(">") for row in rows]).astype(np.int64)
    return np.concatenate([numbers, *parts], axis=1).astype(np.float64), y


if __name__ == "__main__":
    main()
