"""What leaves the second door: a small table of controlled numbers that says of itself that it is not private."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from cloister.errors import UnknownColumn, UnsupportedQuery
from cloister.query.controls.marking import NOT_PRIVATE
from cloister.query.controls.recoding import Range
from cloister.session import Frame, Series, text_table

Reported: TypeAlias = int | Fraction | Range | None
"""What stands in a cell: a whole number, an exact number, a range, or nothing."""

TOTAL = "(total)"
"""The label of a total in a frequency table."""


@dataclass(frozen=True, kw_only=True)
class ControlledAnswer:
    """An answer under inference controls. **Not differential privacy**: `str(answer)` says so, and so does the ledger.

    >>> answer = ControlledAnswer(keys={}, values={"count": (12,)}, controls=("a set has at least 5 persons",))
    >>> answer.value, answer.private
    (12, False)
    >>> print(answer)
    count
    ─────
       12
    NOT differentially private: answered under inference controls, for trusted insiders; nothing bounds what it tells
    - a set has at least 5 persons
    """

    keys: Mapping[str, tuple[Any, ...]]
    """The labels of the groups, by column; none for a single group."""
    values: Mapping[str, tuple[Reported, ...]]
    """The statistics by name; None where a cell is suppressed, or a mean has no values."""
    controls: tuple[str, ...]
    notes: tuple[str, ...] = ()
    private: bool = False
    """Never: for programs that take this and releases alike."""

    @property
    def value(self) -> Reported:
        """The only number of an answer that has one."""
        if len(self.values) != 1 or self.num_rows != 1:
            raise UnsupportedQuery(
                "The value was asked for", why="the answer has several", instead=f'answer["{next(iter(self.values))}"]'
            )
        return next(iter(self.values.values()))[0]

    @property
    def num_rows(self) -> int:
        """How many groups there are, suppressed ones included."""
        return len(next(iter(self.values.values())))

    @property
    def column_names(self) -> list[str]:
        """Keys, then statistics."""
        return [*self.keys, *self.values]

    def __getitem__(self, name: str) -> list[Any]:
        if name not in self.column_names:
            known = ", ".join(map(repr, self.column_names))
            raise UnknownColumn(f"The column {name!r} is unknown", why="the answer has none of this name", instead=known)
        return list(self.keys[name] if name in self.keys else self.values[name])

    def cell(self, *labels: object) -> Reported:
        """The number of the group with these labels, in the order of the keys; `TOTAL` for a total.

        >>> answer = ControlledAnswer(keys={"sex": ("F", TOTAL)}, values={"count": (3, 9)}, controls=())
        >>> answer.cell("F"), answer.cell(TOTAL)
        (3, 9)
        """
        rows = list(zip(*self.keys.values(), strict=True))
        return next(iter(self.values.values()))[rows.index(labels)]

    def to_frame(self) -> Frame:
        """As a frame, which turns into pandas, polars and Arrow; ranges and labels become text, exact numbers floats."""
        columns = {name: _text(labels) for name, labels in self.keys.items()}
        return Frame(columns | {name: _series(cells) for name, cells in self.values.items()})

    def __str__(self) -> str:
        rows = [[_shown(cell) for cell in row] for row in zip(*self.keys.values(), *self.values.values(), strict=True)]
        lines = [text_table(self.column_names, rows), NOT_PRIVATE, *(f"- {control}" for control in self.controls), *self.notes]
        return "\n".join(lines)

    __repr__ = __str__


def _series(cells: tuple[Reported, ...]) -> Series:
    if any(isinstance(cell, Range) for cell in cells):
        return _text(cells)
    if all(isinstance(cell, int) for cell in cells):
        return Series("integer", np.array(cells, dtype=object))
    found = np.empty(len(cells), dtype=object)
    found[:] = [None if cell is None else float(cell) for cell in cells if not isinstance(cell, Range)]
    return Series("real", found)


def _text(cells: tuple[Any, ...]) -> Series:
    found = np.empty(len(cells), dtype=object)
    found[:] = [None if cell is None else str(cell) for cell in cells]
    return Series("text", found)


def _shown(cell: Any) -> str:
    if cell is None:
        return "·"
    if isinstance(cell, Fraction):
        return f"{cell.numerator:,}" if cell.denominator == 1 else f"{float(cell):,.6g}"
    return f"{cell:,}" if isinstance(cell, int) and not isinstance(cell, bool) else str(cell)
