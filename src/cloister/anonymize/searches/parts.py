"""Parts of a table on their way to become classes: runs of rows, what the rows say along each axis standing beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from cloister.anonymize.searches.axes import Axis

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Places = npt.NDArray[np.integer]

BLOCK = 1 << 17
"""Rows that are cut together once parts are smaller than that: what is worked on then fits into the processor's cache."""


def places_of(axes: Sequence[Axis], rows: npt.NDArray[np.integer] | None = None) -> list[Places]:
    """Where rows stand along each axis, in the smallest type that holds it: what is small is fast."""
    found: list[Places] = []
    for axis in axes:
        kind = next(kind for kind in (np.uint8, np.uint16, np.int32) if len(axis) <= np.iinfo(kind).max)
        codes = axis.column.codes if rows is None else axis.column.codes[rows]
        places: Places = axis.place.astype(kind)
        found.append(places.take(codes))
    return found


@dataclass(eq=False, kw_only=True)
class Part:
    """Some parts: `rows[first[p]:first[p + 1]]` are the rows of part `p`, `places[axis]` where they stand, in the same
    order.

    `low` and `high`, by part and axis, are places between which all of it stands (it may be less than that).
    """

    rows: npt.NDArray[np.int32]
    places: list[Places]
    weights: Ints | None
    first: Ints
    low: npt.NDArray[np.int32]
    high: npt.NDArray[np.int32]
    closed: Bools
    """By part and axis: where a cut would leave a side too small, so that it would in every piece of the part as well."""

    @classmethod
    def of(
        cls, rows: npt.NDArray[np.integer], places: list[Places], weights: Ints | None, first: Ints, axes: Sequence[Axis]
    ) -> Part:
        """Parts of which nothing is known."""
        shape = (len(first) - 1, len(axes))
        highest = np.array([len(axis) for axis in axes], dtype=np.int32) - 1
        return cls(
            rows=rows.astype(np.int32),
            places=places,
            weights=weights,
            first=first,
            low=np.zeros(shape, dtype=np.int32),
            high=np.tile(highest, (shape[0], 1)),
            closed=np.zeros(shape, dtype=bool),
        )

    @property
    def count(self) -> int:
        """How many parts."""
        return len(self.first) - 1

    @cached_property
    def sizes(self) -> Ints:
        """Rows of each part."""
        return np.diff(self.first)

    @cached_property
    def weighed(self) -> Ints:
        """Rows of the file that stand in each part."""
        return self.sizes if self.weights is None else np.add.reduceat(self.weights, self.first[:-1])

    def take(self, order: npt.NDArray[np.integer], first: Ints, parts: Ints) -> Part:
        """Some of the rows in another order: pieces, each of one of the `parts`."""
        return Part(
            rows=self.rows.take(order),
            places=[each.take(order) for each in self.places],
            weights=None if self.weights is None else self.weights.take(order),
            first=first,
            low=self.low[parts],
            high=self.high[parts],
            closed=self.closed[parts],
        )

    def halves(self) -> Iterator[Part]:
        """Itself, or where it is large and has several parts, two halves."""
        if self.count < 2 or len(self.rows) <= BLOCK:
            yield self
            return
        middle = int(np.clip(np.searchsorted(self.first, len(self.rows) // 2), 1, self.count - 1))
        for begin, end in ((0, middle), (middle, self.count)):
            low, high = self.first[begin], self.first[end]
            yield Part(
                rows=self.rows[low:high],
                places=[each[low:high] for each in self.places],
                weights=None if self.weights is None else self.weights[low:high],
                first=self.first[begin : end + 1] - low,
                low=self.low[begin:end],
                high=self.high[begin:end],
                closed=self.closed[begin:end],
            )

    def ended(self, axes: Sequence[Axis], order: npt.NDArray[np.integer] | None = None, sizes: Ints | None = None) -> Ended:
        """Some of its rows, in an order, as classes of those sizes; without them each part as a class."""
        sizes = self.sizes if sizes is None else sizes
        begin = np.cumsum(sizes) - sizes
        low = np.empty((len(sizes), len(axes)), dtype=np.int32)
        high, marks = np.empty_like(low), {}
        for number, axis in enumerate(axes):
            column = self.places[number] if order is None else self.places[number].take(order)
            low[:, number] = np.minimum.reduceat(column, begin)
            high[:, number] = np.maximum.reduceat(column, begin)
            if axis.is_set:
                marks[number] = np.bitwise_or.reduceat(MARKS[column], begin)
        return Ended(rows=self.rows if order is None else self.rows.take(order), sizes=sizes, low=low, high=high, marks=marks)


MARKS = np.uint64(1) << np.arange(64, dtype=np.uint64)
"""The bit of each place of a set."""


@dataclass(eq=False, kw_only=True)
class Ended:
    """Classes: their rows one after another, how many each has, and what they cover along each axis."""

    rows: npt.NDArray[np.int32]
    sizes: Ints
    low: npt.NDArray[np.int32]
    high: npt.NDArray[np.int32]
    marks: dict[int, npt.NDArray[np.uint64]] = field(default_factory=dict)
    """For axes that are published as sets: a bit for each place that occurs."""


@dataclass(eq=False, kw_only=True)
class Cut:
    """All classes of a table that was cut."""

    of_row: npt.NDArray[np.int32]
    """The class of each row; 0 for rows that were not in any part."""
    low: npt.NDArray[np.int32]
    high: npt.NDArray[np.int32]
    marks: dict[int, npt.NDArray[np.uint64]]

    @classmethod
    def of(cls, ended: list[Ended], rows: int, axes: Sequence[Axis]) -> Cut:
        """From its pieces; a class has the number of its place among them."""
        of_row = np.zeros(rows, dtype=np.int32)
        number = 0
        for each in ended:
            of_row[each.rows] = np.repeat(np.arange(number, number + len(each.sizes), dtype=np.int32), each.sizes)
            number += len(each.sizes)
        shape = (0, len(axes))
        none = np.empty(shape, dtype=np.int32)
        return cls(
            of_row=of_row,
            low=np.concatenate([none, *(each.low for each in ended)]),
            high=np.concatenate([none, *(each.high for each in ended)]),
            marks={
                axis: np.concatenate([np.empty(0, dtype=np.uint64), *(each.marks[axis] for each in ended)])
                for axis, known in enumerate(axes)
                if known.is_set
            },
        )

    @property
    def count(self) -> int:
        """How many classes."""
        return len(self.low)
