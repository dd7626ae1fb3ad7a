"""Linear regression on scikit-learn's diabetes data: R² on a fifth of the rows by ε, ours and diffprivlib's with the same bounds.

Bounds are declared: every feature within ±0.2 (as scikit-learn scales them), the target from 25 to 346. 442 rows, of which 353
are learnt from, in a new split each run. Medians are compared, since the mean of theirs is that of a few explosions.
"""

from __future__ import annotations

import os

import numpy as np
from _clock import alternating
from _diffprivlib import RELEASE, available, fits
from _report import report
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from cloister.learn import LinearRegression

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
RUNS = 10 if QUICK else 50
EPSILONS = ("1", "10") if QUICK else ("0.3", "1", "2", "3", "5", "10")
LOW, HIGH = -0.2, 0.2
TARGET = (25, 346)


def main() -> None:
    """The curve, then the time of a fit."""
    X, y = load_diabetes(return_X_y=True)
    splits = [train_test_split(X, y, test_size=0.2, random_state=seed) for seed in range(RUNS)]
    plain = float(np.mean([LinearRegression(privacy=None).fit(a, c).score(b, d) for a, b, c, d in splits]))
    print(f"without privacy R² = {plain:.3f}, mean of {RUNS} splits; always the mean of the target: 0")
    for epsilon in EPSILONS:
        pure, approximate = ours(splits, epsilon, None), ours(splits, epsilon, "1e-6")
        detail = f"mean of {RUNS} splits; with δ = 1e-6 {approximate.mean():.3f}; without privacy {plain:.3f}"
        if available():
            theirs = their_scores(splits, epsilon)
            detail += f"; {RELEASE} {theirs.mean():.3g} (median {np.median(theirs):.3g})"
            above = float(np.median(pure) - np.median(theirs))
            report(f"linear regression, ε = {epsilon}: median R² above theirs", above, 0, detail)
        least = {"1": 0.15, "10": 0.4}.get(epsilon)
        if least is not None:
            report(f"linear regression, ε = {epsilon}: R²", float(pure.mean()), least, detail)
        else:
            print(f"linear regression, ε = {epsilon}: R² = {pure.mean():.3f} ± {pure.std() / np.sqrt(RUNS):.3f}; {detail}")
    if available():
        times(X, y)


def ours(splits: list[list[np.ndarray]], epsilon: str, delta: str | None) -> np.ndarray:
    """The score of one fit on each split."""
    model = LinearRegression(epsilon=epsilon, delta=delta, bounds=(LOW, HIGH), bounds_y=TARGET)
    return np.array([model.fit(a, c).score(b, d) for a, b, c, d in splits])


def their_scores(splits: list[list[np.ndarray]], epsilon: str) -> np.ndarray:
    """Theirs on the same splits."""
    return np.array(
        [fits("LinearRegression", theirs_of(epsilon), a, c, b, d, runs=1, first=i).score for i, (a, b, c, d) in enumerate(splits)]
    )


def theirs_of(epsilon: str) -> dict[str, object]:
    """The same bounds in their words."""
    return {"epsilon": float(epsilon), "bounds_X": ([LOW] * 10, [HIGH] * 10), "bounds_y": TARGET}


def times(X: np.ndarray, y: np.ndarray) -> None:
    """In turns; theirs is timed where it runs, so that nothing of the way there is in it."""
    seconds: list[float] = []
    model = LinearRegression(epsilon=1, bounds=(LOW, HIGH), bounds_y=TARGET)

    def their_fit(_: int) -> None:
        seconds.append(fits("LinearRegression", theirs_of("1"), X, y, runs=1).second)

    [mine, _] = alternating(lambda _: model.fit(X, y), their_fit, rounds=9)
    theirs = float(np.median(seconds[1:]))
    report(
        "linear regression: their time over ours",
        theirs / mine,
        1,
        f"{mine * 1e3:.1f} ms and {theirs * 1e3:.1f} ms for {len(X)} rows",
    )


if __name__ == "__main__":
    main()
