"""`cloister audit sql`: a question in SQL, over the tables as they are and over the tables without one person.

Each run asks the question through the session's one door, with a new ledger in memory (else the stored answer would come back)
and noise from the secure generator; the rows are prepared once for each world. What an audit prints follows from thousands of
answers, so it is not private: it is for whoever holds the rows.
"""

from __future__ import annotations

import datetime
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cloister.cli.audited import Subject
from cloister.errors import InvalidParameter, UnsupportedQuery
from cloister.privacy import Guarantee, PureDP
from cloister.tables import PrivateTable, PublicTable
from cloister.tables.engines.connection import connected
from cloister.tables.expression.names import quotation
from cloister.tables.sourcing.sources import Source

if TYPE_CHECKING:
    from cloister.noise import Random
    from cloister.query import Session
    from cloister.session import Release

RUNS = 2_000
_PLACE = "cloister_place_of_the_row"
_NOTE = (
    "Coordinates are the numbers of the answer, row by row. An audit asks the question thousands of times and charges no budget,"
    " so what it prints is not private: it is for whoever holds the rows."
)

Tables = dict[str, "PrivateTable | PublicTable"]


class Without(Source):
    """The rows of another source, but those for which a condition in SQL holds."""

    def __init__(self, inner: Source, condition: str) -> None:
        self._inner, self._condition = inner, condition
        self.schema, self.is_encrypted = dict(inner.schema), inner.is_encrypted

    def describe(self) -> str:
        """What the other source is."""
        return self._inner.describe()

    def attach(self, connection: Any) -> str:
        """The other source's rows, filtered."""
        rows = f"SELECT *, row_number() OVER () - 1 AS {_PLACE} FROM {self._inner.attach(connection)}"  # noqa: S608
        return f"(SELECT * EXCLUDE ({_PLACE}) FROM ({rows}) AS placed WHERE NOT ({self._condition})) AS others"  # noqa: S608

    def detach(self, connection: Any) -> None:
        """Let go of the other source."""
        self._inner.detach(connection)

    @property
    def is_large(self) -> bool:
        """As the other source."""
        return self._inner.is_large

    @property
    def is_long(self) -> bool:
        """As the other source."""
        return self._inner.is_long


@contextmanager
def question(sql: str, *, spend: str, remove: str, tables: Path | None, dialect: str | None) -> Iterator[Subject]:
    """The question as something that can be audited, while its tables are open."""
    from cloister.query import Session

    found, budgets = _declared(tables)
    budget = {
        name: budgets.get(name, PureDP(spend)) for name in {_population(name, each) for name, each in found.items()} if name
    }
    with ExitStack() as stack:
        whole = stack.enter_context(Session(found, budget=budget))
        plan = whole.explain(sql, spend, dialect=dialect)
        if not all(part.shape.grid.declared for part in plan.parts):
            raise _differs("its keys are not declared, so its groups differ from answer to answer")
        table, place = _removed(sql, remove, whole, dialect)
        population = _population(table, whole.tables[table])
        assert population is not None
        fewer = stack.enter_context(Session(_without(found, table, place), budget=budget))
        yield Subject(
            title=sql,
            worlds=f"all rows against all but those of the person in row {place} of {table}",
            run=_Answers(sql, spend, budget, dialect),
            left=whole,
            right=fewer,
            claims=plan.costs[population],
            runs=RUNS,
            note=_NOTE,
        )


class _Answers:
    """Runs the question n times, each in a session and with a ledger of its own."""

    def __init__(self, sql: str, spend: str, budget: dict[str, Guarantee], dialect: str | None) -> None:
        self._sql, self._spend, self._budget, self._dialect = sql, spend, budget, dialect
        self._keys: list[tuple[Any, ...]] | None = None

    def __call__(self, session: Session, n: int, random: Random) -> Any:
        rows = np.array([self._once(session) for _ in range(n)])
        return rows[:, 0] if rows.shape[1] == 1 else rows

    def _once(self, session: Session) -> list[float]:
        from cloister.ledger import Ledger

        with Ledger() as book:
            for population, budget in self._budget.items():
                book.open(population, budget, who=session.who)
            return self._numbers(session.charging(book).sql(self._sql, self._spend, dialect=self._dialect))

    def _numbers(self, answer: Release) -> list[float]:
        measured = set(answer.statistics())
        places = [(place, name in measured) for place, name in enumerate(answer.column_names)]
        rows = [tuple(row) for row in answer.table]
        keys = [tuple(row[place] for place, noisy in places if not noisy) for row in rows]
        if self._keys is None:
            self._keys = keys
        if keys != self._keys or not measured or not rows:
            raise _differs("its rows differ from answer to answer, and runs are compared number by number")
        return [_number(row[place]) for row in rows for place, noisy in places if noisy]


def _differs(why: str) -> UnsupportedQuery:
    return UnsupportedQuery(
        "The query is not supported for an audit", why=why, instead="a question with declared keys, without HAVING and LIMIT"
    )


def _number(cell: Any) -> float:
    """A cell as a number: dates by their day, texts by a code of theirs.

    >>> _number(3), _number(datetime.date(1, 1, 2)), _number("a") == _number("b")
    (3.0, 2.0, False)
    """
    if cell is None:
        return float("nan")
    if isinstance(cell, datetime.date):
        return float(cell.toordinal())
    return float(zlib.crc32(cell.encode())) if isinstance(cell, str) else float(cell)


def _declared(path: Path | None) -> tuple[Tables, dict[str, Guarantee]]:
    from cloister.cli.declared import load
    from cloister.samples import tables as sample_tables

    return (dict(sample_tables()), {}) if path is None else load(path)


def _population(name: str, table: PrivateTable | PublicTable) -> str | None:
    return table.population or name if isinstance(table, PrivateTable) else None


def _removed(sql: str, remove: str, session: Session, dialect: str | None) -> tuple[str, int]:
    """The table and the row that --remove names: "0" where the question reads one private table, else "visits:0"."""
    from cloister.query.parse import parse

    read = {name for each in parse(sql, session.tables, dialect).questions for name in session.touched(each)}
    private = sorted(name for name in read if isinstance(session.tables[name], PrivateTable))
    named, colon, place = remove.rpartition(":")
    if not place.isdecimal() or len(place) > 12:
        raise InvalidParameter(
            f"--remove {remove} is invalid", why="it is the number of a row, the first being 0", instead="--remove 0"
        )
    if not colon and len(private) > 1:
        raise InvalidParameter(
            f"--remove {remove} is invalid",
            why=f"the question reads the private tables {', '.join(private)}, and a row number belongs to one",
            instead=f"--remove {private[0]}:{place}",
        )
    if colon and named not in private:
        raise InvalidParameter(
            f"--remove {remove} is invalid",
            why=f"the question reads no private table {named!r}",
            instead=f"--remove {private[0]}:{place}",
        )
    return named or private[0], int(place)


def _without(tables: Tables, table: str, place: int) -> Tables:
    """The tables without the person of that row: all rows of that unit, in each table of the population."""
    declared = tables[table]
    assert isinstance(declared, PrivateTable)
    mine = _population(table, declared)
    kin = {name: each for name, each in tables.items() if isinstance(each, PrivateTable) and _population(name, each) == mine}
    for name, each in kin.items():
        if each.source.engine != "duckdb" or each.through is not None:
            why = (
                "its rows are in a database that the audit would have to copy"
                if each.through is None
                else "its rows belong to persons through another table"
            )
            raise InvalidParameter(
                f"Removing a person from {name!r} is invalid", why=why, instead="a table of a CSV or Parquet file with unit="
            )
    unit = _unit_of(declared, table, place)
    changed: Tables = dict(tables)
    if declared.unit is None:
        changed[table] = _with(declared, Without(declared.source, f"{_PLACE} = {place}"))
        return changed
    for name, each in kin.items():
        if each.unit is not None:
            changed[name] = _with(
                each, Without(each.source, f"coalesce(CAST({quotation(each.unit)} AS VARCHAR) = {unit}, false)")
            )
    return changed


def _unit_of(table: PrivateTable, name: str, place: int) -> str:
    """The text of whose row it is, as SQL; that the row is there and names somebody is checked on the way."""
    with connected() as connection:
        rows = table.source.attach(connection)
        what = "true" if table.unit is None else f"CAST({quotation(table.unit)} AS VARCHAR)"
        found = connection.execute(f"SELECT {what} FROM {rows} LIMIT 1 OFFSET {place}").fetchall()  # noqa: S608
        table.source.detach(connection)
    if not found:
        raise InvalidParameter(f"--remove {place} is invalid", why=f"{name} has no such row", instead="--remove 0")
    if found[0][0] is None:
        raise InvalidParameter(
            f"--remove {place} is invalid", why=f"that row of {name} names nobody: its unit is missing", instead="another row"
        )
    return "'" + str(found[0][0]).replace("'", "''") + "'"


def _with(table: PrivateTable, source: Source) -> PrivateTable:
    return PrivateTable.declared(source, table.columns, like=table, version=None, through=None)
