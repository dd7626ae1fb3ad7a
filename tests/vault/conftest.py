"""A vault in files, with what an operator of the server could do to them."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import cloister as cl

FIELDS = {
    "name": cl.vault.Random(),
    "age": cl.vault.Sum() | cl.vault.Range(0, 120),
    "town": cl.vault.Equal(),
    "pay": cl.vault.Sum(),
}
PEOPLE = [
    {"_id": 1, "name": "canary-Ada", "age": 39, "town": "canary-Basel", "pay": 70_001},
    {"_id": 2, "name": "canary-Bo", "age": 52, "town": "canary-Bern", "pay": 80_001},
    {"_id": 3, "name": "canary-Cem", "age": 71, "town": "canary-Basel", "pay": 2**80},
]


class Place:
    """Where a vault lies: the server's file, and the client's."""

    def __init__(self, folder: Path, url: str = "") -> None:
        self.folder, self.url = folder, url or f"sqlite:///{folder}/sealed.db"
        self.file, self.keys_file = folder / "sealed.db", folder / "client" / "owner.keys"
        self.keys_file.parent.mkdir()
        self.keys = cl.vault.Keys.generate(self.keys_file)
        self.store = self.vault()

    def vault(self, **more: Any) -> cl.vault.Vault:
        return cl.vault.Vault(self.url, self.keys, **more)

    def people(self) -> cl.vault.Collection:
        return self.store.collection("canary-people", FIELDS)

    def restart(self) -> None:
        """The client's process ends and begins again."""
        self.store.close()
        self.keys.close()
        self.keys = cl.vault.Keys.load(self.keys_file)
        self.store = self.vault()

    def sql(self, statement: str, *values: Any) -> list[Any]:
        """What an operator does, unseen by the client; `R` and `I` are the tables of records and of the index."""
        with sqlite3.connect(self.file) as connection:
            tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            records, index = (next(name for name in tables if name.startswith(letter)) for letter in ("r_", "i_"))
            found = connection.execute(statement.replace("{R}", records).replace("{I}", index), values).fetchall()
        connection.close()
        return found

    def snapshot(self, name: str) -> Path:
        """A copy of the server's file."""
        self.sql("PRAGMA wal_checkpoint(TRUNCATE)")
        return Path(shutil.copy(self.file, self.folder / name))

    def roll_back(self, snapshot: Path) -> None:
        """The server brings an older copy."""
        self.store.close()
        for extra in ("-wal", "-shm"):
            self.file.with_name(self.file.name + extra).unlink(missing_ok=True)
        shutil.copy(snapshot, self.file)
        self.store = self.vault()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """An empty vault."""
    made = Place(tmp_path)
    yield made
    made.store.close()
    made.keys.close()


@pytest.fixture
def filled(place: Place) -> Place:
    """A vault with three people."""
    place.people().insert_many(PEOPLE)
    return place
