"""Naive Bayes with continuous features: Gaussian, with the class hidden in a perturbed vector; or in bins of equal width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.local.frequency.domain import Domain, domain_of
from cloister.local.frequency.oracle import Reports, Sketch
from cloister.local.learning.moments import Bounds, Floats, intervals_of, scaled
from cloister.local.numbers.distribution import Distribution
from cloister.local.numbers.hybrid import Hybrid
from cloister.local.numbers.interval import Interval
from cloister.local.numbers.numeric import NumericMechanism
from cloister.noise import Random
from cloister.noise._checks import whole
from cloister.noise.mechanism import source
from cloister.privacy import Exact, PureDP

_LEAST = 0.01


class LocalGaussianNB:
    """Gaussian naive Bayes, when no respondent tells a number or a class.

    Guarantee: ε-local privacy for the whole record. A vector has a slot for each class; the person's own slot holds 1 and the
    numbers, brought to [−1, 1], all others hold 0. By a lot that doesn't look at the record, half of the people put squares in
    the place of numbers. The vector goes through a numeric mechanism for vectors at ε, whose promise holds for any two vectors:
    so the class is hidden as well as the numbers.

    The mean of a slot is the class's share times the mean of its numbers (or squares); their ratios are the model. Variances
    below 0.01 of the squared half-width are raised to it.

    >>> model = LocalGaussianNB([(0, 10)], ["a", "b"], epsilon=2)
    >>> rows, classes = [[2.0], [8.0]] * 20000, ["a", "b"] * 20000
    >>> fitted = model.fit(model.aggregate(model.randomize(rows, classes, random=Random.deterministic(1))))
    >>> fitted.predict([[1.0], [9.0]])
    ['a', 'b']
    """

    def __init__(self, bounds: Bounds, classes: Any, epsilon: Exact = 1, *, mechanism: type[NumericMechanism] = Hybrid) -> None:
        self.intervals = intervals_of(bounds)
        self.classes = domain_of(classes)
        options = {"grid": 64} if mechanism is Hybrid else {}
        size = len(self.classes) * (1 + len(self.intervals))
        self.mechanism = mechanism(-1, 1, epsilon, dimensions=size, **options)

    @property
    def guarantee(self) -> PureDP:
        """The promise to each respondent.

        >>> str(LocalGaussianNB([(0, 1)], range(2), epsilon=2).guarantee)
        'ε = 2'
        """
        return self.mechanism.guarantee

    def randomize(self, rows: Any, classes: Any, *, clip: bool = False, random: Random | None = None) -> tuple[Reports, Reports]:
        """The reports of those who send numbers, and of those who send squares."""
        chance = source(random)
        units, said = scaled(rows, self.intervals, clip=clip), self.classes.places(classes)
        if len(units) != len(said):
            raise InvalidParameter("Rows and classes are invalid", why="they differ in number", instead="one class a row")
        squares = random_half(len(said), chance)
        d = len(self.intervals)
        slots = np.zeros((len(said), len(self.classes), 1 + d))
        slots[np.arange(len(said)), said] = np.concatenate([np.ones((len(said), 1)), units], axis=1)
        vectors = slots.reshape(len(said), len(self.classes) * (1 + d))
        plain = self.mechanism.randomize(vectors[~squares], random=chance)
        return plain, self.mechanism.randomize(vectors[squares] ** 2, random=chance)

    def aggregate(self, reports: tuple[Reports, Reports]) -> tuple[Sketch, Sketch]:
        """A sketch of either half; those of streams and servers add up, half by half."""
        return self.mechanism.aggregate(reports[0]), self.mechanism.aggregate(reports[1])

    def fit(self, sketches: tuple[Sketch, Sketch]) -> GaussianModel:
        """The model of which the reports speak."""
        numbers, squares = (self._slots(each) for each in sketches)
        share = np.maximum((numbers[:, 0] + squares[:, 0]) / 2, 0.01)
        means = np.clip(numbers[:, 1:] / share[:, None], -1, 1)
        spreads = np.clip(squares[:, 1:] / share[:, None] - means**2, _LEAST, 1.0)
        return GaussianModel(
            intervals=self.intervals, classes=self.classes, shares=share / share.sum(), means=means, variances=spreads
        )

    def _slots(self, sketch: Sketch) -> Floats:
        if not sketch.n:
            raise InvalidParameter("The model was not fitted", why="one half of the people sent nothing", instead="more reports")
        read = np.nan_to_num(self.mechanism.mean(sketch).value)
        return np.asarray(read.reshape(len(self.classes), -1), dtype=np.float64)


@dataclass(frozen=True, kw_only=True)
class GaussianModel:
    """Each class's share, and the means and variances of the numbers within it, on [−1, 1] between the bounds."""

    intervals: tuple[Interval, ...]
    classes: Domain
    shares: Floats
    means: Floats
    variances: Floats

    def scores(self, rows: Any) -> Floats:
        """For each row, the log-likelihood of it together with each class; what lies outside of the bounds is clipped."""
        units = scaled(rows, self.intervals, clip=True)[:, None, :]
        parts = -0.5 * (np.log(2 * np.pi * self.variances) + (units - self.means) ** 2 / self.variances)
        return np.asarray(np.log(self.shares) + parts.sum(axis=2), dtype=np.float64)

    def predict(self, rows: Any) -> list[Any]:
        """The most likely class of each row."""
        return [self.classes.values[place] for place in self.scores(rows).argmax(axis=1)]


def random_half(n: int, random: Random) -> npt.NDArray[np.bool_]:
    """A fair coin for each of n people.

    >>> random_half(4, Random.deterministic(1)).shape
    (4,)
    """
    return np.asarray(random.words(n) < np.uint64(1 << 63), dtype=np.bool_)


def equal_frequency(found: Distribution, bins: int) -> list[float]:
    """The inner edges of bins that hold equally many people, from a distribution that reports have told: for `in_bins`.

    Guarantee: post-processing of those reports. Quantiles are bought: each person whose number went into `found` spent its ε. So
    a share of the people is asked for the number and the others for the cells of a model, or both add up. Edges that were looked
    up in the rows are a leak: the least and the largest of them are somebody's.

    >>> from cloister.local import SquareWave
    >>> from cloister.noise import Random
    >>> wave, random = SquareWave(0, 100, epsilon=2), Random.deterministic(1)
    >>> ages = [20] * 3000 + [30] * 3000 + [80] * 3000
    >>> edges = equal_frequency(wave.distribution(wave.randomize(ages, random=random)), 3)
    >>> in_bins([20, 30, 80], edges).tolist()
    [0, 1, 2]
    """
    whole(bins, "bins", least=2)
    edges = [found.quantile(Fraction(number, bins)).value for number in range(1, bins)]
    return [float(edge) for edge in np.maximum.accumulate(np.array(edges))]


def in_bins(values: Any, edges: Sequence[float]) -> npt.NDArray[np.int64]:
    """Which bin each number lies in, by inner edges that were released: done where the person is.

    >>> in_bins([1, 5, 9], [5, 8]).tolist()
    [0, 1, 2]
    """
    line = Interval(low=-np.inf, high=np.inf)
    inner = line.checked(edges)[:, 0]
    if (np.diff(inner) < 0).any():
        raise InvalidParameter("The edges are invalid", why="they fall", instead="equal_frequency(found, 4)")
    return np.searchsorted(inner, line.checked(values)[:, 0], side="right")


def equal_width(values: Any, low: Exact, high: Exact, bins: int) -> npt.NDArray[np.int64]:
    """Which of `bins` bins of equal width each number lies in: a feature for the discrete naive Bayes. What lies outside of the
    declared bounds goes to the nearer bin; bounds and bins are public, so it is done where the person is.

    >>> equal_width([0, 4.9, 5, 10, 99], 0, 10, 2).tolist()
    [0, 0, 1, 1, 1]
    """
    whole(bins, "bins", least=2)
    interval = Interval.of(low, high)
    units = interval.units(interval.checked(values, clip=True))[:, 0]
    return np.minimum((units * bins).astype(np.int64), bins - 1)
