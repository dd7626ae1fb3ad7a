"""A store in PostgreSQL: records as JSONB, in the schema that the address's user writes to; one of its own, please.

What the client wrote is compared byte for byte, and JSONB keeps no bytes: it orders keys and spaces again. So a body is written
again in the one form that the client gives it (`records.py`: sorted keys, no spaces) before its HMAC is looked at.

Reading is REPEATABLE READ, so that all of a search is of one moment. A writer locks the table of collections first: one writer at
a time, as in SQLite. A connection that broke is opened again with the next transaction; what was in the middle of one fails.

PostgreSQL keeps deleted rows until VACUUM, and in its logs and backups. What is there is ciphertext; a person is forgotten
because their key never was there (`keys.py`).
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from cloister.errors import EngineError, MissingDependency
from cloister.installed import install
from cloister.vault.database import Statements
from cloister.vault.store import SCHEMA, Row, Store

if TYPE_CHECKING:
    import psycopg

T = TypeVar("T")
_MANY = 5000
_SECONDS = 10


class PostgresStore(Store):
    """A store on a server: `postgresql://keeper:…@db.example.org/sealed?sslmode=verify-full`."""

    records_are: ClassVar[str] = "handle BYTEA PRIMARY KEY, epoch BIGINT, version BIGINT, body JSONB)"
    entries_are: ClassVar[str] = "address BYTEA PRIMARY KEY, epoch BIGINT, content BYTEA)"
    body: ClassVar[str] = "body::text"
    tokens_are: ClassVar[str] = "field TEXT, epoch BIGINT, token BYTEA, handle BYTEA, PRIMARY KEY (field, epoch, token, handle))"

    sums_are: ClassVar[str] = "field TEXT, epoch BIGINT, handle BYTEA, cell BYTEA, PRIMARY KEY (field, handle))"

    def __init__(self, url: str) -> None:
        super().__init__(PostgresDatabase(url, SCHEMA.replace("BLOB", "BYTEA").replace("INTEGER", "BIGINT")))

    def records(self, name: str, handles: list[bytes] | None = None) -> Iterator[Row]:
        """The records with these handles, or all; each body as the client writes it."""
        for row in super().records(name, handles):
            with suppress(ValueError, TypeError, RecursionError):  # of what the client never wrote, its HMAC says so
                row = row._replace(body=json.dumps(json.loads(row.body), separators=(",", ":"), sort_keys=True))
            yield row


class PostgresDatabase(Statements):
    """One connection. What the server says itself may hold the address, or what it was sent."""

    def __init__(self, url: str, schema: str) -> None:
        try:
            import psycopg
        except ImportError:
            raise MissingDependency(
                "PostgreSQL is not available", why="psycopg is not installed", instead=install("postgres")
            ) from None
        self._url, self._errors = url, psycopg.Error
        self.lock = threading.RLock()
        self._open: psycopg.Connection[Any] | None = None
        self._inside = self._ended = False
        with self.transaction():
            self.run("SELECT pg_advisory_xact_lock(7105820481)")  # two that come first at once both find no table
            self.run(schema)

    def rows_in(self, statement: str, keys: Sequence[Any]) -> Iterator[Any]:
        for start in range(0, len(keys), _MANY):
            yield from self.rows(f"{statement.removesuffix('IN')} = ANY(?)", [list(keys[start : start + _MANY])])

    @contextmanager
    def transaction(self, kind: str = "DEFERRED") -> Iterator[None]:
        with self.lock:
            self.run("BEGIN" if kind == "IMMEDIATE" or self._open is None else "BEGIN ISOLATION LEVEL REPEATABLE READ")
            self._inside = True
            try:
                if kind == "IMMEDIATE":
                    self.run("LOCK TABLE collections IN SHARE ROW EXCLUSIVE MODE")
                yield
                self.run("COMMIT")
            except BaseException:
                if self._open is not None and not self._open.closed:
                    self._done(lambda open_: open_.rollback())
                raise
            finally:
                self._inside = False

    def forget_log(self) -> None:
        """The server's logs are its own."""

    def close(self) -> None:
        with self.lock:
            self._ended = True
            if self._open is not None:
                self._open.close()

    def _done(self, act: Callable[[Any], T]) -> T:
        """What an act returns. The error is raised after the server's own was let go."""
        with self.lock:
            try:
                return act(self._connection())
            except (self._errors, UnicodeError):
                pass
        raise EngineError(
            "The database of the vault did not answer",
            why="it is closed, out of reach, or does not allow it",
            instead="the same again once the server answers",
        )

    def _connection(self) -> psycopg.Connection[Any]:
        if self._open is None or (self._open.closed and not self._inside and not self._ended):
            import psycopg

            self._open = psycopg.connect(self._url, autocommit=True, connect_timeout=_SECONDS, application_name="cloister vault")
            self._open.execute("SET synchronous_commit = on")  # what is acknowledged is there after a crash of the server
        return self._open

    def _spelled(self, statement: str) -> Any:
        return statement.replace("?", "%s")
