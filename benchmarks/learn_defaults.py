"""Are the defaults of models those that other data would have chosen? Leave one data set out, over all that are at hand.

For each model and ε, every setting learns from two thirds of each data set and is judged on the rest, with the bounds, classes
and categories that the codebook makes public. Leave-one-data-set-out: for each data set the setting that was best on all *others*
(mean accuracy, or R²) is looked up on this one. A default keeps its promise where it is, on average, at most one point below that
choice: nobody who knew only other data sets would have done better. Where the default itself depends on public facts (the size,
ε), it is one setting among the others.

`learn_defaults.py tree boosting` runs those alone. Cut short by CLOISTER_BENCH_QUICK.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from _learn_sets import CLASSES, NUMBERS, Codebook, Split, here
from _report import report

from cloister.learn import (
    DecisionTreeClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    LinearRegression,
    LogisticRegression,
    RandomForestClassifier,
)

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK")) or "--quick" in sys.argv
RUNS = 8 if QUICK else 10
FEW = RUNS if QUICK else 80
"""Of few rows, which cost little: with ten splits their chance was as large as what is promised."""
MANY = RUNS if QUICK else 400
"""The same of numbers at the smallest ε: a split's R² is chance there, and moved the mean by more than the limit."""
EPSILONS = ("1",) if QUICK else ("0.1", "1", "8")
LIMIT = 0.01
DEFAULT = "default"

Make = Callable[[Split, str], Any]
Scores = npt.NDArray[np.float64]


def of(kind: Callable[..., Any], *, sized: bool = True, grouped: bool = False, **given: Any) -> Make:
    """A setting: the class with these arguments, and what is public of the split."""

    def made(split: Split, epsilon: str) -> Any:
        known = {**split.given(), **({"size": split.size} if sized else {}), **({"groups": split.book.groups} if grouped else {})}
        return kind(epsilon=epsilon, **known, **given)

    return made


SETTINGS: Mapping[str, Mapping[str, Make]] = {
    "tree": {
        DEFAULT: of(DecisionTreeClassifier),
        "default, no size": of(DecisionTreeClassifier, sized=False),
        **{
            f"{how}, depth {depth}": of(DecisionTreeClassifier, criterion=how, max_depth=depth)
            for how in ("max", "gini")
            for depth in (1, 2, 4, 6)
        },
    },
    "forest": {
        DEFAULT: of(RandomForestClassifier),
        "default, no size": of(RandomForestClassifier, sized=False),
        **{
            f"{how}, {trees} × {depth}": of(RandomForestClassifier, criterion=how, max_depth=depth, n_estimators=trees)
            for how in ("max", "gini")
            for trees, depth in ((1, 2), (3, 2), (3, 4), (5, 5))
        },
        "random splits, 10": of(RandomForestClassifier, method="random", n_estimators=10),
    },
    "boosting": {
        DEFAULT: of(GradientBoostingClassifier),
        "default, no size": of(GradientBoostingClassifier, sized=False),
        "every feature alone": of(GradientBoostingClassifier, groups=[]),
        **{
            f"{bins} bins, {rounds} rounds": of(GradientBoostingClassifier, bins=bins, rounds=rounds)
            for bins in (4, 16)
            for rounds in (0, 1, 3)
        },
        "four columns": of(GradientBoostingClassifier, max_features=4),
    },
    "boosting of numbers": {
        DEFAULT: of(GradientBoostingRegressor),
        "default, no size": of(GradientBoostingRegressor, sized=False),
        "every feature alone": of(GradientBoostingRegressor, groups=[]),
        **{
            f"{bins} bins, {rounds} rounds": of(GradientBoostingRegressor, bins=bins, rounds=rounds)
            for bins in (4, 16)
            for rounds in (0, 1, 3)
        },
        "four columns": of(GradientBoostingRegressor, max_features=4),
    },
    "linear": {DEFAULT: of(LinearRegression, sized=False)},
    "logistic": {
        DEFAULT: of(LogisticRegression, sized=False),
        **{f"ridge {alpha}": of(LogisticRegression, sized=False, ridge=alpha) for alpha in (0.1, 1.0, 10.0)},
    },
}


def main() -> None:
    """Every model that was asked for."""
    warnings.filterwarnings("ignore")
    asked = [each for each in sys.argv[1:] if not each.startswith("-")]
    for model, settings in SETTINGS.items():
        if not asked or model in asked:
            books = tuple(here(NUMBERS if model in ("boosting of numbers", "linear") else CLASSES))
            for epsilon in EPSILONS if books else ():
                judged(model, epsilon, settings, books)
    if not any(book.here for book in CLASSES):
        print("*** no data set is here: CLOISTER_DATA names no folder that holds them ***", flush=True)


def judged(model: str, epsilon: str, settings: Mapping[str, Make], books: tuple[Codebook, ...]) -> None:
    """A table, and what leaving each data set out says of the default."""
    table = np.array([[scored(book, make, epsilon) for make in settings.values()] for book in books])
    names = list(settings)
    print(f"\n{model}, ε = {epsilon}\n{'':28}" + "".join(f"{name[:18]:>19}" for name in names))
    for book, row in zip(books, table, strict=True):
        print(f"{book.name[:27]:28}" + "".join(f"{score:19.3f}" for score in row))
    print(f"{'mean':28}" + "".join(f"{score:19.3f}" for score in table.mean(axis=0)), flush=True)
    if len(names) == 1:
        return
    chosen = [left_out(table, place) for place in range(len(books))]
    lost = table[np.arange(len(books)), chosen] - table[:, 0]
    mine, worst = float(table[:, 0].mean()), int(lost.argmax())
    words = f"{len(books)} data sets, {RUNS} splits each, of few rows {few_of(books[0], epsilon)}; default {mine:.3f}"
    words += f", chosen elsewhere {mine + lost.mean():.3f}"
    words += f"; most is lost on {books[worst].name}: {lost[worst]:.3f} by {names[chosen[worst]]!r}"
    what = f"{model}, ε = {epsilon}: what a choice on other data sets gains over the default"
    report(what, float(lost.mean()), LIMIT, words, most=True)


def scored(book: Codebook, make: Make, epsilon: str) -> float:
    """The mean over splits."""
    runs = few_of(book, epsilon) if len(book.table) < 5000 else RUNS
    return float(np.mean([(split := book.split(seed)).score(make(split, epsilon)) for seed in range(runs)]))


def few_of(book: Codebook, epsilon: str) -> int:
    """How many splits a data set of few rows has."""
    return MANY if book in NUMBERS and epsilon == "0.1" else FEW


def left_out(table: Scores, place: int) -> int:
    """The setting that is best on all data sets but this one."""
    others = np.delete(table - table.mean(axis=1, keepdims=True), place, axis=0)
    return int(others.mean(axis=0).argmax())


if __name__ == "__main__":
    main()
