"""Quasi-identifiers as axes: each value has a place, and a class covers the places between two of them.

Numbers and dates stand in their own order. Categories with a hierarchy are in the order of its leaves, so that what is under
one label stands together, and the smallest label of two places is the label of all between. Categories without one stand by how
often they occur, or, where there are many, in the order of the alphabet (postcodes, names).
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cloister.anonymize.encoded import Encoded, EncodedColumn
from cloister.anonymize.hierarchies.ladder import Ladder

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

MANY = 64
"""Categories of more values than this are ordered by the alphabet, and named by their first and last: a set would be no label."""

_TINY = 1e-12


@dataclass(frozen=True, eq=False, kw_only=True)
class Axis:
    """One quasi-identifier: `place[code]` is the place of a value, `code[place]` its inverse.

    >>> from cloister.anonymize.frames import read_frame
    >>> from cloister.anonymize.encoded import encode
    >>> axis = axis_of(encode(read_frame({"age": [20, 60, 30]}), ["age"]).columns["age"], None)
    >>> axis.widths(np.array([0, 0, 1]), np.array([1, 2, 1])).tolist()
    [0.25, 1.0, 0.0]
    """

    column: EncodedColumn
    place: npt.NDArray[np.int32]
    code: npt.NDArray[np.int32]
    at: Floats
    """Where each place is, from 0 to 1: numbers by their value, categories one step apart."""
    ladder: Ladder | None = None
    steps: tuple[npt.NDArray[np.int32], ...] = ()
    """With a hierarchy, for each level: the first place that has the same label as a place."""

    def __len__(self) -> int:
        """How many places."""
        return len(self.place)

    @property
    def is_number(self) -> bool:
        """Whether what lies between two places is an interval."""
        return self.ladder is None and self.column.is_number

    @property
    def is_set(self) -> bool:
        """Whether a class is called by the set of its values there."""
        return self.ladder is None and not self.column.is_number and len(self) <= MANY

    def widths(self, low: npt.NDArray[np.integer], high: npt.NDArray[np.integer]) -> Floats:
        """How much of the axis lies between two places: 0 for one value, 1 for everything."""
        if self.ladder is None:
            # two numbers so near that their distance is lost are two numbers all the same
            return np.where(high > low, np.clip(self.at[high] - self.at[low], _TINY, 1.0), 0.0)
        level = self.levels(low, high)
        found = np.where(level > 0, 1.0, 0.0)
        for each in range(1, self.ladder.height):
            here = level == each
            found[here] = self.ladder.shares(each)[self.ladder.codes[each][self.code[low[here]]]]
        return found

    def levels(self, low: npt.NDArray[np.integer], high: npt.NDArray[np.integer]) -> Ints:
        """The lowest level on which all between two places are called the same; one above the top where there is none."""
        assert self.ladder is not None
        found = np.full(len(low), self.ladder.height, dtype=np.int64)
        for level in range(self.ladder.height - 1, -1, -1):
            found[self.steps[level][low] == self.steps[level][high]] = level
        return found

    def places(self) -> npt.NDArray[np.int32]:
        """The place of each row."""
        return self.place[self.column.codes]


def axes_of(table: Encoded, quasi: tuple[str, ...], ladders: Mapping[str, Ladder], *, numbers_along: bool = False) -> list[Axis]:
    """The axes of a table; categories go along the hierarchies that are given, and with `numbers_along` numbers as well."""
    return [axis_of(table.columns[name], ladders.get(name), numbers_along=numbers_along) for name in quasi]


def axis_of(column: EncodedColumn, ladder: Ladder | None, *, numbers_along: bool = False) -> Axis:
    """A column as an axis; a number needs no hierarchy, and goes along one only where that is asked for."""
    if column.is_number and not (numbers_along and ladder is not None):
        return _ordered(column, np.arange(len(column)), _positions(column))
    if ladder is not None:
        order = np.lexsort(ladder.codes) if len(column) else np.empty(0, dtype=np.int64)
        axis = _ordered(column, order, _even(len(column)))
        steps = []
        for codes in ladder.codes:
            labels = codes[order]
            new = np.ones(len(labels), dtype=bool)
            new[1:] = labels[1:] != labels[:-1]
            steps.append(np.maximum.accumulate(np.where(new, np.arange(len(labels)), 0)).astype(np.int32))
        return Axis(column=column, place=axis.place, code=axis.code, at=axis.at, ladder=ladder, steps=tuple(steps))
    often = len(column) <= MANY and column.kind == "text"
    order = np.argsort(-column.counts, kind="stable") if often else np.arange(len(column))
    return _ordered(column, order, _even(len(column)))


def _ordered(column: EncodedColumn, order: npt.NDArray[np.integer], at: Floats) -> Axis:
    place = np.empty(len(order), dtype=np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    return Axis(column=column, place=place, code=order.astype(np.int32), at=at)


def _even(values: int) -> Floats:
    return np.linspace(0.0, 1.0, values) if values > 1 else np.zeros(values)


def _positions(column: EncodedColumn) -> Floats:
    """Numbers between 0 and 1. A missing value stands one value's share beyond the largest: cuts part it from the others, and
    it makes no interval look wide."""
    numbers = column.numbers
    known = numbers[: len(numbers) - (column.missing is not None)]
    at = np.zeros(len(numbers))
    if len(known) and known[-1] > known[0]:
        # halves first: the difference of two floats of opposite sign may be no float
        at[: len(known)] = (known / 2 - known[0] / 2) / (known[-1] / 2 - known[0] / 2)
    if column.missing is not None and len(known):
        at[-1] = at[len(known) - 1] + 1.0 / len(numbers)
    return at
