"""Tables of several owners who trust one hub, asked as one: exact sums of each, one sum of them, and noise once; and beside
them the rows of sites, whose owners trust nobody.

Guarantee: a question that costs g promises g to every person of each owner's population, and is charged g in full to each of
these populations and to the pool's own. *Proof.* Neighbours are two sets of rows of one population that differ in one person.
All maps of a request are linear and all tables are declared alike, so such a person moves the sum of the parts as far as the
integers of one part; the noise is that of one table's question, drawn once. ∎ A person who is in several of the populations has
the sum of what these were charged, as anywhere where populations share people: so nobody has to say who is in several.

One of the tables may be joint: its rows are at sites, which trust no hub, and those of the others are here. *Guarantee*: the
same; towards the hub, for people of the sites, that of the joint table. *Proof.* The released sum is the sites' total, with the
noise that they made, and the exact sum of the others, which is independent of that noise. A person of another table moves it as
far as one integer of one part; the noise that neither an analyst nor t colluding sites know is that of `Roster.honest` shares,
which is what was asked for, scaled for as many parts as a person of the sites may be in. The hub sees the sites' total and the
rows that it has anyway. ∎ So the noise is drawn once, at the sites, with their surplus.

Apart, k owners would each draw noise, and the sum of their answers has k times the variance. What needs rows, and whatever is not
linear, is refused by name, as with sites (`joint.py`): owners put sums together here, and nobody takes another's rows out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from cloister.errors import InvalidDeclaration, UnsupportedQuery
from cloister.noise import Random
from cloister.noise.mechanism import added
from cloister.session.state.view import rebuilt
from cloister.tables import Abilities, Answering, Base, Prepared, PrivateTable, PublicTable, Relation, Workspace, prepare, relate
from cloister.tables.engines.engine import Compiled
from cloister.tables.engines.noised import Noised, NoisedRequest, exact_integers
from cloister.tables.sourcing.sources import Source
from cloister.together.following import heard
from cloister.together.joint import AtSites, JointSource, schema_of


class PooledTable(PrivateTable):
    """Private tables of several owners, declared alike, as one table: each owner's population is charged beside its own.

    >>> from cloister import PureDP, Session
    >>> from cloister.tables import Integer
    >>> columns = {"age": Integer(17, 90)}
    >>> north, south = (PrivateTable({"age": ages}, columns=columns) for ages in ([39, 51], [22, 80, 64]))
    >>> both = PooledTable({"north": north, "south": south})
    >>> with Session({"north": north, "south": south, "both": both}, budget=PureDP(100)) as session:
    ...     session.sql("SELECT COUNT(*) AS n FROM both", spend=50).to_pydict(), session.spent_by["north"]
    ({'n': [5]}, PureDP(epsilon='50'))
    """

    __slots__ = ()

    def __init__(self, tables: Mapping[str, PrivateTable], *, population: str | None = None, size: int | None = None) -> None:
        source = PooledSource(tables)
        first = next(iter(source.tables.values()))
        super().__init__(
            source, first.columns, unit=first.unit, max_rows=first.max_rows, population=population, size=size, row_is_person=True
        )


class PooledSource(Source):
    """The tables of several owners."""

    engine: ClassVar[str] = "pooled"

    def __init__(self, tables: Mapping[str, PrivateTable]) -> None:
        self.tables = dict(tables)
        check_alike(self.tables)
        first = next(iter(self.tables.values()))
        self.schema = schema_of(first.columns, first.unit)
        self.made_of = {table.population or name: table for name, table in self.tables.items()}
        if len(self.made_of) < len(self.tables):
            raise _unlike("two of them are of one population", "tables of different populations")

    def describe(self) -> str:
        """What it is."""
        return f"rows of {len(self.tables)} owners"

    def make_engine(self) -> PooledEngine:
        """The engine that adds them up."""
        return PooledEngine(self)


class PooledEngine:
    """Makes the rows of every owner ready, each for itself."""

    name = "pooled"

    def __init__(self, source: PooledSource) -> None:
        self.source = source
        linear = Abilities(additive_noise_only=True, declared_keys_only=True, rows=False)
        self.abilities = Abilities.of_all([linear, *(table.source.abilities for table in source.tables.values())])

    def prepare(self, table: PrivateTable, *, workspace: Workspace, secret: str | None = None) -> Prepared:
        """The parts. Of a table that is declared with fewer columns, each part has these."""
        for name, each in self.source.tables.items():  # what an owner did not declare is not read, whoever declares the whole
            for column, domain in table.columns.items():
                if each.columns.get(column) != domain:
                    raise _unlike(f"{name!r} declares the column {column!r} differently", "one declaration")
            if (each.unit, each.max_rows) != (table.unit, table.max_rows):
                raise _unlike(f"{name!r} says differently whose a row is", "one unit and row cap")
        parts = {name: PrivateTable.declared(each.source, table.columns, like=each) for name, each in self.source.tables.items()}
        ready = {  # noise that sites drew before is never added to rows of the hub that may be others now
            name: prepare(each, secret=None if isinstance(each.source, JointSource) else secret, workspace=workspace)
            for name, each in parts.items()
        }
        return PooledPrepared(table, ready, workspace)


class _Pooled(AtSites):
    """What is asked of each part and added up."""

    pooled: Mapping[str, Any]
    """The parts by name, each an `Answering`."""

    def compiled(self, request: NoisedRequest) -> Compiled:
        """Each part's plans."""
        if request.cells is None:
            raise UnsupportedQuery(
                "A request that is not linear is not supported",
                why="sums of several owners are added up",
                instead="declared keys",
            )
        return tuple([each.compiled(_called(name, each, request)) for name, each in self.pooled.items()])

    def noised(self, request: NoisedRequest, compiled: Compiled, random: Random) -> Noised:
        """The sum of the parts' exact integers, with noise once: of the sites, if one part is theirs."""
        exact: dict[str, Any] = {}
        theirs: Noised | None = None
        for (name, rows), plans in zip(self.pooled.items(), compiled, strict=True):
            if isinstance(rows, AtSites):
                theirs = rows.noised(_called(name, rows, request), plans, random)
            else:
                groups = [rows.aggregate(asked, plan) for asked, plan in zip(request.asked, plans, strict=True)]
                for each, integers in exact_integers(request, groups).items():
                    exact[each] = integers if each not in exact else added(exact[each], integers)
        for part in self.pooled:  # together: nobody may know how long each owner's rows took
            heard(part)
        if theirs is not None:
            return replace(theirs, values={name: added(exact[name], values) for name, values in theirs.values.items()})
        laws = {each.name: each.law for each in request.integers}
        return Noised({name: np.asarray(law.release(exact[name], random=random)) for name, law in laws.items()}, laws)

    def cancel(self, thread: int | None = None) -> None:
        """In each part."""
        for each in self.pooled.values():
            each.cancel(thread)


class PooledPrepared(_Pooled, Prepared):
    """The prepared rows of all owners."""

    dialect: ClassVar[str] = "duckdb"

    def __init__(self, table: PrivateTable, parts: Mapping[str, Prepared], workspace: Workspace) -> None:
        Prepared.__init__(self, table, materialised=all(each.materialised for each in parts.values()), workspace=workspace)
        self.pooled = parts

    def related(
        self, relation: Relation, prepared: Mapping[str, Prepared], public: Mapping[str, PublicTable] | None
    ) -> Answering:
        """The relation in each part, public tables joined there, as long as it is about this table alone."""
        if len(prepared) > 1:
            raise UnsupportedQuery(
                f"A join of {' and '.join(prepared)} is not supported",
                why="the rows are of several owners, and each owner's are computed by themselves",
                instead="a query about one table, joined with public ones",
            )
        return _PooledRelated(self, relation, public)

    def _close(self) -> None:
        for each in self.pooled.values():
            each.close()


class _PooledRelated(_Pooled):
    """A relation over the rows of several owners."""

    dialect = "duckdb"

    def __init__(self, home: PooledPrepared, relation: Relation, public: Mapping[str, PublicTable] | None) -> None:
        self.declared, self.workspace = relation, home.workspace
        self.pooled = {part: _relate(relation, part, each, public) for part, each in home.pooled.items()}


def _called(name: str, rows: Answering, request: NoisedRequest) -> NoisedRequest:
    """The request as sites are asked it: about their own table, by the name that it has for them."""
    if not isinstance(rows, AtSites):
        return request
    return replace(request, table=rows.declared if isinstance(rows.declared, Relation) else name)


def _relate(relation: Relation, name: str, rows: Prepared, public: Mapping[str, PublicTable] | None) -> Answering:
    base = Base(name=name, table=rows.declaration)
    return relate(rebuilt(relation, lambda _: base), {name: rows}, public)


def check_alike(tables: Mapping[str, PrivateTable]) -> None:
    """Refuse tables that are not declared alike: a column with other bounds would move the sum further than the others do.

    >>> from cloister.tables import Integer
    >>> check_alike({"a": PrivateTable({"age": [39]}, columns={"age": Integer(17, 90)})})
    Traceback (most recent call last):
    cloister.errors.InvalidDeclaration: The tables can't be asked together: there are fewer than two.
      Instead: tables of two owners, or more
    """
    if len(tables) < 2:
        raise _unlike("there are fewer than two", "tables of two owners, or more")
    if sum(isinstance(table.source, JointSource) for table in tables.values()) > 1:
        raise _unlike("the rows of two of them are at sites", "a roster with all of their sites")
    name, first = next(iter(tables.items()))
    for other, table in tables.items():
        for column in sorted({*first.columns, *table.columns}):
            if first.columns.get(column) != table.columns.get(column):
                raise _unlike(f"{name!r} and {other!r} declare the column {column!r} differently", "one declaration")
        if (table.unit, table.max_rows, table.through, table.during) != (first.unit, first.max_rows, None, None):
            raise _unlike(f"{name!r} and {other!r} say differently whose a row is", "one unit and row cap, and no windows")
        if not table.source.abilities.rows and not isinstance(table.source, JointSource):
            raise _unlike(f"the rows of {other!r} are sealed, or of several owners", "tables with rows of their own")


def _unlike(why: str, instead: str) -> InvalidDeclaration:
    return InvalidDeclaration("The tables can't be asked together", why=why, instead=instead)
