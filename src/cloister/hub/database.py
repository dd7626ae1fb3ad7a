"""The hub's own database: who, what and when. SQLite in the hub's folder, or PostgreSQL for several processes.

Data sets and answers about them are elsewhere (`storage/`, the ledger); what lies here is the institution's administration. Each
service declares its tables in its `models.py`, on the one `Base` below; `migrations/` brings a database of an older hub up to
date.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

from sqlalchemy import JSON, DateTime, Engine, MetaData, create_engine, event
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import DeclarativeBase, Session, sessionmaker
from sqlalchemy.types import TypeDecorator

from cloister.errors import CloisterError, InvalidParameter

__all__ = ["Base", "Database", "DatabaseUnavailable", "Moment"]

_CONVENTION = {
    "ix": "ix_%(table_name)s_%(column_0_name)s",
    "uq": "uq_%(table_name)s_%(column_0_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}


class DatabaseUnavailable(CloisterError):
    """The hub's database cannot be reached, is full or is locked."""


class Moment(TypeDecorator[datetime]):
    """A moment of time, in UTC wherever it is kept; one without a zone is refused."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Any) -> datetime | None:
        """What the database is given."""
        if value is not None and value.tzinfo is None:
            raise InvalidParameter("A time was refused", why="it names no zone", instead="datetime.now(UTC)")
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Any) -> datetime | None:
        """What the program gets."""
        return value.replace(tzinfo=UTC) if value is not None and value.tzinfo is None else value


class Base(DeclarativeBase):
    """What every table of the hub is declared on."""

    metadata = MetaData(naming_convention=_CONVENTION)
    type_annotation_map: ClassVar[dict[Any, Any]] = {
        datetime: Moment(),
        dict[str, Any]: JSON(),
        list[str]: JSON(),
        list[Any]: JSON(),
    }


class Database:
    """A database by its address: "sqlite:///…" or "postgresql://…".

    >>> database = Database("sqlite://")
    >>> with database.reading() as db:
    ...     db.execute(text("SELECT 1")).scalar()
    1
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self.engine: Engine = _engine(address)
        self._sessions = sessionmaker(self.engine, expire_on_commit=False)

    @property
    def grown_up(self) -> bool:
        """Whether several hub processes may share it."""
        return self.engine.dialect.name == "postgresql"

    @contextlib.contextmanager
    def begin(self) -> Iterator[Session]:
        """One transaction that writes: committed at the end, or undone where an error leaves the block."""
        try:
            with self._sessions() as session:
                if self.engine.dialect.name == "sqlite":
                    session.connection().exec_driver_sql(
                        "BEGIN IMMEDIATE"
                    )  # a reader that later writes would be refused as stale
                yield session
                session.commit()
        except OperationalError:
            raise _unavailable() from None

    @contextlib.contextmanager
    def reading(self) -> Iterator[Session]:
        """One moment of the database, to read."""
        try:
            with self._sessions() as session:
                yield session
                session.expunge_all()  # what was read may be looked at afterwards; a rollback alone would empty it
                session.rollback()
        except OperationalError:
            raise _unavailable() from None

    def close(self) -> None:
        """Let go of the connections."""
        self.engine.dispose()

    def __repr__(self) -> str:
        return f"<Database: {self.engine.dialect.name}>"


def sqlite_address(path: Path) -> str:
    """The address of a database in a file."""
    return f"sqlite:///{path}"


def _unavailable() -> DatabaseUnavailable:
    return DatabaseUnavailable(
        "The hub's database did not answer",
        why="it is full, locked or away",
        instead="try again; the administrator sees its state",
    )


def _engine(address: str) -> Engine:
    if address.startswith("sqlite"):
        memory = address == "sqlite://"
        extra: dict[str, Any] = {}
        if memory:
            from sqlalchemy.pool import StaticPool

            extra = {"poolclass": StaticPool}
        engine = create_engine(address, connect_args={"check_same_thread": False, "timeout": 30}, **extra)
        event.listen(engine, "connect", _sqlite_connected)
        return engine
    if address.startswith("postgresql"):
        plain = address.replace("postgresql://", "postgresql+psycopg://", 1)
        return create_engine(plain, pool_size=10, max_overflow=20, pool_pre_ping=True)
    raise InvalidParameter(
        "The hub's database was refused",
        why="its address is neither SQLite's nor PostgreSQL's",
        instead="--database postgresql://hub@db.example.org/hub",
    )


def _sqlite_connected(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # transactions are begun by us, at once as writers where they write
    cursor = connection.cursor()
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON", "busy_timeout = 30000", "secure_delete = ON"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()
