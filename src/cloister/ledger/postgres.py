"""A ledger in PostgreSQL: the same tables, the same steps, one writer at a time by an advisory lock on the chain.

Each commit waits until the server's log is on its disk (`synchronous_commit`). The lock is taken as the first statement of a
transaction whose later statements each see what was committed before them (read committed), so that a step sees every earlier
commit, exactly as under SQLite's immediate transactions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from cloister.errors import LedgerUnavailable
from cloister.lazily import needing
from cloister.ledger.store import Cursor, Store

if TYPE_CHECKING:
    import psycopg

_CHAIN = 0x636C6F6973746572  # "cloister": the advisory lock's number, one a database
_WAIT = "60s"
_REASONS = {
    "": "it could not be reached",
    "08": "it could not be reached",
    "25": "it may only be read",
    "28": "it refused the name or the password",
    "53": "its disk is full, or it has no room for another connection",
    "55": "another process held it for too long",
    "57": "it was stopped",
}
"""By the class of PostgreSQL's error code (appendix A of its manual)."""


class PostgresStore:
    """One connection, used by one thread at a time. Needs `psycopg`."""

    types = {"long": "BIGINT", "bytes": "BYTEA", "compact": ""}  # noqa: RUF012
    memory = False
    single = False  # the first statement of a transaction is the one that finds a connection that was lost

    def __init__(self, url: str) -> None:
        with needing("This ledger was not opened", "psycopg, which speaks to PostgreSQL, is not installed", "postgres"):
            import psycopg
        self._url = url
        self.name = f"the ledger in PostgreSQL at {urlsplit(url).hostname or 'this machine'}"
        self.errors: tuple[type[Exception], ...] = (psycopg.Error,)
        try:
            self._connection = self._connect()
        except psycopg.Error as error:
            raise self.unavailable(error) from None

    def _connect(self) -> psycopg.Connection[Any]:
        import psycopg

        connection = psycopg.connect(self._url, autocommit=True)
        connection.execute("SET synchronous_commit = on")
        connection.execute(f"SET lock_timeout = '{_WAIT}'")
        connection.execute("SET default_transaction_isolation = 'read committed'")
        return connection

    def _awake(self) -> None:
        """Between two transactions, a connection that was lost is made again."""
        if self._connection.closed:
            self._connection = self._connect()

    def _first(self, statement: str) -> None:
        """Begin a transaction. That a server went away and came back shows only when it is spoken to; nothing was begun then, so
        it is said once more, on a new connection.
        """
        self._awake()
        try:
            self._connection.execute(statement)
        except self.errors:
            if not self._connection.closed:
                raise
            self._awake()
            self._connection.execute(statement)

    def begin(self) -> None:
        """A transaction that holds the chain's lock before it reads anything."""
        self._first("BEGIN")
        self._connection.execute("SELECT pg_advisory_xact_lock(%s)", (_CHAIN,))

    def begin_reading(self) -> None:
        """A transaction that sees one moment, and blocks nobody."""
        self._first("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    def commit(self) -> None:
        """Returns when the server's log is on its disk."""
        self._connection.execute("COMMIT")

    def rollback(self) -> None:
        """Forget it. A lost connection has forgotten it already."""
        try:
            self._connection.execute("ROLLBACK")
        except self.errors:
            return

    def execute(self, sql: str, values: Sequence[Any] = ()) -> Cursor:
        """One statement."""
        cursor: Cursor = self._connection.execute(sql.replace("?", "%s"), values)
        return cursor

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]]) -> Any:
        """One statement for each row."""
        with self._connection.cursor() as cursor:
            cursor.executemany(sql.replace("?", "%s"), rows)

    def another(self) -> Store:
        """A second connection to the server."""
        return PostgresStore(self._url)

    def has_tables(self, *names: str) -> bool:
        """Whether a ledger was made here, or these tables of one."""
        asked = "SELECT to_regclass(?) IS NOT NULL"
        return all(self.execute(asked, (name,)).fetchone()[0] for name in names or ("meta", "lines"))

    def unavailable(self, error: Exception) -> LedgerUnavailable:
        """The server's own words may hold values, so only the class of its error is passed on."""
        state = str(getattr(error, "sqlstate", None) or "")
        return LedgerUnavailable(
            f"Nothing was answered, because {self.name} could not be used",
            why=_REASONS.get(state[:2], "its database refused a statement"),
            instead="a server that can be reached and written, then ask again; what was charged stays charged",
        )

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.close()
