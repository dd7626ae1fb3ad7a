"""Cutting the values of one feature into cells: one for each value that is common, and quantiles between them.

Cells are learned from outputs that play no part in the measurement, so any choice made here is sound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cloister.attacks.runs import Array

_QUANTILES = 400
_COMMON = 24
_SMOOTHING = 1.0


@dataclass(frozen=True)
class Cells:
    """Half-open cells [edges[i−1], edges[i]); below the first and from the last edge on; and one for values that are not numbers.

    >>> cells = Cells.learned(np.array([0, 0, 1]), np.array([1, 1, 2]))
    >>> cells.edges.tolist(), cells.index(np.array([-5, 0, 1, 2, 9])).tolist()
    ([0, 1, 2, 3], [0, 1, 2, 3, 4])
    """

    edges: Array

    @classmethod
    def learned(cls, left: Array, right: Array, *, identity: bool = False, quantiles: int = _QUANTILES) -> Cells:
        """Cells that fit the values of both worlds; with `identity`, for codes that have no order, common values only."""
        both = [values[~np.isnan(values)] if values.dtype.kind == "f" else values for values in (left, right)]
        values, counts = np.unique(np.concatenate(both), return_counts=True)
        if len(values) <= 5 * quantiles:
            return cls(_around(values))
        common = values[counts >= max(_COMMON, len(left) // 2000)]
        if identity:
            return cls(_around(common))
        shares = np.linspace(0, 1, quantiles + 1)
        ends = 0.5 ** np.arange(8, 40)
        ends = ends[ends * len(left) >= _COMMON]
        places = np.unique(np.concatenate([shares, ends, 1 - ends]))
        between = [np.quantile(part, places, method="nearest") for part in both if len(part)]
        return cls(np.unique(np.concatenate([_around(common), *between])))

    @property
    def number(self) -> int:
        """How many cells there are."""
        return len(self.edges) + 2

    def index(self, values: Array) -> NDArray[np.intp]:
        """The cell of each value."""
        cell = np.searchsorted(self.edges, values, side="right")
        if values.dtype.kind == "f":
            cell[np.isnan(values)] = len(self.edges) + 1
        return cell

    def counts(self, values: Array) -> NDArray[np.int64]:
        """How many values lie in each cell."""
        return np.bincount(self.index(values), minlength=self.number).astype(np.int64)

    def log_ratios(self, left: Array, right: Array) -> NDArray[np.float64]:
        """ln of how much more likely each cell is on the left, smoothed towards 0 where little was seen."""
        ratio: NDArray[np.float64] = np.log((self.counts(left) + _SMOOTHING) / (self.counts(right) + _SMOOTHING))
        return ratio

    def text(self, first: int, last: int) -> str:
        """The values from one cell to another, both included, in words.

        >>> cells = Cells.learned(np.array([0, 1]), np.array([2]))
        >>> cells.text(1, 1), cells.text(2, 4), cells.text(0, 1)
        ('is 0', 'is 1 or more', 'is below 1')
        """
        end = len(self.edges)
        if first > end:
            return "is not a number"
        if first == last and 0 < first < end and self.edges[first] == _after(self.edges[first - 1]):
            return f"is {_text(self.edges[first - 1])}"
        low = "" if first == 0 else self._from(first - 1)
        high = "" if last >= end else self._to(last)
        return "is " + (" and ".join(part for part in (low, high) if part) or "anything")

    def _from(self, place: int) -> str:
        if self._is_after(place):
            return f"above {_text(self.edges[place - 1])}"
        return f"{_text(self.edges[place])} or more"

    def _to(self, place: int) -> str:
        if self._is_after(place):
            return f"at most {_text(self.edges[place - 1])}"
        return f"below {_text(self.edges[place])}"

    def _is_after(self, place: int) -> bool:
        edges = self.edges
        return edges.dtype.kind == "f" and place > 0 and bool(edges[place] == _after(edges[place - 1]))


def _around(values: Array) -> Array:
    edges: Array = np.unique(np.concatenate([values, _after(values)]))
    return edges


def _after(values: Array) -> Array:
    after: Array = values + 1 if values.dtype.kind == "i" else np.nextafter(values, np.inf)
    return after


def _text(value: float) -> str:
    return f"{value:.6g}" if isinstance(value, float | np.floating) else str(value)
