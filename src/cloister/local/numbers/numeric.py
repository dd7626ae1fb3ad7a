"""What every numeric mechanism is: numbers to whole-number reports, reports to a sketch, a sketch to means with margins.

A mechanism says how numbers become reports (`_report`), what is counted of reports (`_count`) and what the counts say of the
means (`_means`). Everything else is the same for all of them and stands here, or, where it is the same for values of a list, in
protocol.py.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

from cloister.errors import InvalidParameter
from cloister.local.frequency.estimates import Number, half_width
from cloister.local.numbers.interval import Floats, Interval
from cloister.local.protocols.coins import check_epsilon
from cloister.local.protocols.protocol import Protocol, Reports, Sketch, check_people
from cloister.noise import Random
from cloister.noise.mechanism import source
from cloister.privacy.rational import Exact

_MOST_DIMENSIONS = 1 << 16


@dataclass(frozen=True, kw_only=True)
class Numbers:
    """Estimated numbers, one for each coordinate; NaN with an infinite variance where nobody reported it.

    >>> import numpy as np
    >>> means = Numbers(value=np.array([0.5, 0.25]), variance=np.array([0.01, 0.04]), n=100)
    >>> means.margin(0.95).round(3).tolist(), means[0].value, len(means)
    ([0.196, 0.392], 0.5, 2)
    """

    value: Floats
    variance: Floats
    n: int
    bias: float = 0.0
    """How far each may be off however many people answer."""
    part: float = 0.0
    """By how much one report can move one of them at the most."""

    def margin(self, confidence: Exact = 0.95) -> Floats:
        """The half-widths of their intervals, each by itself: chance (`half_width`), and the bias."""
        return half_width(confidence, self.variance, part=self.part) + self.bias

    def __len__(self) -> int:
        return len(self.value)

    def __getitem__(self, coordinate: int) -> Number:
        value, variance = float(self.value[coordinate]), float(self.variance[coordinate])
        return Number(value=value, variance=variance, n=self.n, bias=self.bias, part=self.part)


class NumericMechanism(Protocol):
    """The mean of people's numbers, when nobody says which number is theirs.

    Guarantee: each report is ε-locally private, for any two numbers of the interval, or any two vectors of them, where there are
    dimensions (`Protocol`). It holds for one report; reports of one person add their ε up. No floating-point number is in a
    report: a double's low bits can tell what it was made of (Mironov 2012), whole numbers on a declared grid don't.

    Margins speak of the mean of those who answered: the chance is the reports' own.

    >>> from cloister.local import Piecewise
    >>> mechanism = Piecewise(0, 100, epsilon=1)
    >>> reports = mechanism.randomize([20, 40] * 5000, random=Random.deterministic(1))
    >>> mean = mechanism.mean(reports)
    >>> abs(mean.value - 30) < mean.margin(0.99) < 4
    True
    """

    interval: Interval
    dimensions: int

    _asked = "interval"

    def __init__(self, low: Exact = -1, high: Exact = 1, epsilon: Exact = 1, *, dimensions: int = 1) -> None:
        self.interval = Interval.of(low, high)
        self.epsilon = check_epsilon(epsilon)
        if isinstance(dimensions, bool) or not isinstance(dimensions, int) or not 1 <= dimensions <= _MOST_DIMENSIONS:
            raise InvalidParameter(
                "dimensions= is invalid", why=f"it is a whole number from 1 to {_MOST_DIMENSIONS}", instead="dimensions=3"
            )
        self.dimensions = dimensions

    # what a mechanism says of itself

    @abstractmethod
    def _report(self, values: Floats, random: Random) -> Reports:
        """One report for each row of values, which lie in the interval."""

    @abstractmethod
    def _means(self, sketch: Sketch) -> tuple[Floats, Floats]:
        """The estimated mean of each coordinate, and its variance, in units of the interval."""

    @abstractmethod
    def _noise(self, unit: float) -> float:
        """The variance of one person's part of a mean, in squared units, whose number is `unit` of the way up the interval."""

    @property
    @abstractmethod
    def _worst(self) -> float:
        """The unit at which that variance is largest."""

    _bias = 0.0
    """How far a mean may be off, in the units of the interval, however many people answer."""

    @property
    def _part(self) -> float:
        """By how much one report moves n times a mean at the most, in units of the interval; of noise without an end, twice its
        deviation: that of Laplace noise is more than its third and fourth moments ask for (`half_width`)."""
        return 2 * math.sqrt(self._noise(self._worst))

    # what is the same for all

    def randomize(self, values: Any, *, clip: bool = False, random: Random | None = None) -> Reports:
        """One report for each number (each row of numbers, where there are dimensions): to run where the person is. What lies
        outside of the interval is refused, or moved to its nearer end by `clip`."""
        return self._report(self.interval.checked(values, dimensions=self.dimensions, clip=clip), source(random))

    def mean(self, reports: Any) -> Any:
        """The mean of those who answered, of their reports or of a sketch: a `Number`, or `Numbers` where there are
        dimensions. It is unbiased, so a mean of few reports may lie outside of the interval; where a mechanism can't be, the
        number says so (`bias`)."""
        sketch = self._sketch(reports)
        means, variances = self._means(sketch)
        low, span = self.interval.low, self.interval.span
        part = span * self._part / sketch.n
        told = Numbers(value=low + span * means, variance=span**2 * variances, n=sketch.n, bias=self._bias, part=part)
        return told[0] if self.dimensions == 1 else told

    def variance(self, n: int = 1, value: float | None = None) -> float:
        """The variance of a mean's estimate among n people who all hold `value`; of the worst value where it is left out.

        >>> from cloister.local import Duchi
        >>> round(Duchi(epsilon=1).variance(), 3), round(Duchi(epsilon=1).variance(100, 1.0), 4)
        (4.683, 0.0368)
        """
        unit = self._worst if value is None else float(self.interval.units(self.interval.checked([value]))[0, 0])
        return self.interval.span**2 * self._noise(unit) / check_people(n)

    def _check_coordinate(self, coordinate: int) -> None:
        if not 0 <= coordinate < self.dimensions:
            raise InvalidParameter(
                "coordinate= is invalid", why=f"there are {self.dimensions}, counted from 0", instead="coordinate=0"
            )

    def _sketch(self, reports: Any) -> Sketch:
        sketch = self._own(reports if isinstance(reports, Sketch) else self.aggregate(reports))
        if not sketch.n:
            raise InvalidParameter("No reports: no mean", why="nobody answered", instead="one report or more")
        return sketch
