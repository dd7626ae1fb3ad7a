"""PostgreSQL: the prepared rows stand in a table of ours in the same database, or, where we may not write, behind a query.

The table lives in the schema `cloister_prepared` under a random name, belongs to the role that we connect as, and is dropped at
close. Should the process die first, the next one to prepare in that database drops it: a living owner holds an advisory lock on
its name. The table is not logged, so a server that crashes empties it; the connection that made it and holds the lock ends then.
So what was read counts only while that one answers, and where it does not, the table is prepared again.

Where nothing may be written, `materialised` is False: the same SELECT stands before every question, window included, and is
slower. Other tables of the same database are named where they stand. `postgres_spelling.py` says how codes are written.
"""

# ruff: noqa: S608 - this file writes SQL: names are quoted, everything else is public

from __future__ import annotations

import re
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from typing import Any, ClassVar

from cloister.errors import EngineError, InvalidDeclaration, UnsupportedQuery
from cloister.lazily import needing
from cloister.tables.declaring.table import PrivateTable
from cloister.tables.engines.abilities import Abilities
from cloister.tables.engines.compiler import RELATION, CompiledQuery, preceded
from cloister.tables.engines.duckdb import named_by, report_of
from cloister.tables.engines.engine import PreparationReport, Prepared, Site, fresh_secret, fresh_token, in_columns, in_pieces
from cloister.tables.engines.guard import guarded, tried
from cloister.tables.engines.ibis_compilers import sql_of
from cloister.tables.engines.postgres_spelling import TYPES, PostgresSpelling, identifier
from cloister.tables.engines.workspace import Workspace
from cloister.tables.relations.public import PublicCodes
from cloister.tables.sourcing.postgres_lineage import lineage_of
from cloister.tables.sourcing.preparation import offenders_sql, outside_sql, over_cap_sql, prepared_sql, report_sql, units_sql
from cloister.tables.sourcing.sources import Source, check_names

__all__ = ["PostgresEngine", "PostgresPrepared", "PostgresSource", "connect", "identifier"]

SCHEMA = "cloister_prepared"
_MOST_WRITTEN = 10_000

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
    """A table, or the query behind an Ibis table, in a PostgreSQL database.

    `part` says which of its rows are meant, where tables of several populations share it and each reads rows of its own
    (`during=`): the ledger then knows each by the table and the part. Who gives one must make sure that no row belongs to two.
    """

    engine: ClassVar[str] = "postgres"

    def __init__(self, conninfo: str, relation: str, part: str = "") -> None:
        self.conninfo = conninfo
        self.relation = relation
        self.part = part
        fields, enums = guarded("The PostgreSQL table could not be opened", self._look)
        check_names([name for name, _ in fields])
        self.schema = {name: "text" if code in enums else _KINDS.get(code, "other") for name, code in fields}

    def _look(self) -> tuple[list[tuple[str, int]], set[int]]:
        with connect(self.conninfo) as connection:
            description = connection.execute(f"SELECT * FROM {self.relation} LIMIT 0").description
            enums = connection.execute("SELECT oid FROM pg_catalog.pg_type WHERE typtype = 'e'").fetchall()
        return [(column.name, column.type_code) for column in description], {oid for (oid,) in enums}

    @classmethod
    def from_url(cls, url: str, part: str = "") -> PostgresSource:
        """From "postgresql://user@host:port/database::schema.table"."""
        conninfo, separator, name = url.rpartition("::")
        if not separator or not re.fullmatch(rf"{_PART}(?:\.{_PART})?", name):
            raise InvalidDeclaration(
                "The PostgreSQL address is invalid",
                why="it names no table",
                instead='"postgresql://user@host:5432/database::schema.table"',
            )
        names = [each[1:-1].replace('""', '"') if each.startswith('"') else each for each in re.findall(_PART, name)]
        return cls(conninfo, ".".join(identifier(name) for name in names), part)

    @classmethod
    def from_ibis(cls, table: Any, backend: Any) -> PostgresSource:
        """From an Ibis table of a postgres backend; we connect again, as the same role."""
        from psycopg.conninfo import make_conninfo

        info = backend.con.info
        conninfo = make_conninfo(info.dsn, **({"password": info.password} if info.password else {}))
        return cls(conninfo, f"({sql_of(table, 'postgres')}) AS cloister_source")

    def describe(self) -> str:
        """`postgresql`."""
        return "postgresql"

    def make_engine(self) -> PostgresEngine:
        """The one that is in the database."""
        return PostgresEngine()

    def identity(self) -> str:
        """The table, and the part."""
        return f"{self.whole} {self.part}" if self.part else self.whole

    def lineage(self) -> frozenset[str]:
        """The relations that its rows come from, as the server tells them."""

        def looked_up() -> frozenset[str]:
            with connect(self.conninfo) as connection:
                return lineage_of(connection, self.relation)

        return guarded("The PostgreSQL table could not be opened", looked_up)

    @property
    def whole(self) -> str:
        """Host, port, database and table: not the role, which does not change whose rows they are."""
        from psycopg.conninfo import conninfo_to_dict

        place = conninfo_to_dict(self.conninfo)
        return "postgresql:" + ":".join(str(place.get(part, "")) for part in ("host", "port", "dbname")) + f":{self.relation}"


class PostgresEngine:
    """Tables in PostgreSQL."""

    name = "postgres"
    abilities = Abilities()

    def prepare(self, table: PrivateTable, *, workspace: Workspace, secret: str | None = None) -> Prepared:
        """The prepared rows of a table; nothing is written to this machine's disk."""
        assert isinstance(table.source, PostgresSource)
        return PostgresPrepared(table, table.source, fresh_secret(secret), workspace)


class PostgresPrepared(Prepared):
    """Prepared rows in a table of the same database, or behind a query where we may not write."""

    dialect: ClassVar[str] = "postgres"
    lasts: ClassVar[bool] = False

    def __init__(self, table: PrivateTable, source: PostgresSource, secret: str, workspace: Workspace | None = None) -> None:
        super().__init__(table, materialised=True, workspace=workspace)
        self._source = source
        spelling = PostgresSpelling()
        self._select = prepared_sql(table.columns, source.schema, source.relation, table.unit, secret, spelling, table.during)
        self._name = f"p{fresh_token(12)}"
        self._relation = f"{identifier(SCHEMA)}.{identifier(self._name)}"
        self._idle: list[Any] = []
        self._running: dict[Any, int] = {}
        self._stopped: set[Any] = set()
        self.materialised = guarded("The table could not be prepared", self._prepare)

    def _prepare(self) -> bool:
        self._keeper = connect(self._source.conninfo)
        try:
            idle = "SELECT set_config(name, '0', false) FROM pg_catalog.pg_settings WHERE name = 'idle_session_timeout'"
            self._keeper.execute(idle)  # older servers know of none
            return self._store()
        except BaseException:
            self._keeper.close()
            raise

    def stands(self) -> bool:
        """Whether the connection answers that the table stands and falls with."""
        from psycopg import Error

        with self._placing:
            return not self.materialised or tried(lambda: self._keeper.execute("SELECT 1"), Error) is not None

    def _store(self) -> bool:
        from psycopg import errors

        try:
            self._keeper.execute(f"CREATE SCHEMA IF NOT EXISTS {identifier(SCHEMA)}")
            self._sweep()
            self._make(self._name, f"AS {self._select}")
        except (errors.InsufficientPrivilege, errors.ReadOnlySqlTransaction):
            return False
        self._keeper.execute(f"ANALYZE {self._relation}")
        return True

    def _make(self, name: str, content: str) -> None:
        """A table of ours, with the lock that says that its owner lives."""
        self._keeper.execute("SELECT pg_advisory_lock(%s)", [_lock_of(name)])
        self._keeper.execute(f"CREATE UNLOGGED TABLE {identifier(SCHEMA)}.{identifier(name)} {content}")

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
        return preceded(sql, [(RELATION, self._select)])

    def _bring(self, other: Prepared) -> Site | None:
        """The other table's own name, where both are in one database and belong to one role."""
        if not isinstance(other, PostgresPrepared) or _database(other._keeper) != _database(self._keeper):
            return None
        if other.materialised:
            return Site(other._name, schema=SCHEMA)
        return Site(other._name, query=other._select)

    def _publish(self, codes: PublicCodes) -> Site:
        """A table of the codes; where nothing may be written, a query that holds them."""
        name = f"p{fresh_token(12)}"
        types = {column: {**TYPES, "string": "text"}[dtype] for column, dtype in codes.schema().items()}
        rows = codes.rows()
        if not self.materialised:
            return Site(name, query=_written(types, rows))
        self._make(name, f"({', '.join(f'{column} {kind}' for column, kind in types.items())})")
        relation = f"{identifier(SCHEMA)}.{identifier(name)}"
        with self._keeper.cursor().copy(f"COPY {relation} FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
        self._keeper.execute(f"ANALYZE {relation}")
        return Site(name, schema=SCHEMA)

    def _remove(self, site: Site) -> None:
        """The rows go with the other table."""

    def _fetch(self, plan: CompiledQuery) -> list[Any]:
        with self._connection() as connection:
            rows = connection.execute(self._sql(plan.sql)).fetchall()
        return in_columns(rows, plan)

    def _stream(self, plan: CompiledQuery) -> Generator[list[Any]]:
        """From a cursor that the server keeps, so that libpq does not hold all of it."""
        if self.workspace.memory is None:
            yield self._fetch(plan)
            return
        with self._connection() as connection, connection.transaction():
            connection.execute("SET LOCAL cursor_tuple_fraction = 1")  # all of it is read
            with connection.cursor(f"cloister_{fresh_token(8)}") as cursor:
                cursor.execute(self._sql(plan.sql))
                yield from in_pieces(cursor.fetchmany, plan)

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        if connection is None or connection.closed:
            connection = connect(self._source.conninfo)
            connection.execute("SET default_transaction_read_only = on")
        with self._lock:
            self._running[connection] = threading.get_ident()
        try:
            yield connection
            if not self.stands():
                raise ConnectionError("the table may have been emptied before it was read")
        finally:
            with self._lock:
                self._running.pop(connection, None)
                keep = not connection.closed and connection not in self._stopped and not self._closed and len(self._idle) < 4
                self._stopped.discard(connection)
                if keep:
                    self._idle.append(connection)
            if not keep:
                connection.close()

    def rest(self) -> None:
        """Without idle connections, of which a server has a hundred for everybody; the keeper's stays."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def cancel(self, thread: int | None = None) -> None:
        """Asks the server to stop every query that runs now, or those of one thread; nobody else asks on such a connection."""
        with self._lock:
            running = [connection for connection, asker in self._running.items() if thread in (None, asker)]
            self._stopped.update(running)
        for connection in running:
            connection.cancel_safe(timeout=5)

    def _owner_offenders(self, names: list[str]) -> dict[str, list[Any]]:
        table, source, spelling = self.declaration, self._source, PostgresSpelling()
        with self._connection() as connection:
            return {
                name: connection.execute(
                    offenders_sql(name, table.columns[name], source.schema, source.relation, spelling, table.during)
                ).fetchall()
                for name in names
            }

    def _owner_report(self) -> PreparationReport:
        table, source, spelling = self.declaration, self._source, PostgresSpelling()
        outside = None
        with self._connection() as connection:
            sql = report_sql(table.columns, source.schema, source.relation, table.unit, spelling, table.during)
            row = connection.execute(sql).fetchone()
            if table.during is not None:
                outside = connection.execute(outside_sql(source.schema, source.relation, spelling, table.during)).fetchone()
            over = (0, 0)
            if table.max_rows is not None:
                counts = over_cap_sql(table.max_rows, f'"{RELATION}"')
                over = connection.execute(self._sql(counts)).fetchone()
            units = {
                name: connection.execute(
                    units_sql(domain, name, source.schema, source.relation, spelling, table.during)
                ).fetchone()
                for name, domain in named_by(table).items()
            }
        return report_of(row, over, table, outside=outside, units=units)

    def _close(self) -> None:
        self.cancel()
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()
        from psycopg import Error

        try:
            if self.materialised:
                published = [site.name for key, site in self._sites.items() if isinstance(key, str)]
                for name in (self._name, *published):
                    self._keeper.execute(f"DROP TABLE IF EXISTS {identifier(SCHEMA)}.{identifier(name)}")
                with suppress(Error):  # the schema goes with its last table
                    self._keeper.execute(f"DROP SCHEMA {identifier(SCHEMA)} RESTRICT")
        finally:
            self._keeper.close()


def connect(conninfo: str) -> Any:
    """A connection that commits each statement, speaks UTF-8 and reads quotes by the standard."""
    with needing("PostgreSQL is not available", "psycopg is not installed", "postgres"):
        import psycopg
    settings: dict[str, Any] = {"autocommit": True, "client_encoding": "UTF8", "connect_timeout": 10, "prepare_threshold": None}
    # no router forgets a quiet connection, and none keeps us waiting
    settings |= {"keepalives_idle": 60, "tcp_user_timeout": 30_000}
    connection = tried(lambda: psycopg.connect(conninfo, **settings), psycopg.Error, UnicodeError)
    if connection is None:
        raise EngineError(
            "PostgreSQL could not be reached", why="the connection was refused", instead="an address that psql can open"
        )
    connection.execute("SET standard_conforming_strings = on")
    return connection


def _database(connection: Any) -> tuple[Any, ...]:
    info = connection.info
    return info.host, info.port, info.dbname, info.user


def _written(types: dict[str, str], rows: list[tuple[Any, ...]]) -> str:
    """A query that gives these public rows."""
    if len(rows) > _MOST_WRITTEN:
        raise UnsupportedQuery(
            "The join with a public table is not supported",
            why=f"it has more than {_MOST_WRITTEN:,} rows, and nothing may be written to the database",
            instead="a role that may create tables in the database",
        )
    from psycopg import sql

    columns = ", ".join(f"CAST(NULL AS {kind}) AS {name}" for name, kind in types.items())
    lines = [", ".join(str(sql.Literal(value).as_string(None)) for value in row) for row in rows]
    names = ", ".join(types)
    values = f"UNION ALL SELECT {names} FROM (VALUES {', '.join(f'({line})' for line in lines)}) AS v({names})" if lines else ""
    return f"SELECT * FROM (SELECT {columns} WHERE FALSE) AS nothing {values}"


def _lock_of(name: str) -> int:
    return int(name[1:16], 16)
