"""Derived tables: every row of a relation belongs to one unit, and follows from that unit's rows (and public tables) alone.

Guarantee. Neighbours: two databases that differ in all rows of one unit (in a table without a unit: in one row). Claim: for every
relation, the derived rows of each other unit are the same in both, and no unit has more than `max_rows` of them. So a bounded
statistic of the derived rows has the sensitivity that `max_rows` and the columns' domains give, whatever the relation does
inside. Proof: by induction over the tree; each class's docstring has its step. The induction also carries `place`, a number from
1 to `span` that is different for each row of a unit and follows from the unit's rows alone: it says which rows of a unit are the
first. A relation without a unit has no places; its rows come each from one row of a table, and at most `max_rows` from each.
Nothing is assumed of the engine but that it computes what the SQL says; every expression is total, so no row can make it fail.
Source of the argument: stability of transformations, McSherry, Privacy Integrated Queries, SIGMOD 2009, section 3 (here a
transformation acts on the units one by one, which makes its stability 1 in units and leaves only the rows to be bounded).

The classes are plain data, frozen and hashable. `build` gives an Ibis table of columns c0, c1, … of codes in the order of
`columns`, and `unit` and `place` where the rows have a unit.
"""

from __future__ import annotations

import hashlib
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from cloister.errors import InvalidParameter, UnsupportedQuery, undeclared
from cloister.tables.declaring.columns import Domain
from cloister.tables.declaring.table import PrivateTable
from cloister.tables.engines.abilities import Abilities
from cloister.tables.engines.ibis_compilers import ibis
from cloister.tables.expression.scope import Scope

WIDEST = 2**31 - 1
_MOST_DERIVED = 1_000_000
_LONGEST_SPAN = 2**62
_MOST_NODES = 400
_DEEPEST = 80


class RowNumber(NamedTuple):
    """A column of whole numbers, never NULL, that tells a unit's rows with the same keys apart; each is from `low` to `high`."""

    keys: frozenset[str]
    low: int
    high: int


class Relation(ABC):
    """A derived table. Frozen and hashable; what is wrong with it is refused when it is written."""

    @property
    @abstractmethod
    def columns(self) -> Mapping[str, Domain]:
        """What each column may hold, in order."""

    @property
    @abstractmethod
    def max_rows(self) -> int | None:
        """The most rows of one unit; None where a row is a unit."""

    @property
    @abstractmethod
    def parts(self) -> tuple[Relation, ...]:
        """The relations that this one is made of."""

    @abstractmethod
    def describe(self) -> Any:
        """A canonical form as plain data, with the names of the tables in it."""

    @abstractmethod
    def build(self, sources: Mapping[Hashable, Any], dialect: str) -> Any:
        """The Ibis table; `sources` holds the prepared rows by the name of the table, and public rows by their digest."""

    @property
    def unit(self) -> str | None:
        """What a unit is called; None where a row of the base is a person."""
        return self.parts[0].unit

    @property
    def through(self) -> str | None:
        """The column that the units are values of, where they are not people yet: such a relation needs a `KeyJoined`."""
        return self.parts[0].through

    @property
    def unit_type(self) -> str:
        """The Ibis type of the unit's name."""
        return self.parts[0].unit_type

    @property
    def span(self) -> int:
        """Places are from 1 to this."""
        return self.parts[0].span

    @property
    def size(self) -> int | None:
        """A public hint of the number of rows."""
        return None

    def origins(self, name: str) -> frozenset[str]:
        """The declared columns, as "table.column", whose unchanged values a column holds; "" stands for any other source."""
        return self.parts[0].origins(name)

    def tells_apart(self, names: frozenset[str]) -> bool:
        """Whether no two rows of a unit have the same values in all of these columns; NULL, which equals nothing, left aside.

        >>> from cloister.tables import Base, Category, PerUnit, PrivateTable
        >>> visits = PrivateTable({"who": ["a"], "ward": ["A"]}, {"ward": Category(["A", "B"])}, unit="who", max_rows=5)
        >>> wards = PerUnit(source=Base(name="visits", table=visits), keys=("ward",))
        >>> wards.tells_apart(frozenset({"ward"})), wards.tells_apart(frozenset())
        (True, False)
        """
        return self.max_rows == 1

    def numbered(self) -> Mapping[str, RowNumber]:
        """The columns that number a unit's rows, by name."""
        return {}

    def variety(self, names: frozenset[str]) -> int:
        """The most different tuples that these columns hold in the rows of one unit: at most one for each row, one for each
        combination of what the domains hold (with NULL), and what `_variety` finds in the relations below."""
        sizes = [self.columns[name].size for name in names]
        combinations = math.prod(math.inf if size is None else size + 1 for size in sizes)
        return int(min(self.max_rows or 1, combinations, self._variety(names)))

    def _variety(self, names: frozenset[str]) -> int:
        """One for each row."""
        return self.max_rows or 1

    def walk(self) -> Iterator[Relation]:
        """This relation and all inside it, outermost first."""
        yield self
        for part in self.parts:
            yield from part.walk()

    def own_tables(self) -> dict[str, PrivateTable]:
        """The private table that this relation is, by name; none where it is made of others."""
        return {}

    def tables(self) -> dict[str, PrivateTable]:
        """The private tables by name, sorted; a name that stands for two tables is refused."""
        found: dict[str, PrivateTable] = {}
        for each in self.walk():
            for name, table in each.own_tables().items():
                if found.setdefault(name, table) is not table:
                    raise InvalidParameter(
                        f"The name {name!r} is invalid", why="it stands for two tables", instead="a name of its own for each"
                    )
        return dict(sorted(found.items()))

    def bases(self) -> tuple[str, ...]:
        """The names of the private tables, sorted, each once."""
        return tuple(self.tables())

    @property
    def abilities(self) -> Abilities:
        """What the engines of all private tables in it can be asked."""
        return Abilities.of_all(table.abilities for table in self.tables().values())

    def publics(self) -> tuple[str, ...]:
        """The names of the public tables, sorted, each once."""
        return tuple(sorted({name for part in self.parts for name in part.publics()}))

    def column(self, name: str) -> Domain:
        """The domain of a column; an unknown name is refused with the names that exist."""
        known(self, name)
        return self.columns[name]

    @cached_property
    def digest(self) -> str:
        """A short name of this derivation."""
        return hashlib.sha256(json.dumps(self.describe(), sort_keys=True, default=str).encode()).hexdigest()

    @cached_property
    def extent(self) -> tuple[int, int]:
        """How many relations it is made of, and how deep they stand inside one another."""
        inner = [part.extent for part in self.parts]
        return 1 + sum(nodes for nodes, _ in inner), 1 + max((depth for _, depth in inner), default=0)

    def _check_extent(self) -> None:
        nodes, depth = self.extent
        if nodes > _MOST_NODES or depth > _DEEPEST:
            raise UnsupportedQuery(
                "The derived table is not supported",
                why=f"it is made of more than {_MOST_NODES} steps, or more than {_DEEPEST} inside one another",
                instead="fewer subqueries",
            )

    def _scope(self, rows: Any, dialect: str) -> Scope:
        return Scope(self.columns, {name: rows[f"c{i}"] for i, name in enumerate(self.columns)}, dialect)


class OfOne(Relation):
    """A relation that is made of one other. How many rows a unit has in it each says for itself: that is its proof."""

    source: Relation

    @property
    def parts(self) -> tuple[Relation, ...]:
        """The source."""
        return (self.source,)

    def origins(self, name: str) -> frozenset[str]:
        """Those of the source; what is new is computed, or comes from no private column."""
        return self.source.origins(name) if name in self.source.columns else frozenset({""})


class SameRows(OfOne):
    """The rows of the source, all of them, with other columns."""

    @property
    def max_rows(self) -> int | None:
        """That of the source."""
        return self.source.max_rows

    @property
    def size(self) -> int | None:
        """That of the source."""
        return self.source.size


class Fewer(OfOne):
    """Rows of the source with the columns that they had, each once or not at all: what tells those apart tells these apart."""

    @property
    def columns(self) -> Mapping[str, Domain]:
        """Those of the source."""
        return self.source.columns

    def tells_apart(self, names: frozenset[str]) -> bool:
        """As in the source."""
        return self.max_rows == 1 or self.source.tells_apart(names & self.source.columns.keys())

    def _variety(self, names: frozenset[str]) -> int:
        """Fewer rows hold no other tuples."""
        return self.source.variety(names)


def known(relation: Relation, name: str) -> None:
    """Refuses a column that the relation has not."""
    if not isinstance(name, str) or name not in relation.columns:
        raise undeclared(name, relation.columns)


def unique(names: list[str]) -> None:
    """Refuses a name that stands twice, or that is not a text."""
    seen = set()
    for name in names:
        if not isinstance(name, str) or not name:
            raise InvalidParameter(f"The column name {name!r} is invalid", why="it is not text", instead='"age"')
        if name in seen:
            raise InvalidParameter(
                f"The column {name!r} is invalid", why="two columns would bear the name", instead=f'{name} AS "another"'
            )
        seen.add(name)


def needs_unit(relation: Relation, what: str) -> None:
    """Refuses what is done person by person where a row is a person."""
    if relation.unit is None:
        tables = ", ".join(repr(name) for name, table in relation.tables().items() if table.unit is None)
        raise UnsupportedQuery(
            f"{what} is not supported",
            why=f"no column of {tables} says whose row a row is",
            instead='cl.PrivateTable(…, unit="person", max_rows=1)',
        )


def bounded(what: str, rows: int, span: int = 1) -> None:
    """Refuses a relation in which a unit could have more rows, or places, than are counted.

    A person's rows multiply in a join. Far more of them than anybody has would be seconds of work for that person alone, and so a
    way to tell by the clock that she is there.
    """
    if rows > _MOST_DERIVED or span > _LONGEST_SPAN:
        raise UnsupportedQuery(
            f"{what} is not supported",
            why=f"one person could have more than {_MOST_DERIVED:,} rows in it",
            instead="a smaller max_rows=",
        )


def packed(rows: Any, codes: Mapping[str, Any], unit: bool) -> Any:
    """The rows with these columns, and unit and place; with one constant where nothing else would be left."""
    chosen = dict(codes)
    if unit:
        chosen |= {"unit": rows.unit, "place": rows.place}
    if "nothing" in rows.columns:
        chosen = chosen or {"nothing": rows.nothing}
    return rows.select(**(chosen or {"nothing": ibis.literal(0, "int16")}))
