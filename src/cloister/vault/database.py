"""SQLite files, for the store and for the client's state: opened alike, and silent about what is in them; and what a server's
database has in common with them."""

import sqlite3
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from cloister.errors import EngineError

T = TypeVar("T")
_MANY = 900
"""Variables of one statement; older builds of SQLite take 999."""
_PATIENCE_MS = 30_000


class Statements(ABC):
    """A database that statements with `?` are run in. Its errors have a fixed text: what it says itself may hold a value."""

    lock: threading.RLock

    @abstractmethod
    def _done(self, act: Callable[[Any], T]) -> T:
        """What an act on the connection returns."""

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """The rows of a statement."""
        return self._done(lambda open_: self._executed(open_, statement, values).fetchall())

    def row(self, statement: str, values: Sequence[Any] = ()) -> Any:
        """The first row of a statement, or None."""
        return self._done(lambda open_: self._executed(open_, statement, values).fetchone())

    def run(self, statement: str, values: Sequence[Any] = ()) -> int:
        """How many rows a statement changed."""
        return int(self._done(lambda open_: self._executed(open_, statement, values).rowcount))

    def run_many(self, statement: str, many: Iterable[Sequence[Any]]) -> None:
        """A statement for each of many rows."""
        if rows := list(many):
            self._done(lambda open_: open_.cursor().executemany(self._spelled(statement), rows))

    def _executed(self, open_: Any, statement: str, values: Sequence[Any]) -> Any:
        return open_.execute(self._spelled(statement), *([values] if values else []))

    def _spelled(self, statement: str) -> Any:
        return statement

    @abstractmethod
    def rows_in(self, statement: str, keys: Sequence[Any]) -> Iterator[Any]:
        """The rows of a statement that ends in `IN`, for any number of keys."""

    @abstractmethod
    def transaction(self, kind: str = "DEFERRED") -> AbstractContextManager[None]:
        """All of it or nothing; IMMEDIATE waits until no other process writes."""

    @abstractmethod
    def forget_log(self) -> None:
        """Empty the write-ahead log, which may still hold what was deleted, as far as a client can."""

    @abstractmethod
    def close(self) -> None:
        """Close the file, or the connection."""


class Database(Statements):
    """One SQLite file, or one in memory."""

    def __init__(self, path: str | Path | None, schema: str) -> None:
        self.path = path
        self.lock = threading.RLock()
        self._connection = _quietly(lambda: _opened(path, schema))

    def _done(self, act: Callable[[Any], T]) -> T:
        with self.lock:
            return _quietly(lambda: act(self._connection))

    def rows_in(self, statement: str, keys: Sequence[Any]) -> Iterator[Any]:
        for start in range(0, len(keys), _MANY):
            part = keys[start : start + _MANY]
            yield from self.rows(f"{statement} ({', '.join('?' * len(part))})", part)

    @contextmanager
    def unsynchronised(self) -> Iterator[None]:
        """Commits that a loss of power may undo, in their order. For what can be done again."""
        with self.lock:
            self.run("PRAGMA synchronous = NORMAL")
            try:
                yield
            finally:
                self.run("PRAGMA synchronous = FULL")

    @contextmanager
    def transaction(self, kind: str = "DEFERRED") -> Iterator[None]:
        with self.lock:
            self.run(f"BEGIN {kind}")
            try:
                yield
                self.run("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.rollback()
                raise

    def learn(self, name: str, takes: int, aggregate: type) -> None:
        """An aggregate function that statements may use."""
        self._done(lambda open_: open_.create_aggregate(name, takes, aggregate))

    def copy(self, path: Path) -> None:
        """A copy of the whole, as of now."""

        def copied(open_: sqlite3.Connection) -> None:
            with closing(sqlite3.connect(path)) as target:
                open_.backup(target)

        self._done(copied)

    def forget_log(self) -> None:
        if self.row("PRAGMA wal_checkpoint(TRUNCATE)")[0]:
            raise EngineError(
                "What was deleted may still be in the log of the database",
                why="another process has been reading it for too long",
                instead="the same again once that process has ended",
            )

    def close(self) -> None:
        with self.lock:
            self._connection.close()


def _opened(path: str | Path | None, schema: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path or ":memory:", isolation_level=None, check_same_thread=False)
    try:
        connection.execute(f"PRAGMA busy_timeout = {_PATIENCE_MS}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA trusted_schema = OFF")  # whoever has the file could have written triggers and views into it
        connection.execute("PRAGMA cell_size_check = ON")
        connection.execute("PRAGMA secure_delete = ON")  # what is deleted is overwritten, so that forgetting forgets
        connection.executescript(schema)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _quietly(act: Callable[[], T]) -> T:
    """What an act returns. The error is raised after SQLite's own was let go, so that not even its context holds a value."""
    try:
        return act()
    except (sqlite3.Error, UnicodeDecodeError) as error:  # the second comes from a message about a damaged schema
        busy = isinstance(error, sqlite3.OperationalError) and "locked" in str(error)
    why = "another process has been writing to it for too long" if busy else "its file is damaged, full, closed or unreachable"
    raise EngineError("The database of the vault did not answer", why=why, instead="the same again once the file can be written")
