"""Values that change places: rank swapping, and shuffling."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.anonymize.classes import alike
from cloister.anonymize.encoded import EncodedColumn
from cloister.anonymize.perturbing.columns import Columns, names_of
from cloister.anonymize.sorting import dealt
from cloister.errors import InvalidParameter
from cloister.noise import Random

Integers = npt.NDArray[np.int64]

_TRIES = 24


@dataclass(frozen=True, eq=False, kw_only=True)
class Swapped:
    """A table in which values changed places."""

    frame: Any
    changed: dict[str, float]
    """By column: the share of records that hold another value than before."""


@dataclass(frozen=True, kw_only=True)
class RankSwap:
    """Swap each value with one whose rank differs by at most p per cent of the records.

    Protects: a record's value need not be its own, so that linking by exact values fails. Does not protect: the value's rough
    size, which stays within p per cent of the ranks; the largest values are still there; who links by several columns at
    once and knows p, intersects (Nin, Herranz & Torra 2008). It is not differentially private.

    Each column by itself, over its sorted values (numbers, dates, or texts in their order): from the lowest on, a value that
    has not moved swaps with one that has not moved either, drawn among the next p per cent (Moore 1996). Every column
    keeps exactly its values; means and distributions stay, correlations weaken. Missing values are refused, or with
    `missing="keep"` stay where they are.

    >>> table = {"pay": [10, 20, 30, 40, 50, 60], "town": list("abcdef")}
    >>> done = RankSwap(columns="pay", percent=40).apply(table, random=Random.deterministic(1))
    >>> done.frame["pay"], sorted(done.frame["pay"]) == table["pay"], done.changed
    ([10, 30, 60, 40, 20, 50], True, {'pay': 1.0})
    """

    columns: str | Sequence[str]
    percent: float = 5.0
    missing: str = "refuse"

    def __post_init__(self) -> None:
        if not 0 < self.percent <= 100:
            raise InvalidParameter(
                f"percent={self.percent} is invalid", why="it is a share of the ranks, above 0 and up to 100", instead="percent=5"
            )

    def apply(self, frame: Any, *, random: Random | None = None, shuffle: bool = True, keep_index: bool = False) -> Swapped:
        """The table with values swapped in the named columns."""
        columns, names, source = Columns.leaving(frame, self.columns, random, shuffle=shuffle, keep_index=keep_index)
        fresh, changed = {}, {}
        for name in names:
            there = np.flatnonzero(columns.without_missing(name, self.missing))
            coded = columns.coded(name)
            ties = source.permutation(len(there))  # equal values in an order of chance
            order = there[ties[np.argsort(coded.codes[there][ties], kind="stable")]]
            reach = max(1, math.floor(self.percent / 100 * len(there)))
            origin = np.arange(columns.rows)
            origin[order] = order[_partners(len(order), reach, source)]
            fresh[name] = columns.taken(name, origin)
            changed[name] = _changed(coded, origin)
        return Swapped(frame=columns.replaced(fresh), changed=changed)


@dataclass(frozen=True, kw_only=True)
class Shuffle:
    """Deal a column's values out again at random, to all records or within groups.

    Protects: whose value it was, beyond the group. Does not protect: a group in which all have the same value; and rare
    values that tell by themselves whose they are. All relations to other columns are lost, except those between columns
    that are dealt out together and to the columns `within`. It is not differentially private.

    Missing values are dealt out as well.

    >>> table = {"town": ["a", "a", "a", "b", "b"], "pay": [1, 2, 3, 8, 9]}
    >>> Shuffle(columns="pay", within="town").apply(table, random=Random.deterministic(1)).frame["pay"]
    [1, 8, 9, 3, 2]
    """

    columns: str | Sequence[str]
    within: str | Sequence[str] = ()
    together: bool = True

    def apply(self, frame: Any, *, random: Random | None = None, shuffle: bool = True, keep_index: bool = False) -> Swapped:
        """The table with the named columns shuffled."""
        names, within = names_of(self.columns), names_of(self.within)
        columns, _, source = Columns.leaving(frame, (*names, *within), random, shuffle=shuffle, keep_index=keep_index)
        groups = groups_of(columns, within)
        fresh, changed = {}, {}
        origin = dealt(groups, source)
        for place, name in enumerate(names):
            if place and not self.together:
                origin = dealt(groups, source)
            fresh[name] = columns.taken(name, origin)
            changed[name] = _changed(columns.coded(name), origin)
        return Swapped(frame=columns.replaced(fresh), changed=changed)


def groups_of(columns: Columns, names: Sequence[str]) -> Integers:
    """A number for each combination of the columns' values; all 0 where no column is named."""
    if not names or not columns.rows:
        return np.zeros(columns.rows, dtype=np.int64)
    coded = [columns.coded(name) for name in names]
    return alike([each.codes for each in coded], [len(each) for each in coded])[0]


def _partners(count: int, reach: int, random: Random) -> Integers:
    """For each rank the rank that it swaps with: itself where nobody is left within reach."""
    partner = np.arange(count)
    free = bytearray(b"\1") * count
    draws = random.words(count).tolist()  # a first try for each
    for rank in range(count):
        if not free[rank]:
            continue
        free[rank] = 0
        room = min(reach, count - 1 - rank)
        if not room:
            continue
        other = rank + 1 + draws[rank] * room // 2**64
        tries = 0
        while not free[other] and tries < _TRIES:
            other = rank + 1 + random.below_one(room)
            tries += 1
        if not free[other]:
            left = [place for place in range(rank + 1, rank + room + 1) if free[place]]
            if not left:
                continue
            other = left[random.below_one(len(left))]
        free[other] = 0
        partner[rank], partner[other] = other, rank
    return partner


def _changed(coded: EncodedColumn, origin: Integers) -> float:
    return float((coded.codes != coded.codes[origin]).mean()) if len(origin) else 0.0
