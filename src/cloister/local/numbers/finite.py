"""Mechanisms whose report is one of a few thousand cells: a histogram is their sketch, and it tells more than a mean.

For several coordinates, a person reports k = max(1, min(d, ⌊ε/2.5⌋)) of them, drawn without replacement, each at ε/k (Wang et
al. 2019). Which ones is drawn without a look at the numbers, so the reports compose to ε.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.local.frequency.estimates import SURE, Number, Spread
from cloister.local.numbers.interval import Floats, check_grid
from cloister.local.numbers.numeric import NumericMechanism
from cloister.local.protocols.protocol import Reports, Sketch
from cloister.noise import Random
from cloister.privacy.rational import Exact

if TYPE_CHECKING:
    from cloister.local.numbers.distribution import Distribution

_CELLS = 1 << 24
_PER_COORDINATE = Fraction(5, 2)


class FiniteMechanism(NumericMechanism):
    """A mechanism with points to come from and cells to go to; see `NumericMechanism` for the promise.

    A subclass says how a cell is drawn, and for each cell two numbers in units of the interval: one whose mean is the person's
    number (`_firsts`), and one whose mean is its square (`_seconds`). Means of these over reports are unbiased.
    """

    _grid: int
    picks: int
    """How many coordinates a person reports."""

    def __init__(self, low: Exact = -1, high: Exact = 1, epsilon: Exact = 1, *, grid: int = 1024, dimensions: int = 1) -> None:
        super().__init__(low, high, epsilon, dimensions=dimensions)
        self._grid = check_grid(grid)
        self.picks = told_coordinates(self.epsilon, self.dimensions)
        self._share = self.epsilon / self.picks

    @property
    @abstractmethod
    def _cells(self) -> int:
        """How many cells one coordinate has."""

    @abstractmethod
    def _draw(self, values: Floats, random: Random) -> npt.NDArray[np.int64]:
        """A cell for each value."""

    @property
    @abstractmethod
    def _firsts(self) -> Floats: ...

    @property
    @abstractmethod
    def _seconds(self) -> Floats | None: ...

    @abstractmethod
    def _forward(self, shares: Floats) -> Floats:
        """The cells' probabilities where people stand at the points of the grid with these shares; along the last axis."""

    @abstractmethod
    def _back(self, numbers: Floats) -> Floats:
        """For each point of the grid, the mean of the cells' numbers; along the last axis."""

    @property
    def grid(self) -> int:
        """How many steps the interval has."""
        return self._grid

    @property
    def report_size(self) -> int:
        return self.picks * (self._cells * self.dimensions - 1).bit_length()

    @property
    def _width(self) -> int:
        return 0 if self.dimensions == 1 else self.picks

    def valid(self, reports: Reports) -> npt.NDArray[np.bool_]:
        good = (reports >= 0) & (reports < self._cells * self.dimensions)
        if self.dimensions == 1:
            return np.asarray(good, dtype=np.bool_)
        told = np.sort(reports // self._cells, axis=1)
        return np.asarray(good.all(axis=1) & (told[:, 1:] != told[:, :-1]).all(axis=1), dtype=np.bool_)

    def spread(self, reports: Any, *, coordinate: int = 0) -> Number:
        """The variance of people's numbers, of their reports or of a sketch: unbiased but for what the grid adds, which is at
        most a quarter of a squared step.

        >>> from cloister.local import Piecewise
        >>> mechanism = Piecewise(0, 1, epsilon=2)
        >>> spread = mechanism.spread(mechanism.randomize([0.25, 0.75] * 20000, random=Random.deterministic(1)))
        >>> abs(spread.value - 0.0625) < spread.margin(0.999) < 0.05
        True
        """
        sketch = self._sketch(reports)
        counts, seconds = self._histogram(sketch, coordinate), self._seconds
        if seconds is None:
            raise self._means_only()
        n = float(counts.sum())
        first, second = (float(counts @ each) / n for each in (self._firsts, seconds))
        doubt = float(self._doubts(sketch, np.array([first]), counts[None, :])[0])
        noise, part = self._noise_of_spread(first, doubt, counts)
        noise += (1 - self.picks / self.dimensions) / 4  # of who reported it: squares from 0 to 1 vary by no more
        span = self.interval.span
        return Spread(
            value=span**2 * (second - first**2 + doubt),
            variance=span**4 * noise / n,
            n=sketch.n,
            part=span**2 * part / n,
            mean=Number(value=span * first, variance=span**2 * doubt, n=sketch.n, part=span * self._part / sketch.n),
            most=span**2 / 4,
        )

    def _noise_of_spread(self, mean: float, doubt: float, counts: npt.NDArray[np.int64]) -> tuple[float, float]:
        """The variance of one report's part of e₂ − 2μe₁ (`Spread`), and by how much it moves that at the most.

        μ is some number that the mean allows; of a report's variance, a convex function of μ, the larger of both ends is taken,
        at the point of the grid where it is the largest, or as the reports tell it, and two deviations more, where that is less.
        """
        assert self._seconds is not None
        n, found = float(counts.sum()), []
        for end in np.clip((mean - SURE * math.sqrt(doubt), mean + SURE * math.sqrt(doubt)), 0.0, 1.0):
            parts = self._seconds - 2 * end * self._firsts
            squares = (parts - float(counts @ parts) / n) ** 2
            told = float(counts @ squares) / n + float(squares.max() - squares.min()) / math.sqrt(n)
            worst = float((self._back(parts**2) - self._back(parts) ** 2).max())
            found.append((min(told, worst), float(parts.max() - parts.min())))
        return max(found)[0], max(part for _, part in found)

    def distribution(self, reports: Any, *, coordinate: int = 0) -> Distribution:
        """How people's numbers are spread over the interval, by expectation–maximisation: for quantiles and histograms."""
        from cloister.local.numbers.distribution import Distribution

        if self._seconds is None:
            raise self._means_only()
        counts = self._histogram(self._sketch(reports), coordinate)
        points = self.interval.low + self.interval.span * self._points
        return Distribution.fit(
            counts,
            points=points,
            forward=self._forward,
            back=self._back,
            epsilon=float(self._share),
            circular=self._circular,
            left_out=1 - self.picks / self.dimensions,
        )

    _circular = False

    @property
    def _part(self) -> float:
        return float(self._firsts.max() - self._firsts.min()) * self.dimensions / self.picks

    @property
    def _points(self) -> Floats:
        return np.arange(self._grid + 1) / self._grid

    def _histogram(self, sketch: Sketch, coordinate: int) -> npt.NDArray[np.int64]:
        self._check_coordinate(coordinate)
        counts: npt.NDArray[np.int64] = sketch.counts.reshape(self.dimensions, self._cells)[coordinate]
        if not counts.any():
            raise InvalidParameter("No reports", why="nobody told of this coordinate", instead="more reports")
        return counts

    def _means_only(self) -> InvalidParameter:
        return InvalidParameter(
            "Only means can be read", why="reports are two values at this ε", instead="Piecewise(low, high, epsilon)"
        )

    def _report(self, values: Floats, random: Random) -> Reports:
        if self.dimensions == 1:
            return self._draw(values[:, 0], random)
        told = drawn_coordinates(self.picks, self.dimensions, len(values), random)
        rows = np.arange(len(values))
        columns = [told[:, i] * self._cells + self._draw(values[rows, told[:, i]], random) for i in range(self.picks)]
        return np.stack(columns, axis=1)

    def _count(self, reports: Reports) -> npt.NDArray[np.int64]:
        size = self._cells * self.dimensions
        if size > _CELLS:
            raise InvalidParameter("The sketch was not made", why=f"it has more than {_CELLS} counts", instead="grid=64")
        return np.bincount(reports.astype(np.int64).ravel(), minlength=size).astype(np.int64)

    def _means(self, sketch: Sketch) -> tuple[Floats, Floats]:
        counts = sketch.counts.reshape(self.dimensions, self._cells)
        told = counts.sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            means = counts @ self._firsts / told
            doubts = self._doubts(sketch, means, counts)
        return means, np.where(told > 0, doubts, np.inf)

    def _doubts(self, sketch: Sketch, means: Floats, counts: npt.NDArray[np.int64]) -> Floats:
        """The variance of means, as the reports themselves tell it: the mean of (report − number)² over people, within what is
        possible at all; where people report some coordinates only, what that leaves out comes to it."""
        told = counts.sum(axis=1)
        squares = counts @ self._firsts**2 / told
        seconds = means**2 if self._seconds is None else counts @ self._seconds / told
        own = self._firsts**2 - (0.0 if self._seconds is None else self._seconds)
        unsure = (own.max() - own.min()) / np.sqrt(told)  # two deviations of `squares − seconds`, at most: few reports may agree
        noise = np.clip(squares - seconds + unsure, self._noises.min(), self._noises.max())
        left_out = (1 - self.picks / self.dimensions) * np.clip(seconds - means**2, 0.0, 0.25)
        return np.asarray((noise + left_out) / told, dtype=np.float64)

    @cached_property
    def _noises(self) -> Floats:
        """The variance of one report about its person's number, at each point of the grid."""
        return np.maximum(self._back(self._firsts**2) - self._points**2, 0.0)

    def _noise(self, unit: float) -> float:
        squares = float(np.interp(unit, self._points, self._noises + self._points**2))
        return max(0.0, float(squares - unit**2)) * self.dimensions / self.picks

    @property
    def _worst(self) -> float:
        middles = (self._points[:-1] + self._points[1:]) / 2
        units = np.concatenate([self._points, middles])
        return float(max(units.tolist(), key=self._noise))


def told_coordinates(epsilon: Fraction, dimensions: int) -> int:
    """How many coordinates a person reports: k = max(1, min(d, ⌊ε/2.5⌋)).

    >>> told_coordinates(Fraction(1), 10), told_coordinates(Fraction(8), 10), told_coordinates(Fraction(8), 2)
    (1, 3, 2)
    """
    return max(1, min(dimensions, int(epsilon / _PER_COORDINATE)))


def drawn_coordinates(picks: int, dimensions: int, n: int, random: Random) -> npt.NDArray[np.int64]:
    """`picks` different coordinates for each of n people: each set is as likely.

    The i-th is drawn from the d − i that are left: those already taken are stepped over, from the least up.

    >>> drawn = drawn_coordinates(2, 3, 1000, Random.deterministic(1))
    >>> bool((drawn[:, 0] != drawn[:, 1]).all()), sorted(set(drawn.ravel().tolist()))
    (True, [0, 1, 2])
    """
    taken = np.empty((n, 0), dtype=np.int64)
    for i in range(picks):
        drawn = random.below(dimensions - i, n)
        for column in np.sort(taken, axis=1).T:
            drawn += drawn >= column
        taken = np.concatenate([taken, drawn[:, None]], axis=1)
    return taken
