"""The filter attack: how much of the noise on a trace a smoother takes off again.

People move little from one point to the next, or go on in the direction in which they went, and noise that is drawn afresh
at each point does not. So a moving median, a mean, a Kalman smoother, or a smoother that knows the law of the noise come
closer to the truth than the release says it lies. What a release is worth against them is its error after the best of them
over its error before: near 1, or the noise was for show. A ratio near 1 shows that these filters fail, not that all do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.privacy.rational import exact_nonnegative, exact_positive
from cloister.traces.planar import Points

WINDOWS = (5, 11, 21, 51, 101)
"""The lengths of moving windows that are tried."""
_ROUNDS = 25
_STILL = 1e-12
"""The least variance of a movement, in square metres."""
_STIFFEST = 1e10
"""How much more a movement may count than a place: floats hold no more than the square of it."""
_PACES = {False: (0.01, 0.03, 0.1, 0.3), True: (0.001, 0.003, 0.01, 0.03, 0.1)}
"""What is tried of movement, as shares of the noise: steps, and changes of a step."""


@dataclass(frozen=True, slots=True)
class FilterAttack:
    """Mean distances to the truth, in metres: of the release, and of it after each filter.

    >>> attack = FilterAttack(before=100.0, after={"a moving median of 5": 48.0, "a moving median of 21": 27.0})
    >>> attack.best, attack.ratio
    ('a moving median of 21', 0.27)
    """

    before: float
    after: dict[str, float]

    @property
    def best(self) -> str:
        """The filter that comes closest."""
        return min(self.after, key=self.after.__getitem__)

    @property
    def ratio(self) -> float:
        """The error after the best filter over the error before; 1 where none comes closer than the release itself."""
        return min(1.0, self.after[self.best] / self.before) if self.before else 1.0

    def __str__(self) -> str:
        return f"{self.before:.0f} m, {self.after[self.best]:.0f} m after {self.best}: {self.ratio:.2f} of it is left"


def filter_attack(truth: Any, released: Any, *, epsilon: float | None = None, speed: float | None = None) -> FilterAttack:
    """Every filter on a released trace, against the truth that its owner has. Exact: for the owner alone.

    `epsilon` is the rate of planar Laplace noise, ε a metre, where the attacker knows it: then the smoother that knows the
    law is tried. `speed` is how far people move from one point to the next, in metres (a standard deviation an axis), as an
    attacker knows from public traces; left out, several are tried and the best is taken. How much people change their step,
    for the smoothers that foresee the direction, is always tried so.

    >>> from cloister.noise import Random
    >>> from cloister.traces import PlanarLaplace
    >>> walk = np.cumsum(np.random.default_rng(1).normal(0, 2, (800, 2)), axis=0)
    >>> noisy = PlanarLaplace("0.02").release(walk, random=Random.deterministic(1))
    >>> attack = filter_attack(walk, noisy, epsilon=0.02)
    >>> attack.ratio < 0.3 and attack.before > 80
    True
    """
    exact, seen = (np.asarray(trace, dtype=np.float64) for trace in (truth, released))
    if exact.ndim != 2 or exact.shape[1:] != (2,) or exact.shape != seen.shape or not len(exact):
        raise InvalidParameter(
            "The traces are invalid", why="both must have the same number of rows of two numbers", instead="filter_attack(a, b)"
        )
    if not np.isfinite(exact).all() or not np.isfinite(seen).all():
        raise InvalidParameter(
            "The traces are invalid", why="all places must be finite numbers", instead="the points that have a place in both"
        )
    rate = None if epsilon is None else float(exact_positive(epsilon, "epsilon"))
    known = None if speed is None else float(exact_nonnegative(speed, "speed"))
    windows = [window for window in WINDOWS if window <= len(seen)]
    guesses: dict[str, Points] = {}
    for window in windows:
        guesses[f"a moving median of {window}"] = _moving(seen, window, np.median)
        guesses[f"a moving mean of {window}"] = _moving(seen, window, np.mean)
    noise = 3 / rate**2 if rate else float(np.mean(np.diff(seen, axis=0) ** 2)) / 2 if len(seen) > 1 else 1.0
    noise = max(noise, _STILL)  # a release that does not move has none to see
    for direction, shares in _PACES.items():
        what = " and the direction" if direction else ""
        for pace in (known,) if known is not None and not direction else tuple(np.sqrt(noise) * share for share in shares):
            at = f"{pace:.2g} m a step{what}"
            guesses[f"a Kalman smoother at {at}"] = smoothed(seen, pace**2, np.full(len(seen), noise), direction=direction)
            if rate:
                guesses[f"the smoother that knows the noise, at {at}"] = _knowing(seen, pace**2, rate, direction)
    return FilterAttack(_error(seen, exact), {name: _error(guess, exact) for name, guess in guesses.items()})


def smoothed(seen: Points, moved: float, noise: npt.NDArray[np.float64], *, direction: bool = False) -> Points:
    """The most likely walk under Gaussian noise of these variances, whose steps are random with variance `moved`, or with
    `direction` the changes of its steps: the Kalman smoother, as the one solution of its banded equations.

    >>> smoothed(np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 0.0]]), 1e9, np.ones(3)).round(3).tolist()[1]
    [4.0, 0.0]
    >>> smoothed(np.array([[0.0, 0.0], [5.0, 0.0], [4.0, 0.0]]), 1e-4, np.ones(3), direction=True).round(1).tolist()
    [[1.0, 0.0], [3.0, 0.0], [5.0, 0.0]]
    """
    from scipy.linalg import solveh_banded

    difference = np.array([1.0, -2.0, 1.0] if direction else [1.0, -1.0])
    count, order = len(seen), len(difference) - 1
    if count <= order:
        return np.array(seen)
    weights = noise.min() / noise
    pull = np.outer(difference, difference) * min(noise.min() / max(moved, _STILL), _STIFFEST)
    bands = np.zeros((order + 1, count))
    bands[order] = weights
    for row in range(order + 1):
        for column in range(row, order + 1):  # entry (k + row, k + column) of the equations, for each difference k
            bands[order - (column - row), column : count - order + column] += pull[row, column]
    return np.asarray(solveh_banded(bands, seen * weights[:, None]))


def _knowing(seen: Points, moved: float, epsilon: float, direction: bool) -> Points:
    """The most likely walk under planar Laplace noise: it minimises Σ ε‖z − x‖ + Σ‖Δx‖²/2·moved (Δ²x with `direction`), which
    is convex, by weights that are set again in each round (a point at distance r counts as Gaussian of variance r/ε).
    """
    guess = smoothed(seen, moved, np.full(len(seen), 3 / epsilon**2), direction=direction)
    for _ in range(_ROUNDS):
        away = np.hypot(*(seen - guess).T)
        guess = smoothed(seen, moved, np.maximum(away, 0.01 / epsilon) / epsilon, direction=direction)
    return guess


def _moving(seen: Points, window: int, centre: Any) -> Points:
    """The centre of the window around each point; at the ends the first and last point are repeated."""
    half = window // 2
    padded = np.pad(seen, ((half, half), (0, 0)), mode="edge")
    return np.asarray(centre(np.lib.stride_tricks.sliding_window_view(padded, window, axis=0), axis=-1))


def _error(guess: Points, exact: Points) -> float:
    return float(np.hypot(*(guess - exact).T).mean())
