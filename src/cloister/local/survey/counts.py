"""What is kept of the reports to one question at one level: whole numbers that add up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter

Array = npt.NDArray[np.int64]

LISTED = "reports"
"""The name of a part that lists reports, sorted, instead of counting them: lists are joined where counts are added."""

_MOST = 1 << 26


@dataclass(frozen=True, kw_only=True)
class Counts:
    """Named arrays of counts, and of how many reports. What they mean is the channel's.

    >>> one = Counts(n=1, parts={"sketch": np.array([1, 0])})
    >>> (one + one).n, (one + one).parts["sketch"].tolist(), Counts.from_dict((one + one).to_dict()).n
    (2, [2, 0], 2)
    """

    n: int
    parts: Mapping[str, Array]

    def __add__(self, other: Counts) -> Counts:
        if not self.fits(other):
            raise InvalidParameter(
                "Two tallies were not added", why="they count different things", instead="tallies of one survey and version"
            )
        added = {name: _joined(name, each, other.parts[name]) for name, each in self.parts.items()}
        return Counts(n=self.n + other.n, parts=added)

    def fits(self, other: Counts) -> bool:
        """Whether both have the same parts of the same shapes.

        >>> Counts(n=0, parts={}).fits(Counts(n=3, parts={"a": np.array([3])}))
        False
        """
        return self._shapes() == other._shapes()

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        return {name: (each.ndim,) if name == LISTED else each.shape for name, each in self.parts.items()}

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON. Long arrays that are mostly zeros are written as places and counts."""
        return {"n": self.n, "parts": {name: _written(each) for name, each in self.parts.items()}}

    @classmethod
    def from_dict(cls, said: Any) -> Counts:
        """What `to_dict` wrote; anything else is refused."""
        try:
            counts = cls(n=int(said["n"]), parts={str(name): _read(each) for name, each in said["parts"].items()})
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError, IndexError):
            raise refused_tally() from None
        if counts.n < 0 or any(bool((each < 0).any()) for each in counts.parts.values()):
            raise refused_tally()
        return counts


def _joined(name: str, one: Array, other: Array) -> Array:
    return np.sort(np.concatenate([one, other])) if name == LISTED else one + other


def _written(array: Array) -> dict[str, Any]:
    flat = array.ravel()
    some = np.flatnonzero(flat)
    if 2 * some.size < flat.size:
        return {"shape": list(array.shape), "at": some.tolist(), "counts": flat[some].tolist()}
    return {"shape": list(array.shape), "counts": flat.tolist()}


def _read(said: Any) -> Array:
    shape = [int(side) for side in said["shape"]]
    size = int(np.prod(shape, dtype=object))
    if not 0 <= size <= _MOST or min(shape, default=0) < 0:
        raise ValueError
    counts = np.array(said["counts"], dtype=np.int64)
    if "at" in said:
        flat = np.zeros(size, dtype=np.int64)
        flat[np.array(said["at"], dtype=np.int64)] = counts
        counts = flat
    return counts.reshape(shape)


def refused_tally(why: str = "it is not what to_json wrote") -> InvalidParameter:
    """What is said of a tally that nobody can count on with."""
    return InvalidParameter("A tally is invalid", why=why, instead="tally.to_json()")
