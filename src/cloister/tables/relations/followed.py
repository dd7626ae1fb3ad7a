"""Rows of one person in an order of their own, each beside what the row before it says: how one state leads to the next."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

from cloister.errors import InvalidParameter, UnsupportedQuery
from cloister.tables.declaring.columns import Domain, Identifier, Integer, Text
from cloister.tables.engines.compiler import storage
from cloister.tables.expression.unify import with_nullable
from cloister.tables.relations.derived import WIDEST, OfOne, Relation, known, needs_unit, unique


@dataclass(frozen=True, kw_only=True)
class Followed(OfOne):
    """The first rows of each unit in the order of a column: the number of each in `number`, and in each column of `previous`, by
    (new name, old name), what the row before it has in the old one; NULL in the first.

    Rows of a unit: its rows of the least numbers, at most `rows`. A number follows from the unit's own values of the column `by`
    (NULL last) and, where these are equal, their places; so does which row stands before which. So the derived rows of a unit
    follow from its own rows, and there is one for each that stays. The number is the new place.

    >>> from cloister.tables import Base, Category, PrivateTable
    >>> columns = {"day": Integer(0, 9), "ward": Category(["a", "b"])}
    >>> visits = PrivateTable({"who": [1], "day": [3], "ward": ["a"]}, columns, unit="who", max_rows=5)
    >>> base = Base(name="visits", table=visits)
    >>> followed = Followed(source=base, by="day", number="n", previous=(("before", "ward"),), rows=3)
    >>> followed.max_rows, list(followed.columns), followed.column("n"), followed.column("before").nullable
    (3, ['day', 'ward', 'n', 'before'], Integer(low=1, high=3, nullable=False), True)
    """

    source: Relation
    by: str
    number: str
    previous: tuple[tuple[str, str], ...]
    rows: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "previous", tuple((new, old) for new, old in self.previous))
        needs_unit(self.source, "An order of rows")
        for name in (self.by, *(old for _, old in self.previous)):
            known(self.source, name)
        if isinstance(self.source.columns[self.by], Text | Identifier):
            why = "each engine has an order of its own for texts"
            raise UnsupportedQuery(f"An order by {self.by!r} is not supported", why=why, instead="a column of days or numbers")
        if isinstance(self.rows, bool) or not isinstance(self.rows, int) or not 1 <= self.rows <= WIDEST:
            why = "it must be a whole number from 1 to 2^31-1"
            raise InvalidParameter(f"rows={self.rows!r} is invalid", why=why, instead="rows=10")
        unique([*self.source.columns, self.number, *(new for new, _ in self.previous)])
        self._check_extent()

    @property
    def max_rows(self) -> int:
        """The cap, or fewer where the source has no more."""
        return min(self.rows, self.source.max_rows or 1)

    @property
    def span(self) -> int:
        """As many as there are rows."""
        return self.max_rows

    @cached_property
    def columns(self) -> Mapping[str, Domain]:
        """Those of the source, the number, and what stood before."""
        before = {new: with_nullable(self.source.columns[old], True) for new, old in self.previous}
        return MappingProxyType({**self.source.columns, self.number: Integer(1, self.max_rows), **before})

    def origins(self, name: str) -> frozenset[str]:
        """Those of the source; the rest is computed."""
        return self.source.origins(name) if name in self.source.columns else frozenset({""})

    def _variety(self, names: frozenset[str]) -> int:
        """Fewer rows hold no other tuples; of what is new one for each row."""
        return self.source.variety(names) if names <= self.source.columns.keys() else self.max_rows

    def describe(self) -> Any:
        """The source, the order and the names."""
        return ["followed", self.source.describe(), self.by, self.number, [[new, old] for new, old in self.previous], self.rows]

    def build(self, sources: Mapping[Hashable, Any], dialect: str) -> Any:
        """Windows over the unit's rows in their order."""
        import ibis

        rows = self.source.build(sources, dialect)
        names = list(self.source.columns)
        by = rows[f"c{names.index(self.by)}"]
        order = ibis.window(group_by=rows.unit, order_by=[by.isnull(), by, rows.place])
        first = len(names)
        before = {f"c{first + 1 + i}": rows[f"c{names.index(old)}"].lag().over(order) for i, (_, old) in enumerate(self.previous)}
        number = (ibis.row_number().over(order) + 1).cast("int64")
        rows = rows.mutate(**before, place=number)
        rows = rows.filter(rows.place <= self.rows)
        return rows.mutate(**{f"c{first}": rows.place.cast(storage(self.columns[self.number]))})
