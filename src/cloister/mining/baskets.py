"""Baskets: who holds what, as numbers that methods count with.

A basket is a set: what stands in it twice counts once. An item is whatever a person wrote, a text or a number, and is compared
as it is; no order among items is assumed. Kept are the pairs (item, basket), sorted, and nothing that grows with items × baskets.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter

Item: TypeAlias = Hashable
Codes: TypeAlias = npt.NDArray[np.int64]
Bits: TypeAlias = npt.NDArray[np.uint64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Baskets:
    """Sets of items, by number.

    `Baskets.of` makes them from lists; `cloister.mining.read_baskets` from whatever a person has.

    >>> baskets = Baskets.of([["bread", "butter"], ["bread"], ["bread", "bread"], []])
    >>> len(baskets), baskets.items, baskets.counts.tolist(), baskets.sizes.tolist()
    (4, ('bread', 'butter'), [3, 1], [2, 1, 1, 0])
    """

    items: tuple[Item, ...]
    """Every item, in the order in which it was met first."""
    count: int
    """How many baskets there are, the empty ones included."""
    item: Codes
    """Of each pair the item's place in `items`; ascending."""
    basket: Codes
    """Of each pair the basket's number; ascending within an item."""
    names: tuple[Any, ...] | None = None
    """What each basket is called, where the source says; else they are numbered from 0."""

    @staticmethod
    def of(lists: Iterable[Iterable[Item]]) -> Baskets:
        """From an iterable of iterables of items, where a missing one is none."""
        places: dict[Item, int] = {}
        items: list[int] = []
        baskets: list[int] = []
        number = -1
        for number, basket in enumerate(_checked(lists)):
            try:
                held = [places.setdefault(item, len(places)) for item in basket if item is not None and item == item]
            except (TypeError, ValueError):
                raise InvalidParameter(
                    f"basket {number} is invalid",
                    why="an item is a text or a number, not a list of some",
                    instead='[["bread", "butter"], ["bread"]]',
                ) from None
            items += held
            baskets += [number] * len(held)
        return Baskets.from_pairs(tuple(places), number + 1, np.array(items, np.int64), np.array(baskets, np.int64))

    @staticmethod
    def from_pairs(
        items: Sequence[Item], count: int, item: Codes, basket: Codes, *, names: tuple[Any, ...] | None = None
    ) -> Baskets:
        """From pairs in any order, any of them any number of times.

        >>> Baskets.from_pairs(["a", "b"], 2, np.array([1, 0, 1]), np.array([0, 1, 0])).lists()
        [['b'], ['a']]
        """
        keys = np.unique(item.astype(np.int64) * np.int64(max(count, 1)) + basket)
        return Baskets(items=tuple(items), count=count, item=keys // max(count, 1), basket=keys % max(count, 1), names=names)

    def __len__(self) -> int:
        return self.count

    def __repr__(self) -> str:
        return f"Baskets({self.count:,} baskets, {len(self.items):,} items, {len(self.item):,} entries)"

    @cached_property
    def counts(self) -> Codes:
        """How many baskets hold each item."""
        return np.bincount(self.item, minlength=len(self.items)).astype(np.int64)

    @cached_property
    def sizes(self) -> Codes:
        """How many items each basket holds."""
        return np.bincount(self.basket, minlength=self.count).astype(np.int64)

    @cached_property
    def places(self) -> Mapping[Item, int]:
        """Of each item its place."""
        return {item: place for place, item in enumerate(self.items)}

    @cached_property
    def _starts(self) -> Codes:
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(self.counts)])

    def holders(self, place: int) -> Codes:
        """The baskets that hold an item."""
        return self.basket[self._starts[place] : self._starts[place + 1]]

    def column(self, place: int) -> npt.NDArray[np.bool_]:
        """Of each basket whether it holds an item."""
        held = np.zeros(self.count, dtype=np.bool_)
        held[self.holders(place)] = True
        return held

    def matrix(self, places: Sequence[int]) -> npt.NDArray[np.bool_]:
        """A row for each of these items, a column for each basket."""
        return np.stack([self.column(place) for place in places]) if places else np.zeros((0, self.count), dtype=np.bool_)

    def bits(self, places: Sequence[int]) -> Bits:
        """The same in words of 64 baskets each: a set of items is held where the words' AND has ones."""
        words = -(-self.count // 64)
        packed = np.zeros((len(places), 8 * words), dtype=np.uint8)
        for row, place in zip(packed, places, strict=True):
            row[: -(-self.count // 8)] = np.packbits(self.column(place))
        return packed.view(np.uint64)

    def holding(self, places: Iterable[int]) -> npt.NDArray[np.bool_]:
        """Of each basket whether it holds all of these items."""
        every = np.ones(self.count, dtype=np.bool_)
        for place in places:
            every &= self.column(place)
        return every

    def leaving(self, order: Codes, *, named: bool, items_in_order: bool) -> Baskets:
        """The same baskets, each in the place that `order` gives it, without what they were called unless `named`, and with items
        in the order of their names: which one was met first says which baskets stood first.

        >>> Baskets.of([["b"], ["a"]]).leaving(np.array([1, 0]), named=False, items_in_order=True).lists()
        [['a'], ['b']]
        """
        items = list(range(len(self.items)))
        if items_in_order:
            items.sort(key=lambda place: (type(self.items[place]).__name__, str(self.items[place])))
        place_of = np.empty(len(items), dtype=np.int64)
        place_of[items] = np.arange(len(items))
        names = None
        if named and self.names is not None:
            names = tuple(self.names[old] for old in np.argsort(order).tolist())
        kept = tuple(self.items[place] for place in items)
        return Baskets.from_pairs(kept, self.count, place_of[self.item], order[self.basket], names=names)

    def with_columns(self, columns: Mapping[int, npt.NDArray[np.bool_]]) -> Baskets:
        """The same baskets with some items put in or taken out everywhere.

        >>> Baskets.of([["a", "b"], ["b"]]).with_columns({1: np.array([False, True])}).lists()
        [['a'], ['b']]
        """
        kept = ~np.isin(self.item, np.array(list(columns), dtype=np.int64))
        items, baskets = [self.item[kept]], [self.basket[kept]]
        for place, held in columns.items():
            found = np.flatnonzero(held)
            items.append(np.full(len(found), place, np.int64))
            baskets.append(found.astype(np.int64))
        return Baskets.from_pairs(self.items, self.count, np.concatenate(items), np.concatenate(baskets), names=self.names)

    def lists(self) -> list[list[Item]]:
        """Plain lists, the items of each in the order of `items`."""
        order = np.lexsort((self.item, self.basket))
        values = [self.items[place] for place in self.item[order].tolist()]
        ends = np.cumsum(self.sizes).tolist()
        return [values[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def _checked(lists: Iterable[Iterable[Item]]) -> Iterable[Iterable[Item]]:
    for number, basket in enumerate(lists):
        if isinstance(basket, str | bytes | Mapping) or not isinstance(basket, Iterable):
            raise InvalidParameter(
                f"basket {number} is invalid",
                why=f"a {type(basket).__name__} is not a list of items",
                instead='[["bread", "butter"], ["bread"]]',
            )
        yield basket
