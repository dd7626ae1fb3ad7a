"""What a guest may return: so many numbers, each within bounds that are declared before any row is read."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter, MissingBound
from cloister.printable import json_of

_STEPS, _MOST, _SHOWN = 1 << 16, 4096, 60
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
            or not all(isinstance(name, str) for name in names)
            or len(set(names)) != len(names)
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

    def read(self, found: Any) -> npt.NDArray[np.int64] | None:
        """The levels nearest what was returned, within the bounds; None for what is not so many numbers. The one check of what a
        guest returns, on rows and on made-up rows alike. Where one number is declared, it may stand alone.

        >>> Vector([(0, 120)]).read(60).tolist(), Vector([(0, 120)]).read([None])
        ([32768], None)
        """
        numbers = self._numbers(found)
        if not isinstance(numbers, list) or len(numbers) != len(self) or not all(map(_counts, numbers)):
            return None
        shares = [
            (min(max(each, low), high) - low) / (high - low) for each, (low, high) in zip(numbers, self.bounds, strict=True)
        ]
        return np.array([min(max(round(share * _STEPS), 0), _STEPS) for share in shares], dtype=np.int64)

    def codes(self, found: Any) -> npt.NDArray[np.int64]:
        """What was read; where nothing was, the middle of every range."""
        read = self.read(found)
        return np.full(len(self), _STEPS // 2, dtype=np.int64) if read is None else read

    def why_not(self, found: Any) -> str:
        """Why what was returned is not what is declared, for an author who tries on made-up rows; empty where it is.

        >>> Vector([(0, 120)]).why_not("42")
        'it returned "42", and not 1 number'
        """
        return "" if self.read(found) is not None else f"it returned {_cut(found)}, and not {self._shape()}"

    def _numbers(self, found: Any) -> Any:
        """What was returned as a flat list."""
        return [found] if len(self) == 1 and _counts(found) else found

    def _shape(self) -> str:
        return "1 number" if len(self) == 1 else f"a list of {len(self)} numbers"

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


class Table(Vector):
    """A table of numbers: its rows have names, its columns names and a range each. What has no such shape counts as the middle.

    >>> output = Table(rows=["12 months", "24 months"], columns={"alive": (0, 1), "left": (0, 100)})
    >>> output.codes([[0.5, 100], [1, 0]]).tolist() == output.codes({"alive": [0.5, 1], "left": [100, 0]}).tolist()
    True
    >>> output.laid_out(output.values(output.codes([[0.5, 100], [1, 0]])))
    {'': ['12 months', '24 months'], 'alive': [0.5, 1.0], 'left': [100.0, 0.0]}
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]

    def __init__(self, *, rows: Sequence[str], columns: Mapping[str, tuple[float, float]]) -> None:
        named = isinstance(rows, list | tuple) and all(isinstance(row, str) for row in rows) and len(set(rows)) == len(rows)
        if not named or not rows or not isinstance(columns, Mapping) or not columns or "" in columns:
            raise InvalidParameter(
                "The output is invalid",
                why="a table has names of rows, none twice, and a name and a range for each column",
                instead='cl.Table(rows=["12 months"], columns={"alive": (0, 1)})',
            )
        object.__setattr__(self, "rows", tuple(rows))
        object.__setattr__(self, "columns", tuple(columns))
        names = [f"{row}: {column}" for row in rows for column in columns]
        super().__init__([columns[column] for _ in rows for column in columns], names)

    def _numbers(self, found: Any) -> Any:
        """Of a list of rows, or a list for each column."""
        if self._by_column(found):
            found = [list(row) for row in zip(*(found[column] for column in self.columns), strict=True)]
        whole = isinstance(found, list) and all(isinstance(row, list) and len(row) == len(self.columns) for row in found)
        return [value for row in found for value in row] if whole else super()._numbers(found if len(self) == 1 else None)

    def _shape(self) -> str:
        return f"a list of {len(self.rows)} rows of {len(self.columns)} numbers"

    def _by_column(self, found: Any) -> bool:
        """Whether it is a list for each column, as long as there are rows."""
        if not isinstance(found, dict) or set(found) != set(self.columns):
            return False
        return all(isinstance(each, list) and len(each) == len(self.rows) for each in found.values())

    def laid_out(self, values: Mapping[str, float]) -> dict[str, list[Any]]:
        """Values, or margins, by their names, as the columns of the table; the first holds the names of its rows."""
        return {"": list(self.rows)} | {column: [values[f"{row}: {column}"] for row in self.rows] for column in self.columns}

    def describe(self) -> dict[str, Any]:
        """As plain data."""
        return {**super().describe(), "kind": "table", "rows": list(self.rows), "columns": list(self.columns)}


def _counts(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value


def _is_number(value: Any) -> bool:
    return _counts(value) and abs(value) <= _LARGEST


def output_of(kind: str, arguments: Sequence[Any], named: Mapping[str, Any]) -> Vector:
    """The output that is written down as `Vector(…)` or `Table(…)`.

    >>> output_of("Vector", [[(0, 120)]], {"names": ["age"]}).names
    ('age',)
    """
    kinds: dict[str, Callable[..., Vector]] = {"Vector": Vector, "Table": Table}
    try:
        return kinds[kind](*arguments, **named)
    except (KeyError, TypeError):
        raise InvalidParameter(
            "output= is invalid", why="it is a Vector or a Table", instead='cl.Vector([(0, 120)], names=["age"])'
        ) from None


def _cut(value: Any) -> str:
    """A value in a message to its author, cut short."""
    text = json_of(value, default=str)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + " …"
