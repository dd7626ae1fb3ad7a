"""The server's side: records, an index and, of each collection, a counter and a root, in a database that sees no value.

    collections   renamed name, counter, root, their HMAC, and the declaration of the fields, encrypted
    epochs        keys of epochs, wrapped under the owner's key
    r_<name>      one row a record: handle, epoch, version, and a JSON document of renamed fields and ciphertexts
    i_<name>      one row an entry of the index: address, epoch, content
    t_<name>      tokens, where a field was declared to show equality or order (`weak.py`)

Names of tables are hexadecimal digits that a keyed hash made, so no name of a collection or a field reaches SQL. Here is the
embedded store, an SQLite file; `postgres.py` has a server's. They differ in types and in how a writer waits.
"""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, ClassVar, NamedTuple

from cloister.vault.database import Database, Statements
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
    tokens: Iterable[tuple[str, int, bytes, bytes]] = ()
    """What a field's tokens are called, epoch, token, handle."""
    sums: Iterable[tuple[str, int, bytes, int]] = ()
    """What a field's Paillier cells are called, epoch, handle, cell."""


class Store:
    """What every store does, in SQL that both databases know."""

    records_are: ClassVar[str] = "handle BLOB PRIMARY KEY, epoch INTEGER, version INTEGER, body TEXT) WITHOUT ROWID"
    entries_are: ClassVar[str] = "address BLOB PRIMARY KEY, epoch INTEGER, content BLOB) WITHOUT ROWID"
    tokens_are: ClassVar[str] = (
        "field TEXT, epoch INTEGER, token BLOB, handle BLOB, PRIMARY KEY (field, epoch, token, handle)) WITHOUT ROWID"
    )
    sums_are: ClassVar[str] = "field TEXT, epoch INTEGER, handle BLOB, cell BLOB, PRIMARY KEY (field, handle)) WITHOUT ROWID"
    body: ClassVar[str] = "body"

    def __init__(self, database: Statements) -> None:
        self.database = database

    def reading(self) -> AbstractContextManager[None]:
        """Everything as of one moment."""
        return self.database.transaction()

    def writing(self) -> AbstractContextManager[None]:
        """One writer at a time, all or nothing."""
        return self.database.transaction("IMMEDIATE")

    def create(self, name: str, data_set: str, mark: Mark, sealed: bytes, *, tokens: bool = False, sums: bool = False) -> None:
        """A collection without a record, with tables of tokens and of Paillier cells or without."""
        self.database.run(f'CREATE TABLE "r_{name}" ({self.records_are}')
        self.database.run(f'CREATE TABLE "i_{name}" ({self.entries_are}')
        if tokens:
            self.database.run(f'CREATE TABLE "t_{name}" ({self.tokens_are}')
            self.database.run(f'CREATE INDEX "h_{name}" ON "t_{name}" (handle)')
        if sums:
            self.database.run(f'CREATE TABLE "p_{name}" ({self.sums_are}')
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

    def seal(self, name: str, sealed: bytes) -> None:
        """The declaration, encrypted otherwise."""
        self.database.run("UPDATE collections SET sealed = ? WHERE name = ?", [sealed, name])

    def write(self, name: str, mark: Mark, changes: Changes) -> None:
        """One change, inside `writing`."""
        run = self.database.run_many
        run(f'DELETE FROM "r_{name}" WHERE handle = ?', [[handle] for handle in changes.removed])  # noqa: S608 - hexadecimal digits
        put = "(handle) DO UPDATE SET epoch = excluded.epoch, version = excluded.version, body = excluded.body"
        run(f'INSERT INTO "r_{name}" VALUES (?, ?, ?, ?) ON CONFLICT {put}', changes.rows)  # noqa: S608
        run(f'DELETE FROM "i_{name}" WHERE address = ?', [[address] for address in changes.dropped])  # noqa: S608
        put = "(address) DO UPDATE SET epoch = excluded.epoch, content = excluded.content"
        run(f'INSERT INTO "i_{name}" VALUES (?, ?, ?) ON CONFLICT {put}', changes.entries)  # noqa: S608
        if changes.tokens:
            changed = [[handle] for *_, handle in changes.tokens]
            run(f'DELETE FROM "t_{name}" WHERE handle = ?', changed)  # noqa: S608
            run(f'INSERT INTO "t_{name}" VALUES (?, ?, ?, ?)', [each for each in changes.tokens if each[0]])  # noqa: S608
        if changes.sums:
            changed = [[handle] for _, _, handle, _ in changes.sums]
            run(f'DELETE FROM "p_{name}" WHERE handle = ?', changed)  # noqa: S608
            cells = [(called, epoch, handle, _cell(cell)) for called, epoch, handle, cell in changes.sums if called]
            run(f'INSERT INTO "p_{name}" VALUES (?, ?, ?, ?)', cells)  # noqa: S608
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

    def between(
        self, name: str, field: str, epoch: int, bounds: tuple[bytes, bytes] | None, *, order: int = 1, most: int | None = None
    ) -> list[bytes]:
        """The handles of an epoch with such tokens. With `most`, the first so many in their order, or in the other one (−1), and
        all that share the token of the last: one token may stand for several values, which the client alone can tell apart."""
        chosen, values = "field = ? AND epoch = ?", [field, epoch, *(bounds or ())]
        chosen += "" if bounds is None else " AND token BETWEEN ? AND ?"
        if most is not None:
            way = f"ORDER BY token {'ASC' if order == 1 else 'DESC'} LIMIT 1 OFFSET {most - 1:d}"
            last = self.database.row(f'SELECT token FROM "t_{name}" WHERE {chosen} {way}', values)  # noqa: S608 - hexadecimal digits
            if last is not None:
                chosen, values = f"{chosen} AND token {'<=' if order == 1 else '>='} ?", [*values, last[0]]
        return [handle for (handle,) in self.database.rows(f'SELECT handle FROM "t_{name}" WHERE {chosen}', values)]  # noqa: S608

    def product(self, name: str, field: str, epoch: int, handles: list[bytes] | None, square: int) -> int:
        """The product of the Paillier cells of these records, or of all of an epoch, modulo a square."""
        from cloister.crypto.paillier import Product

        modulus, found = _cell(square), Product()
        for (cell,) in self._cells(self.multiplied(modulus), name, field, epoch, handles):
            if isinstance(cell, bytes):  # NULL is the product of none; anything else fails the tag of the sum
                found.step(cell, modulus)
        return int.from_bytes(found.finalize(), "big")

    def multiplied(self, modulus: bytes) -> str:
        """What a database gives of the cells: all of them, where it multiplies none."""
        return "cell"

    def _cells(self, what: str, name: str, field: str, epoch: int, handles: list[bytes] | None) -> Iterator[Any]:
        select = f"SELECT {what} FROM \"p_{name}\" WHERE field = '{field}' AND epoch = {epoch:d}"  # noqa: S608 - digits
        return iter(self.database.rows(select)) if handles is None else self.database.rows_in(f"{select} AND handle IN", handles)

    def tokens(self, name: str) -> list[Any]:
        """All tokens."""
        return self.database.rows(f'SELECT field, epoch, token, handle FROM "t_{name}"')  # noqa: S608

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
        self._file = Database(path or None, SCHEMA)
        super().__init__(self._file)

    def multiplied(self, modulus: bytes) -> str:
        """Multiplied inside SQLite, by a function that has the cells and the public modulus."""
        from cloister.crypto.paillier import Product

        self._file.learn("paillier_product", 2, Product)
        return f"paillier_product(cell, X'{modulus.hex()}')"


def _cell(number: int) -> bytes:
    return number.to_bytes(-(-number.bit_length() // 8), "big")
