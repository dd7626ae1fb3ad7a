"""The filter attack: how much of the noise on a trace a smoother takes off again.

People move little from one point to the next, or go on in the direction in which they went, and noise that is drawn afresh
at each point does not. So a moving median, a mean, a Kalman smoother, or a smoother that knows the law of the noise come
closer to the truth than the release says it lies. What a release is worth against them is its error after the best of them
over its error before: near 1, or the noise was for show. A ratio near 1 shows that these filters fail, not that all do.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.privacy.rational import exact_nonnegative, exact_positive
from cloister.traces.planar import Points

if TYPE_CHECKING:
    from cloister.traces.roads import RoadGraph

WINDOWS = (5, 11, 21, 51, 101)
"""The lengths of moving windows that are tried."""
_ROUNDS = 25
_STILL = 1e-12
"""The least variance of a movement, in square metres."""
_STIFFEST = 1e10
"""How much more a movement may count than a place: floats hold no more than the square of it."""
_ACROSS = 49
"""Cells along a side of the window in which the smoother that knows the law looks for the truth: it is some eight errors wide."""
_NOWHERE = 1e-12
"""What each place has at least: nobody is lost for good."""
_PACES = {False: (0.01, 0.03, 0.1, 0.3), True: (0.001, 0.003, 0.01, 0.03, 0.1)}
"""What is tried of movement, as shares of the noise: steps, and changes of a step."""
_STRIDES = (0.01, 0.03, 0.1, 0.3)
"""What is tried of steps where the law is known, as shares of its scale."""


class Law(Protocol):
    """How a trace was released, as somebody knows it who knows the mechanism."""

    @property
    def scale(self) -> float:
        """About how far released points lie from the truth, in metres."""
        ...

    def log_likelihood(self, released: Points, at: int, places: Points) -> npt.NDArray[np.float64]:
        """For each place, the logarithm of the probability of released point `at` were that place the truth, to a constant."""
        ...


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


def filter_attack(
    truth: Any,
    released: Any,
    *,
    epsilon: float | None = None,
    speed: float | None = None,
    law: Law | None = None,
    roads: RoadGraph | None = None,
) -> FilterAttack:
    """Every filter on a released trace, against the truth that its owner has. Exact: for the owner alone.

    `epsilon` is the rate of planar Laplace noise, ε a metre, where the attacker knows it: then the smoother that knows the
    law is tried. `speed` is how far people move from one point to the next, in metres (a standard deviation an axis), as an
    attacker knows from public traces; left out, several are tried and the best is taken. How much people change their step,
    for the smoothers that foresee the direction, is always tried so. `law` is a mechanism with a law of its own, such as
    `NextPoint`: then the smoother that knows that law, anchors included, is tried. `roads` is a public road graph: then the most
    probable walk on it is tried (Viterbi).

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
    if law is not None:
        paces = (known,) if known is not None else strides(law)
        for pace, (guess, _) in zip(paces, expected_walks(seen, law, paces), strict=True):
            guesses[f"the smoother that knows the law, at {pace:.2g} m a step"] = guess
    if roads is not None:

        def probable(at: int, places: Points) -> npt.NDArray[np.float64]:
            if law is not None:
                return law.log_likelihood(seen, at, places)
            away = np.hypot(*(places - seen[at]).T)
            return np.asarray(-rate * away if rate else -(away**2) / (2 * noise))

        shares = strides(law) if law is not None else tuple(np.sqrt(noise) * share for share in _PACES[False])
        error = float(np.sqrt(noise)) if law is None else law.scale
        for pace in (known,) if known is not None else shares:
            guesses[f"Viterbi on the roads, at {pace:.2g} m a step"] = roads.most_probable(seen, probable, pace, error)
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


def strides(law: Law) -> tuple[float, ...]:
    """What to try of steps in metres, where nothing is known of them."""
    return tuple(law.scale * share for share in _STRIDES)


def expected_walks(seen: Points, law: Law, paces: tuple[float, ...]) -> list[tuple[Points, float]]:
    """For each pace: where the person was on average, given all that was released, if their steps are random with that
    deviation an axis; and how probable such steps make what was released (a logarithm, to a constant). Forwards and backwards
    over the cells of a window around the moving mean of the release; it sees the release and the law alone.
    """
    cell, offsets = 8 * law.scale / (_ACROSS - 1), np.arange(_ACROSS) - _ACROSS // 2
    middles = np.rint(_moving(seen, min(21, len(seen) - 1 + len(seen) % 2), np.mean) / cell).astype(np.int64)
    window = cell * np.stack(np.meshgrid(offsets, offsets, indexing="ij"), axis=-1).reshape(-1, 2)
    likelihoods = np.empty((len(seen), _ACROSS, _ACROSS), dtype=np.float32)
    for at, middle in enumerate(middles):
        logarithm = law.log_likelihood(seen, at, window + cell * middle)
        likelihoods[at] = np.exp(logarithm - logarithm.max()).reshape(_ACROSS, _ACROSS)
    return [_both_ways(middles, likelihoods, offsets, cell, pace) for pace in paces]


def _both_ways(
    middles: npt.NDArray[np.int64], likelihoods: npt.NDArray[Any], offsets: npt.NDArray[np.int64], cell: float, pace: float
) -> tuple[Points, float]:
    """One pace: the mean of the probabilities of cells given all points, and the logarithm of that of the points."""
    apart, variance = offsets[:, None] - offsets, (pace / cell) ** 2

    @cache
    def moved(by: int) -> npt.NDArray[np.float64]:
        """From each old offset (a column) to each new one (a row), where the window moved by so many cells."""
        away = np.abs(apart + by)
        if variance >= 1:
            return np.asarray(np.exp(-(away**2) / (2 * variance)) / np.sqrt(2 * np.pi * variance))
        return np.where(away == 0, 1 - variance, np.where(away == 1, variance / 2, 0.0))

    ways = [[moved(by) for by in way] for way in np.diff(middles, axis=0).tolist()]
    forwards, now, evidence = np.empty_like(likelihoods), np.ones(likelihoods.shape[1:]), 0.0
    for at, likelihood in enumerate(likelihoods):
        if at:
            east, north = ways[at - 1]
            now = east @ now @ north.T
        now = (now / max(now.sum(), _NOWHERE) + _NOWHERE) * likelihood
        evidence += float(np.log(now.sum()))
        now /= now.sum()
        forwards[at] = now
    guess, back = np.empty(middles.shape), np.ones(likelihoods.shape[1:])
    for at in reversed(range(len(middles))):
        both = forwards[at] * back
        both /= both.sum()
        guess[at] = cell * (middles[at] + np.array([both.sum(axis=1) @ offsets, both.sum(axis=0) @ offsets]))
        if at:
            east, north = ways[at - 1]
            back = east.T @ (back * likelihoods[at]) @ north
            back = back / max(back.sum(), _NOWHERE) + _NOWHERE
    return guess, evidence


def _moving(seen: Points, window: int, centre: Any) -> Points:
    """The centre of the window around each point; at the ends the first and last point are repeated."""
    half = window // 2
    padded = np.pad(seen, ((half, half), (0, 0)), mode="edge")
    return np.asarray(centre(np.lib.stride_tricks.sliding_window_view(padded, window, axis=0), axis=-1))


def _error(guess: Points, exact: Points) -> float:
    return float(np.hypot(*(guess - exact).T).mean())
