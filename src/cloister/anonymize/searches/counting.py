"""How many rows stand in each class of a node of the lattice, without going back to the rows.

A node's classes are those of any node under it, joined. So each is counted from a parent that differs in one column, which was
counted from its own parent, down to the distinct rows of the table. Columns take their levels in an order in which tables
shrink fastest.

A state is a class together with one value of each sensitive column that a model asks for (a class is one state where none
does). It is one whole number: a field of bits for each column, the count in the lowest. Going up a level is then a look-up and
an addition, a sort, and a sum over neighbours. Where the fields need more than 63 bits, codes and counts are kept as arrays of
their own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from cloister.anonymize.classes import Classes, alike
from cloister.anonymize.encoded import EncodedColumn, tally_of
from cloister.anonymize.models.base import PrivacyModel, satisfied_by
from cloister.anonymize.models.k import KAnonymity
from cloister.anonymize.problem import Problem

__all__ = ["Counter", "Levels", "Node"]

Ints = npt.NDArray[np.int64]
Levels = tuple[int, ...]

_MOST_KEPT = 24_000_000
"""How many states are kept in all tables together before they are counted afresh."""
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
    def raised(self, column: int, level: int) -> Node:
        """The same with one column on a higher level."""

    @cached_property
    def _first(self) -> Ints | None:
        return self.starts() if self.counter.extras else None

    @cached_property
    def sizes(self) -> Ints:
        """Rows of each class."""
        if self._first is None or not len(self.counts):
            return self.counts
        return np.asarray(np.add.reduceat(self.counts, self._first), dtype=np.int64)

    def codes(self, column: int) -> Ints:
        """The label of each class in one quasi-identifier."""
        found = self.field(column)
        return found if self._first is None else found[self._first]

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
        return Classes(of_row=owner, sizes=self.sizes, sensitive=sensitive, research=research, weights=self.counts)


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

    @property
    def count_mask(self) -> int:
        """The lowest field."""
        return (1 << self.count_bits) - 1


class _Packed(Node):
    """States as single numbers, in order."""

    def __init__(self, counter: Counter, levels: Levels, layout: _Layout, packed: Ints) -> None:
        super().__init__(counter, levels)
        self.layout, self.packed = layout, packed

    @cached_property
    def counts(self) -> Ints:  # type: ignore[override]
        """The lowest field."""
        return self.packed & self.layout.count_mask

    def __len__(self) -> int:
        """How many states."""
        return len(self.packed)

    def field(self, column: int) -> Ints:
        """A field of bits."""
        return (self.packed >> self.layout.shifts[column]) & self.layout.masks[column]

    def starts(self) -> Ints:
        """Where what stands above the sensitive fields changes."""
        return _starts(self.packed >> self.layout.shifts[len(self.levels) - 1])

    def raised(self, column: int, level: int) -> _Packed:
        """Exchange one field, sort, and add up what has become the same."""
        layout = self.layout
        step = self.counter.step(column, self.levels[column], level, layout.shifts[column])
        packed = self.packed + step[self.field(column)]
        packed.sort()
        key = packed >> layout.count_bits
        first = _starts(key)
        if len(first) < len(key):
            counts = np.add.reduceat(packed & layout.count_mask, first)
            packed = (key[first] << layout.count_bits) + counts
        return _Packed(self.counter, _with(self.levels, column, level), layout, packed)


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

    def raised(self, column: int, level: int) -> Node:
        """Exchange one column, and count what is alike."""
        levels = _with(self.levels, column, level)
        codes = list(self._codes)
        codes[column] = self.counter.mapping(column, self.levels[column], level)[codes[column]]
        return _node(self.counter, levels, *_joined(codes, self.counter.radices(levels), self.counts))


def _node(counter: Counter, levels: Levels, codes: list[npt.NDArray[np.int32]], counts: Ints) -> Node:
    """Packed, where a number is wide enough."""
    layout = _Layout.of(counter.radices(levels), counter.problem.table.total)
    if layout is None:
        return _Wide(counter, levels, codes, counts)
    packed = counts.copy()
    for each, shift in zip(codes, layout.shifts, strict=True):
        packed += each.astype(np.int64) << shift
    packed.sort()
    return _Packed(counter, levels, layout, packed)


class Counter:
    """Counts nodes of one problem, and keeps what may help to count others.

    `extras` are the columns that models ask for; None stands for the mark of the rows that δ-presence is about. `low` is a node
    under which nothing will be asked for.
    """

    def __init__(self, problem: Problem, low: Levels | None = None) -> None:
        self.problem = problem
        self.low = low if low is not None else (0,) * len(problem.quasi)
        self.heights = tuple(problem.ladders[name].height for name in problem.quasi)
        self.asked_k = self._only_k(problem.models)
        self.extras: list[str | None] = []
        if self.asked_k is None:
            self.extras = list(
                dict.fromkeys(name for model in problem.models for name in model.columns_of(problem.sensitive) if name)
            )
            if problem.research is not None:
                self.extras.append(None)
        self.order = self._order()
        self._states = 0
        self._maps: dict[tuple[int, int, int], npt.NDArray[np.int32]] = {}
        self._steps: dict[tuple[int, int, int, int], Ints] = {}
        self.counted = 0
        """How many tables were made."""
        self._root = self._bottom()
        self._kept = {self._root.levels: self._root}

    @staticmethod
    def _only_k(models: Sequence[PrivacyModel]) -> int | None:
        if all(type(model) is KAnonymity for model in models):
            return max([1, *(model.k for model in models if isinstance(model, KAnonymity))])
        return None

    def _order(self) -> list[int]:
        """Columns by how much they shrink, from level 0 to the top; then by how many values they have."""
        gains = []
        for place, name in enumerate(self.problem.quasi):
            ladder = self.problem.ladders[name]
            gains.append((-np.log(max(len(ladder.labels[0]), 1)) if ladder.height > 1 else 0.0, place))
        return [place for _, place in sorted(gains)]

    def radices(self, levels: Levels) -> list[int]:
        """How many codes each field may have."""
        problem = self.problem
        found = [len(problem.ladders[name].labels[level]) for name, level in zip(problem.quasi, levels, strict=True)]
        return found + [2 if name is None else len(problem.table.columns[name]) for name in self.extras]

    def mapping(self, column: int, low: int, high: int) -> npt.NDArray[np.int32]:
        """The label on a higher level of each label of a lower one."""
        key = (column, low, high)
        if key not in self._maps:
            ladder = self.problem.ladders[self.problem.quasi[column]]
            found = np.zeros(len(ladder.labels[low]), dtype=np.int32)
            found[ladder.codes[low]] = ladder.codes[high]
            self._maps[key] = found
        return self._maps[key]

    def step(self, column: int, low: int, high: int, shift: int) -> Ints:
        """What to add to a packed state, by its label in the column that goes up."""
        key = (column, low, high, shift)
        if key not in self._steps:
            mapping = self.mapping(column, low, high).astype(np.int64)
            self._steps[key] = (mapping - np.arange(len(mapping))) << shift
        return self._steps[key]

    def _bottom(self) -> Node:
        problem = self.problem
        levels = self.low
        columns: list[npt.NDArray[np.int32]] = [
            problem.ladders[name].codes[level][problem.table.columns[name].codes]
            for name, level in zip(problem.quasi, levels, strict=True)
        ]
        columns += [_marks(problem) if extra is None else problem.table.columns[extra].codes for extra in self.extras]
        radices = self.radices(levels)
        weights = problem.table.weights if problem.table.weights is not None else np.ones(problem.table.rows, dtype=np.int64)
        return _node(self, levels, *_joined(columns, radices, weights))

    def node(self, levels: Levels) -> Node:
        """The classes of a node."""
        missing = []
        while (node := self._nearest(levels)) is None:  # go down to a parent that is there, then up again
            missing.append(levels)
            levels = self._parent(levels)
        for target in (levels, *reversed(missing)):
            node = self._raise(node, target)
        return node

    def _nearest(self, levels: Levels) -> Node | None:
        """The node itself, or the smallest at hand that stands lower in one column alone."""
        found = self._kept.get(levels)
        if found is not None:
            return found
        kept = self._kept
        for column, level in enumerate(levels):
            below, above = levels[:column], levels[column + 1 :]
            for lower in range(level - 1, self.low[column] - 1, -1):
                other = kept.get((*below, lower, *above))
                if other is not None:
                    if found is None or len(other) < len(found):
                        found = other
                    break
        return found

    def _raise(self, node: Node, levels: Levels) -> Node:
        for column, (low, high) in enumerate(zip(node.levels, levels, strict=True)):
            if low != high:
                node = node.raised(column, high)
                self.counted += 1
        if levels not in self._kept:
            if self._states > _MOST_KEPT:
                self._kept = {self._root.levels: self._root}
                self._states = 0
            self._kept[levels] = node
            self._states += len(node)
        return node

    def _last(self, levels: Levels) -> int | None:
        return next((column for column in reversed(self.order) if levels[column] > self.low[column]), None)

    def _parent(self, levels: Levels) -> Levels:
        column = self._last(levels)
        return levels if column is None else _with(levels, column, self.low[column])

    def satisfied(self, node: Node, models: Sequence[PrivacyModel] | None = None) -> npt.NDArray[np.bool_]:
        """Which classes meet the models."""
        if self.asked_k is not None:
            return node.sizes >= self.asked_k
        return satisfied_by(self.problem.models if models is None else models, node.classes())


def _marks(problem: Problem) -> npt.NDArray[np.int32]:
    assert problem.research is not None
    return problem.research.astype(np.int32)


def _with(levels: Levels, column: int, level: int) -> Levels:
    return (*levels[:column], level, *levels[column + 1 :])


def _starts(key: Ints) -> Ints:
    """Where a sorted list changes, its beginning included."""
    changes = np.empty(len(key), dtype=bool)
    changes[:1] = True
    np.not_equal(key[1:], key[:-1], out=changes[1:])
    return np.flatnonzero(changes)


def _joined(
    codes: Sequence[npt.NDArray[np.int32]], radices: Sequence[int], counts: Ints
) -> tuple[list[npt.NDArray[np.int32]], Ints]:
    """Rows that are alike as one, in the order of their codes."""
    if not len(counts):
        return list(codes), counts
    ids, count = alike(codes, radices)
    row = np.zeros(count, dtype=np.int64)
    row[ids] = np.arange(len(ids))
    return [each[row] for each in codes], tally_of(ids, count, counts)
