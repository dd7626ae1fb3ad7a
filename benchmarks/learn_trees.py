"""Private trees and forests: accuracy and speed against diffprivlib's forest, with the same bounds, in one run."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from _diffprivlib import RELEASE, available, fits
from _learn_problems import Problem, adult, adult_is_here, cancer
from _report import report

from cloister.learn.ensembles.trees import DecisionTreeClassifier, RandomForestClassifier

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
RUNS = 5 if QUICK else 50
SPLITS = 2 if QUICK else 10
EPSILONS = ("1",) if QUICK else ("0.1", "1", "8")
OURS: dict[str, Callable[..., Any]] = {
    "tree": DecisionTreeClassifier,
    "tree, gini": lambda **given: DecisionTreeClassifier(criterion="gini", **given),
    "forest": RandomForestClassifier,
    "forest, persons in all trees": lambda **given: RandomForestClassifier(persons="all", **given),
    "forest, random splits": lambda **given: RandomForestClassifier(method="random", n_estimators=10, **given),
}


def main() -> None:
    """Measure, print for people, print for programs."""
    if adult_is_here():
        compare("Adult, 5 columns", [adult()])
    else:
        print("*** Adult is left out: its files are not here ***", flush=True)
    compare("breast cancer", [cancer(seed) for seed in range(SPLITS)])


def compare(name: str, problems: Sequence[Problem]) -> None:
    """Each of ours and theirs, on the same splits."""
    each = RUNS // len(problems)
    for epsilon in EPSILONS:
        means = {label: ours(kind, problems, epsilon, each) for label, kind in OURS.items()}
        raw = np.mean(
            [
                DecisionTreeClassifier(privacy=None, bounds=p.bounds, size=p.size).fit(p.X, p.y).score(p.X_test, p.y_test)
                for p in problems
            ]
        )
        listed = "; ".join(f"{label} {score:.1%}" for label, (score, _) in means.items())
        print(f"{name}, ε = {epsilon}: {listed}; tree without noise {raw:.1%}", flush=True)
        if not available():
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
            for place, p in enumerate(problems)
        ]
        theirs = float(np.mean([one.score for one in found]))
        seconds = float(np.median([one.second for one in found]))
        for label in ("tree", "forest"):
            score, spent = means[label]
            words = f"{score:.1%}, {RELEASE}'s forest {theirs:.1%}, {RUNS} runs"
            report(f"{name}, ε = {epsilon}, {label}: accuracy gained", score - theirs, 0.01, words)
            report(f"{name}, ε = {epsilon}, {label}: times faster", seconds / spent, 1, f"a fit, {RELEASE}: {seconds:.3f} s")


def ours(kind: Callable[..., Any], problems: Sequence[Problem], epsilon: str, each: int) -> tuple[float, float]:
    """The mean accuracy and the median seconds of a fit."""
    scores, seconds = [], []
    for problem in problems:
        for _ in range(each):
            model = kind(epsilon=epsilon, bounds=problem.bounds, size=problem.size)
            begun = time.perf_counter()
            model.fit(problem.X, problem.y)
            seconds.append(time.perf_counter() - begun)
            scores.append(model.score(problem.X_test, problem.y_test))
    return float(np.mean(scores)), float(np.median(seconds))


if __name__ == "__main__":
    main()
