"""A hub's two databases moved from the files of its folder to PostgreSQL, or back.

Everything is copied in one transaction a database, read back and compared row by row, and only then committed; a trial undoes it
instead. What it was copied from is not touched, so that going back is to take the address out of the settings again, until the
copy has been charged: from then on the heads of ledger and audit log know more than the old databases, which are frozen. Then
the way back is another move.

Keys, encrypted tables and heads stay in the folder: they belong to the hub, wherever its databases are.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from alembic import command
from sqlalchemy import Connection, Table, delete, func, insert, inspect, select, tuple_
from sqlalchemy.exc import DBAPIError

from cloister.errors import CloisterError, InvalidParameter
from cloister.hub.backup import database_file
from cloister.hub.database import Base, Damaged, Database, answering, every_model, sqlite_address
from cloister.hub.hub import Hub
from cloister.hub.migrations import configuration
from cloister.ledger.copying import ledger_copied

FILES = "files"
"""What stands for the folder, where an address is asked for."""
_PAGE = 500


class MoveRefused(CloisterError):
    """Databases that cannot be moved."""


@dataclass(frozen=True, kw_only=True)
class Moved:
    """What was copied and compared."""

    tables: int
    rows: int
    lines: int
    """Of the ledger."""


def move(hub: Hub, database: str, ledger: str = "", *, dry_run: bool = False) -> Moved:
    """Copy the databases of a hub that serves nobody just now (`exclusive_lock`) to PostgreSQL, or with `FILES` into its folder.
    The settings still name the old ones afterwards."""
    settings, files = hub.settings, database == FILES
    if files == (not settings.database):
        raise MoveRefused(
            "The hub was not moved",
            why="its databases are there already",
            instead="cloister hub move postgresql://hub@db.example.org/hub" if files else f"cloister hub move {FILES}",
        )
    if not files and not all(each.startswith("postgresql://") for each in (database, ledger or database)):
        raise InvalidParameter(
            "The address is invalid", why="it is not PostgreSQL's", instead="postgresql://hub@db.example.org/hub"
        )
    if hub.ledger.frozen is not None:
        raise MoveRefused(
            "The hub was not moved", why="its ledger is frozen", instead="cloister ledger restore DIR, and then again"
        )
    if files and (in_the_way := database_file(settings.data)):
        raise MoveRefused(
            "The hub was not moved",
            why=f"there is a {in_the_way} in {settings.data.name}, and nothing is overwritten",
            instead="move hub.db* and ledger.db* into another folder first",
        )
    new = [settings.path(name) for name in ("hub.db", "ledger.db")] if files else []
    with _drafts(new) as drafts:
        places = (sqlite_address(drafts[0]), drafts[1]) if drafts else (database, ledger or database)
        old = settings.ledger or settings.path("ledger.db")
        copied = ledger_copied(old, places[1], key=hub.secret("ledger"), head=settings.path("ledger.head"))
        with _database_copied(hub.database, places[0]) as (connection, counted), copied as (lines, commit):
            if not dry_run:
                commit()  # first: a hub without its ledger would make a new one
                connection.commit()
        if not dry_run:
            for draft, path in reversed([*zip(drafts, new, strict=True)]):  # the ledger first, here too
                draft.replace(path)
    return Moved(tables=len(counted), rows=sum(counted.values()), lines=lines)


@contextmanager
def _drafts(new: list[Path]) -> Iterator[list[Path]]:
    """Files beside those that are to be, for their own user alone; what was not moved into place goes."""
    drafts = [path.with_name(f"{path.name}.part") for path in new]
    try:
        for draft in drafts:
            draft.unlink(missing_ok=True)
            draft.touch(mode=0o600)
        yield drafts
    finally:
        for draft in drafts:
            for each in draft.parent.glob(f"{draft.name}*"):
                each.unlink(missing_ok=True)


@contextmanager
def _database_copied(source: Database, address: str) -> Iterator[tuple[Connection, dict[str, int]]]:
    """The transaction in which everything was copied, and how many rows by table."""
    every_model()
    target = Database(address)
    try:
        with answering(), _unfit(), target.engine.connect() as connection, source.engine.connect() as reading:
            if not target.is_postgres:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            if {*inspect(connection).get_table_names()} & {*Base.metadata.tables}:
                raise MoveRefused("The hub was not moved", why="there is a hub in that database", instead="an empty database")
            command.upgrade(configuration(connection), "head")
            tables = Base.metadata.sorted_tables
            for table in reversed(tables):
                connection.execute(delete(table))  # rows that the steps themselves write
            yield connection, {table.name: _copied(table, reading, connection) for table in tables}
            connection.rollback()
    finally:
        target.close()


def _copied(table: Table, reading: Connection, writing: Connection) -> int:
    """All rows of a table, each read back and compared; how many."""
    key, number = [*table.primary_key.columns], 0
    for page in reading.execution_options(yield_per=_PAGE).execute(select(table)).mappings().partitions():
        rows = [dict(row) for row in page]
        if any(type(value) is Damaged for row in rows for value in row.values()):
            why = f"a row of {table.name} can't be read"
            raise MoveRefused("The hub was not moved", why=why, instead="cloister hub check, which names it")
        writing.execute(insert(table), rows)
        wanted = {_key(row, key): row for row in rows}
        asked = select(table).where(tuple_(*key).in_(list(wanted)))
        found = {_key(row, key): dict(row) for row in writing.execute(asked).mappings()}
        if found != wanted:
            raise _differs(table)
        number += len(rows)
    if writing.execute(select(func.count()).select_from(table)).scalar() != number:
        raise _differs(table)
    counter = table.autoincrement_column
    if number and counter is not None and writing.dialect.name == "postgresql":
        serial = func.pg_get_serial_sequence(table.name, counter.name)
        if writing.execute(select(serial)).scalar() is not None:
            writing.execute(select(func.setval(serial, select(func.max(counter)).scalar_subquery())))
    return number


def _key(row: Any, key: list[Any]) -> tuple[Any, ...]:
    return tuple(row[each.name] for each in key)


def _differs(table: Table) -> MoveRefused:
    return MoveRefused("The hub was not moved", why=f"what was written of {table.name} is not what was read", instead="try again")


@contextmanager
def _unfit() -> Iterator[None]:
    """What a database says of a value that it does not take may hold the value."""
    try:
        yield
    except DBAPIError as error:
        if error.connection_invalidated:
            raise
        raise MoveRefused(
            "The hub was not moved", why="the database refused a table or a value", instead="an empty database of its owner"
        ) from None
