"""A ledger in one SQLite file (or in memory): write-ahead log, every commit pushed to the disk, one writer at a time."""

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cloister.errors import LedgerUnavailable
from cloister.ledger.store import Cursor, Store

_WAIT_SECONDS = 60.0
_PAGE_BYTES = 1024  # a charge touches some eight pages for a few hundred bytes each, and the log takes whole pages
_LOG_PAGES = 4000  # 4 MiB: a larger log is copied into the database less often, but writing over a log is faster than growing it
_CACHE_KIBIBYTES = 32 * 1024

_REASONS = {
    sqlite3.SQLITE_FULL: "the disk, or the room that it may take, is full",
    sqlite3.SQLITE_READONLY: "its file, or the folder that holds it, may only be read",
    sqlite3.SQLITE_BUSY: "another process held it for too long",
    sqlite3.SQLITE_LOCKED: "another process held it for too long",
    sqlite3.SQLITE_IOERR: "the disk refused to read or write",
    sqlite3.SQLITE_CANTOPEN: "its file could not be opened",
    sqlite3.SQLITE_PERM: "its file may not be opened",
    sqlite3.SQLITE_NOTADB: "its file is not a SQLite database",
    sqlite3.SQLITE_CORRUPT: "its file is damaged",
}


class SQLiteStore:
    """One connection, used by one thread at a time. `path` None: in memory, gone when it is closed."""

    types = {"long": "INTEGER", "bytes": "BLOB", "compact": "WITHOUT ROWID"}  # noqa: RUF012
    errors: tuple[type[Exception], ...] = (sqlite3.Error,)
    single = True
    execute: Callable[..., Cursor]
    executemany: Callable[..., Any]

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.memory = path is None
        self.name = "the ledger in memory" if path is None else f"the ledger {path.name}"
        try:
            self._connection = self._connect()
            self._cursor = self._connection.cursor()  # one for all: making one for each statement takes as long as some of them
            self.execute, self.executemany = self._cursor.execute, self._cursor.executemany
        except (sqlite3.Error, OSError) as error:
            raise self.unavailable(error) from None

    def _connect(self) -> sqlite3.Connection:
        if self._path is not None and not self._path.exists():
            self._path.touch(mode=0o600)  # who asked what is nobody else's business
        connection = sqlite3.connect(
            ":memory:" if self._path is None else os.fspath(self._path),
            timeout=_WAIT_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )
        # a text that is none in UTF-8 was written by nobody here: it is to be found, and not to end the search for it
        connection.text_factory = lambda value: value.decode("utf-8", "surrogateescape")
        connection.execute("PRAGMA foreign_keys = ON")
        if self._path is not None:
            connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
            _patiently(connection, "PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
            connection.execute("PRAGMA fullfsync = ON")  # on macOS, a plain fsync leaves the data in the disk's own memory
            connection.execute(f"PRAGMA cache_size = -{_CACHE_KIBIBYTES}")
        return connection

    def begin(self) -> None:
        """An immediate transaction: it has the write lock before it reads anything."""
        self.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """With synchronous = FULL, the log is pushed to the disk before this returns."""
        self.execute("COMMIT")

    def rollback(self) -> None:
        """Forget it; some errors (a full disk) have already done so."""
        with contextlib.suppress(sqlite3.Error):
            if self._connection.in_transaction:
                self.execute("ROLLBACK")

    def another(self) -> Store:
        """A second connection to the file."""
        return self if self._path is None else SQLiteStore(self._path)

    def begin_reading(self) -> None:
        """A reading transaction: in a write-ahead log it sees one moment, and blocks nobody."""
        self.execute("BEGIN")

    def has_tables(self, *names: str) -> bool:
        """Whether a ledger was made here, or these tables of one."""
        asked = "SELECT 1 FROM sqlite_master WHERE name = ?"
        return all(self.execute(asked, (name,)).fetchone() is not None for name in names or ("meta",))

    def unavailable(self, error: Exception) -> LedgerUnavailable:
        """SQLite's own words name tables and values, so only the kind of its error is passed on."""
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        return LedgerUnavailable(
            f"Nothing was answered, because {self.name} could not be used",
            why=_REASONS.get(code, "its database refused a statement"),
            instead="make the file writable and the disk roomy, then ask again; what was charged stays charged",
        )

    def close(self) -> None:
        """Let go of the file."""
        self._cursor.close()
        self._connection.close()


def _patiently(connection: sqlite3.Connection, statement: str) -> None:
    """Turning the log on needs the file alone for a moment, and SQLite doesn't wait for that on its own."""
    until = time.monotonic() + _WAIT_SECONDS
    while True:
        try:
            connection.execute(statement)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(0.002)
        else:
            return
