"""The hub's own database: who, what and when. SQLite in the hub's folder, or PostgreSQL for several processes.

Data sets and answers about them are elsewhere (`storage/`, the ledger); what lies here is the institution's administration.
`records/` declares its tables, on the one `Base` below; `migrations/` brings a database of an older hub up to date.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import logging
import pkgutil
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, NoReturn, TypeVar, cast

from sqlalchemy import JSON, ColumnElement, Connection, DateTime, Engine, MetaData, String, create_engine, event, select, text
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.orm import DeclarativeBase, Mapped, ORMExecuteState, Session, mapped_column, sessionmaker
from sqlalchemy.types import TypeDecorator, TypeEngine

from cloister.errors import CloisterError, InvalidParameter

_LOG = logging.getLogger("cloister.hub.database")
_CONVENTION = {
    "ix": "ix_%(table_name)s_%(column_0_name)s",
    "uq": "uq_%(table_name)s_%(column_0_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}


_PATIENCE = 30.0
"""Seconds for which a transaction waits for another writer, or for a connection."""
OF_ONE_MOMENT = "of one moment"
"""In the `info` of what `Database.reading` gives: nothing uncommitted, and nothing of two moments, is seen there."""
_ONE_WRITER = text(
    f"SELECT set_config('lock_timeout', '{_PATIENCE:.0f}s', true), "
    "pg_advisory_xact_lock(hashtextextended('cloister hub ' || coalesce(current_schema(), ''), 0))"
)
_SQLITE_CONNECTIONS = 20
"""That are kept: to open one costs as much as a few questions to it."""


T = TypeVar("T")
V = TypeVar("V")
K = TypeVar("K")


class DatabaseUnavailable(CloisterError):
    """The hub's database cannot be reached, is full or is locked."""

    stored = "DatabaseUnavailable"


class UTCDateTime(TypeDecorator[datetime]):
    """A moment of time, in UTC wherever it is kept; one without a zone is refused."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Any) -> datetime | None:
        """What the database is given."""
        if value is not None and value.tzinfo is None:
            raise InvalidParameter("A time is invalid", why="it names no zone", instead="datetime.now(UTC)")
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Any) -> datetime | None:
        """What the program gets."""
        return value.replace(tzinfo=UTC) if value is not None and value.tzinfo is None else value


def damaged() -> CloisterError:
    """The refusal of what needs a row that can't be read."""
    from cloister.hub.problems import Conflict

    return Conflict(
        "A stored row can't be read",
        why="it is damaged, or a later version wrote it",
        instead="cloister hub check, which names it",
    )


class Damaged:
    """A column whose text has another form than it should: whatever uses it is refused, and no other row is."""

    __slots__ = ()

    def _refused(self, *_: object) -> NoReturn:
        raise damaged()

    __getattr__ = __getitem__ = __iter__ = __len__ = __bool__ = __contains__ = _refused


def sound(value: T) -> T:
    """A value of a row, refused where it is damaged: for who passes it on to what knows nothing of that."""
    if type(value) is Damaged:
        raise damaged()
    return value


class Shaped(TypeDecorator[Any]):
    """A column of JSON: an object, perhaps with keys that it needs, or a list. A row in which another thing stands is loaded like
    any other (`Damaged`)."""

    impl: type[TypeEngine[Any]] = JSON
    cache_ok = True

    def __init__(self, shape: type, *needs: str) -> None:
        super().__init__()
        self.shape: Any = shape
        self.needs = needs

    def result_processor(self, dialect: Any, coltype: Any) -> Any:
        """What the program gets."""
        shape, needs, as_text = self.shape, self.needs, dialect.name == "sqlite" or type(self).impl is not JSON
        read: Any = json.JSONDecoder().decode if as_text else super().result_processor(dialect, coltype)
        read = read or (lambda value: value)  # the driver of PostgreSQL reads it

        def process(value: Any) -> Any:
            if value is None:
                return None
            try:
                found: Any = read(value)
            except (ValueError, TypeError, RecursionError):
                return Damaged()
            whole = found is None or (isinstance(found, shape) and (not needs or all(name in found for name in needs)))
            return found if whole else Damaged()

        return process


class ShapedText(Shaped):
    """The same in a column of text, which is empty where there is nothing."""

    impl = String
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Any) -> str:
        """What the database is given."""
        return "" if value is None else json.dumps(value)

    def result_processor(self, dialect: Any, coltype: Any) -> Any:
        """What the program gets."""
        process = super().result_processor(dialect, coltype)
        return lambda value: process(value or None)


class TextOfJSON(ShapedText):
    """A column of text that is read as JSON where it is used; empty where there is nothing."""

    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Any) -> str:
        """What the database is given."""
        return str(value)

    def result_processor(self, dialect: Any, coltype: Any) -> Any:
        """What the program gets."""
        process = super().result_processor(dialect, coltype)
        return lambda value: read if type(read := process(value)) is Damaged else value


def damaged_rows(db: Session) -> list[str]:
    """Each row in which a column of JSON has another form than it should: table, column and key."""
    found = []
    for table in Base.metadata.sorted_tables:
        shaped, keys = [each for each in table.columns if isinstance(each.type, Shaped)], [*table.primary_key.columns]
        for row in db.execute(select(*keys, *shaped)) if shaped else ():
            name, values = " ".join(map(str, row[: len(keys)])), zip(shaped, row[len(keys) :], strict=True)
            found += [f"{table.name}.{column.name} of {name}" for column, value in values if type(value) is Damaged]
    return found


LEFT_OUT: ContextVar[list[tuple[Base, str]] | None] = ContextVar("cloister left out", default=None)
"""The rows that lists of this request went on without, each with the column that can't be read; None where nobody asks."""


def _leave_out(row: object, column: str = "") -> None:
    found = LEFT_OUT.get()
    if found is not None and isinstance(row, Base) and (row, column) not in found:
        found.append((row, column))


def left_out(person: str, *, all_rows: bool) -> list[str]:
    """What lists of this request went on without, as `cloister hub check` names it: a person's own rows, or `all_rows`."""
    return [
        f"{row.__tablename__}{column and '.'}{column} of {' '.join(map(str, row.__mapper__.primary_key_from_instance(row)))}"
        for row, column in LEFT_OUT.get() or ()
        if all_rows or person in (getattr(row, "person", None), getattr(row, "owner", None))
    ]


def readable(rows: Iterable[T], *, but: str = "", quietly: bool = False) -> list[T]:
    """The rows that can be read: a list goes on without others, which are told to their owner and the administrator (`LEFT_OUT`).
    `but`: a column whose reader knows what to do where it can't be read. `quietly`: what is left out is told elsewhere."""
    found = []
    for row in rows:
        wrong = [name for name, value in vars(row).items() if type(value) is Damaged and name != but]
        if not wrong:
            found.append(row)
        elif not quietly:
            _leave_out(row, wrong[0].rstrip("_"))
    return found


def older_than(last: Any) -> ColumnElement[bool]:
    """The condition on rows of its kind that come after a row, the newest first."""
    kind = type(last)
    return (kind.created < last.created) | ((kind.created == last.created) & (kind.id < last.id))  # type: ignore[no-any-return]


def last_seen(db: Session, kind: type[K], after: str, known: ColumnElement[bool]) -> K | None:
    """The row, of those that are known, that the next page of a list goes on behind; None for the first page."""
    rows: Any = kind
    last = db.scalar(select(rows).where(rows.id == after, known)) if after else None
    if after and last is None:  # to begin again would lead whoever reads page by page round in a circle
        why = "what it goes on behind is not there, or not open to you"
        raise InvalidParameter("The next page is invalid", why=why, instead="the first page")
    return cast("K | None", last)


def of_each(rows: Iterable[T], tell: Callable[[T], V], *, partly: bool = False) -> list[V]:
    """What is told about each row that can be read: one that is damaged, also within a column, keeps no other out of a list.
    `partly`: of a damaged one, too, where that is in another column than those that are told about."""
    found = []
    for row in rows if partly else readable(rows):
        try:
            found.append(tell(row))
        except (CloisterError, ValueError, TypeError, LookupError, AttributeError) as error:
            _LOG.warning("a list went on without a row of %s: %s", type(row).__name__, type(error).__name__)
            _leave_out(row)
    return found


class Base(DeclarativeBase):
    """What every table of the hub is declared on."""

    metadata = MetaData(naming_convention=_CONVENTION)
    type_annotation_map: ClassVar[dict[Any, Any]] = {
        datetime: UTCDateTime(),
        dict[str, Any]: Shaped(dict),
        list[str]: Shaped(list),
        list[Any]: Shaped(list),
    }


class Identified(Base):
    """What has an id of its own (`ids.new_id`)."""

    __abstract__ = True

    id: Mapped[str] = mapped_column(String(32), primary_key=True, sort_order=-1)


def every_model() -> None:
    """Declare every table on the one `Base`: what migrations compare a database with.

    >>> every_model()
    >>> "person" in Base.metadata.tables
    True
    """
    from cloister.hub import records

    for found in pkgutil.iter_modules(records.__path__):
        importlib.import_module(f"cloister.hub.records.{found.name}")
    for frame in ("keys", "generation"):
        importlib.import_module(f"cloister.hub.{frame}")


class WroteWhileReading(RuntimeError):
    """A mistake in the program: what writes belongs into `Database.begin`."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} was to be written in Database.reading(), which only reads. Write it in Database.begin()")


class Reader(Session):
    """What `Database.reading` gives: a write in it is an error, since it would be undone without a word.

    Objects that are added, changed or deleted are refused at the next query or at the end of the block, and INSERT, UPDATE and
    DELETE at once. Statements that are plain text are not looked into.

    >>> from cloister.hub.generation import Generation
    >>> with Database("sqlite://").reading() as db:
    ...     db.add(Generation(id=1))
    Traceback (most recent call last):
    cloister.hub.database.WroteWhileReading: a Generation was to be written in Database.reading(), which only reads. ...
    """

    def flush(self, objects: Sequence[Any] | None = None) -> None:
        """Where a session that writes would write: before a query, and by `Database.reading` at the end."""
        changed = [*self.new, *self.deleted, *(each for each in self.dirty if self.is_modified(each))]
        if changed:
            raise WroteWhileReading(f"a {type(changed[0]).__name__}")


@event.listens_for(Reader, "do_orm_execute")
def _only_reading(state: ORMExecuteState) -> None:
    if state.is_insert or state.is_update or state.is_delete:
        raise WroteWhileReading("an INSERT, UPDATE or DELETE")


class Database:
    """A database by its address: "sqlite:///…" or "postgresql://…".

    >>> from sqlalchemy import text
    >>> database = Database("sqlite://")
    >>> with database.reading() as db:
    ...     db.execute(text("SELECT 1")).scalar()
    1
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self.engine: Engine = _engine(address)
        self.is_postgres = self.engine.dialect.name == "postgresql"
        """Whether several hub processes may share it."""
        self.sessions = sessionmaker(self.engine, expire_on_commit=False)
        of_one_moment = self.engine.execution_options(isolation_level="REPEATABLE READ") if self.is_postgres else self.engine
        self._readers = sessionmaker(of_one_moment, class_=Reader, expire_on_commit=False, info={OF_ONE_MOMENT: True})
        if not self.is_postgres and address != "sqlite://":  # one in memory has one connection
            event.listen(self._readers, "after_begin", _moment_begins)
        self._writing = threading.Lock()
        self._writer: Connection | None = None
        """The connection of `writing`, kept as those of `looking` are; for who holds the lock."""
        self._announcing = self.sessions()
        """Never opened: it knows who listens for the ends of transactions."""
        self._looking: list[Connection] = []
        """Connections that nobody looks through just now, without a transaction: to fetch one from the pool and to give it back
        takes longer than a short look."""

    @contextlib.contextmanager
    def begin(self) -> Iterator[Session]:
        """One transaction that writes: committed at the end, or undone where an error leaves the block. One at a time, in all
        processes: what it reads is what holds when it commits, so nothing that is looked at and then changed is changed by
        another in between."""
        with self._turn(), answering(), self.sessions() as session:
            if self.is_postgres:
                session.execute(_ONE_WRITER)
            else:
                _sqlite_begins(session.connection(), "BEGIN IMMEDIATE")  # a reader that later writes would be refused as stale
            yield session
            session.commit()

    @contextlib.contextmanager
    def writing(self) -> Iterator[Session]:
        """As `begin`, for who will hardly need more than statements: what is given opens a session when one is needed."""
        if self.is_postgres or self.address == "sqlite://":
            with self.begin() as session:
                yield session
            return
        with self._turn(), answering():
            connection, self._writer = self._writer or self.engine.connect(), None
            driver: Any = connection.connection.driver_connection
            late, whole = LazySession(lambda: self.sessions(bind=connection), connection), False
            try:
                driver.execute("BEGIN IMMEDIATE")
                yield cast("Session", late)
                if late.opened is not None:
                    late.opened.commit()
                else:
                    driver.execute("COMMIT")
                    self._announcing.dispatch.after_commit(late)
                whole = True
            finally:
                if late.opened is not None:
                    late.opened.close()
                if whole and not driver.in_transaction:
                    self._writer = connection
                else:
                    if driver.in_transaction:
                        with contextlib.suppress(sqlite3.Error):
                            driver.execute("ROLLBACK")
                    connection.close()

    @contextlib.contextmanager
    def reading(self, *, late: bool = False) -> Iterator[Session]:
        """One moment of the database, to read; a write in it is an error (`Reader`). With `late` it is the moment of the first
        question, for anyone who will hardly have one."""
        if late:
            found = LazySession(self._readers)
            found.info[OF_ONE_MOMENT] = True
            with answering():
                try:
                    yield cast("Session", found)
                    found.flush()
                finally:
                    if found.opened is not None:
                        found.opened.close()
            return
        with answering(), self._readers() as session:
            if not self.is_postgres:
                session.connection()
            yield session
            session.flush()  # its end lets go of what was read, which may be looked at afterwards, and undoes the rest

    def looking(self) -> contextlib.AbstractContextManager[Connection]:
        """To read by one `Statement`, which is a moment by itself: for what every request asks, since a session takes longer to
        open than such a statement to run."""
        if self.is_postgres or self.address == "sqlite://":
            return self._connected()
        return _Look(self)

    @contextlib.contextmanager
    def _connected(self) -> Iterator[Connection]:
        with answering(), self.engine.connect() as connection:
            yield connection

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        """SQLite has one writer, and lets others look again after ever longer pauses; threads of one process wait for a lock
        instead, which is handed on at once. Another process is waited for by SQLite.
        """
        if self.is_postgres:
            yield
            return
        if not self._writing.acquire(timeout=_PATIENCE):
            raise _unavailable()
        try:
            yield
        finally:
            self._writing.release()

    def close(self) -> None:
        """Let go of the connections."""
        while self._looking:
            self._looking.pop().close()
        with self._writing:
            if self._writer is not None:
                self._writer.close()
                self._writer = None
        self.engine.dispose()

    def __repr__(self) -> str:
        return f"<Database: {self.engine.dialect.name}>"


class _Look:
    """What `Database.looking` gives. A class: every request looks several times, and a generator takes as long as a look."""

    __slots__ = ("_connection", "_database")

    def __init__(self, database: Database) -> None:
        self._database = database

    def __enter__(self) -> Connection:
        try:
            self._connection = self._database._looking.pop()
        except IndexError:
            with answering():
                self._connection = self._database.engine.connect()
        return self._connection

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        looking = self._database._looking
        if error is None and not self._connection.in_transaction() and len(looking) < _SQLITE_CONNECTIONS:
            looking.append(self._connection)
            return
        self._connection.close()
        if error is not None:
            with answering():
                raise error


def sqlite_address(path: Path) -> str:
    """The address of a database in a file."""
    return f"sqlite:///{path}"


@contextlib.contextmanager
def answering() -> Iterator[None]:
    """What the database's driver says of itself may hold values: whoever asked hears only that there was no answer."""
    try:
        yield
    except (OperationalError, InterfaceError, PoolTimeout, sqlite3.OperationalError):
        raise _unavailable() from None
    except DBAPIError as error:
        if not error.connection_invalidated:
            raise
        raise _unavailable() from None


def _unavailable() -> DatabaseUnavailable:
    return DatabaseUnavailable(
        "The hub's database did not answer",
        why="it is full, locked, away, or may only be read",
        instead="try again, or ask the administrator, who sees its state",
    )


def _engine(address: str) -> Engine:
    if address.startswith("sqlite"):
        memory = address == "sqlite://"
        extra: dict[str, Any] = {}
        if memory:
            from sqlalchemy.pool import StaticPool

            extra = {"poolclass": StaticPool}
        else:
            extra = {"pool_size": _SQLITE_CONNECTIONS, "max_overflow": -1}
        engine = create_engine(address, connect_args={"check_same_thread": False, "timeout": _PATIENCE}, **extra)
        event.listen(engine, "connect", _sqlite_connected)
        return engine
    if address.startswith("postgresql"):
        plain = address.replace("postgresql://", "postgresql+psycopg://", 1)
        engine = create_engine(plain, pool_size=10, max_overflow=20, pool_pre_ping=True, pool_timeout=_PATIENCE)
        event.listen(engine, "connect", _postgres_connected)
        return engine
    raise InvalidParameter(
        "The hub's database is invalid",
        why="its address is neither SQLite's nor PostgreSQL's",
        instead="--database postgresql://hub@db.example.org/hub",
    )


def _postgres_connected(connection: Any, _: Any) -> None:
    """A commit is on the server's disk before anything is answered, whatever the server was set up with."""
    connection.execute("SET synchronous_commit = on")
    connection.commit()


def _moment_begins(session: Session, transaction: Any, connection: Connection) -> None:
    """What a session reads from here on is of one moment."""
    _sqlite_begins(connection, "BEGIN")


def _sqlite_begins(connection: Connection, how: str) -> None:
    """Begin (or end) a transaction by the driver itself: SQLAlchemy takes as long for this word as SQLite for what is asked after
    it."""
    driver: Any = connection.connection.driver_connection
    driver.execute(how)


def _sqlite_connected(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # transactions are begun by us, at once as writers where they write
    cursor = connection.cursor()
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON", "secure_delete = ON"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()
    connection.create_function("lower", 1, _lower, deterministic=True)


def _lower(text: object) -> object:
    """SQLite's own knows the letters of English alone, and a search for "Émile" found nobody."""
    return text.lower() if isinstance(text, str) else text


class LazySession:
    """A session that is opened when one is needed: most of what every question asks and writes is run by the driver
    (`statements.py`), and to open a session takes longer than most of that. A connection and `info` are there at once; anything
    else that is asked of it opens the session in the same transaction.

    >>> from sqlalchemy import select
    >>> from cloister.hub.database import Database
    >>> with Database("sqlite://").reading(late=True) as db:
    ...     before, number, after = db.opened, db.scalar(select(7)), db.opened
    ...     before is None, number, after is None
    (True, 7, False)
    """

    def __init__(self, opening: Callable[[], Session], connection: Connection | None = None) -> None:
        self.info: dict[Any, Any] = {}
        self.opened: Session | None = None
        self._opening = opening
        self._connection = connection

    def connection(self) -> Connection:
        """That of the transaction."""
        return self._connection if self._connection is not None else self._session().connection()

    def flush(self) -> None:
        """Nothing waits to be written where there is no session."""
        if self.opened is not None:
            self.opened.flush()

    def get_nested_transaction(self) -> Any:
        """None where there is no session."""
        return None if self.opened is None else self.opened.get_nested_transaction()

    def _session(self) -> Session:
        if self.opened is None:
            self.opened = self._opening()
            self.opened.info.update(self.info)
            self.info = self.opened.info
        return self.opened

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session(), name)
