"""Ratios of whole numbers, a class each, compared with a bound exactly: 1/5 meets 0.2, whatever floating point makes of it."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

_LARGEST = 2.0**62
_NEAR = 1e-9


def fits(*factors: float) -> bool:
    """Whether a product of that size is held exactly by 64 bits.

    >>> fits(10**6, 10**6), fits(10**10, 10**10)
    (True, False)
    """
    size = 1.0
    for factor in factors:
        size *= max(float(factor), 1.0)
    return size < _LARGEST


@dataclass(frozen=True, eq=False, kw_only=True)
class Ratios:
    """A ratio for each class. Numerators are whole where they fit 64 bits; else floats, and compared as floats.

    >>> found = Ratios(top=np.array([1, 3]), bottom=np.array([5, 10]))
    >>> found.at_most(Fraction("0.2")).tolist(), found.floats.tolist()
    ([True, False], [0.2, 0.3])
    """

    top: npt.NDArray[Any]
    bottom: npt.NDArray[Any]

    @property
    def floats(self) -> npt.NDArray[np.float64]:
        """The ratios as floats; infinite over 0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.asarray(self.top / self.bottom, dtype=np.float64)
        return np.where(np.asarray(self.bottom) == 0, np.where(np.asarray(self.top) == 0, 0.0, np.inf), found)

    @property
    def largest(self) -> float:
        """The largest of them; 0 of none."""
        return float(self.floats.max()) if len(self.top) else 0.0

    def at_most(self, bound: Fraction, *, strictly: bool = False) -> npt.NDArray[np.bool_]:
        """Which ratios are at most the bound, or below it. Those near it are compared as whole numbers."""
        floats, edge = self.floats, float(bound)
        met = np.asarray(floats < edge if strictly else floats <= edge)
        if self.top.dtype != np.int64 or self.bottom.dtype != np.int64:
            return met
        for place in np.flatnonzero(np.abs(floats - edge) <= _NEAR * max(1.0, abs(edge))).tolist():
            left = int(self.top[place]) * bound.denominator
            right = bound.numerator * int(self.bottom[place])
            met[place] = left < right if strictly else left <= right
        return met
