"""What every numeric mechanism is: numbers to whole-number reports, reports to a sketch, a sketch to means with margins.

A mechanism says how numbers become reports (`_report`), what is counted of reports (`_count`) and what the counts say of the
means (`_means`). Everything else is the same for all of them and stands here: bounds, ε, merging, margins.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.local.coins import check_epsilon
from cloister.local.estimates import Number, quantile_of
from cloister.local.interval import Floats, Interval
from cloister.local.oracle import Reports, Sketch
from cloister.noise import Random
from cloister.noise.mechanism import source
from cloister.privacy import PureDP
from cloister.privacy.rational import Exact

__all__ = ["Numbers", "NumericMechanism"]

_MOST_DIMENSIONS = 1 << 16


@dataclass(frozen=True, kw_only=True)
class Numbers:
    """Estimated numbers, one for each coordinate; NaN with an infinite variance where nobody told of it.

    >>> means = Numbers(value=np.array([0.5, 0.25]), variance=np.array([0.01, 0.04]), n=100)
    >>> means.margin(0.95).round(3).tolist(), means[0].value, len(means)
    ([0.196, 0.392], 0.5, 2)
    """

    value: Floats
    variance: Floats
    n: int

    def margin(self, confidence: Exact = 0.95) -> Floats:
        """The half-widths of their intervals, each by itself, by the normal law."""
        return quantile_of(confidence) * np.sqrt(self.variance)

    def __len__(self) -> int:
        return len(self.value)

    def __getitem__(self, coordinate: int) -> Number:
        return Number(value=float(self.value[coordinate]), variance=float(self.variance[coordinate]), n=self.n)


class NumericMechanism(ABC):
    """The mean of people's numbers, when nobody says which number is theirs.

    Guarantee: each report is ε-locally private: for any two numbers of the interval (any two vectors of them, where there are
    dimensions), every report is at most e^ε times likelier under one than under the other. It holds for one report; reports of
    one person add their ε up. No floating-point number is in a report: a double's low bits can tell what it was made of
    (Mironov 2012), whole numbers on a declared grid don't.

    Margins speak of the mean of those who answered: the chance is the reports' own.

    >>> from cloister.local import Piecewise
    >>> mechanism = Piecewise(0, 100, epsilon=1)
    >>> reports = mechanism.randomize([20, 40] * 5000, random=Random.deterministic(1))
    >>> mean = mechanism.mean(reports)
    >>> abs(mean.value - 30) < mean.margin(0.99) < 4
    True
    """

    protocol: ClassVar[str]
    """Its name in a survey's file and in the browser."""
    interval: Interval
    epsilon: Fraction
    dimensions: int

    def __init__(self, low: Exact = -1, high: Exact = 1, epsilon: Exact = 1, *, dimensions: int = 1) -> None:
        self.interval = Interval.of(low, high)
        self.epsilon = check_epsilon(epsilon)
        if isinstance(dimensions, bool) or not isinstance(dimensions, int) or not 1 <= dimensions <= _MOST_DIMENSIONS:
            raise InvalidParameter(
                "dimensions= was refused", why=f"it is a whole number from 1 to {_MOST_DIMENSIONS}", instead="dimensions=3"
            )
        self.dimensions = dimensions

    # what a mechanism says of itself

    @abstractmethod
    def _report(self, values: Floats, random: Random) -> Reports:
        """One report for each row of values, which lie in the interval."""

    @abstractmethod
    def _count(self, reports: Reports) -> npt.NDArray[np.int64]:
        """What is counted of reports: whole numbers, none below 0, that add up over reports."""

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

    @property
    @abstractmethod
    def report_size(self) -> int:
        """How many bits a report has."""

    @property
    @abstractmethod
    def client(self) -> Mapping[str, Any]:
        """What a person's own machine needs to make a report, as plain JSON; integers above 2⁵³ as hexadecimal texts."""

    @abstractmethod
    def valid(self, reports: Reports) -> npt.NDArray[np.bool_]:
        """Which rows could be reports at all. `reports` is a whole-number array of the right shape."""

    @property
    @abstractmethod
    def _width(self) -> int:
        """How many numbers a report has; 0: it is one number, and reports are a flat array."""

    def channel(self) -> tuple[tuple[Fraction, ...], ...]:
        """The exact probability of each report for each point of the grid, where these can be written out.

        >>> from cloister.attacks import audit_channel
        >>> from cloister.local import Piecewise
        >>> audit_channel(Piecewise(epsilon=1, grid=4).channel()).epsilon <= 1
        True
        """
        raise InvalidParameter(
            "The channel was not written out",
            why=f"{type(self).__name__} has too many reports to list",
            instead="a coarser grid=, or cloister.attacks.audit by sampling",
        )

    # what is the same for all

    @property
    def guarantee(self) -> PureDP:
        """The promise to each respondent, for one report.

        >>> from cloister.local import Duchi
        >>> str(Duchi(epsilon="0.5").guarantee)
        'ε = 0.5'
        """
        return PureDP(self.epsilon)

    @property
    def key(self) -> str:
        """The same for mechanisms whose reports may be counted together."""
        told = json.dumps(self.client, sort_keys=True).encode()
        return f"{self.protocol}-{hashlib.sha256(told).hexdigest()[:16]}"

    def randomize(self, values: Any, *, clip: bool = False, random: Random | None = None) -> Reports:
        """One report for each number (each row of numbers, where there are dimensions): to run where the person is. What lies
        outside of the interval is refused, or moved to its nearer end by `clip`."""
        return self._report(self.interval.checked(values, dimensions=self.dimensions, clip=clip), source(random))

    def aggregate(self, reports: Any) -> Sketch:
        """The reports' sketch: sketches of streams and servers add up."""
        array = self._checked(reports)
        return Sketch(key=self.key, n=len(array), counts=self._count(array))

    def mean(self, reports: Any) -> Any:
        """The mean of those who answered, of their reports or of a sketch: a `Number`, or `Numbers` where there are
        dimensions. It is unbiased, so a mean of few reports may lie outside of the interval."""
        sketch = self._sketch(reports)
        means, variances = self._means(sketch)
        low, span = self.interval.low, self.interval.span
        told = Numbers(value=low + span * means, variance=span**2 * variances, n=sketch.n)
        return told[0] if self.dimensions == 1 else told

    def variance(self, n: int = 1, value: float | None = None) -> float:
        """The variance of a mean's estimate among n people who all hold `value`; of the worst value where it is left out.

        >>> from cloister.local import Duchi
        >>> round(Duchi(epsilon=1).variance(), 3), round(Duchi(epsilon=1).variance(100, 1.0), 4)
        (4.683, 0.0368)
        """
        unit = self._worst if value is None else float(self.interval.units(self.interval.checked([value]))[0, 0])
        return self.interval.span**2 * self._noise(unit) / n

    def _sketch(self, reports: Any) -> Sketch:
        sketch = reports if isinstance(reports, Sketch) else self.aggregate(reports)
        if sketch.key != self.key:
            raise InvalidParameter(
                "The sketch was refused", why="it is of another mechanism, interval or ε", instead="mechanism.aggregate(reports)"
            )
        if not sketch.n:
            raise InvalidParameter("No reports: no mean", why="nobody answered", instead="one report or more")
        return sketch

    def _checked(self, reports: Any) -> Reports:
        array = np.asarray(reports)
        if array.size == 0:
            return np.zeros((0, self._width) if self._width else 0, dtype=np.int64)
        shape = (len(array), self._width) if self._width else (len(array),)
        if array.dtype.kind not in "iub" or array.shape != shape:
            what = f"rows of {self._width} whole numbers" if self._width else "a flat list of whole numbers"
            raise InvalidParameter(
                "The reports were refused", why=f"those of {type(self).__name__} are {what}", instead="randomize(…)"
            )
        if not bool(self.valid(array).all()):
            raise InvalidParameter(
                "The reports were refused",
                why=f"some could not come from this {type(self).__name__}: another interval, another ε, or garbage",
                instead="reports[mechanism.valid(reports)], and say how many were left out",
            )
        return array
