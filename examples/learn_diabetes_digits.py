"""Two data sets that come with scikit-learn: R² of a regression on diabetes, and k-means of handwritten digits, by ε.

python examples/learn_diabetes_digits.py
"""

from __future__ import annotations

import numpy as np
from sklearn import metrics
from sklearn.datasets import load_diabetes, load_digits

from cloister.learn import KMeans, LinearRegression

EPSILONS = ("1", "10", None)
TIMES = 10


def r_squared(epsilon: str | None, *, times: int = TIMES) -> list[float]:
    """On 89 patients, learnt from the other 353; a new division each time, bounds declared."""
    data = load_diabetes()
    found = []
    for seed in range(times):
        order = np.random.default_rng(seed).permutation(442)
        train, test = order[:353], order[353:]
        promise = {"privacy": None} if epsilon is None else {"epsilon": epsilon}
        model = LinearRegression(bounds=(-0.2, 0.2), bounds_y=(25, 346), **promise)
        found.append(float(model.fit(data.data[train], data.target[train]).score(data.data[test], data.target[test])))
    return found


def groups(epsilon: str | None, *, times: int = 3) -> np.ndarray:
    """Inertia, homogeneity, completeness, V, adjusted Rand index: digits in ten groups, pixels in [0, 1]."""
    rows, digits = load_digits(return_X_y=True)
    rows = rows / 16
    found = []
    for _ in range(times if epsilon else 1):
        promise = {"privacy": None} if epsilon is None else {"epsilon": epsilon}
        centres = KMeans(10, bounds=(0, 1), **promise).fit(rows).cluster_centers_
        away = ((rows[:, None, :] - centres) ** 2).sum(axis=2)
        group = away.argmin(axis=1)
        found.append(
            [
                away.min(axis=1).sum(),
                *metrics.homogeneity_completeness_v_measure(digits, group),
                metrics.adjusted_rand_score(digits, group),
            ]
        )
    return np.mean(found, axis=0)


def main() -> None:
    """Two tables."""
    print("diabetes, R² on other patients")
    for epsilon in EPSILONS:
        found = r_squared(epsilon)
        print(
            f"  {'no privacy' if epsilon is None else f'ε = {epsilon}':<12}{np.mean(found):6.2f}, one run ± {np.std(found):.2f}"
        )
    print("\ndigits in ten groups    inertia  homogeneity  completeness     V   ARI")
    for epsilon in EPSILONS:
        inertia, *rest = groups(epsilon)
        words = "no privacy" if epsilon is None else f"ε = {epsilon}"
        print(f"  {words:<20}{inertia:>9,.0f}{rest[0]:>13.2f}{rest[1]:>14.2f}{rest[2]:>6.2f}{rest[3]:>6.2f}")


if __name__ == "__main__":
    main()
