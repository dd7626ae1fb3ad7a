"""What the client keeps: of each record its HMAC, the tree above, how many entries each word has, and the keys of people.

It is the trusted side. Nothing in it is a value: words are named by a keyed hash, and keys are wrapped under the owner's key.

A change is made in three steps, so that a crash between any two loses nothing. (1) The change is written here as *pending*. (2)
The store commits its rows together with the counter and the root. (3) The pending change is applied here. After a crash the
store's counter tells which steps were done: if it is the pending one, the change is applied, otherwise it is discarded, and the
positions of its index entries are skipped for ever, since the store may have seen them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

from cloister.vault.database import Database
from cloister.vault.errors import Conflict
from cloister.vault.index import HANDLE, Word
from cloister.vault.merkle import EMPTY, bucket_of, updated

_SCHEMA = """
CREATE TABLE IF NOT EXISTS epochs (
    data_set TEXT, epoch INTEGER, wrapped BLOB, index_key BLOB, PRIMARY KEY (data_set, epoch));
CREATE TABLE IF NOT EXISTS restoring (data_set TEXT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS replaced (data_set TEXT PRIMARY KEY, owner BLOB);
CREATE TABLE IF NOT EXISTS copied (data_set TEXT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS expires (day TEXT);
CREATE TABLE IF NOT EXISTS collections (name TEXT PRIMARY KEY, data_set TEXT, counter INTEGER, root BLOB, pending TEXT);
CREATE TABLE IF NOT EXISTS leaves (
    collection TEXT, handle BLOB, epoch INTEGER, mac BLOB, PRIMARY KEY (collection, handle)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS nodes (
    collection TEXT, parent TEXT, prefix TEXT, hash BLOB, PRIMARY KEY (collection, parent, prefix)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS words (
    collection TEXT, word BLOB, epoch INTEGER, count INTEGER, skipped TEXT, PRIMARY KEY (collection, word)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS paillier (collection TEXT, epoch INTEGER, wrapped BLOB, PRIMARY KEY (collection, epoch));
CREATE TABLE IF NOT EXISTS people (data_set TEXT, person BLOB, pseudonym BLOB, wrapped BLOB, PRIMARY KEY (data_set, person));
CREATE TABLE IF NOT EXISTS cell_batches (
    collection TEXT, format TEXT, number INTEGER, id TEXT, rows INTEGER, sealed INTEGER,
    PRIMARY KEY (collection, format, number));
CREATE TABLE IF NOT EXISTS cells (
    collection TEXT, format TEXT, handle BLOB, batch INTEGER, place INTEGER, person BLOB, digest BLOB, mac BLOB,
    PRIMARY KEY (collection, format, handle)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS moved (
    collection TEXT, handle BLOB, epoch INTEGER, PRIMARY KEY (collection, handle)) WITHOUT ROWID;
CREATE UNIQUE INDEX IF NOT EXISTS people_by_pseudonym ON people (pseudonym);
"""


class Leaf(NamedTuple):
    """What is known of a record."""

    epoch: int
    mac: bytes


class Head(NamedTuple):
    """How far a collection is."""

    counter: int
    root: bytes
    pending: str | None = None


class Pending(NamedTuple):
    """A change that the store may have made or not."""

    counter: int
    root: bytes
    leaves: Mapping[bytes, Leaf | None]
    words: Mapping[bytes, Word]
    ended: int | None
    """The epoch whose index is gone with this change."""

    def text(self) -> str:
        """The change as it is stored."""
        leaves = {handle.hex(): leaf and [leaf.epoch, leaf.mac.hex()] for handle, leaf in self.leaves.items()}
        words = {name.hex(): word for name, word in self.words.items()}
        return json.dumps([self.counter, self.root.hex(), leaves, words, self.ended])

    @classmethod
    def of(cls, text: str) -> Pending:
        """The change that was stored."""
        counter, root, leaves, words, ended = json.loads(text)
        return cls(
            counter,
            bytes.fromhex(root),
            {bytes.fromhex(handle): leaf and Leaf(leaf[0], bytes.fromhex(leaf[1])) for handle, leaf in leaves.items()},
            {bytes.fromhex(name): _word(*word) for name, word in words.items()},
            ended,
        )


class CellBatch(NamedTuple):
    """A batch of masked cells that was written."""

    id: str
    rows: int
    """With padding."""
    sealed: int
    """Without."""


class Cell(NamedTuple):
    """Where the masked cells of a record are."""

    batch: int
    place: int
    person: bytes
    digest: bytes
    """Of what was sealed."""
    mac: bytes
    """Of the record from which it was."""


class State:
    """The client's state, in a file or in memory."""

    def __init__(self, path: Path | None = None) -> None:
        self.database = Database(path, _SCHEMA)
        if not self.database.row("PRAGMA user_version")[0]:  # written before `moved` was: nothing is known of what is there
            self.database.run("INSERT OR IGNORE INTO moved SELECT name, x'', (SELECT max(epoch) FROM epochs) FROM collections")
            self.database.run("PRAGMA user_version = 1")

    def head(self, collection: str) -> Head | None:
        """How far a collection is; None if it is not known here."""
        row = self.database.row("SELECT counter, root, pending FROM collections WHERE name = ?", [collection])
        return row and Head(*row)

    def collections(self, data_set: str) -> list[str]:
        """The collections of a data set."""
        return [
            name for (name,) in self.database.rows("SELECT name FROM collections WHERE data_set = ? ORDER BY name", [data_set])
        ]

    def adopt(self, collection: str, data_set: str) -> None:
        """A collection without a record."""
        self.database.run("INSERT OR IGNORE INTO collections VALUES (?, ?, 0, ?, NULL)", [collection, data_set, EMPTY])

    def leaves(self, collection: str, handles: Sequence[bytes] | None = None) -> dict[bytes, Leaf]:
        """What is known of these records, or of all; nothing of one that there is not."""
        select = f"SELECT handle, epoch, mac FROM leaves WHERE collection = '{collection}'"  # noqa: S608 - hexadecimal digits
        rows = self.database.rows(select) if handles is None else self.database.rows_in(f"{select} AND handle IN", handles)
        return {handle: Leaf(epoch, mac) for handle, epoch, mac in rows}

    def moved(self, collection: str, handles: Sequence[bytes]) -> list[bytes]:
        """Of these records, those that the index may still have under values which they no longer have."""
        select = f"SELECT handle FROM moved WHERE collection = '{collection}' AND handle IN"  # noqa: S608 - hexadecimal digits
        found = {handle for (handle,) in self.database.rows_in(select, [b"", *handles])}
        return [handle for handle in handles if handle in found or b"" in found]

    def outdated(self, collection: str, epoch: int, limit: int) -> list[bytes]:
        """Records of an earlier epoch."""
        rows = self.database.rows(
            "SELECT handle FROM leaves WHERE collection = ? AND epoch < ? LIMIT ?", [collection, epoch, limit]
        )
        return [handle for (handle,) in rows]

    def size(self, collection: str) -> int:
        """How many records there are."""
        return int(self.database.row("SELECT count(*) FROM leaves WHERE collection = ?", [collection])[0])

    def words(self, collection: str, names: Sequence[bytes]) -> dict[bytes, Word]:
        """What is known of words."""
        select = "SELECT word, epoch, count, skipped FROM words WHERE"
        rows = self.database.rows_in(f"{select} collection = '{collection}' AND word IN", names)
        return {name: _word(epoch, count, [] if skipped == "[]" else json.loads(skipped)) for name, epoch, count, skipped in rows}

    def entries(self, collection: str) -> int:
        """How many entries the index has."""
        rows = self.database.rows("SELECT epoch, count, skipped FROM words WHERE collection = ?", [collection])
        return sum(_word(epoch, count, json.loads(skipped)).entries for epoch, count, skipped in rows)

    def root_with(self, collection: str, leaves: Mapping[bytes, Leaf | None]) -> tuple[bytes, dict[str, bytes]]:
        """The root with these leaves in place of what is known, and all hashes that change."""
        buckets = {prefix: self._bucket(collection, prefix) for prefix in {bucket_of(handle) for handle in leaves}}
        for handle, leaf in leaves.items():
            bucket = buckets[bucket_of(handle)]
            if leaf is None:
                bucket.pop(handle, None)
            else:
                bucket[handle] = leaf.mac
        changed = updated(buckets, lambda parents: self._children(collection, parents))
        return changed[""], changed

    def propose(self, collection: str, expected: int, pending: Pending) -> None:
        """Step 1: the change that the store is about to make."""
        done = self.database.run(
            "UPDATE collections SET pending = ? WHERE name = ? AND counter = ? AND pending IS NULL",
            [pending.text(), collection, expected],
        )
        if done != 1:
            raise Conflict("The change was not made", why="another writer changed the collection", instead="the same once more")

    def apply(self, collection: str, pending: Pending, nodes: Mapping[str, bytes] | None = None) -> None:
        """Step 3: the store made the change. Twice is as good as once. `nodes` are the hashes that change, if known."""
        with self.database.unsynchronised(), self.database.transaction("IMMEDIATE"):  # once undone, the change is pending again
            head = self.head(collection)
            if head is None or head.counter >= pending.counter:
                return
            if nodes is None:
                nodes = self.root_with(collection, pending.leaves)[1] if pending.leaves else {}
            gone = [(collection, handle) for handle, leaf in pending.leaves.items() if leaf is None]
            kept = [(collection, handle, *leaf) for handle, leaf in pending.leaves.items() if leaf is not None]
            before = "SELECT collection, handle, epoch FROM leaves WHERE collection = ? AND handle = ?"
            self.database.run_many(f"INSERT OR REPLACE INTO moved {before}", [(collection, handle) for handle in pending.leaves])
            self.database.run_many("DELETE FROM leaves WHERE collection = ? AND handle = ?", gone)
            self.database.run_many("INSERT OR REPLACE INTO leaves VALUES (?, ?, ?, ?)", kept)
            self._put_nodes(collection, nodes)
            if pending.ended is not None:
                for table in ("words", "moved"):
                    self.database.run(f"DELETE FROM {table} WHERE collection = ? AND epoch <= ?", [collection, pending.ended])  # noqa: S608
            self._put_words(collection, pending.words)
            self.database.run(
                "UPDATE collections SET counter = ?, root = ?, pending = NULL WHERE name = ?",
                [pending.counter, pending.root, collection],
            )

    def discard(self, collection: str, pending: Pending) -> None:
        """The store did not make the change: its positions are never used."""
        with self.database.transaction("IMMEDIATE"):
            skipped = {}
            for name, word in pending.words.items():
                before = self.words(collection, [name]).get(name) or Word(word.epoch)
                if word.used > before.used:
                    skipped[name] = before.skipping(before.used, word.used)._replace(used=word.used)
            self._put_words(collection, skipped)
            self.database.run("UPDATE collections SET pending = NULL WHERE name = ?", [collection])

    def start_again(
        self, data_set: str, collections: Mapping[str, tuple[Head, Mapping[bytes, Leaf]]], epochs: Mapping[int, bytes]
    ) -> None:
        """In place of all that is known of a data set, people's keys excepted: what its store has."""
        with self.database.transaction("IMMEDIATE"):
            self.database.run_many(
                "INSERT OR REPLACE INTO epochs VALUES (?, ?, ?, NULL)", [(data_set, *epoch) for epoch in epochs.items()]
            )
            for name in {*self.collections(data_set), *collections}:
                self.database.run("DELETE FROM collections WHERE name = ?", [name])
                for table in ("leaves", "nodes", "words", "cell_batches", "cells", "moved", "paillier"):
                    self.database.run(f"DELETE FROM {table} WHERE collection = ?", [name])  # noqa: S608 - names from the line above
            for name, (head, leaves) in collections.items():
                self.database.run("INSERT INTO collections VALUES (?, ?, ?, ?, NULL)", [name, data_set, head.counter, head.root])
                _, nodes = self.root_with(name, leaves) if leaves else (b"", {})
                self.database.run_many(
                    "INSERT INTO leaves VALUES (?, ?, ?, ?)", [(name, handle, *leaf) for handle, leaf in leaves.items()]
                )
                self._put_nodes(name, nodes)

    def restoring(self, data_set: str, now: bool | None = None) -> bool:
        """Whether a restoration has begun and not ended; `now` says so from now on."""
        if now is not None:
            change = "INSERT OR IGNORE INTO restoring VALUES (?)" if now else "DELETE FROM restoring WHERE data_set = ?"
            self.database.run(change, [data_set])
        return self.database.row("SELECT 1 FROM restoring WHERE data_set = ?", [data_set]) is not None

    def epochs(self, data_set: str) -> dict[int, bytes]:
        """The wrapped keys of the epochs."""
        return dict(self.database.rows("SELECT epoch, wrapped FROM epochs WHERE data_set = ? ORDER BY epoch", [data_set]))

    def index_keys(self, data_set: str) -> dict[int, bytes]:
        """The wrapped keys of the index, of each epoch that has one here: those of a lost state are nowhere else."""
        return dict(
            self.database.rows(
                "SELECT epoch, index_key FROM epochs WHERE data_set = ? AND index_key IS NOT NULL ORDER BY epoch", [data_set]
            )
        )

    def add_epoch(self, data_set: str, epoch: int, wrapped: bytes, index_key: bytes | None = None) -> None:
        """Keys for one more epoch, of values and of the index."""
        self.database.run("INSERT OR IGNORE INTO epochs VALUES (?, ?, ?, ?)", [data_set, epoch, wrapped, index_key])

    def call_copied(self, expires: date | None = None) -> None:
        """Say of every data set that this is a copy of its state, and until when it may be opened."""
        with self.database.transaction("IMMEDIATE"):
            self.database.run("INSERT OR IGNORE INTO copied SELECT DISTINCT data_set FROM epochs")
            self.database.run("DELETE FROM expires")
            self.database.run_many("INSERT INTO expires VALUES (?)", [[expires.isoformat()]] if expires else [])

    def expires(self) -> date | None:
        """The last day of a copy; None for what is none, or was gone on from."""
        row = self.database.row("SELECT day FROM expires")
        return row and date.fromisoformat(row[0])

    def copied(self, data_set: str, now: bool | None = None) -> bool:
        """Whether this is a copy under which nothing was written yet; `now=False` ends that."""
        if now is False:
            self.database.run("DELETE FROM copied WHERE data_set = ?", [data_set])
            self.database.run("DELETE FROM expires")
        return self.database.row("SELECT 1 FROM copied WHERE data_set = ?", [data_set]) is not None

    def end_epochs(self, data_set: str, before: int) -> None:
        """Forget the keys of the epochs before one."""
        self.database.run("DELETE FROM epochs WHERE data_set = ? AND epoch < ?", [data_set, before])
        mine = "collection IN (SELECT name FROM collections WHERE data_set = ?)"
        self.database.run(f"DELETE FROM paillier WHERE epoch < ? AND {mine}", [before, data_set])  # noqa: S608 - no name in it

    def paillier(self, collection: str, epoch: int) -> bytes | None:
        """The wrapped Paillier keys of an epoch."""
        row = self.database.row("SELECT wrapped FROM paillier WHERE collection = ? AND epoch = ?", [collection, epoch])
        return row and bytes(row[0])

    def add_paillier(self, collection: str, epoch: int, wrapped: bytes) -> None:
        """Paillier keys for an epoch; some that are there stay."""
        self.database.run("INSERT OR IGNORE INTO paillier VALUES (?, ?, ?)", [collection, epoch, wrapped])

    def person(self, data_set: str, person: bytes) -> tuple[bytes, bytes] | None:
        """Pseudonym and wrapped key of a person."""
        row = self.database.row("SELECT pseudonym, wrapped FROM people WHERE data_set = ? AND person = ?", [data_set, person])
        return row and (row[0], row[1])

    def key_of(self, pseudonym: bytes) -> bytes | None:
        """The wrapped key of a pseudonym; None if the person was forgotten."""
        row = self.database.row("SELECT wrapped FROM people WHERE pseudonym = ?", [pseudonym])
        return (row and bytes(row[0])) or None

    def add_person(self, data_set: str, person: bytes, pseudonym: bytes, wrapped: bytes) -> None:
        """A key of a person; one that is there already stays."""
        self.database.run("INSERT OR IGNORE INTO people VALUES (?, ?, ?, ?)", [data_set, person, pseudonym, wrapped])

    def forget_person(self, data_set: str, person: bytes, *, records: bool) -> None:
        """Forget the key of a person, and the pseudonym where no `records` are left."""
        change = "UPDATE people SET wrapped = x''" if records else "DELETE FROM people"
        self.database.run(f"{change} WHERE data_set = ? AND person = ?", [data_set, person])

    def wrap_again(self, data_set: str, change: Callable[[bytes, bytes], bytes]) -> None:
        """All keys of people in another wrapping, by their pseudonyms, or none."""
        with self.database.transaction("IMMEDIATE"):
            rows = self.database.rows("SELECT pseudonym, wrapped FROM people WHERE data_set = ? AND wrapped <> x''", [data_set])
            changed = [(change(pseudonym, wrapped), pseudonym) for pseudonym, wrapped in rows]
            self.database.run_many("UPDATE people SET wrapped = ? WHERE pseudonym = ?", changed)
        self.database.forget_log()

    def replaced(self, data_set: str, owner: bytes) -> bool:
        """A data set is under this owner's key; whether all are."""
        self.database.run("INSERT OR REPLACE INTO replaced VALUES (?, ?)", [data_set, owner])
        left = "SELECT 1 FROM epochs WHERE data_set NOT IN (SELECT data_set FROM replaced WHERE owner = ?)"
        return self.database.row(left, [owner]) is None

    def cell_batches(self, collection: str, form: str) -> list[CellBatch]:
        """The batches of masked cells that were written in a format, in their order."""
        rows = self.database.rows(
            "SELECT id, rows, sealed FROM cell_batches WHERE collection = ? AND format = ? ORDER BY number", [collection, form]
        )
        return [CellBatch(*row) for row in rows]

    def cells(self, collection: str, form: str) -> dict[bytes, Cell]:
        """Where the masked cells of each record are."""
        rows = self.database.rows(
            "SELECT handle, batch, place, person, digest, mac FROM cells WHERE collection = ? AND format = ?", [collection, form]
        )
        return {handle: Cell(*row) for handle, *row in rows}

    def keep_cells(
        self,
        collection: str,
        form: str,
        batch: CellBatch | None,
        cells: Mapping[bytes, Cell],
        gone: Iterable[bytes],
        *,
        before: int,
    ) -> None:
        """One more batch, and where cells are from now on; for someone who read all of it when there were `before` batches."""
        about = (collection, form)
        with self.database.transaction("IMMEDIATE"):
            if len(self.cell_batches(collection, form)) != before:  # or places would be forgotten, and their rows count twice
                raise Conflict("The batch was not written", why="another process wrote one", instead="the same once more")
            if batch is not None:
                self.database.run("INSERT INTO cell_batches VALUES (?, ?, ?, ?, ?, ?)", [*about, before, *batch])
            self.database.run_many(
                "DELETE FROM cells WHERE collection = ? AND format = ? AND handle = ?", [(*about, handle) for handle in gone]
            )
            rows = [(*about, handle, *cell) for handle, cell in cells.items()]
            self.database.run_many("INSERT OR REPLACE INTO cells VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)

    def drop_cells(self, collection: str, form: str) -> None:
        """As if no batch had been written in this format."""
        with self.database.transaction("IMMEDIATE"):
            for table in ("cells", "cell_batches"):
                self.database.run(f"DELETE FROM {table} WHERE collection = ? AND format = ?", [collection, form])  # noqa: S608

    def _bucket(self, collection: str, prefix: str) -> dict[bytes, bytes]:
        low = bytes.fromhex(prefix + "0")
        high = bytes([low[0], low[1] | 15]) + b"\xff" * HANDLE
        rows = self.database.rows(
            "SELECT handle, mac FROM leaves WHERE collection = ? AND handle BETWEEN ? AND ?", [collection, low, high]
        )
        return dict(rows)

    def _children(self, collection: str, parents: Sequence[str]) -> dict[str, bytes]:
        select = f"SELECT prefix, hash FROM nodes WHERE collection = '{collection}' AND parent IN"  # noqa: S608 - hexadecimal digits
        return dict(self.database.rows_in(select, parents))

    def _put_nodes(self, collection: str, nodes: Mapping[str, bytes]) -> None:
        rows = [(collection, prefix[:-1], prefix, found) for prefix, found in nodes.items() if prefix]
        self.database.run_many("INSERT OR REPLACE INTO nodes VALUES (?, ?, ?, ?)", rows)

    def _put_words(self, collection: str, words: Mapping[bytes, Word]) -> None:
        rows: list[Any] = [
            (collection, name, word.epoch, word.used, json.dumps(word.skipped) if word.skipped else "[]")
            for name, word in words.items()
        ]
        self.database.run_many("INSERT OR REPLACE INTO words VALUES (?, ?, ?, ?, ?)", rows)


def _word(epoch: int, count: int, skipped: list[list[int]]) -> Word:
    return Word(epoch, count, tuple((first, end) for first, end in skipped))
