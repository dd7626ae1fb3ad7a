"""Joins with public tables: each private row looked up in rows that anybody may see."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

from cloister.errors import UnsupportedQuery
from cloister.tables.declaring.columns import Domain
from cloister.tables.declaring.table import PublicTable
from cloister.tables.expression.names import quoted_path
from cloister.tables.expression.unify import with_nullable
from cloister.tables.relations.derived import OfOne, Relation, bounded, known, packed, unique
from cloister.tables.relations.public import PublicCodes, checked, public_codes


@dataclass(frozen=True, init=False)
class PublicJoined(OfOne):
    """Each row with the rows of a public table that have equal values in the pairs of `on` (column, public column).

    `columns` says what is taken from the public table: pairs of (new name, public column). NULL equals nothing; nor does a public
    value that is not exactly a value of the private column's domain.

    Rows of a unit: its rows, each with public rows that follow from it, since the public table is the same in both neighbours: at
    most μ for each, μ being the most public rows of one key, which is public. So at most μ · max_rows; in a table without a unit,
    at most μ rows of one person. With `outer` a row without a partner stays, with NULL in what is looked up: still at most μ, as
    μ is at least 1. The place is (place - 1) · μ + the number of the public row among those of its key.

    >>> from cloister.tables import Base, Category, PrivateTable
    >>> people = Base(name="people", table=PrivateTable({"town": ["Delft"]}, {"town": Category(["Delft", "Gouda"])}))
    >>> towns = PublicTable({"name": ["Delft", "Gouda"], "province": ["ZH", "ZH"]})
    >>> joined = PublicJoined(
    ...     source=people, name="towns", table=towns, on=(("town", "name"),), columns=(("province", "province"),)
    ... )
    >>> joined.column("province"), joined.max_rows
    (Category(['ZH']), None)
    """

    source: Relation
    name: str
    table: PublicTable
    on: tuple[tuple[str, str], ...]
    taken: tuple[tuple[str, str], ...]
    outer: bool

    def __init__(
        self,
        *,
        source: Relation,
        name: str,
        table: PublicTable,
        on: tuple[tuple[str, str], ...],
        columns: tuple[tuple[str, str], ...],
        outer: bool = False,
    ) -> None:
        values = (source, name, checked(name, table), tuple(map(tuple, on)), tuple(map(tuple, columns)), outer)
        for field, value in zip(("source", "name", "table", "on", "taken", "outer"), values, strict=True):
            object.__setattr__(self, field, value)
        if not self.on:
            raise UnsupportedQuery(
                f"The join with {name!r} is not supported",
                why="no column of both is compared",
                instead=f"JOIN {quoted_path(name)} ON town = {quoted_path(name)}.town",
            )
        for column, _ in self.on:
            known(source, column)
        unique([*source.columns, *(new for new, _ in self.taken)])
        bounded(f"The join with {name!r}", self.max_rows or 1, self.span)
        self._check_extent()

    @cached_property
    def codes(self) -> PublicCodes:
        """The public rows in codes: read when they are first needed, once for each public table."""
        keys = [(self.source.columns[column], public) for column, public in self.on]
        return public_codes(self.name, self.table, keys, [public for _, public in self.taken])

    @cached_property
    def columns(self) -> Mapping[str, Domain]:
        """Those of the source, then what is looked up; this has a group of NULL in an outer join."""
        found = zip(self.taken, self.codes.domains, strict=True)
        return MappingProxyType(
            {**self.source.columns, **{new: with_nullable(domain, self.outer or domain.nullable) for (new, _), domain in found}}
        )

    @cached_property
    def max_rows(self) -> int | None:
        """μ times that of the source; None where a row stays a person."""
        if self.source.max_rows is None:
            return self.codes.multiplicity if self.codes.multiplicity > 1 else None
        return self.source.max_rows * self.codes.multiplicity

    @property
    def span(self) -> int:
        """μ times that of the source."""
        return self.source.span * self.codes.multiplicity

    @property
    def size(self) -> int | None:
        """That of the source, where every row finds one at most and stays."""
        return self.source.size if self.outer and self.codes.multiplicity == 1 else None

    def origins(self, name: str) -> frozenset[str]:
        """Those of the source; what is looked up comes from no private column."""
        return self.source.origins(name) if name in self.source.columns else frozenset({""})

    def _variety(self, names: frozenset[str]) -> int:
        """What is looked up follows from what is compared, but for which of the μ public rows of one key it is; NULL throughout
        where there is none."""
        own = names & self.source.columns.keys()
        if own == names:
            return self.source.variety(names)
        return self.source.variety(own | {column for column, _ in self.on}) * self.codes.multiplicity

    def publics(self) -> tuple[str, ...]:
        """This one and those of the source."""
        return tuple(sorted({self.name, *self.source.publics()}))

    def describe(self) -> Any:
        """The source, the public table with a digest of its rows, and what is compared and taken."""
        pairs = [[list(pair) for pair in self.on], [list(pair) for pair in self.taken]]
        return ["looked up", self.source.describe(), self.name, self.codes.digest, *pairs, self.outer]

    def build(self, sources: Mapping[Hashable, Any], dialect: str) -> Any:
        """A join on the codes of the keys."""
        import ibis

        rows, public = self.source.build(sources, dialect).view(), sources["public", self.codes.digest].view()
        names = list(self.source.columns)
        conditions = [rows[f"c{names.index(column)}"] == public[f"k{i}"] for i, (column, _) in enumerate(self.on)]
        joined = (rows.left_join if self.outer else rows.inner_join)(public, conditions)
        codes = {f"c{i}": joined[f"c{i}"] for i in range(len(names))}
        codes |= {f"c{len(names) + i}": joined[f"p{i}"] for i in range(len(self.taken))}
        if self.unit is None:
            return packed(joined, codes, unit=False)
        number = ibis.coalesce(joined.n, 1) if self.outer else joined.n
        return joined.select(**codes, unit=joined.unit, place=(joined.place - 1) * self.codes.multiplicity + number)
