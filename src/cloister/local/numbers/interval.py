"""The declared interval of a numeric question: which values are taken, and how a value goes to a grid that both twins share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.noise import Random
from cloister.noise.grid import nearest_float
from cloister.privacy.rational import Exact, exact

Floats = npt.NDArray[np.float64]

FINEST = 1 << 20
"""The most steps of a grid."""
_WIDEST, _NARROWEST = 1e75, 1e-75
"""Beyond these, the variance of a variance does not fit a double."""


@dataclass(frozen=True, kw_only=True)
class Interval:
    """From `low` to `high`, as doubles: declared by whoever asks, never looked up.

    >>> Interval.of("0", 10).span
    10.0
    """

    low: float
    high: float

    @classmethod
    def of(cls, low: Exact, high: Exact) -> Interval:
        """The interval of two numbers or texts of numbers.

        >>> Interval.of("0.5", 1).low
        0.5
        """
        ends = exact(low, "low"), exact(high, "high")
        if ends[0] >= ends[1]:
            turned = ends[0] > ends[1]
            raise InvalidParameter(
                f"low={low}, high={high} is invalid",
                why="low must be less than high" if turned else "the interval has no width",
                instead=f"low={high}, high={low}" if turned else "low=0, high=1",
            )
        least, most = map(nearest_float, ends)
        if not _NARROWEST <= most - least <= _WIDEST:
            wide = most - least > _WIDEST
            raise InvalidParameter(
                "low= and high= are invalid",
                why=f"they are more than {_WIDEST:.0e} far apart" if wide else "there is no room between these doubles",
                instead="another unit" if wide else "another unit, or numbers less a constant",
            )
        return cls(low=least, high=most)

    @property
    def span(self) -> float:
        """How wide it is."""
        return self.high - self.low

    def checked(self, values: Any, *, dimensions: int = 1, clip: bool = False) -> Floats:
        """Values as rows of `dimensions` doubles. NaN, infinities and what lies outside are refused, and the message doesn't
        repeat them; `clip` moves what lies outside to the nearer end (but never NaN: it is near to nothing).

        >>> Interval.of(0, 1).checked([0.5, 3], clip=True).tolist()
        [[0.5], [1.0]]
        """
        array = _doubles(values)
        if array.ndim == 1 and array.size == 0:
            return np.zeros((0, dimensions))
        if array.ndim != (1 if dimensions == 1 else 2) or (dimensions > 1 and array.shape[1] != dimensions):
            shape = "a flat list of numbers" if dimensions == 1 else f"rows of {dimensions} numbers"
            raise InvalidParameter("values are invalid", why=f"they are not {shape}", instead="randomize([value])")
        if bool(np.isnan(array).any()):
            raise InvalidParameter(
                "A value is invalid",
                why="it is NaN, which is not a number",
                instead="leave out who has no answer, or ask whether there is one with RandomizedResponse",
            )
        if clip:
            array = np.clip(array, self.low, self.high)
        elif bool(((array < self.low) | (array > self.high)).any()):
            raise InvalidParameter(
                "A value is invalid",
                why=f"it lies outside of the declared interval, {self.low:g} to {self.high:g}",
                instead="randomize(values, clip=True), which moves it to the nearer end",
            )
        return array.reshape(len(array), dimensions)

    def units(self, values: Floats) -> Floats:
        """Values as shares of the way from `low` to `high`."""
        return np.asarray((values - self.low) / self.span, dtype=np.float64)

    def places(self, values: Floats, steps: int, random: Random) -> npt.NDArray[np.int64]:
        """Each value's point of a grid of `steps` steps: 0 is `low`, `steps` is `high`. A value between two points goes to one
        of them by a coin (one word a value) that keeps its mean.

        The position is (value − low)/(high − low)·steps in IEEE doubles, in this order, which every machine rounds alike; its
        share beyond the point below, times 2⁶⁴, is exact and is the coin's heads. The rounding of the position moves a mean
        by less than 2⁻⁵⁰ of the interval. It has no bearing on privacy: the channel after it is private for any two points,
        so also for any two mixtures of points.

        >>> Interval.of(0, 1).places(np.array([0.0, 0.5, 1.0]), 8, Random.deterministic(1)).tolist()
        [0, 4, 8]
        """
        position = self.units(values) * float(steps)
        below = np.floor(position)
        heads = ((position - below) * 2.0**64).astype(np.uint64)
        up: npt.NDArray[np.bool_] = random.words(len(values)) < heads
        return below.astype(np.int64) + up


def check_grid(grid: int, *, least: int = 1) -> int:
    """How many steps a grid has.

    >>> check_grid(1024)
    1024
    """
    if isinstance(grid, bool) or not isinstance(grid, int) or not least <= grid <= FINEST:
        raise InvalidParameter(
            "grid= is invalid", why=f"it is a whole number of steps from {least} to {FINEST}", instead="grid=1024"
        )
    return grid


def _doubles(values: Any) -> Floats:
    flat = isinstance(values, str | bytes | bytearray) or (isinstance(values, np.ndarray) and values.dtype.kind not in "iufO")
    if not flat:
        try:
            raw = values if isinstance(values, np.ndarray) else np.asarray(list(values))
            if raw.size == 0 or raw.dtype.kind in "iufO":
                return np.asarray(raw, dtype=np.float64)
        except OverflowError:
            return _doubles([nearest_float(value) for value in values])
        except (TypeError, ValueError):
            pass
    raise InvalidParameter("values are invalid", why="they are not a list of numbers", instead="randomize([0.5, 0.25])")
