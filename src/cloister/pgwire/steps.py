"""Steps of a cursor through its rows, as FETCH and MOVE take them: which rows a step passes, and where the cursor stands then.

Rows are numbered from 1. A cursor stands on a row, before the first (0), or behind the last (one more than there are).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ALL = 2**63
"""More rows than there are."""


@dataclass(frozen=True)
class Passed:
    """The rows of a step by number, in its order, and where the cursor stands after it."""

    rows: range
    at: int


@dataclass(frozen=True)
class Step:
    """`forward` passes so many rows (backwards where the number is negative); the others go to one row.

    >>> Step("forward", 2).over(5, at=0), Step("forward", 2).over(5, at=4)
    (Passed(rows=range(1, 3), at=2), Passed(rows=range(5, 6), at=6))
    >>> Step("forward", -ALL).over(3, at=4), Step("absolute", -1).over(3, at=0)
    (Passed(rows=range(3, 0, -1), at=0), Passed(rows=range(3, 4), at=3))
    """

    way: Literal["forward", "absolute", "relative"]
    count: int

    @property
    def stays(self) -> bool:
        """Whether it looks again at where the cursor stands."""
        return self.way != "absolute" and self.count == 0

    def over(self, size: int, at: int) -> Passed:
        """The step through so many rows, from where the cursor stands."""
        if self.stays:
            return _one(at, size)
        if self.way == "absolute":
            return _one(self.count if self.count >= 0 else max(size + 1 + self.count, 0), size)
        if self.way == "relative":
            return _one(max(at + self.count, 0), size)
        end = min(max(at + self.count, 0), size + 1)
        if self.count > 0:
            return Passed(range(at + 1, min(end, size) + 1), end)
        return Passed(range(min(at - 1, size), max(end, 1) - 1, -1), end)

    def ahead(self, size: int, at: int) -> bool:
        """Whether it passes no row a second time.

        >>> Step("absolute", 3).ahead(5, at=2), Step("relative", 0).ahead(5, at=2), Step("forward", -1).ahead(5, at=2)
        (True, False, False)
        """
        found = self.over(size, at)
        return found.at > at or (found.at == at and not found.rows)


def _one(target: int, size: int) -> Passed:
    target = min(target, size + 1)
    return Passed(range(target, target + 1) if 1 <= target <= size else range(0), target)
