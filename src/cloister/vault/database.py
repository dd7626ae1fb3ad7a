"""SQLite files, for the store and for the client's state: opened alike, and silent about what is in them."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from cloister.errors import EngineError

T = TypeVar("T")
_MANY = 900
"""Variables of one statement; older builds of SQLite take 999."""
_PATIENCE_MS = 30_000


class Database:
    """One SQLite file, or one in memory. Its errors have a fixed text, since SQLite's own may hold a value."""

    def __init__(self, path: str | Path | None, schema: str) -> None:
        self.path = path
        self.lock = threading.RLock()
        self._connection = _quietly(lambda: _opened(path, schema))

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """The rows of a statement."""
        with self.lock:
            return _quietly(lambda: self._connection.execute(statement, values).fetchall())

    def row(self, statement: str, values: Sequence[Any] = ()) -> Any:
        """The first row of a statement, or None."""
        with self.lock:
            return _quietly(lambda: self._connection.execute(statement, values).fetchone())

    def run(self, statement: str, values: Sequence[Any] = ()) -> int:
        """How many rows a statement changed."""
        with self.lock:
            return _quietly(lambda: self._connection.execute(statement, values).rowcount)

    def run_many(self, statement: str, many: Iterable[Sequence[Any]]) -> None:
        """A statement for each of many rows."""
        if not (many := list(many)):
            return
        with self.lock:
            _quietly(lambda: self._connection.executemany(statement, many))

    def rows_in(self, statement: str, keys: Sequence[Any]) -> Iterator[Any]:
        """The rows of a statement that ends in `IN`, for any number of keys."""
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
        """All of it or nothing; IMMEDIATE waits until no other process writes."""
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
        with self.lock:
            _quietly(lambda: self._connection.create_aggregate(name, takes, aggregate))

    def copy(self, path: Path) -> None:
        """A copy of the whole, as of now."""

        def copied() -> None:
            target = sqlite3.connect(path)
            try:
                self._connection.backup(target)
            finally:
                target.close()

        with self.lock:
            _quietly(copied)

    def forget_log(self) -> None:
        """Empty the write-ahead log, which may still hold what was deleted."""
        if self.row("PRAGMA wal_checkpoint(TRUNCATE)")[0]:
            raise EngineError(
                "What was deleted may still be in the log of the database",
                why="another process has been reading it for too long",
                instead="the same again once that process has ended",
            )

    def close(self) -> None:
        """Close the file."""
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
