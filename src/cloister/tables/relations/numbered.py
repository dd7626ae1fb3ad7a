"""Rows of one person in an order of their own: with their number (ROW_NUMBER, RANK and DENSE_RANK within the person), and each
beside what the row before it says: how one state leads to the next."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, get_args

from cloister.errors import InvalidParameter, UnsupportedQuery, check_one_of
from cloister.tables.declaring.columns import Category, Domain, Identifier, Integer, Text
from cloister.tables.engines.compiler import storage
from cloister.tables.engines.ibis_compilers import ibis
from cloister.tables.expression.unify import with_nullable
from cloister.tables.relations.derived import WIDEST, OfOne, Relation, RowNumber, known, needs_unit, unique

Numbering: TypeAlias = Literal["row_number", "rank", "dense_rank"]


@dataclass(frozen=True, kw_only=True)
class Numbered(OfOne):
    """The same rows with a number: each row's in the order of some columns among those rows of its unit that have the same keys.

    `by` are triples of a column, whether it descends, and whether NULL comes first. Rows that are equal in all of them have one
    `rank`; a `row_number` tells them apart by their places. Rows with NULL in a key are numbered among themselves.

    Rows of a unit: its rows, each with a number that follows from the unit's own rows, since only these are ordered and counted.
    Neither their number nor their places change. The number is at most as large as the unit's rows are many.

    >>> from cloister.tables import Base, PrivateTable
    >>> visits = PrivateTable({"who": [1], "day": [3]}, {"day": Integer(0, 9)}, unit="who", max_rows=5)
    >>> base = Base(name="visits", table=visits)
    >>> last = Numbered(source=base, by=(("day", True, False),), number="n")
    >>> last.max_rows, last.column("n"), last.tells_apart(frozenset({"n"}))
    (5, Integer(low=1, high=5, nullable=False), True)
    """

    source: Relation
    number: str
    keys: tuple[str, ...] = ()
    by: tuple[tuple[str, bool, bool], ...] = ()
    kind: Numbering = "row_number"

    def __post_init__(self) -> None:
        object.__setattr__(self, "keys", tuple(self.keys))
        object.__setattr__(self, "by", tuple((name, bool(down), bool(first)) for name, down, first in self.by))
        check_one_of(self.kind, "kind", get_args(Numbering), why="it is not a numbering", instead='kind="row_number"')
        needs_unit(self.source, "A number of rows")
        for name in (*self.keys, *(name for name, _, _ in self.by)):
            known(self.source, name)
        for name, _, _ in self.by:
            domain = self.source.columns[name]
            listed = isinstance(domain, Category) and list(domain.options) != sorted(domain.options)
            if listed or isinstance(domain, Text | Identifier):
                why = (
                    "each engine has an order of its own for texts" if not listed else "its list has another order than its texts"
                )
                raise UnsupportedQuery(f"An order by {name!r} is not supported", why=why, instead="a column of days or numbers")
        unique([*self.source.columns, self.number])
        self._check_extent()

    @property
    def max_rows(self) -> int:
        """That of the source."""
        return self.source.max_rows or 1

    @cached_property
    def columns(self) -> Mapping[str, Domain]:
        """Those of the source, and the number."""
        return MappingProxyType({**self.source.columns, self.number: Integer(1, self.max_rows)})

    def tells_apart(self, names: frozenset[str]) -> bool:
        """Row numbers do, together with the keys."""
        numbers = self.kind == "row_number" and {self.number, *self.keys} <= names
        return self.max_rows == 1 or numbers or self.source.tells_apart(names & self.source.columns.keys())

    def numbered(self) -> Mapping[str, RowNumber]:
        """The number, unless equal rows share one: at most as large as the rows that are numbered here are many."""
        own = {self.number: RowNumber(frozenset(self.keys), 1, self.max_rows)} if self.kind == "row_number" else {}
        return {**self.source.numbered(), **own}

    def _variety(self, names: frozenset[str]) -> int:
        """Of the source's columns as there; with the number one for each row."""
        return self.source.variety(names) if names <= self.source.columns.keys() else self.max_rows

    def describe(self) -> Any:
        """The source, the order and the name."""
        return ["numbered", self.source.describe(), self.kind, list(self.keys), [list(each) for each in self.by], self.number]

    def build(self, sources: Mapping[Hashable, Any], dialect: str) -> Any:
        """A window over the unit's rows of one key."""
        rows = self.source.build(sources, dialect)
        names = list(self.source.columns)
        order: list[Any] = []
        for name, down, first in self.by:
            code = rows[f"c{names.index(name)}"]
            order += [code.notnull() if first else code.isnull(), code.desc() if down else code]
        keys = [rows[f"c{names.index(name)}"] for name in self.keys]
        function = {"row_number": ibis.row_number, "rank": ibis.rank, "dense_rank": ibis.dense_rank}[self.kind]
        if self.kind == "row_number":
            order.append(rows.place)
        window = ibis.window(group_by=[rows.unit, *keys], order_by=order)
        number = (function().over(window) + 1).cast("int64").cast(storage(self.columns[self.number]))
        return rows.mutate(**{f"c{len(names)}": number})


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

    def _variety(self, names: frozenset[str]) -> int:
        """Fewer rows hold no other tuples; of what is new one for each row."""
        return self.source.variety(names) if names <= self.source.columns.keys() else self.max_rows

    def describe(self) -> Any:
        """The source, the order and the names."""
        return ["followed", self.source.describe(), self.by, self.number, [[new, old] for new, old in self.previous], self.rows]

    def build(self, sources: Mapping[Hashable, Any], dialect: str) -> Any:
        """Windows over the unit's rows in their order."""
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
