"""How many different tuples of columns a unit's rows hold: from one side of a join no more than that side has.

`check_bounds` in `relations.py` compares the bound with the rows of every random tree of `test_relation.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from cloister.tables import (
    Base,
    KeyJoined,
    PerUnit,
    PrivateTable,
    Projected,
    PublicJoined,
    PublicTable,
    Relation,
    Stacked,
    UnitAggregate,
    UnitJoined,
)
from tests.tables.relations import tables_of
from tests.tables.test_relation import FIXED, compare

TABLES = tables_of(FIXED)


def base(name: str, **names: str) -> Relation:
    found = Base(name=name, table=TABLES[name])
    return Projected(source=found, names=tuple((new, old) for new, old in names.items())) if names else found


def through(*, outer: bool = False) -> KeyJoined:
    return KeyJoined(left=base("drugs"), right=base("visits"), left_key="visit_of", right_key="visit", outer=outer)


def both(*, outer: bool = False) -> UnitJoined:
    return UnitJoined(left=base("visits", v="visit", n="note"), right=base("visits", w="visit", m="note"), outer=outer)


@pytest.mark.parametrize(
    ("relation", "names", "most"),
    [
        (base("visits"), ["visit", "note"], 2),
        (base("visits"), [], 1),
        (through(), ["visit"], 2),
        (through(), ["visit", "note"], 2),
        (through(outer=True), ["visit", "note"], 2),
        (through(), ["dose"], 4),
        (through(), ["visit", "dose"], 4),
        (both(), ["v", "n"], 2),
        (both(), ["w"], 2),
        (both(outer=True), ["w"], 3),
        (both(), ["v", "w"], 4),
        (both(outer=True), ["v", "w"], 4),
        (Stacked(sources=(base("visits"), base("visits"))), ["visit"], 4),
    ],
)
def test_bounds(relation: Relation, names: list[str], most: int) -> None:
    """Columns of the same table are not of the same row, where the table is joined with itself."""
    assert relation.variety(frozenset(names)) == most
    keys = PerUnit(source=relation, keys=tuple(names), aggregates=(UnitAggregate(name="rows", kind="count"),))
    assert keys.max_rows == most


def test_what_is_looked_up_follows_from_what_is_compared() -> None:
    beds = PublicTable({"ward": ["A", "A", "B"], "beds": [3, 4, 5]})
    joined = PublicJoined(source=through(), name="beds", table=beds, on=(("ward", "ward"),), columns=(("beds", "beds"),))
    assert joined.max_rows == 8
    assert joined.variety(frozenset({"visit"})) == 2
    assert joined.variety(frozenset({"visit", "beds"})) == 4


@dataclass(frozen=True, kw_only=True)
class OfOneRow(UnitJoined):
    """Broken: takes columns of one table for columns of one row of it."""

    def _variety(self, names: frozenset[str]) -> int:
        return self.left.max_rows or 1


def test_a_bound_that_is_too_small_is_caught() -> None:
    def broken(tables: Mapping[str, PrivateTable], kind: type[UnitJoined] = OfOneRow) -> Any:
        sides = [Base(name="visits", table=tables["visits"]) for _ in range(2)]
        left, right = (Projected(source=side, names=((name, "visit"),)) for side, name in zip(sides, "vw", strict=True))
        return PerUnit(source=kind(left=left, right=right), keys=("v", "w"))

    with pytest.raises(AssertionError):
        compare(FIXED, broken)
    compare(FIXED, lambda tables: broken(tables, UnitJoined))
