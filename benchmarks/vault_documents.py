"""The sealed store against the same SQLite file with plain JSON: what sealing adds to a point read, a point write and a search.

Both sides write one document a transaction for point writes and 500 for many, with a write-ahead log and full synchronisation.
Processor time: waiting for the disk is the same disk's. But a point write waits for it twice, once for the client's state, and
what comes after a wait finds other programs' lines in the processor's caches; so point writes are measured in memory as well.
The documents have a name, an age that is found by ranges, a town that is found by equality, and a number that is added up: ten
entries of the index each. `CLOISTER_BENCH_LARGE=1` measures 10^5 insertions and equality on a million smaller documents, in
memory: half an hour.

An insertion is not within 25 % of a plain one: to encrypt one padded value under AES-GCM-SIV, with a key and a nonce of its own,
takes about as long as SQLite takes for a whole plain document, and a document has several. So what encryption alone takes stands
beside it, and documents whose fields have no index.

Freshness is what says that a record is the newest: the signed counter and root (`mark`), and the path from a leaf to that root.
"""

from __future__ import annotations

import json
import os
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from _report import report

import cloister as cl
from cloister.crypto import RandomizedCipher
from cloister.vault.merkle import bucket_of, updated

QUICK, LARGE = (bool(os.environ.get(f"CLOISTER_BENCH_{which}")) for which in ("QUICK", "LARGE"))
MEMORY = Path("/dev/shm") if Path("/dev/shm").is_dir() else None
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
        ordered = over(lambda n: sealed.find(sort=[("age", 1)], limit=10), lambda n: None)
        report("sealed store, the ten least by a tree, ms", ordered, 20, f"{size}, a hundred of each age", most=True)
        fresh(sealed, size)
        store.close()
    added()
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        plain, store = Plain(Path(folder) / "plain.db"), cl.vault.Vault(f"sqlite:///{folder}/sealed.db", cl.vault.Keys.generate())
        sealed = store.collection("people", FIELDS)
        write = over(lambda n: sealed.insert_one(document(n)), lambda n: plain.insert([document(n)]))
        report("sealed store, a point write in memory, ms over plain", write, 1, "no wait for a disk", most=True)
        store.close()
    if LARGE:
        inserted(100_000)
        million()


def fresh(sealed: cl.vault.Collection, size: str) -> None:
    """What it takes to know that a record is the newest."""
    reader = sealed.reader
    mark, leaves = reader.mark(), {handle: leaf.mac for handle, leaf in reader.state.leaves(reader.table).items()}
    buckets: dict[str, dict[bytes, bytes]] = {}
    for handle, mac in leaves.items():
        buckets.setdefault(bucket_of(handle), {})[handle] = mac
    nodes = updated(buckets, lambda parents: {})
    bucket = next(iter(buckets))

    def path(_: int) -> bytes:
        return updated({bucket: buckets[bucket]}, lambda parents: nodes)[""]

    assert path(0) == mark.root
    signed = over(lambda n: reader.signatures(mark.counter, mark.root), lambda n: None)
    report("sealed store, freshness, the signed root, µs", signed * 1e3, 20, size, most=True)
    report("sealed store, freshness, a path of three levels, µs", over(path, lambda n: None) * 1e3, 20, size, most=True)


def added() -> None:
    """A sum that the store computes from Paillier cells, and what a cell takes to write."""
    number = 500 if QUICK else 10_000
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        store = cl.vault.Vault(f"sqlite:///{folder}/sealed.db", cl.vault.Keys.generate(f"{folder}/owner.keys"))
        sealed = store.collection("people", {"pay": cl.vault.PaillierSum(0, 500_000)})
        written = took(lambda: sealed.insert_many({"_id": n, "pay": n} for n in range(number)))
        pipeline = [{"$group": {"_id": None, "pay": {"$sum": "$pay"}}}]
        assert sealed.aggregate(pipeline)[0]["pay"] == number * (number - 1) // 2
        took_each = statistics.median(took(lambda: sealed.aggregate(pipeline)) for _ in range(3))
        size = f"{number:,} cells of 512 bytes; {written / number * 1e3:.2f} ms to write each"
        report("sealed store, a Paillier sum, seconds", took_each, 0.3, size, most=True)
        store.close()


def inserted(number: int) -> None:
    """How many times a plain insertion one takes: with ten entries of the index for each document, and with none."""
    cipher = RandomizedCipher(bytes(32))
    one = took(lambda: [cipher.encrypt(bytes(32), bytes(60)) for _ in range(number)]) / number
    for fields, what in ((FIELDS, "ten entries of the index each"), (dict.fromkeys(FIELDS, cl.vault.Random()), "no index")):
        with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
            plain = Plain(Path(folder) / "plain.db")
            store = cl.vault.Vault(f"sqlite:///{folder}/sealed.db", cl.vault.Keys.generate(f"{folder}/owner.keys"))
            sealed, quick, slow = store.collection("people", fields), 0.0, 0.0
            for start in range(0, number, 10_000):
                made = [document(n) for n in range(start, min(start + 10_000, number))]
                parts = [made[at : at + 500] for at in range(0, len(made), 500)]
                quick += took(partial(list, map(plain.insert, parts)))
                slow += took(partial(sealed.insert_many, made))
            about = f"{what}; plain {quick / number * 1e6:.1f} µs, of sealed {5 * one * 1e6:.0f} µs are five values' AES-GCM-SIV"
            report(f"sealed store, {number:,} insertions, times plain", slow / quick, 1.25, about, most=True)
            store.close()


def million() -> None:
    """Equality on a million documents, ten in each town."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        plain = Plain(Path(folder) / "plain.db")
        store = cl.vault.Vault(f"sqlite:///{folder}/sealed.db", cl.vault.Keys.generate(f"{folder}/owner.keys"))
        sealed = store.collection("people", {"town": cl.vault.Equal(), "pay": cl.vault.Sum()})
        for start in range(0, 1_000_000, 10_000):
            made = [{"_id": n, "town": f"town {n // 10}", "pay": n} for n in range(start, start + 10_000)]
            plain.insert(made)
            sealed.insert_many(made)
        found = over(lambda n: sealed.find({"town": f"town {331 * n}"}), lambda n: plain.town(f"town {331 * n}"))
        report("sealed store, equality on a million, ms over plain", found, 5, "ten found, the median", most=True)
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
