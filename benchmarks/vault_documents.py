"""The sealed store against the same SQLite file with plain JSON: what sealing adds to a point read, a point write and a search.

Both sides write one document a transaction for point writes and 500 for many, with a write-ahead log and full synchronisation.
Processor time: waiting for the disk is the same disk's. The documents have a name, an age that is found by ranges, a town that is
found by equality, and a number that is added up: ten entries of the index each.
"""

from __future__ import annotations

import json
import os
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _report import report

import cloister as cl

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
MANY, POINTS = (1_000, 50) if QUICK else (10_000, 300)
FIELDS = {
    "name": cl.vault.Random(),
    "age": cl.vault.Range(0, 120) | cl.vault.Sum(),
    "town": cl.vault.Equal(),
    "pay": cl.vault.Sum(),
}


def document(number: int) -> dict[str, Any]:
    """One person; a hundred live in each town."""
    return {"_id": number, "name": f"name {number}", "age": number % 100, "town": f"town {number // 100}", "pay": 50_000 + number}


class Plain:
    """The same without sealing."""

    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.connection.executescript(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE people (id INTEGER PRIMARY KEY, body TEXT);"
            "CREATE INDEX towns ON people (json_extract(body, '$.town'));"
        )

    def insert(self, documents: list[dict[str, Any]]) -> None:
        """One transaction."""
        self.connection.execute("BEGIN")
        self.connection.executemany("INSERT INTO people VALUES (?, ?)", [(each["_id"], json.dumps(each)) for each in documents])
        self.connection.execute("COMMIT")

    def get(self, number: int) -> Any:
        """One document."""
        return json.loads(self.connection.execute("SELECT body FROM people WHERE id = ?", [number]).fetchone()[0])

    def town(self, name: str) -> list[Any]:
        """The documents of a town."""
        found = self.connection.execute("SELECT body FROM people WHERE json_extract(body, '$.town') = ?", [name])
        return [json.loads(body) for (body,) in found]


def main() -> None:
    """Measure, print for people, print for programs."""
    with tempfile.TemporaryDirectory() as folder:
        plain = Plain(Path(folder) / "plain.db")
        store = cl.vault.Vault(f"sqlite:///{folder}/sealed.db", cl.vault.Keys.generate(f"{folder}/owner.keys"))
        sealed = store.collection("people", FIELDS)
        documents = [document(number) for number in range(MANY)]
        quick = took(lambda: [plain.insert(documents[start : start + 500]) for start in range(0, MANY, 500)])
        slow = took(lambda: sealed.insert_many(documents))
        size = f"{MANY:,} documents"
        report("sealed store, an insert of many, ms each over plain", (slow - quick) / MANY * 1e3, 1, size, most=True)
        read = over(lambda n: sealed.find_one({"_id": n}), plain.get)
        report("sealed store, a point read, ms over plain", read, 1, size, most=True)
        write = over(lambda n: sealed.insert_one(document(MANY + n)), lambda n: plain.insert([document(MANY + n)]))
        report("sealed store, a point write, ms over plain", write, 1, size, most=True)
        towns = MANY // 100
        found = over(lambda n: sealed.find({"town": f"town {n % towns}"}), lambda n: plain.town(f"town {n % towns}"))
        report("sealed store, equality, µs a found document over plain", found * 10, 100, f"{size}, a hundred found", most=True)
        store.close()


def took(act: Callable[[], object]) -> float:
    """Processor seconds."""
    started = time.process_time()
    act()
    return time.process_time() - started


def over(sealed: Callable[[int], object], plain: Callable[[int], object]) -> float:
    """The median of what one takes more than the other, in ms; alternating."""
    return statistics.median(took(lambda n=n: sealed(n)) - took(lambda n=n: plain(n)) for n in range(POINTS)) * 1e3  # type: ignore[misc]


if __name__ == "__main__":
    main()
