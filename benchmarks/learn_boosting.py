"""Private boosting: accuracy against scikit-learn's boosting without noise, and against diffprivlib's forest at the same ε.

Adult (five columns, and all with declared categories) and breast cancer; all get the same declared bounds. Ours is judged by the
accuracy gained over their forest, by how much it loses against boosting without privacy, and by its time.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from _diffprivlib import RELEASE, available, fits
from _learn_problems import Problem, adult, adult_is_here, cancer
from _report import report
from learn_logistic import CATEGORIES, NUMBERS, _rows, adult_with_categories
from sklearn.ensemble import HistGradientBoostingClassifier

from cloister.learn import GradientBoostingClassifier

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
RUNS = 6 if QUICK else 50
PROMISES = (("1", None), ("1", "1e-5")) if QUICK else (("0.1", None), ("1", None), ("8", None), ("1", "1e-5"), ("8", "1e-5"))


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A problem, its categories, and how much may be lost at ε = 1 against boosting without privacy."""

    name: str
    problems: list[Problem]
    groups: list[list[int]] | None
    lost: float


def main() -> None:
    """Measure, print for people, print for programs."""
    asked = [Asked(name="breast cancer", problems=[cancer(seed) for seed in range(2 if QUICK else 10)], groups=None, lost=0.1)]
    if adult_is_here():
        asked.append(Asked(name="Adult, 5 columns", problems=[adult()], groups=None, lost=0.025))
        asked.append(Asked(name="Adult, all columns", problems=[adult_with_categories()], groups=_groups(), lost=0.03))
    else:
        print("*** Adult is left out: its files are not here ***", flush=True)
    for one in asked:
        compare(one)


def compare(asked: Asked) -> None:
    """Each promise, on the same splits."""
    raw = float(np.mean([HistGradientBoostingClassifier().fit(p.X, p.y).score(p.X_test, p.y_test) for p in asked.problems]))
    each = RUNS // len(asked.problems)
    for epsilon, delta in PROMISES:
        ours, spent = _ours(asked, epsilon, delta, each)
        label = f"boosting, {asked.name}, ε = {epsilon}" + (f", δ = {delta}" if delta else "")
        words = f"{ours:.1%}, {RUNS} runs; scikit-learn without noise {raw:.1%}"
        if epsilon == "1":
            report(f"{label}: accuracy lost to privacy", raw - ours, asked.lost, words, most=True)
        if not available() or delta:
            continue
        found = [
            fits(
                "RandomForestClassifier",
                {"epsilon": float(epsilon), "bounds": p.bounds, "classes": [0, 1]},
                p.X,
                p.y,
                p.X_test,
                p.y_test,
                runs=each,
                first=1000 * place,
            )
            for place, p in enumerate(asked.problems)
        ]
        theirs, seconds = float(np.mean([one.score for one in found])), float(np.median([one.second for one in found]))
        report(f"{label}: accuracy gained", ours - theirs, 0.0, f"{words}; {RELEASE}'s forest {theirs:.1%}")
        report(f"{label}: times faster", seconds / spent, 1, f"a fit: {spent:.3f} s; {RELEASE}'s forest {seconds:.3f} s")


def _ours(asked: Asked, epsilon: str, delta: str | None, each: int) -> tuple[float, float]:
    """The mean accuracy and the median seconds of a fit."""
    scores, seconds = [], []
    for problem in asked.problems:
        for _ in range(each):
            given: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "bounds": problem.bounds, "size": problem.size}
            model = GradientBoostingClassifier(groups=asked.groups, **given)
            begun = time.perf_counter()
            model.fit(problem.X, problem.y)
            seconds.append(time.perf_counter() - begun)
            scores.append(model.score(problem.X_test, problem.y_test))
    return float(np.mean(scores)), float(np.median(seconds))


def _groups() -> list[list[int]]:
    """The places of each category's features, in the order in which `adult_with_categories` writes them."""
    rows = [row for part in ("train", "test") for row in _rows(part)]
    found, at = [], len(NUMBERS)
    for name in CATEGORIES:
        size = len({row[name] for row in rows})
        found.append(list(range(at, at + size)))
        at += size
    return found


if __name__ == "__main__":
    main()
