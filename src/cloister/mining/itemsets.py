"""Frequent itemsets: every set of items that at least so many baskets hold.

Counted by Eclat (Zaki 2000) on words of 64 baskets: one AND and one population count a candidate, a whole family of candidates at
a time. The same can be asked of another's code (`engine="efficient-apriori"`), to check that of ours; why ours is the one that
counts by itself is told in docs/decisions/0020-mining-library.md.

What comes out is exact: it is for an owner's own eyes. `cloister.mining.top_itemsets` has what may be published.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np

from cloister.errors import InvalidParameter, check_one_of
from cloister.lazily import needing
from cloister.mining.baskets import Baskets, Bits, Codes, Item
from cloister.mining.reading import read_baskets
from cloister.mining.thresholds import Thresholds
from cloister.privacy import Exact
from cloister.session.releases.frames import Frame, Series

Engine: TypeAlias = Literal["bits", "efficient-apriori"]
_ENGINES = ("bits", "efficient-apriori")
MOST = 2_000_000
"""More sets than that are a threshold that was chosen too low: nobody reads them, and memory ends."""
_FEW = 20
"""So many items have fewer subsets than `MOST`."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Mined:
    """Sets of places, ascending within each, and how many baskets hold each."""

    sets: tuple[tuple[int, ...], ...]
    counts: Codes

    @cached_property
    def index(self) -> dict[tuple[int, ...], int]:
        """Where each set stands."""
        return {each: place for place, each in enumerate(self.sets)}


@dataclass(frozen=True, kw_only=True)
class Itemset:
    """A set of items, and how often it is held.

    >>> print(Itemset(items=("tea", "milk"), count=2, support=0.5))
    {tea, milk}
    """

    items: tuple[Item, ...]
    count: int
    support: float

    def __str__(self) -> str:
        return f"{{{', '.join(map(str, self.items))}}}"


@dataclass(frozen=True, kw_only=True, eq=False)
class FrequentItemsets(Sequence[Itemset]):
    """All frequent itemsets, the most frequent first. Exact counts: not for publication.

    >>> found = frequent_itemsets([["a", "b"], ["a"]], min_support="0.5")
    >>> isinstance(found, FrequentItemsets), [str(each) for each in found]
    (True, ['{a}', '{b}', '{a, b}'])
    """

    baskets: Baskets
    thresholds: Thresholds
    mined: Mined

    def __len__(self) -> int:
        return len(self.mined.sets)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        each = int(self._order[place])
        count = int(self.mined.counts[each])
        items = tuple(self.baskets.items[item] for item in self.mined.sets[each])
        return Itemset(items=items, count=count, support=count / max(1, len(self.baskets)))

    @cached_property
    def _order(self) -> Codes:
        sizes = np.array([len(each) for each in self.mined.sets], dtype=np.int64)
        return np.lexsort((sizes, -self.mined.counts))

    def to_frame(self) -> Frame:
        """Columns itemset (a text), size, count and support; it has `to_pandas()`, `to_polars()` and `to_arrow()`."""
        texts = np.array([", ".join(map(str, each.items)) for each in self], dtype=object)
        counts = self.mined.counts[self._order]
        return Frame(
            {
                "itemset": Series("text", texts),
                "size": Series("integer", np.array([len(self.mined.sets[each]) for each in self._order], dtype=np.int64)),
                "count": Series("integer", counts),
                "support": Series("real", counts / max(1, len(self.baskets))),
            }
        )

    def __repr__(self) -> str:
        return f"{len(self):,} frequent itemsets of {self.baskets!r}"


def frequent_itemsets(
    baskets: Any, *, min_support: Exact, max_size: int | None = None, engine: Engine = "bits", **columns: str
) -> FrequentItemsets:
    """Every set of items that at least a share `min_support` of the baskets holds; of at most `max_size` items, if that is given.

    `baskets` are lists of lists, a long table (its columns named by `basket=` and `item=`) or a wide one: see `read_baskets`.

    >>> found = frequent_itemsets([["tea", "milk"], ["tea"], ["tea", "milk"], ["jam"]], min_support="0.5")
    >>> [(str(each), each.count) for each in found]
    [('{tea}', 3), ('{milk}', 2), ('{tea, milk}', 2)]
    """
    read = read_baskets(baskets, **columns)
    thresholds = Thresholds.of(len(read), min_support=min_support)
    return FrequentItemsets(baskets=read, thresholds=thresholds, mined=mine(read, thresholds.least, max_size, engine))


def mine(baskets: Baskets, least: int, max_size: int | None = None, engine: Engine = "bits") -> Mined:
    """The frequent itemsets as places."""
    if max_size is not None and (isinstance(max_size, bool) or not isinstance(max_size, int) or max_size < 1):
        raise InvalidParameter(f"max_size={max_size!r} is invalid", why="a set has one item or more", instead="max_size=3")
    check_one_of(engine, "engine", _ENGINES, why=f"known are {', '.join(_ENGINES)}", instead='engine="bits"')
    if engine == "bits":
        return _by_bits(baskets, least, max_size or len(baskets.items))
    return _by_library(baskets, least, max_size or len(baskets.items))


def _by_bits(baskets: Baskets, least: int, most: int) -> Mined:
    frequent = np.flatnonzero(baskets.counts >= least)
    frequent = frequent[np.argsort(baskets.counts[frequent], kind="stable")]  # rare items first: the smallest families
    places: list[int] = frequent.tolist()
    sets: list[tuple[int, ...]] = []
    counts: list[int] = []

    def grow(prefix: tuple[int, ...], tails: list[int], bits: Bits, held: Codes) -> None:
        """All sets that begin with a prefix; the sum of what waits on the stack is bounded by items × set size."""
        sets.extend(tuple(sorted((*prefix, tail))) for tail in tails)
        counts.extend(held.tolist())
        if len(sets) > MOST:
            raise _too_many()
        if len(prefix) + 2 > most:
            return
        if len(tails) > _FEW and np.bitwise_count(np.bitwise_and.reduce(bits)).sum() >= least:  # then all their subsets are, too
            chosen = min(len(tails), 2 * _FEW)
            if sum(math.comb(chosen, size) for size in range(1, min(chosen, most - len(prefix)) + 1)) > MOST:
                raise _too_many()
        for place in range(len(tails) - 1):
            joined = bits[place + 1 :] & bits[place]
            found = np.bitwise_count(joined).sum(axis=1, dtype=np.int64)
            kept = np.flatnonzero(found >= least)
            if len(kept):
                following = [tails[place + 1 + each] for each in kept.tolist()]
                grow((*prefix, tails[place]), following, joined[kept], found[kept])

    if places and most:
        grow((), places, baskets.bits(places), baskets.counts[frequent])
    return Mined(sets=tuple(sets), counts=np.array(counts, dtype=np.int64))


def _by_library(baskets: Baskets, least: int, most: int) -> Mined:
    """By efficient-apriori, which is handed places and a share that means the same whole number."""
    with needing('engine="efficient-apriori" is not available', "that package is not installed", "mining"):
        from efficient_apriori import itemsets_from_transactions
    if not len(baskets) or not most:
        return Mined(sets=(), counts=np.zeros(0, dtype=np.int64))
    order = np.lexsort((baskets.item, baskets.basket))
    ends = np.cumsum(baskets.sizes).tolist()
    held = baskets.item[order].tolist()
    rows = [tuple(held[start:end]) for start, end in zip([0, *ends], ends, strict=False)]
    found, _ = itemsets_from_transactions(rows, min_support=(least - 0.5) / len(baskets), max_length=most)
    pairs = [(tuple(sorted(each)), int(count)) for sized in found.values() for each, count in sized.items() if count >= least]
    return Mined(sets=tuple(each for each, _ in pairs), counts=np.array([count for _, count in pairs], dtype=np.int64))


def _too_many() -> InvalidParameter:
    return InvalidParameter(
        "min_support is invalid",
        why=f"more than {MOST:,} sets of items are that frequent",
        instead="a larger min_support=, or max_size=3",
    )
