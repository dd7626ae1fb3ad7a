"""The server's side: records, an index and, of each collection, a counter and a root, in a database that sees no value.

    collections   renamed name, counter, root, their HMAC, and the declaration of the fields, encrypted
    epochs        keys of epochs, wrapped under the owner's key
    r_<name>      one row a record: handle, epoch, version, and a JSON document of renamed fields and ciphertexts
    i_<name>      one row an entry of the index: address, epoch, content

Names of tables are hexadecimal digits that a keyed hash made, so no name of a collection or a field reaches SQL. Here is the
embedded store, an SQLite file; `postgres.py` has a server's. They differ in types and in how a writer waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, NamedTuple, Protocol

from cloister.errors import InvalidParameter
from cloister.vault.database import Database
from cloister.vault.errors import Tampered

SCHEMA = """
CREATE TABLE IF NOT EXISTS collections (name TEXT PRIMARY KEY, data_set TEXT, counter INTEGER, root BLOB, mac BLOB, sealed BLOB);
CREATE TABLE IF NOT EXISTS epochs (data_set TEXT, epoch INTEGER, wrapped BLOB, PRIMARY KEY (data_set, epoch));
"""


class Row(NamedTuple):
    """One stored record."""

    handle: bytes
    epoch: int
    version: int
    body: str


class Mark(NamedTuple):
    """How far a collection is, by the store's word."""

    counter: int
    root: bytes
    mac: bytes


class Changes(NamedTuple):
    """What one change writes."""

    rows: Iterable[Row]
    removed: Iterable[bytes]
    entries: Iterable[tuple[bytes, int, bytes]]
    """Address, epoch and content, sorted by address."""
    dropped: Iterable[bytes]
    ended: int | None


class Connected(Protocol):
    """A database that statements with `?` are run in."""

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """The rows of a statement."""

    def row(self, statement: str, values: Sequence[Any] = ()) -> Any:
        """The first row of a statement, or None."""

    def run(self, statement: str, values: Sequence[Any] = ()) -> int:
        """How many rows a statement changed."""

    def run_many(self, statement: str, many: Iterable[Sequence[Any]]) -> None:
        """A statement for each of many rows."""

    def rows_in(self, statement: str, keys: Sequence[Any]) -> Iterator[Any]:
        """The rows of a statement that ends in `IN`, for any number of keys."""

    def transaction(self, kind: str = "DEFERRED") -> AbstractContextManager[None]:
        """All of it or nothing; IMMEDIATE waits until no other process writes."""

    def forget_log(self) -> None:
        """Empty the write-ahead log, as far as a client can."""

    def close(self) -> None:
        """Close it."""


class Store:
    """What every store does, in SQL that both databases know."""

    records_are: ClassVar[str] = "handle BLOB PRIMARY KEY, epoch INTEGER, version INTEGER, body TEXT) WITHOUT ROWID"
    entries_are: ClassVar[str] = "address BLOB PRIMARY KEY, epoch INTEGER, content BLOB) WITHOUT ROWID"
    body: ClassVar[str] = "body"

    def __init__(self, database: Connected) -> None:
        self.database = database

    def reading(self) -> AbstractContextManager[None]:
        """Everything as of one moment."""
        return self.database.transaction()

    def writing(self) -> AbstractContextManager[None]:
        """One writer at a time, all or nothing."""
        return self.database.transaction("IMMEDIATE")

    def create(self, name: str, data_set: str, mark: Mark, sealed: bytes) -> None:
        """A collection without a record."""
        self.database.run(f'CREATE TABLE "r_{name}" ({self.records_are}')
        self.database.run(f'CREATE TABLE "i_{name}" ({self.entries_are}')
        self.database.run("INSERT INTO collections VALUES (?, ?, ?, ?, ?, ?)", [name, data_set, *mark, sealed])

    def collections(self, data_set: str) -> list[str]:
        """The collections of a data set."""
        rows = self.database.rows("SELECT name FROM collections WHERE data_set = ? ORDER BY name", [data_set])
        if not all(isinstance(name, str) for (name,) in rows):
            raise Tampered("The list of collections was changed", why="a name is no text", instead="the store's last good backup")
        return [name for (name,) in rows]

    def mark(self, name: str) -> Mark | None:
        """Counter, root and their HMAC."""
        row = self.database.row("SELECT counter, root, mac FROM collections WHERE name = ?", [name])
        return row and Mark(*row)

    def sealed(self, name: str) -> bytes | None:
        """The encrypted declaration."""
        row = self.database.row("SELECT sealed FROM collections WHERE name = ?", [name])
        return row and (row[0] if isinstance(row[0], bytes) else b"")

    def write(self, name: str, mark: Mark, changes: Changes) -> None:
        """One change, inside `writing`."""
        run = self.database.run_many
        run(f'DELETE FROM "r_{name}" WHERE handle = ?', [[handle] for handle in changes.removed])  # noqa: S608 - hexadecimal digits
        put = "(handle) DO UPDATE SET epoch = excluded.epoch, version = excluded.version, body = excluded.body"
        run(f'INSERT INTO "r_{name}" VALUES (?, ?, ?, ?) ON CONFLICT {put}', changes.rows)  # noqa: S608
        run(f'DELETE FROM "i_{name}" WHERE address = ?', [[address] for address in changes.dropped])  # noqa: S608
        put = "(address) DO UPDATE SET epoch = excluded.epoch, content = excluded.content"
        run(f'INSERT INTO "i_{name}" VALUES (?, ?, ?) ON CONFLICT {put}', changes.entries)  # noqa: S608
        if changes.ended is not None:
            self.database.run(f'DELETE FROM "i_{name}" WHERE epoch <= ?', [changes.ended])  # noqa: S608
        self.database.run("UPDATE collections SET counter = ?, root = ?, mac = ? WHERE name = ?", [*mark, name])

    def records(self, name: str, handles: list[bytes] | None = None) -> Iterator[Row]:
        """The records with these handles, or all."""
        select = f'SELECT handle, epoch, version, {self.body} FROM "r_{name}"'  # noqa: S608
        rows = self.database.rows(select) if handles is None else self.database.rows_in(f"{select} WHERE handle IN", handles)
        yield from (Row(*row) for row in rows)

    def entries(self, name: str, addresses: list[bytes]) -> dict[bytes, bytes]:
        """The entries at these addresses."""
        return dict(self.database.rows_in(f'SELECT address, content FROM "i_{name}" WHERE address IN', addresses))  # noqa: S608

    def entry_count(self, name: str) -> int:
        """How many entries the index has."""
        return int(self.database.row(f'SELECT count(*) FROM "i_{name}"')[0])  # noqa: S608

    def epochs(self, data_set: str) -> dict[int, bytes]:
        """The wrapped keys of epochs. What has not the form of one is as good as missing."""
        rows = self.database.rows("SELECT epoch, wrapped FROM epochs WHERE data_set = ?", [data_set])
        return {number: key for number, key in rows if isinstance(number, int) and isinstance(key, bytes)}

    def is_empty(self) -> bool:
        """Whether nobody keeps anything here."""
        return self.database.row("SELECT 1 FROM epochs") is None

    def add_epoch(self, data_set: str, epoch: int, wrapped: bytes) -> None:
        """The wrapped key of one more epoch."""
        put = "INSERT INTO epochs VALUES (?, ?, ?) ON CONFLICT (data_set, epoch) DO UPDATE SET wrapped = excluded.wrapped"
        self.database.run(put, [data_set, epoch, wrapped])

    def end_epochs(self, data_set: str, before: int) -> None:
        """Delete the wrapped keys of the epochs before one."""
        self.database.run("DELETE FROM epochs WHERE data_set = ? AND epoch < ?", [data_set, before])

    def close(self) -> None:
        """Close the file."""
        self.database.close()


class SQLiteStore(Store):
    """A store in one SQLite file: `sqlite:///sealed.db`, `sqlite:////absolute/path.db`, or `sqlite://` in memory."""

    def __init__(self, path: str) -> None:
        super().__init__(Database(path or None, SCHEMA))


def store_at(url: str) -> Store:
    """The store of an address."""
    scheme, found, path = str(url).partition("://")
    if scheme == "postgresql" and path and "\0" not in path:
        from cloister.vault.postgres import PostgresStore

        return PostgresStore(str(url))
    if scheme != "sqlite" or not found or (path and not path.startswith("/")) or path == "/" or "\0" in path:
        raise InvalidParameter(
            "The store is invalid",
            why="only SQLite files and PostgreSQL are stores",
            instead='"sqlite:///sealed.db", or "postgresql://keeper@db.example.org/sealed"',
        )
    return SQLiteStore(path[1:])
