"""What columns that nobody named add to the risk: how many rows they tell apart that the quasi-identifiers do not tell apart.

A table may be 5-anonymous in age and town, and every row of it the only one of its kind in age, town and wage. Models look at the
columns that were named; so each other column is counted as if others knew it too, and all of them together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cloister.anonymize.classes import alike
from cloister.anonymize.encoded import encode, tally_of
from cloister.anonymize.frames import Frame
from cloister.errors import InvalidParameter

if TYPE_CHECKING:
    from cloister.anonymize.recoding import Recoded

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Added:
    """What one column, or all of them, would say something about a published table to somebody who knows it.

    >>> found = Added(columns=("pay",), rows=400, alone=344, below=390, k=1, alone_before=0, k_before=5)
    >>> print(found)
    If others also know 'pay', 344 of 400 rows are the only ones of their kind, not 0 (k = 1, not 5).
    >>> found.grows
    True
    """

    columns: tuple[str, ...]
    rows: int
    alone: int
    """Rows that are the only ones of their kind for who knows these columns besides the quasi-identifiers."""
    below: int
    """Rows in classes that are smaller then than the smallest one without them."""
    k: int
    alone_before: int
    k_before: int

    @property
    def grows(self) -> bool:
        """Whether anybody is easier to find."""
        return self.k < self.k_before or self.alone > self.alone_before

    @property
    def warning(self) -> str:
        """The same for who is about to publish, with what to write instead.

        >>> print(Added(columns=("a", "b"), rows=9, alone=0, below=4, k=2, alone_before=0, k_before=5).warning)
        the columns 'a', 'b' stay as they are: if others also know them all, 4 of 9 rows are in smaller classes (k = 2, not 5).
        """
        names = ", ".join(map(repr, self.columns))
        if len(self.columns) > 1:
            return f"the columns {names} stay as they are: if others also know them all, {self._told}"
        instead = f"Instead: quasi=[…, {names}], or identifying=[{names}]"
        return f"the column {names} stays as it is: if others also know it, {self._told} {instead}"

    @property
    def _told(self) -> str:
        told = f"{self.alone:,} of {self.rows:,} rows are the only ones of their kind, not {self.alone_before:,}"
        if not self.alone:
            told = f"{self.below:,} of {self.rows:,} rows are in smaller classes"
        return f"{told} (k = {self.k:,}, not {self.k_before:,})."

    def __str__(self) -> str:
        return f"If others also know {', '.join(map(repr, self.columns))}, {self._told}"

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for JSON."""
        return {"columns": list(self.columns), "rows": self.rows, "alone": self.alone, "below": self.below, "k": self.k}


def added_by(frame: Frame, recoded: Recoded, kept: npt.NDArray[np.bool_] | None, names: Sequence[str]) -> tuple[Added, ...]:
    """What columns of a table add to the risk of what is published of it; `kept` are the rows that were recoded."""
    if not names:
        return ()
    if kept is not None and not kept.all():
        frame = frame.among(kept)
    there = recoded.published
    return added_in(frame.among(there), recoded.classes.of_row[there], names)


def added_in(frame: Frame, classes: Ints, names: Sequence[str]) -> tuple[Added, ...]:
    """The same for a table as it is, from the class of each row."""
    return added_to(classes, frame.weights, {name: _codes(frame, name) for name in names}) if names else ()


def added_to(classes: Ints, weights: Ints | None, columns: Mapping[str, Ints]) -> tuple[Added, ...]:
    """The same from the class of each row and the values of each column as codes.

    >>> [found] = added_to(np.array([0, 0, 1, 1]), None, {"pay": np.array([7, 8, 9, 9])})
    >>> found.alone, found.below, found.k, found.k_before
    (2, 2, 1, 2)
    """
    if not len(classes):
        return ()
    asked = [(name,) for name in columns] + ([tuple(columns)] if len(columns) > 1 else [])
    widths = {name: int(codes.max()) + 1 for name, codes in columns.items()}
    before = _sizes([classes], [int(classes.max()) + 1], weights)
    found = []
    for names in asked:
        sizes = _sizes(
            [classes, *(columns[name] for name in names)], [int(classes.max()) + 1, *(widths[n] for n in names)], weights
        )
        least = int(before.min())
        found.append(
            Added(
                columns=names,
                rows=int(before.sum()),
                alone=int((sizes == 1).sum()),
                below=int(sizes[sizes < least].sum()),
                k=int(sizes.min()),
                alone_before=int((before == 1).sum()),
                k_before=least,
            )
        )
    return tuple(found)


def _sizes(columns: list[Ints], widths: list[int], weights: Ints | None) -> Ints:
    ids, count = alike(columns, widths)
    return tally_of(ids, count, weights)


def _codes(frame: Frame, name: str) -> Ints:
    """Which rows have the same value, as a program would tell: of whatever type the column is."""
    try:
        return encode(frame, [name], apart=[name]).columns[name].codes.astype(np.int64)
    except InvalidParameter:  # lists, bytes, infinite numbers: nothing else looks at this column
        numbers: dict[str, int] = {}
        return np.array([numbers.setdefault(repr(value), len(numbers)) for value in frame.data[name].to_list()], dtype=np.int64)
