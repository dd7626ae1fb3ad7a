"""The catalogue of one connection: an engine in memory that holds declarations and nothing else.

It has no files, no network, no extensions and no names of Python objects; its settings are locked; memory, rows and time are
limited. It is made when a client first asks for it, and its tables when a query first names them.
"""

import threading
from collections.abc import Sequence
from datetime import date, datetime, time
from typing import Any

import duckdb

from cloister.pgwire.catalogue.declared import Facts
from cloister.pgwire.catalogue.functions import constants, made, present
from cloister.pgwire.catalogue.relations import HOMES, create
from cloister.pgwire.catalogue.rewriting import Rewritten, rewritten
from cloister.pgwire.catalogue.rows import rows_of
from cloister.pgwire.failures import Refused
from cloister.pgwire.results import Column, Result, weight
from cloister.pgwire.types import FORMATS, TYPES
from cloister.tables.engines.connection import locked

_MOST_ROWS, _LARGEST, _PIECE = 100_000, 32_000_000, 200
_MEMORY = "64MB"
_OF_ENGINE = """
BOOLEAN:bool TINYINT:int2 SMALLINT:int2 INTEGER:int4 BIGINT:int8 HUGEINT:numeric UTINYINT:int2 USMALLINT:int4 UINTEGER:oid
UBIGINT:numeric FLOAT:float4 DOUBLE:float8 DATE:date TIMESTAMP:timestamp BLOB:bytea JSON:json
"""
_KINDS = dict(each.split(":") for each in _OF_ENGINE.split())


class Catalogue:
    """Answers catalogue queries from public declarations.

    >>> found = Catalogue(Facts(tables={}, user="ada", database="hub"), version="PostgreSQL 15.0")
    >>> found.run("SELECT current_user, 1 AS one").rows
    [('ada', 1)]
    """

    def __init__(self, facts: Facts, *, version: str) -> None:
        self._facts = facts
        self._constants = constants(user=facts.user, database=facts.database, version=version)
        self._made: set[str] = set()
        self._lock = threading.Lock()
        self._connection = locked(memory=_MEMORY, first=("CREATE SCHEMA pg", "CREATE SCHEMA info", "CREATE SCHEMA own"))

    def columns(self, text: str) -> tuple[Column, ...]:
        """The columns that a query will have."""
        with self._lock:
            return self._described(*self._prepared(text))

    def run(self, text: str, facts: Facts | None = None) -> Result:
        """The answer to a query."""
        with self._lock:
            if facts is not None and facts != self._facts:
                self._refresh(facts)
            sql, names = self._prepared(text)
            columns = self._described(sql, names)
            try:
                rows = self._fetched(sql)
            except duckdb.Error as error:
                raise _failed(error) from None
            return Result(columns=columns, rows=rows, tag=f"SELECT {len(rows)}")

    def interrupt(self) -> None:
        """Ends the query that runs."""
        self._connection.interrupt()

    def close(self) -> None:
        """Lets go of the engine, after the query that runs."""
        self.interrupt()
        with self._lock:
            self._connection.close()

    def _fetched(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows, a few at a time: a short query may make long ones."""
        ran = self._connection.execute(sql)
        rows: list[tuple[Any, ...]] = []
        size = 0
        while piece := ran.fetchmany(_PIECE):
            rows += [tuple(map(_value, row)) for row in piece]
            size += weight(rows[-len(piece) :])
            if len(rows) > _MOST_ROWS or size > _LARGEST:
                why = f"it has more than {_MOST_ROWS:,} rows, or {_LARGEST:,} bytes"
                raise Refused("The answer is not supported", why=why, instead="LIMIT 1000")
        return rows

    def _refresh(self, facts: Facts) -> None:
        self._facts = facts
        for name in [name for name in self._made if "." in name]:
            self._connection.execute(f"DELETE FROM {name}")  # noqa: S608
            self._fill(name)

    def _prepared(self, text: str) -> tuple[str, tuple[str, ...] | None]:
        settings = {name.lower(): value for name, value in self._facts.settings}
        now = present(settings.get("timezone", "UTC"))
        found: Rewritten = rewritten(text, self._constants | now, settings, self._facts.tables)
        for home, name in sorted(found.tables):
            if f"{home}.{name}" not in self._made:
                self._create(home, name)
                self._fill(f"{home}.{name}")
        for name in sorted(found.macros - self._made):
            self._connection.execute(made(name))
            self._made.add(name)
        return found.sql, found.names

    def _create(self, home: str, name: str) -> None:
        lines = {"names": "CREATE TABLE pg.names (name VARCHAR, oid UINTEGER)"}
        lines["formats"] = "CREATE TABLE pg.formats (oid UINTEGER, name VARCHAR, format VARCHAR)"
        self._connection.execute(lines[name] if name in lines else create(home, name))
        self._made.add(f"{home}.{name}")

    def _fill(self, full_name: str) -> None:
        home, _, name = full_name.partition(".")
        columns, rows = self._rows(home, name)
        if rows:
            marks = f"({', '.join('?' * len(columns))})"
            values = [value for row in rows for value in row]
            self._connection.execute(f"INSERT INTO {full_name} VALUES {', '.join([marks] * len(rows))}", values)  # noqa: S608

    def _rows(self, home: str, name: str) -> tuple[Sequence[str], list[tuple[Any, ...]]]:
        if name == "names":
            return ("name", "oid"), list(self._facts.classes())
        if name == "formats":
            kinds = [(each.oid, each.name, FORMATS.get(each.element or each.name, each.name)) for each in TYPES.values()]
            return ("oid", "name", "format"), [
                (oid, kind, format_ + ("[]" if kind.endswith("[]") and not format_.endswith("[]") else ""))
                for oid, kind, format_ in kinds
            ]
        columns = tuple(HOMES[home][name])
        return columns, [tuple(row.get(column) for column in columns) for row in rows_of(home, name, self._facts)]

    def _described(self, sql: str, names: tuple[str, ...] | None) -> tuple[Column, ...]:
        try:
            found = self._connection.execute(f"DESCRIBE {sql}").fetchall()
        except duckdb.Error as error:
            raise _failed(error) from None
        called = names if names is not None and len(names) == len(found) else [str(row[0]) for row in found]
        return tuple(Column(name=name, kind=_kind(str(row[1]))) for name, row in zip(called, found, strict=True))


def _kind(duck: str) -> str:
    if duck.endswith("[]"):
        inner = _kind(duck[:-2])
        return f"{inner}[]" if f"{inner}[]" in TYPES else "text[]"
    return "numeric" if duck.startswith("DECIMAL") else _KINDS.get(duck, "text")


def _value(value: Any) -> Any:
    plain = value is None or isinstance(value, bool | int | float | str | bytes | date | datetime | list)
    return value if plain and not isinstance(value, time) else str(value)


def _failed(error: duckdb.Error) -> Refused:
    """The engine's own words are left out: they speak of the rewritten query."""
    if isinstance(error, duckdb.InterruptException):
        return Refused("The statement was canceled", why="it was interrupted", instead="a quicker one", code="57014")
    code = "42703" if isinstance(error, duckdb.BinderException) else "42601"
    return Refused("The catalogue query is not supported", why="it names or joins what the catalogue does not have", code=code)
