"""Columns as places in declared bins: which bin of each column a row is in, and which bins are too thin to stand alone.

A column is one feature, cut into bins of equal width between its declared bounds, or a group of 0-or-1 features that one category
was written as, a bin for each of them and one for none. Bins are public; the place of a row follows from that row alone.
"""

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cloister.learn.frame.bounds import Box

Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]
_FIRM = 4.0
"""How many deviations of its noise a bin's count has, if it stands alone; and, without noise, how many people:"""
_FEW = 10.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Columns:
    """Columns of the features of a box, each cut into at most `bins` bins.

    >>> box = Box(low=np.array([0.0, 0, 0]), high=np.array([10.0, 1, 1]))
    >>> columns = Columns(box=box, members=((0,), (1, 2)), bins=5)
    >>> columns.width, columns.places(np.array([[3.0, 0.0, 1.0], [10.0, 0.0, 0.0]])).tolist()
    (5, [[1, 4], [1, 2]])
    """

    box: Box
    members: tuple[tuple[int, ...], ...]
    """The features of each column."""
    bins: int

    @property
    def width(self) -> int:
        """How many bins the widest column has."""
        return max((self.bins_of(column) for column in range(len(self.members))), default=1)

    def bins_of(self, column: int) -> int:
        """How many bins a column has."""
        return self.bins if self.ordered(column) else len(self.members[column]) + 1

    def ordered(self, column: int) -> bool:
        """Whether its bins have an order: it is one feature."""
        return len(self.members[column]) == 1

    def places(self, X: Floats) -> Integers:
        """The bin of each row, a column after the other."""
        found = np.empty((len(self.members), len(X)), dtype=np.int64)
        for column, features in enumerate(self.members):
            if self.ordered(column):
                at = features[0]
                low, high, width = self.box.low[at], self.box.high[at], self.box.width[at]
                share = (np.clip(X[:, at], low, high) - low) / width
                found[column] = np.minimum(np.maximum(share * self.bins, 0), self.bins - 1)
            else:
                chosen = np.stack([X[:, at] >= self.box.middle[at] for at in features])
                found[column] = np.where(chosen.any(axis=0), chosen.argmax(axis=0), len(features))
        return found


def merged(counts: Floats, deviation: float, *, ordered: bool) -> Integers:
    """For each bin the number of the leaf that it is part of: thin bins go with their neighbours, or, without an order, together.

    From noisy counts alone: post-processing. A leaf holds four deviations of its own noise, and ten people.

    >>> merged(np.array([90.0, 1.0, 0.0, 80.0, 20.0]), 10.0, ordered=True).tolist()
    [0, 1, 1, 1, 1]
    >>> merged(np.array([90.0, 1.0, 0.0, 80.0, 20.0]), 10.0, ordered=False).tolist()
    [0, 2, 2, 1, 2]
    """
    if not ordered:
        firm = counts >= max(_FIRM * deviation, _FEW)
        return np.where(firm, np.cumsum(firm) - 1, int(firm.sum())).astype(np.int64)
    leaf, held, bins, found = 0, 0.0, 0, np.zeros(len(counts), dtype=np.int64)
    for place, count in enumerate(counts.tolist()):
        found[place], held, bins = leaf, held + count, bins + 1
        if held >= max(_FIRM * deviation * math.sqrt(bins), _FEW):
            leaf, held, bins = leaf + 1, 0.0, 0
    if bins and leaf:
        found[found == leaf] = leaf - 1
    return found


def sums(places: Integers, values: Integers, bins: int) -> Integers:
    """The sum of each column of whole numbers over the rows in each bin: exact below 2⁵³.

    >>> sums(np.array([0, 1, 1]), np.array([[1], [2], [3]]), 2).tolist()
    [[1], [5]]
    """
    found = [np.bincount(places, weights=column, minlength=bins) for column in values.T]
    return np.stack(found, axis=1).astype(np.int64)
