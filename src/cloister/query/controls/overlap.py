"""Query-set overlap: a set that has much in common with an earlier one, about the same column, is refused.

Not differential privacy. With sets of at least k people, no two of which share more than r, anyone who knows none of the values
needs at least 1 + (k − 1)/r sums to work out one of them (Dobkin, Jones & Lipton 1979). What it does not stop: asking that many;
and few questions are answered at all. Its refusal is not simulatable: it is a bit about who is in which set. The very same set
is answered again.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cloister.errors import AccessDenied
from cloister.query.controls.masks import Mask


class Overlaps:
    """The sets that were answered about one column.

    >>> overlaps = Overlaps(4)
    >>> overlaps.add(np.array([True, True, True, False]))
    >>> overlaps.largest(np.array([False, True, True, True])), overlaps.largest(np.array([True, True, True, False]))
    (2, 0)
    """

    def __init__(self, persons: int) -> None:
        self._sets: npt.NDArray[np.uint8] = np.zeros((0, (persons + 7) // 8), dtype=np.uint8)

    def add(self, persons: Mask) -> None:
        """Take note of an answered set."""
        packed = np.packbits(persons)
        if not (self._sets == packed).all(axis=1).any():
            self._sets = np.concatenate([self._sets, packed[None, :]])

    def largest(self, persons: Mask) -> int:
        """The most people that the set has in common with an earlier one that is not the same."""
        packed = np.packbits(persons)
        if not len(self._sets) or (self._sets == packed).all(axis=1).any():
            return 0
        return int(np.bitwise_count(self._sets & packed).sum(axis=1, dtype=np.int64).max())


def too_alike(most: int) -> AccessDenied:
    """The refusal; it does not say with which earlier set."""
    return AccessDenied(
        "The query was refused",
        why=f"its set has more than {most} people in common with one that was answered",
        instead="the query that was answered, or one about other people",
    )
