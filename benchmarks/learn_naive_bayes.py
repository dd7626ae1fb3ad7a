"""Gaussian naive Bayes on Adult: test accuracy by ε, ours and diffprivlib's with the same bounds, and the time of a fit.

Five columns, the published split into train and test. A guess of the most frequent class is right for 76.4 % of the test rows: a
private model below that is worse than silence.
"""

from __future__ import annotations

import os

import numpy as np
from _clock import alternating
from _diffprivlib import RELEASE, available, fits
from _learn_problems import Problem, adult, adult_is_here
from _report import report

from cloister.learn import GaussianNB

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
RUNS = 10 if QUICK else 50
PROMISED = {"1": 0.793, "0.1": 0.785, "0.01": 0.765}
SLACK = 0.004 if QUICK else 0.0


def main() -> None:
    """Accuracy by ε, then the time of a fit."""
    if not adult_is_here():
        print("*** ADULT IS NOT HERE: nothing was measured ***")
        return
    problem = adult()
    plain = GaussianNB(privacy=None).fit(problem.X, problem.y).score(problem.X_test, problem.y_test)
    majority = float(1 - problem.y_test.mean())
    print(f"without privacy {plain:.4f}; the most frequent class {majority:.4f}")
    for epsilon, least in PROMISED.items():
        scores = [score(problem, epsilon) for _ in range(RUNS)]
        mean, error = float(np.mean(scores)), float(np.std(scores) / np.sqrt(RUNS))
        detail = f"mean of {RUNS} runs ± {error:.4f}, Adult, 5 columns; without privacy {plain:.4f}"
        if available():
            theirs = fits(
                "GaussianNB",
                {"epsilon": float(epsilon), "bounds": problem.bounds},
                problem.X,
                problem.y,
                problem.X_test,
                problem.y_test,
                runs=RUNS,
            )
            detail += f"; {RELEASE} {theirs.score:.4f}"
            report(f"naive Bayes, ε = {epsilon}: accuracy over theirs", mean / theirs.score, 1, detail)
        report(f"naive Bayes, ε = {epsilon}: accuracy", mean, least - SLACK, detail)
    if available():
        times(problem)


def score(problem: Problem, epsilon: str) -> float:
    """The accuracy of one fit on the test rows."""
    return float(
        GaussianNB(epsilon=epsilon, bounds=problem.bounds).fit(problem.X, problem.y).score(problem.X_test, problem.y_test)
    )


def times(problem: Problem) -> None:
    """In turns; theirs is timed where it runs, so that nothing of the way there is in it."""
    seconds: list[float] = []

    def their_fit(_: int) -> None:
        seconds.append(fits("GaussianNB", {"epsilon": 1.0, "bounds": problem.bounds}, problem.X, problem.y, runs=1).second)

    [ours, _] = alternating(lambda _: GaussianNB(epsilon=1, bounds=problem.bounds).fit(problem.X, problem.y), their_fit, rounds=9)
    theirs = float(np.median(seconds[1:]))
    report(
        "naive Bayes: their time over ours",
        theirs / ours,
        1,
        f"{ours * 1e3:.1f} ms and {theirs * 1e3:.1f} ms for {len(problem.X):,} rows",
    )


if __name__ == "__main__":
    main()
