"""What reports of a finite channel say of a mean over people, whatever their numbers are: linear functionals of a known error.

Let P(j|x) be the probability of the cell j for a person at the point x, and φ a number for each cell. The mean of φ over reports
is that of (Pφ)(x) over the people, but for chance. So a mean of g over the people (how many lie in a bin: g is 1 there, else 0)
is known up to chance and up to max|g − Pφ|, and both are public facts: no shape of the distribution is assumed. The more closely
Pφ follows a g that jumps, the larger are the numbers φ, and chance. So for a bin two functions are read that have slopes where it
has its ends, one that is nowhere below it and one that is nowhere above.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from cloister.local.numbers.interval import Floats

Map = Callable[[Floats], Floats]

_RIDGES = 10.0 ** np.arange(-1, -8, -2)
_FOLLOWED = 257
_SLOPES = 2.0 ** -np.arange(1.0, 7.0)


@dataclass(frozen=True, kw_only=True)
class Read:
    """Means of functions over the people, one for each: from `low` to `high`, but for chance."""

    low: Floats
    high: Floats
    variance: Floats
    """Of a mean's chance: the largest that there is, wherever people are."""
    part: float
    """By how much one report moves a mean at the most."""


@dataclass(frozen=True, kw_only=True)
class Channel:
    """A channel with a few thousand cells, and reports that came through it.

    >>> same = Channel(forward=lambda shares: shares, back=lambda numbers: numbers, points=4, reports=np.array([1, 1, 0, 2]))
    >>> read = same.read(np.array([[0.0, 0.0, 1.0, 1.0]]), ridge=1e-9)
    >>> read.low.round(3).tolist(), read.high.round(3).tolist()
    ([0.5], [0.5])
    """

    forward: Map
    """The cells' probabilities where people stand at the points with these shares; along the last axis."""
    back: Map
    """For each point, the mean of the cells' numbers; along the last axis."""
    points: int
    reports: Floats
    """How many reports there are of each cell."""
    left_out: float = 0.0
    """The share of people who were not asked, by lot."""

    def read(self, functions: Floats, ridge: float) -> Read:
        """The means of functions of the points, a row each; `ridge` says how much their noise counts beside their error."""
        numbers, misses, variance = self._numbers(functions, ridge)
        n = float(self.reports.sum())
        means = numbers @ self.reports / n
        drawing = self.left_out * (functions.max(axis=1) - functions.min(axis=1)) ** 2 / 4
        return Read(
            low=means + misses.min(axis=1),
            high=means + misses.max(axis=1),
            variance=np.asarray((variance + drawing) / n, dtype=np.float64),
            part=float((numbers.max(axis=1) - numbers.min(axis=1)).max()) / n,
        )

    def finest(self, sides: Callable[[float], Floats]) -> tuple[float, float]:
        """A slope, as a share of the interval, and a ridge: those with which the functions `sides(slope)` are the closest to what
        they stand for, if people are spread evenly. By public facts alone."""
        n, best = float(self.reports.sum()), (np.inf, 0.5, 1.0)
        for slope in _SLOPES.tolist():
            functions = sides(slope)
            for ridge in _RIDGES.tolist():
                _, misses, variance = self._numbers(functions, ridge)
                error = slope + float((misses.max(axis=1) - misses.min(axis=1)).max()) + 2 * float(np.sqrt(variance.max() / n))
                best = min(best, (error, slope, ridge))
        return best[1:]

    def _numbers(self, functions: Floats, ridge: float) -> tuple[Floats, Floats, Floats]:
        """φ of each function g; g − Pφ at each point; and the largest variance of φ of one report. φ is a mixture of what is
        likely at some of the points, so as to follow g there; how far it misses g is worked out at all of them."""
        known = _known(self.forward, self.points)
        weights = (functions[:, known.some] @ known.vectors) / (known.values + ridge * known.values[-1])
        numbers = (weights @ known.vectors.T) @ known.likely / known.often
        means = self.back(numbers)
        return numbers, functions - means, (self.back(numbers**2) - means**2).max(axis=1)


@dataclass(frozen=True, kw_only=True)
class _Known:
    """What is the same for all reports of a channel."""

    some: npt.NDArray[np.int64]
    """The points at which functions are followed."""
    likely: Floats
    """The probability of each cell, for each of these points."""
    often: Floats
    """The probability of each cell where people are spread evenly."""
    values: Floats
    vectors: Floats


@lru_cache(maxsize=8)
def _known(forward: Map, points: int) -> _Known:
    some = np.unique(np.linspace(0, points - 1, min(points, _FOLLOWED)).round().astype(np.int64))
    likely, often = forward(np.eye(points)[some]), forward(np.full(points, 1 / points))
    values, vectors = np.linalg.eigh(likely @ (likely / often).T)
    return _Known(some=some, likely=likely, often=often, values=np.maximum(values, 0.0), vectors=vectors)
