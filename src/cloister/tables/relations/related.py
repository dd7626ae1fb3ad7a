"""Where relations are answered: the prepared tables that they stand on, brought together in one engine.

Tables of PostgreSQL are joined in their database and those of Spark in their session. DuckDB's are in a database each, which can
open nothing else; the rows of the others are copied into the one that answers, up to their caps, once, and go when either table
is closed. Tables of different engines are not joined: rows would have to leave the place where their owner keeps them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

import numpy as np

from cloister.errors import InvalidParameter, UnknownTable, UnsupportedQuery
from cloister.tables.declaring.columns import Domain
from cloister.tables.declaring.table import PublicTable
from cloister.tables.engines.compiler import CompiledQuery, Layout, check_aggregation, preceded
from cloister.tables.engines.engine import Answering, Prepared, Site, Turn
from cloister.tables.engines.ibis_compilers import ibis, sql_of
from cloister.tables.engines.request import Aggregation, Groups
from cloister.tables.engines.workspace import Room
from cloister.tables.expression.expressions import Expression
from cloister.tables.expression.names import quoted
from cloister.tables.relations.public import PublicJoined
from cloister.tables.relations.relation import Base, Capped, Relation

Result = TypeVar("Result")
_Sites: TypeAlias = Mapping[Hashable, Site]
_ROWS = "cloister_related_rows"


class _RelatedLayout(Layout):
    """The columns of a relation, and the Ibis table of its rows, which is built once for all that is asked of it."""

    _of: tuple[Relation, Mapping[Hashable, Any], str]

    def __init__(self, relation: Relation, sources: Mapping[Hashable, Any], dialect: str) -> None:
        super().__init__(relation.columns, relation.unit is not None)
        object.__setattr__(self, "_of", (relation, sources, dialect))  # a layout is frozen

    @cached_property
    def _built(self) -> tuple[Any, str]:
        relation, sources, dialect = self._of
        rows = relation.build(sources, dialect)
        return ibis.table(rows.schema(), name=_ROWS), sql_of(rows, dialect)

    def rows(self, dialect: str) -> Any:
        """A name for the relation, which `written` puts before each question."""
        return self._built[0]

    def written(self, expression: Any, dialect: str) -> str:
        """With the relation before it."""
        return preceded(sql_of(expression, dialect), [(_ROWS, self._built[1])])


class Related(Answering):
    """A relation whose tables are prepared: exact answers, as private as the rows.

    Every cap stands inside the relation. A question with a smaller one of its own is asked of the relation capped again.
    """

    def __init__(self, relation: Relation, home: Prepared, sites: _Sites, sources: Mapping[Hashable, Any]) -> None:
        self.declaration = relation
        self.home = home
        self.workspace = home.workspace
        self.materialised = home.materialised and not any(site.query for site in sites.values())
        self.declared = _Capless(relation)
        self.layout = _RelatedLayout(relation, sources, home.dialect)
        self._sites = sites
        self._sources = sources
        self._before = [(site.name, site.query) for site in sites.values() if site.query is not None]
        self._key = (relation.digest, tuple(sorted((repr(key), site) for key, site in sites.items())))

    @property
    def dialect(self) -> str:
        """That of the engine."""
        return self.home.dialect

    def aggregate(self, aggregation: Aggregation, plan: CompiledQuery | None = None) -> Groups:
        """Exact aggregates of the groups that are present."""
        check_aggregation(aggregation, self.declaration)
        return Answering.aggregate(self._capped(aggregation.max_rows), replace(aggregation, max_rows=None), plan)

    def plan(self, aggregation: Aggregation) -> CompiledQuery:
        """The compiled SQL."""
        return Answering.plan(self._capped(aggregation.max_rows), replace(aggregation, max_rows=None))

    def rows(
        self, columns: Sequence[str], *, where: Expression | None = None, max_rows: int | None = None, unit: bool = False
    ) -> dict[str, np.ndarray[Any, Any]]:
        """The rows, in no promised order; refused with `unit=True` where a person may have several and none says whose."""
        if unit and self.declaration.unit is None and self.declaration.max_rows is not None:
            raise UnsupportedQuery(
                "The rows are not supported",
                why="a person may have several after the join, and no column says whose a row is",
                instead='cl.PrivateTable(…, unit="person", max_rows=1)',
            )
        return Answering.rows(self._capped(max_rows), columns, where=where, unit=unit)

    def cancel(self, thread: int | None = None) -> None:
        """Stops what the engine that answers is running now, or only what that thread asked for."""
        self.home.cancel(thread)

    def _capped(self, cap: int | None) -> Related:
        most = self.declaration.max_rows
        if cap is None or cap == most:
            return self
        if most is None or self.declaration.unit is None or cap > most:
            raise InvalidParameter(
                f"max_rows={cap} is invalid", why=f"the relation has {most or 1} rows of a unit", instead="max_rows=None"
            )
        return Related(Capped(source=self.declaration, rows=cap), self.home, self._sites, self._sources)

    def _fetch(self, plan: CompiledQuery) -> list[Any]:
        return self.home._fetch(replace(plan, sql=preceded(plan.sql, self._before)))

    def _stream(self, plan: CompiledQuery) -> Generator[list[Any]]:
        return self.home._stream(replace(plan, sql=preceded(plan.sql, self._before)))

    def turn(self) -> Turn | None:
        """That of the engine that answers."""
        return self.home.turn()

    def each(self, aggregation: Aggregation, plan: CompiledQuery | None, take: Callable[[Groups, Room], None]) -> None:
        """The groups that are present, piece by piece."""
        check_aggregation(aggregation, self.declaration)
        Answering.each(self._capped(aggregation.max_rows), replace(aggregation, max_rows=None), plan, take)

    def _planned(self, shape: Hashable, build: Callable[[], CompiledQuery]) -> CompiledQuery:
        return self.home._planned((self._key, shape), build)

    def _reading(self, work: Callable[[], Result]) -> Result:
        return self.home._reading(work)


class _Capless:
    """A relation as it is asked: every row of it counts."""

    def __init__(self, relation: Relation) -> None:
        self.columns: Mapping[str, Domain] = relation.columns
        self.unit: str | None = relation.unit
        self.max_rows: int | None = None


def relate(relation: Relation, prepared: Mapping[str, Prepared], public: Mapping[str, PublicTable] | None = None) -> Answering:
    """A relation over prepared tables, ready to be asked.

    >>> from cloister.tables import Aggregation, Integer, PrivateTable, PublicTable, prepare
    >>> columns = {"cost": Integer(0, 100)}
    >>> visits = PrivateTable({"who": ["a", "a", "b"], "cost": [3, 4, 5]}, columns, unit="who", max_rows=2)
    >>> base = Base(name="visits", table=visits)
    >>> from cloister.tables.relations.perunit import PerUnit, UnitAggregate
    >>> totals = PerUnit(source=base, aggregates=(UnitAggregate(name="total", kind="sum", column="cost"),))
    >>> with prepare(visits) as rows:
    ...     groups = relate(totals, {"visits": rows}).aggregate(Aggregation(None, keys=("total",)))
    >>> sorted(groups.keys[0].tolist())
    [5, 7]
    """
    if relation.through is not None:
        table, _, name = relation.through.rpartition(".")
        raise UnsupportedQuery(
            f"{', '.join(map(repr, relation.bases()))} is not supported alone",
            why=f"its rows belong to values of {relation.through}, and whose these are is written there",
            instead=f"JOIN {quoted(table)} ON {quoted(relation.unit or '')} = {quoted(table)}.{quoted(name)}",
        )
    tables = {name: _prepared(name, relation, prepared) for name in relation.bases()}
    for name in relation.publics():
        if public is not None and name not in public:
            raise UnknownTable(f"The public table {name!r} is not known", why="it was not given", instead=f'{{"{name}": …}}')
    home_name = max(tables, key=lambda name: _weight(tables[name]))
    home = tables[home_name]
    own = home.related(relation, tables, public)
    if own is not None:
        return own
    sites: dict[Hashable, Site] = {}
    sources: dict[Hashable, Any] = {}
    for each in relation.walk():
        if isinstance(each, Base) and each.name not in sites:
            site = home.beside(tables[each.name])
            if site is None:
                raise _apart(home_name, home, each.name, tables[each.name])
            sites[each.name] = site
            unit = {} if each.unit is None else {"unit": each.unit_type}
            sources[each.name] = _table({**tables[each.name].layout.schema(), **unit}, site)
        elif isinstance(each, PublicJoined) and ("public", each.codes.digest) not in sites:
            key = ("public", each.codes.digest)
            sites[key] = home.beside_public(each.codes)
            sources[key] = _table(each.codes.schema(), sites[key])
    return Related(relation, home, sites, sources)


def _prepared(name: str, relation: Relation, prepared: Mapping[str, Prepared]) -> Prepared:
    found = prepared.get(name)
    if found is None or found.declaration is not relation.tables()[name]:
        raise UnknownTable(
            f"The table {name!r} is not known",
            why="it is not prepared, or not as the relation declares it",
            instead=f'{{"{name}": prepare(table)}}',
        )
    return found


def _weight(prepared: Prepared) -> tuple[bool, bool]:
    """Where the other tables' rows should go: to the one whose files are encrypted, else to the one that is kept in a file."""
    source = prepared.declaration.source
    return source.is_encrypted, source.is_large


def _table(schema: Mapping[str, str], site: Site) -> Any:
    return ibis.table(dict(schema), name=site.name, database=site.schema)


def _apart(one: str, home: Prepared, other: str, guest: Prepared) -> UnsupportedQuery:
    same = home.dialect == guest.dialect
    where = "databases, roles or sessions" if same else "engines"
    return UnsupportedQuery(
        f"A join of {one!r} and {other!r} is not supported",
        why=f"they are held by different {where}, and rows do not leave theirs",
        instead=f"both tables from one place: cl.PrivateTable(…) of {other!r} from the source's engine of {one!r}",
    )
