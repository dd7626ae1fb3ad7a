"""Means and products of people's numbers, from one perturbed vector a person: for regression, and for fewer dimensions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.local.frequency.oracle import Reports, Sketch
from cloister.local.numbers.hybrid import Hybrid
from cloister.local.numbers.interval import Interval
from cloister.noise import Random
from cloister.privacy import Exact, PureDP

Floats = npt.NDArray[np.float64]
Bounds = Sequence[tuple[Exact, Exact]]


@dataclass(frozen=True, kw_only=True)
class Moments:
    """Means and covariances of the declared numbers, each on [−1, 1] between its bounds; `noise` is the standard deviation of
    one estimated product.

    >>> Moments(mean=np.zeros(2), covariance=np.diag([1.0, 0.25]), noise=0.0, n=1).principal(1).round(6).tolist()
    [[1.0], [0.0]]
    """

    mean: Floats
    covariance: Floats
    noise: float
    n: int

    def principal(self, k: int) -> Floats:
        """The k directions (columns) along which people differ most: PCA of the numbers on [−1, 1]."""
        self._few(k)
        directions = np.linalg.eigh(self.covariance)[1][:, ::-1][:, :k]
        signs = np.where(directions[np.abs(directions).argmax(axis=0), np.arange(k)] < 0, -1.0, 1.0)
        return np.asarray(directions * signs, dtype=np.float64)

    def discriminant(self, target: int = -1) -> Floats:
        """The one direction of the other numbers that tells most of the number at `target`, as a column: discriminant analysis
        of two classes, where that number is the class, and the slope of a regression otherwise.

        Both are S⁻¹c with S the covariance of the others and c theirs with the target. S is made positive first: what lies
        below the noise of its entries is raised to it.
        """
        others = [i for i in range(len(self.mean)) if i != target % len(self.mean)]
        spread = self.covariance[np.ix_(others, others)]
        values, vectors = np.linalg.eigh(spread)
        floor = max(self.noise * len(others) ** 0.5, 1e-6)
        held = vectors @ np.diag(1 / np.maximum(values, floor)) @ vectors.T
        return np.asarray((held @ self.covariance[others, target])[:, None], dtype=np.float64)

    def _few(self, k: int) -> None:
        if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= len(self.mean):
            raise InvalidParameter("k is invalid", why=f"there are 1 to {len(self.mean)} directions", instead="principal(1)")


class LocalMoments:
    """Means, variances and covariances of several numbers of a person, from one report.

    Guarantee: ε-local privacy for the whole record. The numbers, brought to [−1, 1], and all their products two by two are one
    vector with entries in [−1, 1]; it goes through `Hybrid` at ε, which draws the entries that a person reports by lot.

    Error: each entry's variance is that of `Hybrid` with d(d + 3)/2 dimensions: products are many, so few numbers and many
    people are needed.

    >>> mechanism = LocalMoments([(0, 10), (0, 10)], epsilon=4)
    >>> people = np.array([[2.0, 3.0], [8.0, 9.0]] * 20000)
    >>> found = mechanism.fit(mechanism.aggregate(mechanism.randomize(people, random=Random.deterministic(1))))
    >>> bool(abs(found.covariance[0, 1] - 0.36) < 6 * found.noise)
    True
    """

    def __init__(self, bounds: Bounds, epsilon: Exact = 1) -> None:
        self.intervals = intervals_of(bounds)
        d = len(self.intervals)
        self._pairs = np.triu_indices(d)
        self.mechanism = Hybrid(-1, 1, epsilon, grid=64, dimensions=d + len(self._pairs[0]))

    @property
    def guarantee(self) -> PureDP:
        """The promise to each respondent.

        >>> str(LocalMoments([(0, 1)] * 3, epsilon=2).guarantee)
        'ε = 2'
        """
        return self.mechanism.guarantee

    def randomize(self, rows: Any, *, clip: bool = False, random: Random | None = None) -> Reports:
        """One report for each row of numbers."""
        units = scaled(rows, self.intervals, clip=clip)
        products = units[:, self._pairs[0]] * units[:, self._pairs[1]]
        return self.mechanism.randomize(np.concatenate([units, products], axis=1), random=random)

    def aggregate(self, reports: Reports) -> Sketch:
        """The reports' sketch; sketches add up."""
        return self.mechanism.aggregate(reports)

    def fit(self, sketch: Sketch) -> Moments:
        """The moments of which the reports speak."""
        read = self.mechanism.mean(sketch)
        d = len(self.intervals)
        mean = np.clip(np.nan_to_num(read.value[:d]), -1, 1)
        second = np.zeros((d, d))
        second[self._pairs] = np.clip(np.nan_to_num(read.value[d:]), -1, 1)
        second = second + np.triu(second, 1).T
        noise = float(np.sqrt(np.median(read.variance)))
        return Moments(mean=mean, covariance=second - np.outer(mean, mean), noise=noise, n=sketch.n)


def intervals_of(bounds: Bounds) -> tuple[Interval, ...]:
    """The bounds of people's numbers, a pair for each.

    >>> intervals_of([(0, 1)])[0].high
    1.0
    """
    try:
        pairs = [(low, high) for low, high in bounds]
    except (TypeError, ValueError):
        pairs = []
    if not pairs:
        why = "it is missing, or no pair for each number"
        raise InvalidParameter("bounds= is invalid", why=why, instead="bounds=[(0, 1), (0, 100)]")
    return tuple(Interval.of(low, high) for low, high in pairs)


def scaled(rows: Any, intervals: Sequence[Interval], *, clip: bool = False) -> Floats:
    """Rows of numbers, each brought to [−1, 1] between its bounds.

    >>> scaled([[0, 5]], [Interval.of(0, 1), Interval.of(0, 10)]).tolist()
    [[-1.0, 0.0]]
    """
    try:
        columns = list(zip(*by_row(rows), strict=True)) or [()] * len(intervals)
    except (TypeError, ValueError):  # no rows at all, or of unequal lengths
        columns = []
    if len(columns) != len(intervals):
        raise InvalidParameter("The rows are invalid", why=f"each needs {len(intervals)} numbers", instead="one number a bound")
    units = [each.units(each.checked(list(column), clip=clip))[:, 0] for each, column in zip(intervals, columns, strict=True)]
    return np.clip(2 * np.stack(units, axis=1) - 1, -1.0, 1.0)


def by_row(rows: Any) -> Any:
    """Rows that are iterated one by one: of a frame, which iterates over names or columns, its array.

    >>> by_row([[0, 5]])
    [[0, 5]]
    """
    return np.asarray(rows) if hasattr(rows, "__array__") else rows


def unscaled(units: Floats, interval: Interval) -> Floats:
    """From [−1, 1] back.

    >>> unscaled(np.array([0.0]), Interval.of(0, 10)).tolist()
    [5.0]
    """
    return np.asarray(interval.low + (units + 1) / 2 * interval.span, dtype=np.float64)
