"""UNION ALL: the rows of several relations, one under another."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

from cloister.errors import UnsupportedQuery
from cloister.tables.declaring.columns import Domain
from cloister.tables.expression.unify import recoded, unified
from cloister.tables.relations.derived import Relation, bounded, packed


@dataclass(frozen=True, kw_only=True)
class Stacked(Relation):
    """The rows of all sources. The columns bear the same names in each, and hold the values of all.

    Rows of a unit: its rows in every source, so the bounds add up; a unit is the same unit in all of them. The place is that of
    the source, interleaved: (place - 1) · sources + the number of the source.

    Without a unit a row is a person in each source. Two sources on the same table may hold the same row twice; on two tables of
    one population they may hold two rows of one person. In either case a person has at most as many rows as the bounds add up to.

    >>> from cloister.tables import Base, Integer, PrivateTable
    >>> visits = PrivateTable({"who": ["a"], "cost": [3]}, {"cost": Integer(0, 9)}, unit="who", max_rows=3)
    >>> calls = PrivateTable({"who": ["a"], "cost": [30]}, {"cost": Integer(0, 99)}, unit="who", max_rows=2)
    >>> both = Stacked(sources=(Base(name="visits", table=visits), Base(name="calls", table=calls)))
    >>> both.max_rows, both.column("cost")
    (5, Integer(low=0, high=99, nullable=False))
    """

    sources: tuple[Relation, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "sources", tuple(self.sources))
        if not self.sources:
            raise UnsupportedQuery("A union is not supported", why="it has no parts", instead="Stacked(sources=(first, second))")
        first = self.sources[0]
        for other in self.sources[1:]:
            if set(other.columns) != set(first.columns):
                raise UnsupportedQuery(
                    "A union is not supported",
                    why=f"one part has the columns {_listed(first)} and another {_listed(other)}",
                    instead="the same names in each part",
                )
            if (other.unit is None) != (first.unit is None):
                raise UnsupportedQuery(
                    "A union is not supported",
                    why="in one part a row is a person, and in another it is not",
                    instead='cl.PrivateTable(…, unit="person", max_rows=1)',
                )
            if other.through != first.through:
                raise UnsupportedQuery(
                    "A union is not supported",
                    why="the units of its parts are not of one kind",
                    instead="a join of each part with the table that its rows belong to",
                )
        bounded("A union", self.max_rows, self.span)
        self._check_extent()
        _ = self.columns

    @cached_property
    def columns(self) -> Mapping[str, Domain]:
        """The names of the first source, each with the least domain that holds the values of all."""
        return MappingProxyType(
            {name: unified(name, [source.columns[name] for source in self.sources]) for name in self.sources[0].columns}
        )

    @property
    def max_rows(self) -> int:
        """The sum."""
        return sum(source.max_rows or 1 for source in self.sources)

    @property
    def span(self) -> int:
        """The largest, once for each source."""
        return len(self.sources) * max(source.span for source in self.sources)

    @property
    def unit_type(self) -> str:
        """Text, unless all are numbers."""
        types = {source.unit_type for source in self.sources}
        return types.pop() if len(types) == 1 else "string"

    @property
    def size(self) -> int | None:
        """The sum, where all are given."""
        sizes = [source.size for source in self.sources]
        given = [size for size in sizes if size is not None]
        return sum(given) if len(given) == len(sizes) else None

    @property
    def parts(self) -> tuple[Relation, ...]:
        """The sources."""
        return self.sources

    def origins(self, name: str) -> frozenset[str]:
        """Those of all sources."""
        return frozenset().union(*(source.origins(name) for source in self.sources))

    def _variety(self, names: frozenset[str]) -> int:
        """Each tuple is one of some source's: recoding gives equal values equal codes."""
        return sum(source.variety(names) for source in self.sources)

    def describe(self) -> Any:
        """The sources in order."""
        return ["stacked", [source.describe() for source in self.sources]]

    def build(self, sources: Mapping[Hashable, Any], dialect: str) -> Any:
        """A UNION ALL of the recoded columns."""
        import ibis

        tables = []
        for number, source in enumerate(self.sources, start=1):
            rows = source.build(sources, dialect)
            places = {name: f"c{i}" for i, name in enumerate(source.columns)}
            codes = {
                f"c{i}": recoded(rows[places[name]], source.columns[name], domain)
                for i, (name, domain) in enumerate(self.columns.items())
            }
            if self.unit is not None:
                place = (rows.place - 1) * len(self.sources) + number
                rows = rows.mutate(unit=rows.unit.cast(self.unit_type), place=place, **codes)
                codes = {name: rows[name] for name in codes}
            tables.append(packed(rows, codes, self.unit is not None))
        return tables[0] if len(tables) == 1 else ibis.union(*tables, distinct=False)


def _listed(relation: Relation) -> str:
    return ", ".join(map(repr, relation.columns)) or "none"
