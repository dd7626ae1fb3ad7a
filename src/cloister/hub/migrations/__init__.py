"""How a database of an older hub is brought up to date: numbered steps (`versions/`), each run once, by Alembic.

Steps only add: a hub of the version before must still run on the new tables, so that processes can be replaced one by one. A
database that no steps lead from to the tables of this version is refused before anything in it is touched, or read. What lay
in tables of the version before is copied at each opening (`copying.py`).
"""

import contextlib
import sqlite3
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect, text
from sqlalchemy.exc import DatabaseError

from cloister.errors import CloisterError
from cloister.hub.database import Base, Database, every_model
from cloister.hub.edition import EDITION
from cloister.hub.migrations.copying import copy_former

_LOCK = 0x636C6F6973746572


class OtherVersion(CloisterError):
    """The hub's database was made by a version of cloister whose tables this one cannot use."""


def bring_up_to_date(database: Database) -> None:
    """Run the steps that this database has not seen; several processes that start at once do it one after another.

    >>> database = Database("sqlite://")
    >>> bring_up_to_date(database)
    >>> with database.reading() as db:
    ...     db.execute(text("SELECT COUNT(*) FROM person")).scalar()
    0
    """
    with _readable(), database.engine.connect() as connection:
        if database.is_postgres:
            connection.execute(text("SELECT pg_advisory_lock(:lock)"), {"lock": _LOCK})
            connection.commit()
        else:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        try:
            if _seen(connection) != {*_steps().get_heads()}:
                command.upgrade(configuration(connection), "head")
            _check_tables(connection)
            copy_former(connection)
            connection.commit()
        finally:
            if database.is_postgres:
                connection.rollback()
                connection.execute(text("SELECT pg_advisory_unlock(:lock)"), {"lock": _LOCK})
                connection.commit()


def waits_for_steps(database: Database) -> bool:
    """Whether a hub that opens it runs steps first."""
    with _readable(), database.engine.connect() as connection:
        return _seen(connection) != {*_steps().get_heads()}


@cache
def _steps() -> ScriptDirectory:
    return ScriptDirectory(str(Path(__file__).parent))


@cache
def _known() -> frozenset[str]:
    return frozenset(each.revision for each in _steps().walk_revisions())


def _seen(connection: Connection) -> set[str]:
    """The last steps that a database has seen. One of a later version, which has seen a step that there is none of here, is
    refused, and one that has tables of ours and has seen none.
    """
    every_model()
    known = _known()
    seen = set(MigrationContext.configure(connection).get_current_heads())
    if seen - known:
        raise OtherVersion(
            "The hub was not opened",
            why=f"a newer version of cloister brought its database to step {max(seen - known)}; this one, {EDITION}, knows steps"
            f" up to {max(known)}",
            instead="a newer version of cloister; or a backup from before, in another folder",
        )

    found = set[str]() if seen else {*inspect(connection).get_table_names()} & {*Base.metadata.tables}
    if found:
        raise _early(f"it has a table {min(found)}, and has seen no step")
    return seen


def _check_tables(connection: Connection) -> None:
    """Refuse a database of an early version: its steps have the names of ours, and its tables are others."""
    if connection.dialect.name == "sqlite":  # one question, where SQLAlchemy asks one for each table
        asked = "SELECT m.name, c.name FROM sqlite_master AS m, pragma_table_info(m.name) AS c WHERE m.type = 'table'"
        columns = [(table, name) for table, name in connection.exec_driver_sql(asked)]
    else:
        described = inspect(connection).get_multi_columns()
        columns = [(table, each["name"]) for (_, table), held in described.items() for each in held]
    there: dict[str, set[str]] = {}
    for name, column in columns:
        there.setdefault(name, set()).add(column)
    for table in Base.metadata.tables.values():
        lacking = {each.name for each in table.columns} - there.get(table.name, set())
        if lacking:
            raise _early(f"{table.name}.{min(lacking)} is not there")


def _early(sign: str) -> OtherVersion:
    return OtherVersion(
        "The hub was not opened",
        why=f"its database was made by an early version of cloister, or by another program: {sign}",
        instead="the version of cloister that made it; or a new folder, --data DIR",
    )


@contextlib.contextmanager
def _readable() -> Iterator[None]:
    """SQLite looks into its file when it is first asked."""
    try:
        yield
    except DatabaseError as error:
        if getattr(error.orig, "sqlite_errorcode", None) not in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
            raise
        raise OtherVersion(
            "The hub was not opened",
            why="the file hub.db is damaged, or no database of SQLite",
            instead="cloister hub restore FOLDER --data DIR, from a backup",
        ) from None


def configuration(connection: Connection) -> Config:
    """Alembic's configuration, on a connection of ours."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.attributes["connection"] = connection
    return config
