"""PostgreSQL: the prepared rows stand in a table of ours in the same database, or, where we may not write, behind a query.

The table lives in the schema `cloister_prepared` under a random name, belongs to the role that we connect as, and is dropped at
close. Should the process die first, the next one to prepare in that database drops it: a living owner holds an advisory lock on
its name. Where nothing may be written, `materialised` is False: the same SELECT stands before every question, window included,
and is slower.

PostgreSQL has no cast that gives NULL instead of failing, so each cast of a text stands behind a pattern and a range.
"""

# ruff: noqa: S608 - this file writes SQL: names are quoted, everything else is public

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar

from cloister.errors import EngineError, InvalidDeclaration, MissingDependency
from cloister.tables.compiler import RELATION, Plan
from cloister.tables.duckdb import report_of
from cloister.tables.engine import PreparationReport, Prepared, _token, fresh_secret
from cloister.tables.guard import guarded, tried
from cloister.tables.preparation import Spelling, over_cap_sql, prepared_sql, report_sql
from cloister.tables.reading import ISO_DATE, LONGEST_NUMBER, NUMBER, PLAIN_INTEGER, WHOLE
from cloister.tables.sources import Source, check_names
from cloister.tables.table import PrivateTable

__all__ = ["PostgresEngine", "PostgresPrepared", "PostgresSource", "PostgresSpelling"]

SCHEMA = "cloister_prepared"

_TYPES = {"int16": "smallint", "int32": "integer", "int64": "bigint"}
_KINDS = {
    **dict.fromkeys((20, 21, 23), "integer"),
    **dict.fromkeys((700, 701), "float"),
    **dict.fromkeys((18, 19, 25, 1042, 1043, 2950), "text"),
    1700: "decimal",
    16: "boolean",
    1082: "date",
    1114: "timestamp",
    1184: "timestamptz",
}
_PART = r'(?:"(?:[^"]|"")+"|[^".]+)'


class PostgresSource(Source):
    """A table, or the query behind an Ibis table, in a PostgreSQL database."""

    engine: ClassVar[str] = "postgres"

    def __init__(self, conninfo: str, relation: str) -> None:
        self.conninfo = conninfo
        self.relation = relation
        fields, enums = guarded("The PostgreSQL table could not be opened", self._look)
        check_names([name for name, _ in fields])
        self.schema = {name: "text" if code in enums else _KINDS.get(code, "other") for name, code in fields}

    def _look(self) -> tuple[list[tuple[str, int]], set[int]]:
        with connect(self.conninfo) as connection:
            description = connection.execute(f"SELECT * FROM {self.relation} LIMIT 0").description
            enums = connection.execute("SELECT oid FROM pg_catalog.pg_type WHERE typtype = 'e'").fetchall()
        return [(column.name, column.type_code) for column in description], {oid for (oid,) in enums}

    @classmethod
    def from_url(cls, url: str) -> PostgresSource:
        """From "postgresql://user@host:port/database::schema.table"."""
        conninfo, separator, name = url.rpartition("::")
        if not separator or not re.fullmatch(rf"{_PART}(?:\.{_PART})?", name):
            raise InvalidDeclaration(
                "The PostgreSQL address was refused",
                why="it names no table",
                instead='"postgresql://user@host:5432/database::schema.table"',
            )
        parts = [part[1:-1].replace('""', '"') if part.startswith('"') else part for part in re.findall(_PART, name)]
        return cls(conninfo, ".".join(identifier(part) for part in parts))

    @classmethod
    def from_ibis(cls, table: Any, backend: Any) -> PostgresSource:
        """From an Ibis table of a postgres backend; we connect anew, as the same role."""
        import ibis
        from psycopg.conninfo import make_conninfo

        info = backend.con.info
        conninfo = make_conninfo(info.dsn, **({"password": info.password} if info.password else {}))
        return cls(conninfo, f"({ibis.to_sql(table, dialect='postgres', pretty=False)}) AS cloister_source")

    def describe(self) -> str:
        """`postgresql`."""
        return "postgresql"

    def identity(self) -> str:
        """Host, port, database and table: not the role, which does not change whose rows they are."""
        from psycopg.conninfo import conninfo_to_dict

        place = conninfo_to_dict(self.conninfo)
        return "postgresql:" + ":".join(str(place.get(part, "")) for part in ("host", "port", "dbname")) + f":{self.relation}"


class PostgresSpelling(Spelling):
    """PostgreSQL's way of writing: every cast of a text guarded, every comparison of texts by bytes."""

    fence = " OFFSET 0"  # keeps the planner from writing an inner expression out many times

    def name(self, identifier_: str) -> str:
        """Quoted by psycopg."""
        return identifier(identifier_)

    def double(self, x: str) -> str:
        """A cast."""
        return f"CAST({x} AS double precision)"

    def integer(self, x: str, dtype: str) -> str:
        """A cast."""
        return f"CAST({x} AS {_TYPES[dtype]})"

    def text(self, x: str, kind: str) -> str:
        """A cast, compared by bytes."""
        return f'CAST({x} AS text) COLLATE "C"'

    def finite(self, x: str) -> str:
        """NaN sorts above infinity here."""
        infinity = "CAST('Infinity' AS double precision)"
        return f"CASE WHEN {x} < {infinity} AND {x} > -{infinity} THEN CAST({x} AS double precision) END"

    def settled(self, x: str) -> str:
        """Underflow is an error here; below 1e-200 and 0 lie in the same step, since no step is below 1e-100."""
        return f"CASE WHEN abs({x}) < {self.constant(1e-200)} THEN {self.constant(0.0)} ELSE {x} END"

    def decimal(self, x: str) -> str:
        """A numeric as a double, infinite beyond 1e300, NULL for NaN and infinities."""
        return f"CASE WHEN CAST({x} AS text) NOT IN ('NaN', 'Infinity', '-Infinity') THEN {self._of_numeric(x)} END"

    def number(self, t: str) -> str:
        """Through numeric, once the pattern holds and the exponent is short enough for one."""
        digits = f"ltrim(coalesce(substring({t} from '[eE][+-]?([0-9]+)'), ''), '0')"
        nothing = f"{t} !~ '^[^eE]*[1-9]'"
        huge = (
            f"CASE WHEN {nothing} OR {t} ~ '[eE]-' THEN {self.constant(0.0)} "
            f"WHEN {self._trimmed(t)} LIKE '-%' THEN CAST('-Infinity' AS double precision) "
            f"ELSE CAST('Infinity' AS double precision) END"
        )
        return (
            f"CASE WHEN length({t}) > {LONGEST_NUMBER} OR {t} !~ '^({NUMBER})$' THEN NULL "
            f"WHEN length({digits}) > 4 THEN {huge} ELSE {self._of_numeric(f'CAST({self._trimmed(t)} AS numeric)')} END"
        )

    def whole(self, t: str) -> str:
        """Through numeric."""
        n = f"CAST({self._trimmed(t)} AS numeric)"
        limit = 2**62
        return (
            f"CASE WHEN length({t}) > {LONGEST_NUMBER} OR {t} !~ '^({WHOLE})$' THEN NULL "
            f"WHEN {n} > {limit} THEN {limit} WHEN {n} < -{limit} THEN -{limit} ELSE CAST({n} AS bigint) END"
        )

    def named_integer(self, t: str) -> str:
        """A cast behind the pattern."""
        return f"CASE WHEN {t} ~ '^({PLAIN_INTEGER})$' THEN CAST({t} AS bigint) END"

    def days(self, x: str, kind: str) -> str:
        """Whole days; a text is taken apart and its day checked against the calendar before a date is made of it."""
        if kind == "text":
            t = f"CAST({x} AS text)"
            year, month, day = (
                f"CAST(substr(ltrim({t}, ' '), {start}, {length}) AS integer)" for start, length in ((1, 4), (6, 2), (9, 2))
            )
            leap = f"({year} % 4 = 0 AND {year} % 100 <> 0) OR {year} % 400 = 0"
            february = f"CASE WHEN {leap} THEN 29 ELSE 28 END"
            last = f"CASE WHEN {month} = 2 THEN {february} WHEN {month} IN (4, 6, 9, 11) THEN 30 ELSE 31 END"
            return (
                f"CASE WHEN {t} ~ '^({ISO_DATE})$' THEN CASE "
                f"WHEN {year} >= 1 AND {month} BETWEEN 1 AND 12 AND {day} BETWEEN 1 AND {last} "
                f"THEN CAST(make_date({year}, {month}, {day}) - DATE '1970-01-01' AS bigint) END END"
            )
        moment = f"({x} AT TIME ZONE 'UTC')" if kind == "timestamptz" else x
        return f"CASE WHEN isfinite({x}) THEN CAST(CAST({moment} AS date) - DATE '1970-01-01' AS bigint) END"

    def spelled(self, t: str) -> str:
        """Lower case, trimmed."""
        return f"lower({self._trimmed(t)})"

    def plain(self, t: str) -> str:
        """PostgreSQL's own text holds no NUL."""
        return t

    def position(self, t: str, options: tuple[str, ...]) -> str:
        """A CASE for a few, a lookup in a JSON object for many."""
        if len(options) <= 16:
            branches = " ".join(f"WHEN {self.literal(option)} THEN {position}" for position, option in enumerate(options))
            return f"CASE {t} {branches} END"
        lookup = self.literal(json.dumps({option: position for position, option in enumerate(options)}, ensure_ascii=False))
        return f"CAST(CAST({lookup} AS jsonb) ->> ({t}) AS integer)"

    def digest(self, t: str) -> str:
        """Through a string of 60 bits."""
        return f"CAST(CAST('x' || substr(md5({t}), 1, 15) AS bit(60)) AS bigint)"

    def _trimmed(self, t: str) -> str:
        return f"btrim({t}, E' \\t\\n\\x0b\\f\\r')"

    def _of_numeric(self, n: str) -> str:
        return (
            f"CASE WHEN {n} > 1e300 THEN CAST('Infinity' AS double precision) "
            f"WHEN {n} < -1e300 THEN CAST('-Infinity' AS double precision) "
            f"WHEN abs({n}) < 2.5e-324 THEN {self.constant(0.0)} WHEN abs({n}) < 1e-300 THEN sign({n}) * {self.constant(1e-300)} "
            f"ELSE CAST({n} AS double precision) END"
        )


class PostgresEngine:
    """Tables in PostgreSQL."""

    name = "postgres"

    def prepare(self, table: PrivateTable, *, temporary_directory: Path | None = None, secret: str | None = None) -> Prepared:
        """The prepared rows of a table; nothing is written to this machine's disk."""
        assert isinstance(table.source, PostgresSource)
        return PostgresPrepared(table, table.source, fresh_secret(secret))


class PostgresPrepared(Prepared):
    """Prepared rows in a table of the same database, or behind a query where we may not write."""

    dialect: ClassVar[str] = "postgres"

    def __init__(self, table: PrivateTable, source: PostgresSource, secret: str) -> None:
        super().__init__(table, materialised=True)
        self._source = source
        self._select = prepared_sql(table.columns, source.schema, source.relation, table.unit, secret, PostgresSpelling())
        self._name = f"p{_token(12)}"
        self._relation = f"{identifier(SCHEMA)}.{identifier(self._name)}"
        self._idle: list[Any] = []
        self._running: set[Any] = set()
        self.materialised = guarded("The table could not be prepared", self._prepare)

    def _prepare(self) -> bool:
        self._keeper = connect(self._source.conninfo)
        try:
            return self._store()
        except BaseException:
            self._keeper.close()
            raise

    def _store(self) -> bool:
        from psycopg import errors

        try:
            self._keeper.execute(f"CREATE SCHEMA IF NOT EXISTS {identifier(SCHEMA)}")
            self._sweep()
            self._keeper.execute("SELECT pg_advisory_lock(%s)", [_lock_of(self._name)])
            self._keeper.execute(f"CREATE UNLOGGED TABLE {self._relation} AS {self._select}")
        except (errors.InsufficientPrivilege, errors.ReadOnlySqlTransaction):
            return False
        self._keeper.execute(f"ANALYZE {self._relation}")
        return True

    def _sweep(self) -> None:
        """Drops what processes that died left behind."""
        for (name,) in self._keeper.execute(
            "SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname = %s", [SCHEMA]
        ).fetchall():
            if re.fullmatch(r"p[0-9a-f]{24}", name):
                (free,) = self._keeper.execute("SELECT pg_try_advisory_lock(%s)", [_lock_of(name)]).fetchone()
                if free:
                    from psycopg import Error

                    with suppress(Error):
                        self._keeper.execute(f"DROP TABLE IF EXISTS {identifier(SCHEMA)}.{identifier(name)}")
                    self._keeper.execute("SELECT pg_advisory_unlock(%s)", [_lock_of(name)])

    def _sql(self, sql: str) -> str:
        if self.materialised:
            return sql.replace(f'"{RELATION}"', self._relation)
        if sql.startswith("WITH "):
            return f'WITH "{RELATION}" AS ({self._select}), {sql[5:]}'
        return f'WITH "{RELATION}" AS ({self._select}) {sql}'

    def _fetch(self, plan: Plan) -> list[Any]:
        with self._connection() as connection:
            rows = connection.execute(self._sql(plan.sql)).fetchall()
        return [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in plan.reads]

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        if connection is None or connection.closed:
            connection = connect(self._source.conninfo)
            connection.execute("SET default_transaction_read_only = on")
        with self._lock:
            self._running.add(connection)
        try:
            yield connection
        finally:
            with self._lock:
                self._running.discard(connection)
                keep = not connection.closed and not self._closed and len(self._idle) < 4
                if keep:
                    self._idle.append(connection)
            if not keep:
                connection.close()

    def cancel(self) -> None:
        """Asks the server to stop every query that runs now."""
        with self._lock:
            running = list(self._running)
        for connection in running:
            connection.cancel_safe(timeout=5)

    def _owner_report(self) -> PreparationReport:
        table = self.declaration
        with self._connection() as connection:
            sql = report_sql(table.columns, self._source.schema, self._source.relation, table.unit, PostgresSpelling())
            row = connection.execute(sql).fetchone()
            over = (0, 0)
            if table.max_rows is not None:
                counts = over_cap_sql(table.max_rows, f'"{RELATION}"')
                over = connection.execute(self._sql(counts)).fetchone()
        return report_of(row, over, table)

    def _close(self) -> None:
        self.cancel()
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()
        from psycopg import Error

        try:
            if self.materialised:
                self._keeper.execute(f"DROP TABLE IF EXISTS {self._relation}")
                with suppress(Error):  # the schema goes with its last table
                    self._keeper.execute(f"DROP SCHEMA {identifier(SCHEMA)} RESTRICT")
        finally:
            self._keeper.close()


def connect(conninfo: str) -> Any:
    """A connection that commits each statement, speaks UTF-8 and reads quotes by the standard."""
    try:
        import psycopg
    except ImportError:
        raise MissingDependency(
            "PostgreSQL was refused", why="psycopg is not installed", instead='pip install "cloister[postgres]"'
        ) from None
    settings: dict[str, Any] = {"autocommit": True, "client_encoding": "UTF8", "connect_timeout": 10, "prepare_threshold": None}
    connection = tried(lambda: psycopg.connect(conninfo, **settings), psycopg.Error, UnicodeError)
    if connection is None:
        raise EngineError(
            "PostgreSQL could not be reached", why="the connection was refused", instead="an address that psql can open"
        )
    connection.execute("SET standard_conforming_strings = on")
    return connection


def identifier(name: str) -> str:
    """A quoted identifier.

    >>> print(identifier('a "b" c'))
    "a ""b"" c"
    """
    from psycopg import sql

    return str(sql.Identifier(name).as_string(None))


def _lock_of(name: str) -> int:
    return int(name[1:16], 16)
