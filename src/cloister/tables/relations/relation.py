"""The simplest relations: a table, its rows with more columns, with fewer, with other names, and fewer of its rows; and the
rows of several relations, one under another.

What they have in common, and what is proved of them, stands in `derived.py`; each docstring here has its step of the proof.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from cloister.errors import InvalidParameter, UnsupportedQuery, check_whole
from cloister.tables.declaring.columns import Domain
from cloister.tables.declaring.table import PrivateTable
from cloister.tables.engines.compiler import Layout, storage
from cloister.tables.engines.ibis_compilers import ibis
from cloister.tables.expression.expressions import SWAPPED, And, Between, Column, Compare, Expression, Literal
from cloister.tables.expression.unify import recoded, unified
from cloister.tables.relations.derived import (
    WIDEST,
    Fewer,
    Relation,
    RowNumber,
    SameRows,
    bounded,
    known,
    needs_unit,
    packed,
    unique,
)

if TYPE_CHECKING:
    from cloister.tables.expression.scalar import Scalar

__all__ = ["Base", "Capped", "Extended", "Filtered", "Projected", "Relation", "Stacked"]


@dataclass(frozen=True, kw_only=True)
class Base(Relation):
    """A private table after its cap.

    Rows of a unit: those whose place is at most the declared `max_rows`; `order.py` proves that places of one unit do not depend
    on another's rows. Every other relation stands on this one, so the cap acts before anything else.

    >>> from cloister.tables import Integer
    >>> visits = PrivateTable({"who": ["a", "b"], "cost": [3, 4]}, {"cost": Integer(0, 9)}, unit="who", max_rows=2)
    >>> base = Base(name="visits", table=visits)
    >>> base.bases(), base.unit, base.max_rows, list(base.columns)
    (('visits',), 'who', 2, ['cost'])
    """

    name: str
    table: PrivateTable

    def __post_init__(self) -> None:
        if not isinstance(self.table, PrivateTable) or not isinstance(self.name, str):
            raise InvalidParameter(
                "Base(…) is invalid", why="it needs a name and a private table", instead='Base(name="people", table=people)'
            )

    @property
    def columns(self) -> Mapping[str, Domain]:
        """As declared."""
        return self.table.columns

    @property
    def unit(self) -> str | None:
        """As declared."""
        return self.table.unit

    @property
    def max_rows(self) -> int | None:
        """As declared."""
        return self.table.max_rows

    @property
    def through(self) -> str | None:
        """As declared."""
        return self.table.through

    @property
    def unit_type(self) -> str:
        """Whole numbers stay numbers in preparation; every other name is a text."""
        return "int64" if self.unit is not None and self.table.source.schema[self.unit] == "integer" else "string"

    @property
    def span(self) -> int:
        """The cap."""
        return self.table.max_rows or 1

    @property
    def size(self) -> int | None:
        """As declared."""
        return self.table.size

    @property
    def parts(self) -> tuple[Relation, ...]:
        """None."""
        return ()

    def origins(self, name: str) -> frozenset[str]:
        """The declared column."""
        return frozenset({f"{self.name}.{name}"})

    def own_tables(self) -> dict[str, PrivateTable]:
        """The table."""
        return {self.name: self.table}

    def describe(self) -> Any:
        """`["table", name]`."""
        return ["table", self.name]

    def build(self, sources: Mapping[Hashable, Any], dialect: str) -> Any:
        """The prepared rows up to the cap."""
        rows = sources[self.name]
        if self.max_rows is None:
            return rows
        rows = rows.filter(rows.place <= self.max_rows)
        return rows.mutate(place=rows.place.cast("int64"))


@dataclass(frozen=True, kw_only=True)
class Extended(SameRows):
    """The same rows with computed columns.

    Rows of a unit: its rows, each with values that follow from the row alone. Neither number nor place changes.

    >>> from cloister.tables import Integer
    >>> from cloister.tables.expression.scalars import Add, Ref
    >>> people = Base(name="people", table=PrivateTable({"a": [1], "b": [2]}, {"a": Integer(0, 9), "b": Integer(0, 9)}))
    >>> Extended(source=people, scalars=(("both", Add(Ref("a"), Ref("b"))),)).column("both").high_code
    18
    """

    source: Relation
    scalars: tuple[tuple[str, Scalar], ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "scalars", tuple((name, scalar) for name, scalar in self.scalars))
        unique([*self.source.columns, *(name for name, _ in self.scalars)])
        self._check_extent()
        for _, scalar in self.scalars:
            for name in sorted(scalar.columns()):
                known(self.source, name)
        _ = self.columns

    @cached_property
    def columns(self) -> Mapping[str, Domain]:
        """Those of the source, then the computed ones."""
        computed = {name: scalar.domain(self.source.columns) for name, scalar in self.scalars}
        return MappingProxyType({**self.source.columns, **computed})

    def origins(self, name: str) -> frozenset[str]:
        """A column that is only named again keeps its origin; a computed one has none."""
        scalar = dict(self.scalars).get(name)
        if scalar is None:
            return self.source.origins(name)
        from cloister.tables.expression.scalar import Ref

        return self.source.origins(scalar.name) if isinstance(scalar, Ref) else frozenset({""})

    def tells_apart(self, names: frozenset[str]) -> bool:
        """As in the source."""
        return self.max_rows == 1 or self.source.tells_apart(names & self.source.columns.keys())

    def numbered(self) -> Mapping[str, RowNumber]:
        """As in the source."""
        return self.source.numbered()

    def _variety(self, names: frozenset[str]) -> int:
        """What is computed follows from the columns that it reads, so the tuples are no more than theirs."""
        scalars = dict(self.scalars)
        read = [scalars[name].columns() if name in scalars else {name} for name in names]
        return self.source.variety(frozenset().union(*read))

    def describe(self) -> Any:
        """The source and what is computed."""
        return ["extended", self.source.describe(), [[name, scalar.describe()] for name, scalar in self.scalars]]

    def build(self, sources: Mapping[Hashable, Any], dialect: str) -> Any:
        """Each scalar's codes in their storage type."""
        rows = self.source.build(sources, dialect)
        scope = self.source._scope(rows, dialect)
        first = len(self.source.columns)
        return rows.mutate(
            **{
                f"c{first + i}": scalar.code(scope).cast(storage(self.columns[name]))
                for i, (name, scalar) in enumerate(self.scalars)
            }
        )


@dataclass(frozen=True, kw_only=True)
class Filtered(Fewer):
    """The rows for which a condition is true.

    Rows of a unit: some of its rows, chosen by each row alone; so at most as many, with the places that they had. Where a column
    of whole numbers tells the unit's rows apart (`numbered`: their number in an order, say) and the condition bounds it, at most
    as many as there are numbers within the bounds, since each of these is that of one row at most. Where it does so together with
    other columns, at most that for each tuple that the unit's rows have in them. How large a number may be is known from the rows
    that were numbered, together with every condition since; never from how many rows are left, whose numbers may be the largest.

    >>> from cloister.tables import Column, Compare, Integer, Literal
    >>> people = Base(name="people", table=PrivateTable({"age": [39]}, {"age": Integer(0, 120)}))
    >>> Filtered(source=people, where=Compare(">", Column("age"), Literal(40))).describe()
    ['filtered', ['table', 'people'], ['compare', '>', ['column', 'age'], ['literal', 'number', '40']]]
    """

    source: Relation
    where: Expression

    def __post_init__(self) -> None:
        if not isinstance(self.where, Expression):
            raise InvalidParameter(
                f"where= of type {type(self.where).__name__} is invalid",
                why="it is not a condition",
                instead='where=Compare(">", Column("age"), Literal(40))',
            )
        self._check_extent()
        for name in sorted(self.where.columns()):
            known(self.source, name)
        Layout(self.source.columns, self.source.unit is not None).shape(self.where, "duckdb")

    @cached_property
    def max_rows(self) -> int | None:
        """That of the source, or as many as the numbers that pass. Worked out once: each bound below asks for it again."""
        most = self.source.max_rows
        if most is None:
            return None
        passing = (max(high - low + 1, 1) * self.source.variety(keys) for keys, low, high in self.numbered().values())
        return min([most, *passing])

    def numbered(self) -> Mapping[str, RowNumber]:
        """As in the source, within the bounds of the condition too."""
        found = self.source.numbered().items()
        return {name: RowNumber(keys, *_within(self.where, name, low, high)) for name, (keys, low, high) in found}

    def describe(self) -> Any:
        """The source and the condition."""
        return ["filtered", self.source.describe(), self.where.describe()]

    def build(self, sources: Mapping[Hashable, Any], dialect: str) -> Any:
        """A filter."""
        rows = self.source.build(sources, dialect)
        return rows.filter(self.where.condition(self.source._scope(rows, dialect)))


@dataclass(frozen=True, kw_only=True)
class Projected(SameRows):
    """The same rows with some of the columns, under names of their own: pairs of (new name, old name).

    Rows of a unit: its rows. Neither number nor place changes; equal rows stay different rows.

    >>> from cloister.tables import Integer
    >>> people = Base(name="people", table=PrivateTable({"age": [39]}, {"age": Integer(0, 120)}))
    >>> list(Projected(source=people, names=(("years", "age"), ("again", "age"))).columns)
    ['years', 'again']
    """

    source: Relation
    names: tuple[tuple[str, str], ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple((new, old) for new, old in self.names))
        self._check_extent()
        unique([new for new, _ in self.names])
        for _, old in self.names:
            known(self.source, old)

    @cached_property
    def columns(self) -> Mapping[str, Domain]:
        """The chosen ones."""
        return MappingProxyType({new: self.source.columns[old] for new, old in self.names})

    def origins(self, name: str) -> frozenset[str]:
        """Those of the old name."""
        return self.source.origins(dict(self.names)[name])

    def tells_apart(self, names: frozenset[str]) -> bool:
        """As the old names do."""
        return self.max_rows == 1 or self.source.tells_apart(frozenset(old for new, old in self.names if new in names))

    def numbered(self) -> Mapping[str, RowNumber]:
        """Those that are left with all their keys, under their new names."""
        new = {old: name for name, old in reversed(self.names)}
        found = {name: each for name, each in self.source.numbered().items() if {name, *each.keys} <= new.keys()}
        return {new[name]: each._replace(keys=frozenset(new[key] for key in each.keys)) for name, each in found.items()}

    def _variety(self, names: frozenset[str]) -> int:
        """That of the old names."""
        old = dict(self.names)
        return self.source.variety(frozenset(old[name] for name in names))

    def describe(self) -> Any:
        """The source and the names."""
        return ["projected", self.source.describe(), [[new, old] for new, old in self.names]]

    def build(self, sources: Mapping[Hashable, Any], dialect: str) -> Any:
        """A choice of columns."""
        rows = self.source.build(sources, dialect)
        places = {name: i for i, name in enumerate(self.source.columns)}
        codes = {f"c{i}": rows[f"c{places[old]}"] for i, (_, old) in enumerate(self.names)}
        return packed(rows, codes, self.unit is not None)


@dataclass(frozen=True, kw_only=True)
class Capped(Fewer):
    """At most so many rows of each unit: the first by place.

    Rows of a unit: its rows of the least places, numbered again. Places follow from the unit's rows alone, so which rows stay
    does too.

    >>> from cloister.tables import Integer
    >>> visits = PrivateTable({"who": ["a", "b"], "cost": [3, 4]}, {"cost": Integer(0, 9)}, unit="who", max_rows=9)
    >>> Capped(source=Base(name="visits", table=visits), rows=2).max_rows
    2
    """

    source: Relation
    rows: int

    def __post_init__(self) -> None:
        check_whole(self.rows, "rows", 1, WIDEST, why="it must be a whole number from 1 to 2^31-1", instead="rows=10")
        needs_unit(self.source, "A cap")
        self._check_extent()

    @property
    def max_rows(self) -> int | None:
        """The cap, or fewer where the source has no more."""
        return min(self.rows, self.source.max_rows or 1)

    @property
    def span(self) -> int:
        """As many as there are rows."""
        return self.max_rows or 1

    def describe(self) -> Any:
        """The source and the cap."""
        return ["capped", self.source.describe(), self.rows]

    def build(self, sources: Mapping[Hashable, Any], dialect: str) -> Any:
        """A window over the unit's rows by place."""
        rows = self.source.build(sources, dialect)
        number = ibis.row_number().over(ibis.window(group_by=rows.unit, order_by=rows.place)) + 1
        rows = rows.mutate(place=number.cast("int64"))
        return rows.filter(rows.place <= self.rows)


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


def _within(where: Expression, name: str, low: int, high: int) -> tuple[int, int]:
    """The bounds of a column of whole numbers in the rows that pass, as far as the condition's parts under AND say so plainly."""

    def of(side: Expression) -> int | None:
        value = side.value if isinstance(side, Literal) else None
        return int(value) if isinstance(value, int | Fraction) and value == int(value) else None

    for part in where.parts if isinstance(where, And) else (where,):
        if isinstance(part, Between) and part.column.name == name:
            least, most = of(part.low), of(part.high)
            low, high = low if least is None else max(low, least), high if most is None else min(high, most)
        if not isinstance(part, Compare):
            continue
        column, bound, op = part.left, of(part.right), part.op
        if not isinstance(column, Column):
            column, bound, op = part.right, of(part.left), SWAPPED[part.op]
        if not isinstance(column, Column) or column.name != name or bound is None:
            continue
        if op in ("<=", "<", "="):
            high = min(high, bound - (op == "<"))
        if op in (">=", ">", "="):
            low = max(low, bound + (op == ">"))
    return low, high
