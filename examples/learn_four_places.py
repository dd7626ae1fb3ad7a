"""Where noise can go: the four places to perturb when a model is learnt, on one model, as one curve.

input      each person's row is noised before anything is learnt (nobody need be trusted): Laplace noise on every scaled feature,
           randomised response on the class, half of ε each
objective  a random linear term is added to what is minimised, once
gradient   every step of a descent is noised
output     the finished weights are noised by as much as one person can move them

python examples/learn_four_places.py
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from sklearn.datasets import load_breast_cancer

from cloister.learn import LogisticRegression
from cloister.noise import BinaryResponse, Laplace

EPSILONS = ("0.1", "0.3", "1", "3", "10", "30")
PLACES = ("input", "objective", "gradient", "output")
TIMES = 5
CHOSEN = [0, 1, 20, 21, 24, 27]
"""Mean radius and texture; worst radius, texture, smoothness, concave points."""
LOW, HIGH = [6.0, 9.0, 7.0, 12.0, 0.07, 0.0], [29.0, 40.0, 37.0, 50.0, 0.23, 0.3]


def four_places(epsilons: tuple[str, ...] = EPSILONS, *, times: int = TIMES) -> dict[str, list[float]]:
    """The mean test accuracy of each place by ε; without noise; and of guessing the larger class."""
    data = load_breast_cancer()
    X, y = data.data[:, CHOSEN], data.target
    test = np.arange(len(X)) % 4 == 0
    found: dict[str, list[float]] = {}
    for place in PLACES:
        learn = with_noisy_rows if place == "input" else at(place)
        found[place] = [
            float(np.mean([learn(X[~test], y[~test], epsilon).score(X[test], y[test]) for _ in range(times)]))
            for epsilon in epsilons
        ]
    plain = LogisticRegression(privacy=None, bounds=(LOW, HIGH), classes=[0, 1]).fit(X[~test], y[~test])
    found["none"] = [float(plain.score(X[test], y[test]))] * len(epsilons)
    found["guess"] = [float(max(y[test].mean(), 1 - y[test].mean()))] * len(epsilons)
    return found


def at(place: str) -> Callable[[np.ndarray, np.ndarray, str], LogisticRegression]:
    """Learning with the noise in one of the three central places."""

    def learn(X: np.ndarray, y: np.ndarray, epsilon: str) -> LogisticRegression:
        return LogisticRegression(epsilon=epsilon, bounds=(LOW, HIGH), method=place).fit(X, y)

    return learn


def with_noisy_rows(X: np.ndarray, y: np.ndarray, epsilon: str) -> LogisticRegression:
    """Every row noised on its own: each of its d features has a d-th of half of ε, its class the other half."""
    low, high = np.array(LOW), np.array(HIGH)
    half = float(epsilon) / 2
    mechanism = Laplace.for_epsilon(str(half), sensitivity=X.shape[1], coordinates=X.shape[1], step="0.001")
    noisy = low + np.asarray(mechanism.release(np.clip((X - low) / (high - low), 0, 1))) * (high - low)
    answers = BinaryResponse.for_epsilon(str(half)).release(y == 1)
    reach = (high - low) * 3 * math.sqrt(mechanism.variance)
    wide = ((low - reach).tolist(), (high + reach).tolist())
    model = LogisticRegression(privacy=None, bounds=wide, classes=[0, 1], ridge=1e-3)
    return model.fit(noisy, np.asarray(answers).astype(np.int64))


def main() -> None:
    """The curve, as a table."""
    curve = four_places()
    print("accuracy on test rows")
    print("ε         " + "".join(f"{epsilon:>8}" for epsilon in EPSILONS))
    for place, accuracies in curve.items():
        print(f"{place:<10}" + "".join(f"{accuracy:>8.1%}" for accuracy in accuracies))


if __name__ == "__main__":
    main()
