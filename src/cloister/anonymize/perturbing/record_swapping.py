"""Targeted record swapping: who stands out at a place changes places with somebody alike elsewhere."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.anonymize.perturbing.columns import Columns, names_of
from cloister.anonymize.perturbing.noise.laws import uniforms
from cloister.anonymize.perturbing.swapping import groups_of
from cloister.errors import InvalidParameter, check_whole
from cloister.noise import Random

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False, kw_only=True)
class RecordsSwapped:
    """A table in which some records (or households) changed places."""

    frame: Any
    swapped: float
    """The share of records or households that changed places. Who may know it is the owner's choice; offices keep it secret."""
    risky: int
    """How many stood out at some level, and had not moved yet."""
    unmatched: int
    """How many of those found no partner, and are where they were."""


@dataclass(frozen=True, kw_only=True)
class RecordSwap:
    """Exchange the geography of risky records with that of similar records elsewhere.

    Protects: who finds a rare combination at a place cannot be sure that it is there. Does not protect: all else of the
    record, which stays as it was and is found by whoever knows it; risky records without a partner (`unmatched`: look at
    them). It is not differentially private.

    `geography` goes from coarse to fine (region, district, town), all of which is exchanged, with `carry` beside it. At each
    level, from the coarsest on, a record is risky where fewer than `k` share its `risk` columns in its area. It changes
    places with a record of another area of that level that has the same `similar` columns: one that did not move yet, in the
    same area one level up where there is one, drawn in proportion to 1/(how many share its risk columns). At the finest level
    others join by chance, by the same weights, until the share `rate` of all has moved. `similar` may be several lists, tried
    in turn. With `household`, whole households move, as the riskiest member is; `similar` is then read off the first member.
    After the method of the United Kingdom's Office for National Statistics, as sdcMicro's recordSwap has it.

    >>> table = {"town": ["a", "a", "a", "b", "b", "b"], "size": [1, 1, 1, 1, 1, 1], "job": ["x", "x", "judge", "x", "x", "x"]}
    >>> done = RecordSwap(geography="town", risk="job", similar="size", k=2, rate=0).apply(table, random=Random.deterministic(1))
    >>> done.risky, done.unmatched, done.frame["town"][2], sorted(done.frame["town"]) == table["town"]
    (1, 0, 'b', True)
    """

    geography: str | Sequence[str]
    risk: str | Sequence[str]
    similar: str | Sequence[str] | Sequence[Sequence[str]] = ()
    k: int = 3
    rate: float = 0.05
    household: str | None = None
    carry: str | Sequence[str] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.rate <= 1:
            raise InvalidParameter(f"rate={self.rate} is invalid", why="it is a share, from 0 to 1", instead="rate=0.05")
        check_whole(self.k, "k", 0, why="it is a whole number, 0 for nobody", instead="k=3")

    def apply(
        self, frame: Any, *, random: Random | None = None, shuffle: bool = True, keep_index: bool = False
    ) -> RecordsSwapped:
        """The table with places exchanged."""
        levels, profiles, carried = names_of(self.geography), _profiles(self.similar), names_of(self.carry)
        columns, _, source = Columns.leaving(frame, (*levels, *carried), random, shuffle=shuffle, keep_index=keep_index)
        columns.check(names_of(self.risk))
        for profile in profiles:
            if profile:
                columns.check(profile)
        moves = _Moves(self._units(columns), columns, profiles, source)
        risky: set[int] = set()
        for level in range(len(levels)):
            areas = groups_of(columns, levels[: level + 1])
            shared = _shared(columns, (*levels[: level + 1], *names_of(self.risk)))
            moves.enter(areas, groups_of(columns, levels[:level]), shared)
            alone = moves.standing_out(self.k)
            risky |= set(alone.tolist())
            moves.swap(alone)
        if columns.rows:
            moves.top_up(self.rate)
        origin = moves.rows()
        out = {name: columns.taken(name, origin) for name in (*levels, *carried)}
        return RecordsSwapped(
            frame=columns.replaced(out),
            swapped=moves.share(),
            risky=len(risky),
            unmatched=sum(not moves.moved[unit] for unit in risky),
        )

    def _units(self, columns: Columns) -> Integers:
        if self.household is None:
            return np.arange(columns.rows)
        columns.check([self.household])
        columns.refuse_missing(self.household, "a number for each household")
        units = groups_of(columns, [self.household])
        places = groups_of(columns, (*names_of(self.geography), *names_of(self.carry)))
        first = _first_rows(units)
        if columns.rows and (places != places[first][units]).any():
            raise InvalidParameter(
                "The table is invalid",
                why=f"one {self.household!r} stands in two places",
                instead="one place for all members of a household",
            )
        return units


class _Moves:
    """Who changes places with whom, unit by unit."""

    def __init__(self, units: Integers, columns: Columns, profiles: list[tuple[str, ...]], random: Random) -> None:
        self.units, self.random = units, random
        self.first = _first_rows(units)
        self.partner = np.arange(len(self.first))
        self.moved = np.zeros(len(self.first), dtype=np.bool_)
        self.alike = [groups_of(columns, profile)[self.first] for profile in profiles]
        self.members = [_by_group(groups) for groups in self.alike]

    def enter(self, areas: Integers, above: Integers, shared: Floats) -> None:
        """A level of the geography: each unit's area there, and how many share its risk columns."""
        self.areas, self.above = areas[self.first], above[self.first]
        self.shared = np.full(len(self.first), np.inf)
        np.minimum.at(self.shared, self.units, shared)

    def standing_out(self, k: int) -> Integers:
        alone = np.flatnonzero((self.shared < k) & ~self.moved)
        return np.asarray(alone[self.random.permutation(len(alone))])

    def swap(self, wanted: Integers, most: int | None = None) -> None:
        """Each of these finds a partner, where there is one, until `most` have moved."""
        for unit in wanted.tolist():
            if most is not None and int(self.moved.sum()) >= most:
                return
            if self.moved[unit]:
                continue
            other = self._partner(unit)
            if other is not None:
                self.moved[[unit, other]] = True
                self.partner[unit], self.partner[other] = other, unit

    def top_up(self, rate: float) -> None:
        """More units, by their weights, up to the rate."""
        most = int(rate * len(self.first))
        left = np.flatnonzero(~self.moved)
        keys = -np.log(uniforms(len(left), self.random)) * self.shared[left]  # the order of draws without putting back
        self.swap(left[np.argsort(keys)], most)

    def share(self) -> float:
        return float(self.moved.mean()) if len(self.moved) else 0.0

    def rows(self) -> Integers:
        """For each row a row whose geography it gets."""
        return np.asarray(self.first[self.partner[self.units]])

    def _partner(self, unit: int) -> int | None:
        for groups, members in zip(self.alike, self.members, strict=True):
            others = members[groups[unit]]
            others = others[~self.moved[others] & (self.areas[others] != self.areas[unit])]
            near = others[self.above[others] == self.above[unit]]
            chosen = near if len(near) else others
            if len(chosen):
                weights = np.cumsum(1 / self.shared[chosen])
                place = int(np.searchsorted(weights, uniforms(1, self.random)[0] * weights[-1], side="right"))
                return int(chosen[min(place, len(chosen) - 1)])
        return None


def _profiles(similar: str | Sequence[str] | Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    if isinstance(similar, str) or all(isinstance(each, str) for each in similar):
        return [names_of(similar)]  # type: ignore[arg-type]
    return [names_of(each) for each in similar]


def _shared(columns: Columns, names: Sequence[str]) -> Floats:
    groups = groups_of(columns, names)
    return np.bincount(groups)[groups].astype(np.float64) if len(groups) else np.zeros(0)


def _first_rows(units: Integers) -> Integers:
    return np.asarray(np.unique(units, return_index=True)[1], dtype=np.int64)


def _by_group(groups: Integers) -> list[Integers]:
    if not len(groups):
        return []
    order = np.argsort(groups, kind="stable")
    return np.split(order, np.cumsum(np.bincount(groups))[:-1])
