"""What a guest may return: so many numbers, each within bounds that are declared before any row is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter, MissingBound

_STEPS, _MOST = 1 << 16, 4096
_LARGEST = 1e100
"""So large a bound may be: the width of a range, and what is worked out of it, stay numbers."""


@dataclass(frozen=True)
class Vector:
    """So many numbers within bounds, with names if you like: `values` are read on 65,537 evenly spaced levels of each range.

    >>> output = Vector([(0, 120), (-1, 1)], names=["age", "slope"])
    >>> output.codes([60, 7]).tolist(), output.codes("nonsense").tolist()
    ([32768, 65536], [32768, 32768])
    """

    bounds: Sequence[tuple[float, float]]
    names: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.bounds, Sequence) or isinstance(self.bounds, str) or not 1 <= len(self.bounds) <= _MOST:
            raise MissingBound(
                "The output is invalid", why=f"it needs a range for each of 1 to {_MOST} numbers", instead="cl.Vector([(0, 120)])"
            )
        for each in self.bounds:
            if (
                not isinstance(each, Sequence)
                or len(each) != 2
                or not all(map(_is_number, each))
                or not float(each[0]) < float(each[1])
            ):
                raise InvalidParameter(
                    "A range is invalid",
                    why=f"it goes from a number to a larger one, and both are within ±{_LARGEST:g}",
                    instead="cl.Vector([(0, 120)])",
                )
        object.__setattr__(self, "bounds", tuple((float(low), float(high)) for low, high in self.bounds))
        given: object = self.names
        names = [str(place) for place in range(len(self.bounds))] if given is None else given
        if (
            not isinstance(names, list | tuple)
            or len(names) != len(self.bounds)
            or len(set(names)) != len(names)
            or not all(isinstance(name, str) for name in names)
        ):
            raise InvalidParameter(
                "names= is invalid", why="it has one name for each number, and no name twice", instead='names=["low", "high"]'
            )
        object.__setattr__(self, "names", tuple(names))

    def __len__(self) -> int:
        return len(self.bounds)

    @property
    def steps(self) -> int:
        """The code of the upper end; the lower end is 0."""
        return _STEPS

    def codes(self, found: Any) -> npt.NDArray[np.int64]:
        """The levels nearest what was returned, within the bounds; the middle for what is not such a list, or not a number."""
        middle = np.full(len(self), _STEPS // 2, dtype=np.int64)
        if not isinstance(found, list) or len(found) != len(self):
            return middle
        for place, (value, (low, high)) in enumerate(zip(found, self.bounds, strict=True)):
            if isinstance(value, int | float) and not isinstance(value, bool) and value == value:
                share = (min(max(value, low), high) - low) / (high - low)
                middle[place] = min(max(round(share * _STEPS), 0), _STEPS)
        return middle

    def values(self, codes: npt.NDArray[np.float64]) -> dict[str, float]:
        """The numbers that levels stand for, also between two levels, within the bounds."""
        assert self.names is not None
        ends = zip(self.names, codes, self.bounds, strict=True)
        return {name: low + (high - low) * min(max(float(code) / _STEPS, 0.0), 1.0) for name, code, (low, high) in ends}

    def widths(self) -> dict[str, float]:
        """How wide each range is."""
        assert self.names is not None
        return {name: high - low for name, (low, high) in zip(self.names, self.bounds, strict=True)}

    def describe(self) -> dict[str, Any]:
        """As plain data."""
        return {"kind": "vector", "bounds": [list(each) for each in self.bounds], "names": list(self.names or ())}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _LARGEST
