"""Laplace noise at the source: the simplest mechanism, and at every ε the worse for it."""

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.local.frequency.estimates import Number, Spread
from cloister.local.numbers.interval import Floats, check_grid
from cloister.local.numbers.numeric import NumericMechanism
from cloister.local.protocols.protocol import Reports, Sketch
from cloister.noise import DiscreteLaplace, Random
from cloister.privacy.rational import Exact, text_of

_WIDEST = 1 << 24
_SCALES = 45
_LIMB = 32
_SQUARED = 21.0
"""By how much one squared report counts as moving their mean, in variances: its fourth cumulant is 33,888 b⁴ · b⁴ to 20 b⁴ of
variance, that is (41 b²)², and its third less, where the variance is 2 b²."""


class LocalLaplace(NumericMechanism):
    """A number on a grid plus discrete Laplace noise: for comparison, and where unbounded reports are wanted.

    Guarantee: ε-local privacy. Numbers go to a grid of `grid` steps by coins that keep their means; two points are at most
    `grid` steps apart in each of d dimensions, so integer noise of scale d·grid/ε on each coordinate is ε-private
    (cloister.noise.DiscreteLaplace, an exact sampler). A report is then clamped to 45 scales beyond the interval, which is
    post-processing. At very small ε the grid is made coarser, so that the noise stays within 2²⁴ steps.

    Error: variance 2(d·(high − low)/ε)² a coordinate, divided by n: on [−1, 1], 8/ε². Piecewise is better at every ε, Duchi up to
    ε ≈ 2.3. The clamp moves a mean by less than e⁻⁴⁵ scales.

    Python only: the browser has no twin of it.

    >>> round(LocalLaplace(epsilon=2).variance(), 3)
    2.0
    """

    protocol: ClassVar[str] = "laplace"

    def __init__(self, low: Exact = -1, high: Exact = 1, epsilon: Exact = 1, *, grid: int = 1024, dimensions: int = 1) -> None:
        super().__init__(low, high, epsilon, dimensions=dimensions)
        steps = check_grid(grid)
        while steps > 1 and steps * dimensions > _WIDEST * self.epsilon:
            steps //= 2
        self.grid = steps
        self.noise = DiscreteLaplace(scale=Fraction(steps * dimensions) / self.epsilon, sensitivity=steps * dimensions)
        self._limit = int(_SCALES * self.noise.scale) + 1
        if self._limit + steps >= 1 << 31:
            raise InvalidParameter(
                f"epsilon={epsilon} is invalid",
                why="noise for so many dimensions at so small an ε fits in no report",
                instead=f"Duchi({text_of(Fraction(low))}, {text_of(Fraction(high))}, epsilon={epsilon}, dimensions={dimensions})",
            )

    @property
    def client(self) -> Mapping[str, Any]:
        return {
            "protocol": self.protocol,
            "low": self.interval.low,
            "high": self.interval.high,
            "steps": self.grid,
            "scale": text_of(self.noise.scale),
            "dimensions": self.dimensions,
        }

    @property
    def report_size(self) -> int:
        return self.dimensions * (self.grid + 2 * self._limit).bit_length()

    @property
    def _width(self) -> int:
        return 0 if self.dimensions == 1 else self.dimensions

    def valid(self, reports: Reports) -> npt.NDArray[np.bool_]:
        good = (reports >= -self._limit) & (reports <= self.grid + self._limit)
        return np.asarray(good if self.dimensions == 1 else good.all(axis=1), dtype=np.bool_)

    def spread(self, reports: Any, *, coordinate: int = 0) -> Number:
        """The variance of people's numbers: that of the reports less that of the noise.

        >>> mechanism = LocalLaplace(0, 1, epsilon=4)
        >>> spread = mechanism.spread(mechanism.randomize([0.25, 0.75] * 20000, random=Random.deterministic(1)))
        >>> abs(spread.value - 0.0625) < spread.margin(0.999) < 0.05
        True
        """
        sketch = self._sketch(reports)
        self._check_coordinate(coordinate)
        total, high, low = (int(each) for each in sketch.counts.reshape(3, self.dimensions)[:, coordinate])
        n, noise = sketch.n, self._noise(0.0)
        square = Fraction((high << _LIMB) + low, n) - Fraction(total, n) ** 2
        value = float(square) / self.grid**2 * (n / max(1, n - 1)) - noise
        doubt = (4 * noise * min(max(value, 0.0), 0.25) + 5 * noise**2) / n
        span = self.interval.span
        return Spread(
            value=span**2 * value,
            variance=span**4 * doubt,
            n=n,
            part=span**2 * _SQUARED * noise / n,
            mean=Number(value=0.0, variance=span**2 * noise / n, n=n, part=2 * span * math.sqrt(noise) / n),
            most=span**2 / 4,
            bias=span**2 / 4 / n,  # people's own variance is that of n, not of n − 1
        )

    def _report(self, values: Floats, random: Random) -> Reports:
        places = self.interval.places(values.ravel(), self.grid, random)
        noisy = places + self.noise.sample(len(places), random=random)
        reports = np.clip(noisy, -self._limit, self.grid + self._limit).astype(np.int64)
        return np.asarray(reports if self.dimensions == 1 else reports.reshape(values.shape))

    def _count(self, reports: Reports) -> npt.NDArray[np.int64]:
        """Sums, and sums of squares in two halves of 32 bits, of reports moved above 0: whole and far from overflow."""
        moved = reports.reshape(-1, self.dimensions).astype(np.int64) + self._limit
        squares = moved * moved
        halves = squares >> _LIMB, squares & ((1 << _LIMB) - 1)
        return np.concatenate([each.sum(axis=0) for each in (moved, *halves)]).astype(np.int64)

    def _means(self, sketch: Sketch) -> tuple[Floats, Floats]:
        totals = sketch.counts.reshape(3, self.dimensions)[0]
        means = (totals / sketch.n - self._limit) / self.grid
        return np.asarray(means, dtype=np.float64), np.full(self.dimensions, self._noise(0.0) / sketch.n)

    def _noise(self, unit: float) -> float:
        """The noise's, and that of the coin that brings a number to the grid."""
        beyond = unit * self.grid % 1.0
        return (self.noise.variance + beyond * (1 - beyond)) / self.grid**2

    @property
    def _worst(self) -> float:
        return 0.5 / self.grid
