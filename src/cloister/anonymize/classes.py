"""Classes: rows that look alike. Their sizes, and how each sensitive column is spread over them.

Privacy models ask nothing else of a table, whatever search made it; so the counting of classes has one home.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from cloister.anonymize.encoded import EncodedColumn, tally_of
from cloister.anonymize.sorting import order_of

Ints = npt.NDArray[np.int64]

_LARGEST_KEY = 2**62


def alike(columns: Sequence[npt.NDArray[np.integer]], sizes: Sequence[int]) -> tuple[Ints, int]:
    """The class of each row: rows with the same codes in every column have the same number, 0, 1, …

    `sizes` are how many codes each column may have. Codes become one number in mixed radix; where that would not fit 62 bits,
    what has been read so far is numbered afresh.

    >>> alike([np.array([0, 1, 0]), np.array([2, 2, 2])], [2, 3])
    (array([0, 1, 0]), 2)
    """
    if not columns:
        raise ValueError("no column")
    key = columns[0].astype(np.int64)
    width = max(int(sizes[0]), 1)
    for codes, size in zip(columns[1:], sizes[1:], strict=True):
        if width * max(size, 1) >= _LARGEST_KEY:
            key, width = _dense(key)
        key = key * max(size, 1) + codes
        width *= max(size, 1)
    return _dense(key, width)


def _dense(key: Ints, width: int = _LARGEST_KEY) -> tuple[Ints, int]:
    if width <= max(4 * len(key), 1 << 16):  # a table of marks is smaller than a sort
        seen = np.zeros(width, dtype=bool)
        seen[key] = True
        numbers = np.cumsum(seen) - 1
        return numbers[key].astype(np.int64), int(numbers[-1]) + 1
    order = order_of(key, width)
    in_order = key[order]
    new = np.ones(len(key), dtype=bool)
    np.not_equal(in_order[1:], in_order[:-1], out=new[1:])
    ids = np.empty(len(key), dtype=np.int64)
    ids[order] = np.cumsum(new) - 1
    return ids, int(np.count_nonzero(new))


@dataclass(frozen=True, eq=False, kw_only=True)
class Spread:
    """How often each value of a sensitive column stands in each class: triples in the order of classes, then of values.

    The triples of a class `c` are those from `first[c]` up to `first[c + 1]`.
    """

    column: EncodedColumn
    first: Ints
    value: Ints
    count: Ints
    sizes: Ints
    """Rows of each class."""
    overall: Ints
    """Rows of each value in the whole table, suppressed rows included: what an attacker may know of everybody."""

    @cached_property
    def owner(self) -> Ints:
        """The class of each triple."""
        return np.repeat(np.arange(len(self.sizes), dtype=np.int64), np.diff(self.first))

    @cached_property
    def shares(self) -> npt.NDArray[np.float64]:
        """The share of each triple's value within its class."""
        return np.asarray(self.count / self.sizes[self.owner], dtype=np.float64)

    def dense(self) -> npt.NDArray[np.float64]:
        """Shares as a matrix, classes by values; for few classes or few values."""
        matrix = np.zeros((len(self.sizes), len(self.column)))
        matrix[self.owner, self.value] = self.shares
        return matrix


@dataclass(frozen=True, eq=False, kw_only=True)
class Classes:
    """The classes of a table.

    >>> classes = Classes.of(np.array([0, 0, 1]), 2)
    >>> classes.sizes.tolist(), classes.count
    ([2, 1], 2)
    """

    of_row: Ints
    """The class of each row; −1 where the row is suppressed."""
    sizes: Ints
    sensitive: Mapping[str, EncodedColumn]
    research: npt.NDArray[np.bool_] | None = None
    """For δ-presence: which rows are in the table that will be published (the others are the public list)."""
    weights: Ints | None = None
    """How many rows each row stands for; None: one each. Sizes and spreads count what they stand for."""

    @classmethod
    def of(
        cls,
        of_row: npt.NDArray[np.integer],
        count: int,
        *,
        sensitive: Mapping[str, EncodedColumn] | None = None,
        suppressed: npt.NDArray[np.bool_] | None = None,
        research: npt.NDArray[np.bool_] | None = None,
        weights: Ints | None = None,
    ) -> Classes:
        """From the class of each row. Classes all of whose rows are suppressed are left out; the rest keep their order."""
        ids = of_row.astype(np.int64)
        if suppressed is not None and suppressed.any():
            ids = np.where(suppressed, -1, ids)
        there = ids >= 0
        sizes = tally_of(ids[there], count, None if weights is None else weights[there])
        if (sizes == 0).any():
            numbers = np.cumsum(sizes > 0) - 1
            ids = np.where(ids >= 0, numbers[ids], -1) if len(numbers) else ids
            sizes = sizes[sizes > 0]
        return cls(of_row=ids, sizes=sizes, sensitive=dict(sensitive or {}), research=research, weights=weights)

    @property
    def count(self) -> int:
        """How many classes."""
        return len(self.sizes)

    @property
    def rows(self) -> int:
        """How many rows are in a class."""
        return int(self.sizes.sum())

    @cached_property
    def _spreads(self) -> dict[str, Spread]:
        return {}

    def told(self, spread: Spread) -> None:
        """How a sensitive column is spread, from who has counted it already."""
        self._spreads[spread.column.name] = spread

    def spread(self, name: str) -> Spread:
        """How a sensitive column is spread over the classes."""
        if name not in self._spreads:
            column = self.sensitive[name]
            kept = self.of_row >= 0
            key = self.of_row[kept] * len(column) + column.codes[kept]
            weights = None if self.weights is None else self.weights[kept]
            if self.count * len(column) <= max(4 * len(key), 1 << 16):
                counts = tally_of(key, self.count * len(column), weights)
                pairs = np.flatnonzero(counts)
                count = counts[pairs]
            elif weights is None:
                pairs, count = np.unique(key, return_counts=True)
            else:
                pairs, places = np.unique(key, return_inverse=True)
                count = tally_of(places, len(pairs), weights)
            owner, value = np.divmod(pairs, max(len(column), 1))
            first = np.searchsorted(owner, np.arange(self.count + 1))
            self._spreads[name] = Spread(
                column=column,
                first=first.astype(np.int64),
                value=value.astype(np.int64),
                count=count.astype(np.int64),
                sizes=self.sizes,
                overall=column.counts,
            )
        return self._spreads[name]
