"""The classes of a node of the lattice as a table that those of higher nodes can be joined from.

A state is a class together with one value of each sensitive column that a model asks for (a class is one state where none
does). It is one whole number: a field of bits for each column, the count in the lowest. Going up any levels is then a look-up
and an addition for each column that changes, one sort, and a sum over neighbours. Where the fields need more than 63 bits,
codes and counts are kept as arrays of their own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from cloister.anonymize.classes import Classes, Spread, alike
from cloister.anonymize.encoded import EncodedColumn, tally_of
from cloister.anonymize.metrics.base import dot

if TYPE_CHECKING:
    from cloister.anonymize.searches.counting import Counter

Ints = npt.NDArray[np.int64]
Levels = tuple[int, ...]

_BITS = 63


class Node(ABC):
    """The classes of a node."""

    def __init__(self, counter: Counter, levels: Levels) -> None:
        self.counter, self.levels = counter, levels

    counts: Ints
    """Rows of each state; states of a class are neighbours."""

    @abstractmethod
    def __len__(self) -> int:
        """How many states."""

    @abstractmethod
    def field(self, column: int) -> Ints:
        """The code of each state in a column: quasi-identifiers first, then what models ask for."""

    @abstractmethod
    def starts(self) -> Ints:
        """Where the states of each class begin."""

    @abstractmethod
    def raised(self, levels: Levels) -> Node:
        """The same on higher levels."""

    @cached_property
    def _first(self) -> Ints | None:
        return self.starts() if self.counter.extras else None

    @cached_property
    def sizes(self) -> Ints:
        """Rows of each class."""
        if self._first is None or not len(self.counts):
            return self.counts
        return np.asarray(np.add.reduceat(self.counts, self._first), dtype=np.int64)

    @cached_property
    def squares(self) -> float:
        """Σ|E|²."""
        sizes = self.sizes.astype(np.float64)
        return dot(sizes, sizes)

    @cached_property
    def floats(self) -> npt.NDArray[np.float64]:
        """The counts as weights of a tally; exact up to 2⁵³ rows."""
        return self.counts.astype(np.float64)

    @cached_property
    def joint(self) -> dict[tuple[int, Levels], tuple[npt.NDArray[np.int32], int]]:
        """Codes of groups of columns on higher levels, as they were asked for."""
        return {}

    def forget(self) -> None:
        """Let go of codes that can be made again."""
        self.joint.clear()
        self._lifted.clear()

    @cached_property
    def _lifted(self) -> dict[tuple[int, int], npt.NDArray[np.int32]]:
        return {}

    def lifted(self, column: int, level: int) -> npt.NDArray[np.int32]:
        """The label of each state in one column on a higher level."""
        found = self._lifted.get((column, level))
        if found is None:
            mapping = self.counter.mapping(column, self.levels[column], level)
            found = self._lifted[column, level] = mapping[self.field(column)]
            self.counter.codes += len(found)
        return found

    def codes(self, column: int, among: npt.NDArray[np.intp] | None = None) -> Ints:
        """The label of each class, or of some, in one quasi-identifier."""
        found = self.field(column)
        if self._first is not None:
            return found[self._first if among is None else self._first[among]]
        return found if among is None else found[among]

    def classes(self) -> Classes:
        """As the privacy models want them: a row for each state, that stands for as many as it counts."""
        counter, problem = self.counter, self.counter.problem
        if self._first is None:
            owner = np.arange(len(self.counts), dtype=np.int64)
        else:
            owner = np.repeat(np.arange(len(self._first)), np.diff(self._first, append=len(self.counts)))
        sensitive, research = {}, None
        for place, name in enumerate(counter.extras, len(self.levels)):
            codes = self.field(place)
            if name is None:
                research = codes.astype(bool)
                continue
            column = problem.table.columns[name]
            sensitive[name] = EncodedColumn(
                name=name, codes=codes.astype(np.int32), values=column.values, kind=column.kind, tally=column.counts
            )
        found = Classes(of_row=owner, sizes=self.sizes, sensitive=sensitive, research=research, weights=self.counts)
        if counter.extras == [*sensitive] and len(sensitive) == 1 and self._first is not None:
            # states are what a spread is made of: a class, a value, a count, in this order
            column, first = next(iter(sensitive.values())), np.append(self._first, len(self.counts))
            value = column.codes.astype(np.int64)
            found.told(
                Spread(column=column, first=first, value=value, count=self.counts, sizes=self.sizes, overall=column.counts)
            )
        return found


@dataclass(frozen=True)
class _Layout:
    """Where the fields of a packed state stand; it serves a node and all above it, whose labels are no more."""

    shifts: tuple[int, ...]
    masks: tuple[int, ...]
    count_bits: int

    @classmethod
    def of(cls, radices: Sequence[int], total: int) -> _Layout | None:
        """For fields of so many codes and counts up to a total; None where a number has too few bits."""
        widths = [int(max(radix, 1) - 1).bit_length() for radix in radices]
        count_bits = int(total).bit_length()
        if sum(widths) + count_bits > _BITS:
            return None
        shifts, end = [], sum(widths) + count_bits
        for width in widths:
            end -= width
            shifts.append(end)
        return cls(tuple(shifts), tuple((1 << width) - 1 for width in widths), count_bits)


class _Packed(Node):
    """States as single numbers, in order."""

    def __init__(self, counter: Counter, levels: Levels, layout: _Layout, packed: Ints) -> None:
        super().__init__(counter, levels)
        self.layout, self.packed = layout, packed

    @classmethod
    def joined(cls, counter: Counter, levels: Levels, layout: _Layout, packed: Ints) -> _Packed:
        """From states in any order, of which some may be the same; the array is used up."""
        packed.sort()
        key = packed >> layout.count_bits
        first = _starts(key)
        if len(first) < len(key):
            counts = np.add.reduceat(packed & ((1 << layout.count_bits) - 1), first)
            packed = (key[first] << layout.count_bits) + counts
        return cls(counter, levels, layout, packed)

    @cached_property
    def counts(self) -> Ints:  # type: ignore[override]
        """The lowest field."""
        return self.packed & ((1 << self.layout.count_bits) - 1)

    def __len__(self) -> int:
        """How many states."""
        return len(self.packed)

    def field(self, column: int) -> Ints:
        """A field of bits."""
        return (self.packed >> self.layout.shifts[column]) & self.layout.masks[column]

    def starts(self) -> Ints:
        """Where what stands above the sensitive fields changes."""
        return _starts(self.packed >> self.layout.shifts[len(self.levels) - 1])

    def raised(self, levels: Levels) -> _Packed:
        """Exchange fields, sort, and add up what has become the same."""
        packed = self.packed
        for column, (low, high) in enumerate(zip(self.levels, levels, strict=True)):
            if low != high:
                step = self.counter.step(column, low, high, self.layout.shifts[column])
                packed = packed + step[self.field(column)]
        return self if packed is self.packed else _Packed.joined(self.counter, levels, self.layout, packed)


class _Wide(Node):
    """States as codes and counts."""

    def __init__(self, counter: Counter, levels: Levels, codes: list[npt.NDArray[np.int32]], counts: Ints) -> None:
        super().__init__(counter, levels)
        self._codes, self.counts = codes, counts

    def __len__(self) -> int:
        """How many states."""
        return len(self.counts)

    def field(self, column: int) -> Ints:
        """A column's codes."""
        return self._codes[column].astype(np.int64)

    def starts(self) -> Ints:
        """Where any quasi-identifier changes."""
        changes = np.zeros(max(len(self.counts) - 1, 0), dtype=bool)
        for codes in self._codes[: len(self.levels)]:
            changes |= codes[1:] != codes[:-1]
        return np.flatnonzero(np.concatenate([[True], changes])) if len(self.counts) else np.zeros(0, dtype=np.int64)

    def raised(self, levels: Levels) -> Node:
        """Exchange columns, and count what is alike."""
        if levels == self.levels:
            return self
        codes = list(self._codes)
        for column, (low, high) in enumerate(zip(self.levels, levels, strict=True)):
            if low != high:
                codes[column] = self.counter.mapping(column, low, high)[codes[column]]
        return table_of(self.counter, levels, codes, self.counts)


def table_of(counter: Counter, levels: Levels, codes: Sequence[npt.NDArray[np.int32]], counts: Ints) -> Node:
    """States from rows, of which some may be alike: packed, where a number is wide enough."""
    radices = counter.radices(levels)
    layout = _Layout.of(radices, counter.problem.table.total)
    if layout is None:
        return _Wide(counter, levels, *_distinct(codes, radices, counts))
    packed = counts.astype(np.int64)
    for each, shift in zip(codes, layout.shifts, strict=True):
        packed += each.astype(np.int64) << shift
    return _Packed.joined(counter, levels, layout, packed)


def _starts(key: Ints) -> Ints:
    """Where a sorted list changes, its beginning included."""
    changes = np.empty(len(key), dtype=bool)
    changes[:1] = True
    np.not_equal(key[1:], key[:-1], out=changes[1:])
    return np.flatnonzero(changes)


def _distinct(
    codes: Sequence[npt.NDArray[np.int32]], radices: Sequence[int], counts: Ints
) -> tuple[list[npt.NDArray[np.int32]], Ints]:
    """Rows that are alike as one, in the order of their codes."""
    if not len(counts):
        return list(codes), counts
    ids, count = alike(codes, radices)
    row = np.zeros(count, dtype=np.int64)
    row[ids] = np.arange(len(ids))
    return [each[row] for each in codes], tally_of(ids, count, counts)
