"""Integers of a plan with noise: what a session asks of an engine, and what it gets back.

A request is plain data: which aggregates of which rows, in which cells that are declared in advance, each integer as a linear map
of them, and a law of noise for each. It is the same for every engine, it is compiled before the charge, and then it bears the id
of the charge, so that an engine of several parties can draw its noise once under one charge. `canonical` is its one text, which
can be signed.

An engine that holds the rows adds up exactly and then adds noise (`Answering.noised`). One whose exact values exist nowhere
applies the same maps in every part (`exact_integers`), adds shares of the noise there, and gives the sum. Either says which law
is really in each number: it has the noise that was asked for, and perhaps more.

Guarantee: that of the laws, for the sensitivities that the session worked out (`session/planning/blocks.py`). All maps are
linear, so the integers of several parts add up to those of all rows, as long as no part counts what another counts.

Undeclared keys are no linear map: an engine that can look at them says which groups pass the threshold
(`session/questions/threshold.py` has the proof).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from cloister.noise import Random
from cloister.noise.laws import LAWS, law_plain
from cloister.tables.engines.request import Aggregation, Groups, joined, size_of
from cloister.tables.engines.row_sums import FeatureRows, Fit, RowSums

if TYPE_CHECKING:
    from cloister.noise.strategies import Product, Strategy
    from cloister.tables.engines.workspace import Room
    from cloister.tables.relations.derived import Relation

Whole: TypeAlias = npt.NDArray[Any]
"""Whole numbers: int64, or Python's where 64 bits may not do."""

_MOST_ROWS = 2**40
_MOST_PLACES = 2**22
"""So many groups of a key are looked up in a table, if some of them are measured; more are searched for."""
_KINDS = tuple(each.kind for each in LAWS)


class Law(Protocol):
    """How exact integers become noisy ones. Engines that add noise alone take the laws of `cloister.noise.laws`."""

    def release(self, value: Any, *, random: Random | None = None) -> Any:
        """The integers with noise."""


@dataclass(frozen=True, slots=True)
class KeyCodes:
    """The codes of one declared key: `first` is that of its first group, `whole` says how many there are, and `kept` which of
    their places are measured (None: all)."""

    first: int
    whole: int
    kept: tuple[int, ...] | None = None

    @property
    def size(self) -> int:
        """How many are measured."""
        return self.whole if self.kept is None else len(self.kept)

    def place(self, codes: Whole) -> npt.NDArray[np.int64]:
        """The place of each code among those that are measured; -1 where it is none of them.

        >>> KeyCodes(10, 4, kept=(1, 3)).place(np.array([10, 11, 13])).tolist()
        [-1, 0, 1]
        """
        places: npt.NDArray[np.int64] = codes.astype(np.int64) - self.first
        if self.kept is None:
            return places
        if self.whole > _MOST_PLACES:  # the work follows what is measured, and not what a column might hold
            order = np.argsort(np.array(self.kept, dtype=np.int64))
            kept = np.array(self.kept, dtype=np.int64)[order]
            found = np.minimum(np.searchsorted(kept, places), len(kept) - 1)
            return np.where(kept[found] == places, order[found], -1) if len(kept) else np.full_like(places, -1)
        position = np.full(self.whole, -1, dtype=np.int64)
        position[list(self.kept)] = np.arange(len(self.kept), dtype=np.int64)
        return position[places]


@dataclass(frozen=True, slots=True)
class Cells:
    """The groups of an answer, all known in advance: every combination of the keys' codes, the last key fastest. Without keys
    one.

    >>> cells = Cells((KeyCodes(0, 2), KeyCodes(5, 3)))
    >>> cells.count, cells.place((np.array([0, 1]), np.array([6, 5]))).tolist()
    (6, [1, 3])
    """

    keys: tuple[KeyCodes, ...] = ()

    @property
    def count(self) -> int:
        """How many there are."""
        return math.prod(key.size for key in self.keys)

    def place(self, codes: Sequence[Whole]) -> npt.NDArray[np.int64]:
        """The cell of each group that an engine found; -1 where it is in none."""
        length = len(codes[0]) if codes else 1
        places, outside = np.zeros(length, dtype=np.int64), np.zeros(length, dtype=bool)
        for key, found in zip(self.keys, codes, strict=True):
            place = key.place(found)
            outside |= place < 0
            places = places * key.size + place
        return np.where(outside, -1, places)

    def spread(self, values: Whole, places: npt.NDArray[np.int64]) -> Whole:
        """The engine's values in their cells, zero in every other."""
        full = np.zeros(self.count, dtype=np.int64) if values.dtype == np.int64 else np.full(self.count, 0, dtype=object)
        inside = places >= 0
        full[places[inside]] = values[inside]
        return full


@dataclass(frozen=True)
class Combination:
    """One integer a cell: Σ coefficient × aggregate. `width` is the most that one row can move it.

    >>> Combination((("sum", 1), ("rows", -3)), width=4).exact({"sum": np.array([7, 9]), "rows": np.array([1, 2])}).tolist()
    [4, 3]
    """

    parts: tuple[tuple[str, int], ...]
    width: int = 1

    def exact(self, aggregates: Mapping[str, Whole]) -> Whole:
        """The exact integers, in Python integers where 64 bits might not do.

        Where the sum fits 64 bits by declaration, whatever the rows, it is added up modulo 2⁶⁴: what overflows on the way comes
        back, and the result is exact.
        """
        parts = self.parts
        if len(parts) == 1 and parts[0][1] == 1:
            return aggregates[parts[0][0]]
        narrow = self.width * _MOST_ROWS < 2**63 and all(abs(coefficient) < 2**63 for _, coefficient in parts)
        if narrow and all(aggregates[name].dtype == np.int64 for name, _ in parts):
            total = np.zeros_like(aggregates[parts[0][0]])
            with np.errstate(over="ignore"):
                for name, coefficient in parts:
                    total = total + aggregates[name] * np.int64(coefficient)
            return total
        return sum(aggregates[name].astype(object) * coefficient for name, coefficient in parts)  # type: ignore[return-value]

    def plain(self) -> Any:
        """As plain data."""
        return {"map": "combination", "parts": [list(part) for part in self.parts]}


@dataclass(frozen=True)
class RangeSums:
    """A strategy's answers to the counts of ranges of the cells: A·x, where x counts the rows in each range of cells (from, up
    to and not including)."""

    aggregate: str
    ranges: tuple[tuple[int, int], ...]
    strategy: Product

    def exact(self, aggregates: Mapping[str, Whole]) -> Whole:
        """The exact integers, one for each row of the strategy."""
        cells = aggregates[self.aggregate]
        before = np.concatenate([np.zeros(1, dtype=cells.dtype), np.cumsum(cells, dtype=cells.dtype)])
        spans = [slice(*each).indices(len(cells)) for each in self.ranges]
        counts: Whole = np.array([before[max(first, after)] - before[first] for first, after, _ in spans], dtype=cells.dtype)
        if self.strategy.largest * self.overlap * _MOST_ROWS >= 2**63:  # by declaration: no row may decide whether there is room
            counts = counts.astype(object)
        return np.asarray(self.strategy.apply(counts)).reshape(-1)

    @property
    def overlap(self) -> int:
        """In how many ranges a row is, where they overlap most."""
        ends = sorted([(first, 1) for first, _ in self.ranges] + [(after, -1) for _, after in self.ranges])
        covered = most = 0
        for _, step in ends:
            covered += step
            most = max(most, covered)
        return most

    def plain(self) -> Any:
        """As plain data."""
        ranges = [list(span) for span in self.ranges]
        factors = [_plain_factor(each) for each in self.strategy.factors]
        return {"map": "ranges", "aggregate": self.aggregate, "ranges": ranges, "strategy": factors}


def _plain_factor(factor: Strategy) -> Any:
    from cloister.noise.trees import Tree

    if isinstance(factor, Tree):
        return {"cells": factor.cells, "branching": factor.branching, "weights": list(factor.weights)}
    return {"matrix": np.asarray(factor.apply(np.eye(factor.cells, dtype=np.int64))).tolist()}


@dataclass(frozen=True)
class Hierarchy:
    """Counts of the rows in each cell and leaf, for the sums of blocks of leaves on each level of a tree.

    The last key of the aggregation is the leaf. Its codes begin at `first`, and `values` of them are leaves: after the last the
    engine puts the rows without a value, which are in no leaf. The tree has `leaves` leaves.
    """

    aggregation: Aggregation
    first: int
    values: int
    leaves: int
    branching: int
    weights: tuple[int, ...]

    def counts(self, groups: Groups, cells: Cells) -> npt.NDArray[np.int64]:
        """The exact counts of the leaves, a row a cell."""
        place = cells.place(groups.keys[:-1]) if cells.keys else np.zeros(len(groups), dtype=np.int64)
        leaf, rows = groups.keys[-1], groups.values["rows"]
        if self.first:
            leaf = leaf - self.first
        outside = place < 0
        outside |= leaf < 0
        outside |= leaf >= self.values
        counts = np.zeros(cells.count * self.leaves, dtype=np.int64)
        places = place * self.leaves
        places += leaf
        if outside.any():
            places, rows = places[~outside], rows[~outside]
        counts[places] = rows
        return counts.reshape(cells.count, self.leaves)

    def plain(self) -> Any:
        """As plain data."""
        return {
            "aggregation": self.aggregation.describe(),
            "first": self.first,
            "values": self.values,
            "leaves": self.leaves,
            "branching": self.branching,
            "weights": list(self.weights),
        }


@dataclass(frozen=True)
class LevelSums:
    """The sums of one of the request's hierarchies: those of its blocks, or (`total`) the number of all rows in leaves where
    that is one by itself."""

    hierarchy: int
    apart: bool
    """Whether the total is an integer of its own."""
    total: bool = False

    def exact(self, counts: npt.NDArray[np.int64], hierarchy: Hierarchy) -> Whole:
        """The exact integers, a row a cell; in Python integers where their weights may pass 64 bits, whatever the rows."""
        wide = max(map(abs, hierarchy.weights)) * _MOST_ROWS >= 2**63
        leaves: Whole = counts.astype(object) if wide else counts
        levels, total = block_sums(leaves, hierarchy.branching, hierarchy.weights, apart=self.apart)
        if not self.total:
            return levels
        assert total is not None
        return total

    def plain(self) -> Any:
        """As plain data."""
        return {"map": "levels", "hierarchy": self.hierarchy, "apart": self.apart, "total": self.total}


def block_sums(leaves: Whole, branching: int, weights: Sequence[int], *, apart: bool) -> tuple[Whole, Whole | None]:
    """From the counts of the leaves, a row a cell, the sums of the blocks of each level, from the leaves up, times the level's
    weight; with `apart` the last level, which is the total, by itself.

    >>> levels, total = block_sums(np.array([[1, 2, 3]]), 2, (1, 1, 1), apart=True)
    >>> levels.tolist(), total.tolist()
    ([[1, 2, 3, 3, 3]], [6])
    """
    levels, sums = [], leaves
    for level, weight in enumerate(weights):
        if level:
            blocks = -(-sums.shape[1] // branching)
            wide = blocks * branching
            if wide > sums.shape[1]:
                sums = np.concatenate([sums, np.zeros((len(sums), wide - sums.shape[1]), dtype=sums.dtype)], axis=1)
            sums = sums.reshape(len(leaves), blocks, branching).sum(axis=2)
        if weight:
            levels.append(sums * weight)
    if apart:
        return np.concatenate(levels[:-1], axis=1), levels[-1][:, 0]
    return np.concatenate(levels, axis=1), None


@dataclass(frozen=True)
class Integers:
    """Integers of one kind in all cells, and the noise of each."""

    name: str
    map: Combination | RangeSums | LevelSums | RowSums
    law: Law

    def plain(self) -> Any:
        """As plain data; TypeError where the noise is not one that is added."""
        if not isinstance(self.law, _KINDS):
            raise TypeError(f"{type(self.law).__name__} is no law of additive noise")
        return {"name": self.name, **self.map.plain(), "noise": law_plain(self.law)}


@dataclass(frozen=True, kw_only=True)
class NoisedRequest:
    """Integers of one part of a plan, with noise.

    >>> from cloister.noise import DiscreteLaplace
    >>> rows = Integers("rows", Combination((("rows", 1),)), DiscreteLaplace(scale=10))
    >>> request = NoisedRequest(table="people", aggregations=(Aggregation(None),), cells=Cells(), integers=(rows,))
    >>> request.asked[0].aggregates[0].kind, request.plain()["integers"][0]["noise"]["scale"]
    ('rows', '10')
    """

    table: str | Relation
    """The table's name, or the relation that is asked about."""
    aggregations: tuple[Aggregation, ...]
    """What is aggregated by cell."""
    integers: tuple[Integers, ...]
    cells: Cells | None = None
    """None: the keys are not declared, and groups are shown by `threshold`."""
    hierarchies: tuple[Hierarchy, ...] = ()
    threshold: tuple[str, int] | None = None
    """The integers that decide whether a group is shown, and what they must reach with their noise."""
    charge: str = ""
    """The id of the charge in the session's ledger; empty until the charge stands."""
    number: int = 0
    """Which request of that charge this is: each has noise of its own."""
    who: str = ""
    purpose: str = ""
    """By whom and for what it is asked: for owners who decide by it, and no part of the request itself."""
    besides: tuple[NoisedRequest, ...] = ()
    """Of the last of a charge, the others about its table: owners who can't pay for all are to say so before the charge."""

    @property
    def names(self) -> tuple[str, ...]:
        """The private tables that it is about."""
        return (self.table,) if isinstance(self.table, str) else self.table.bases()

    @property
    def fit(self) -> Fit | None:
        """What is learned by it, where it is a step of a descent over rows."""
        return next((each.map.fit for each in self.integers if isinstance(each.map, RowSums)), None)

    @property
    def asked(self) -> tuple[Aggregation, ...]:
        """All that the engine aggregates."""
        if not self.hierarchies:
            return self.aggregations
        return (*self.aggregations, *(each.aggregation for each in self.hierarchies))

    def under(self, charge: int | str) -> NoisedRequest:
        """The same request under a charge that stands."""
        return replace(self, charge=str(charge), besides=())

    def plain(self) -> dict[str, Any]:
        """The request as plain data, of which a digest or a signature can be taken. TypeError where it is not a linear function
        of the rows with additive noise."""
        if self.cells is None:
            raise TypeError("groups of undeclared keys are no linear function of the rows")
        return {
            "format": 1,
            "table": self.table if isinstance(self.table, str) else self.table.describe(),
            "aggregations": [each.describe() for each in self.aggregations],
            "hierarchies": [each.plain() for each in self.hierarchies],
            "cells": [[key.first, key.whole, None if key.kept is None else list(key.kept)] for key in self.cells.keys],
            "integers": [each.plain() for each in self.integers],
            "charge": self.charge,
            "number": self.number,
        }

    def canonical(self) -> str:
        """The one text of the request."""
        import json

        return json.dumps(self.plain(), sort_keys=True, separators=(",", ":"), default=str)


@dataclass(frozen=True)
class Noised:
    """Noisy integers by name: for each the values (of all cells, in their order) and the law that is really in them.

    The law has at least the noise that was asked for. `keys` are those of the groups that are shown, where they are not declared.
    """

    values: Mapping[str, Whole]
    laws: Mapping[str, Any]
    keys: tuple[Whole, ...] | None = field(default=None)
    without: tuple[str, ...] = ()
    """The parts whose rows are not in the values, where some dropped out."""


def exact_integers(
    request: NoisedRequest, found: Iterable[Groups], features: Callable[[Fit], FeatureRows] | None = None
) -> dict[str, Whole]:
    """The exact integers of a request with declared cells, from the groups of what it asks (`asked`), in that order; sums over
    rows from their `features`."""
    groups, cells = iter(found), request.cells
    assert cells is not None
    aggregates: dict[str, Whole] = {}
    for _ in request.aggregations:
        each = next(groups)
        if cells.keys:
            places = cells.place(each.keys)
            aggregates.update({name: cells.spread(values, places) for name, values in each.values.items()})
        else:  # one cell, and one row
            aggregates.update(each.values)
    exact: dict[str, Whole] = {}
    leaves: list[npt.NDArray[np.int64]] = [each.counts(next(groups), cells) for each in request.hierarchies]
    for integers in request.integers:
        if isinstance(integers.map, LevelSums):
            place = integers.map.hierarchy
            exact[integers.name] = integers.map.exact(leaves[place], request.hierarchies[place])
        elif isinstance(integers.map, RowSums):
            assert features is not None
            exact[integers.name] = integers.map.exact(features(integers.map.fit))
        else:
            exact[integers.name] = integers.map.exact(aggregates)
    return exact


def noised_groups(request: NoisedRequest, each: Callable[[Callable[[Groups, Room], None]], None], random: Random) -> Noised:
    """Keys whose noisy number of units reaches the threshold, in the order of the keys; the other integers are noised for those
    alone. The engine tells the groups piece by piece (`each`), and of each only what is shown is kept."""
    assert request.threshold is not None
    deciding, least = request.threshold
    [units_of] = [one for one in request.integers if one.name == deciding]
    shown: list[tuple[Groups, Whole]] = []

    def take(groups: Groups, room: Room) -> None:
        # engines tell groups in whatever order their threads end; the same seed must give the same answer
        shown.append(
            (groups, _of_groups(units_of, groups)) if random.marked else _past_threshold(units_of, least, groups, random)
        )
        room.take(sum(map(size_of, (*shown[-1][0].keys, *shown[-1][0].values.values()))))

    each(take)
    groups, units = _together([one for one, _ in shown]), joined([one for _, one in shown])
    order = _order(groups.keys)
    groups, units = _taken(groups, order), units[order]
    if random.marked:
        groups, units = _past_threshold(units_of, least, groups, random)
    others = [one for one in request.integers if one is not units_of]
    values = {one.name: np.asarray(one.law.release(_of_groups(one, groups), random=random)) for one in others}
    values[deciding] = units
    return Noised(values, {one.name: one.law for one in request.integers}, groups.keys)


def _past_threshold(units_of: Integers, least: int, groups: Groups, random: Random) -> tuple[Groups, Whole]:
    """The groups whose noisy number of units reaches the threshold, with that number."""
    units = np.asarray(units_of.law.release(_of_groups(units_of, groups), random=random))
    kept = np.flatnonzero(units >= least)
    return _taken(groups, kept), units[kept]


def _of_groups(integers: Integers, groups: Groups) -> Whole:
    assert isinstance(integers.map, Combination)
    return integers.map.exact(groups.values)


def _together(pieces: Sequence[Groups]) -> Groups:
    return Groups(
        tuple(joined(keys) for keys in zip(*(each.keys for each in pieces), strict=True)),
        {name: joined([each.values[name] for each in pieces]) for name in pieces[0].values},
    )


def _order(keys: tuple[Whole, ...]) -> npt.NDArray[np.int64]:
    """Sorted by the first key, then the second; NULL last."""
    order = np.arange(len(keys[0]) if keys else 0)
    for key in reversed(keys):
        if key.dtype == object:  # not as an array of texts: there each would take the room of the longest
            texts = [(value is None, "" if value is None else value) for value in key[order]]
            order = order[sorted(range(len(order)), key=texts.__getitem__)]
        else:
            order = order[np.argsort(key[order], kind="stable")]
    return order


def _taken(groups: Groups, places: Whole) -> Groups:
    return Groups(tuple(key[places] for key in groups.keys), {name: values[places] for name, values in groups.values.items()})
