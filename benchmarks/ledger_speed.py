"""How many durable charges a second, against bare fsynced inserts; and what a charge costs after a million of them.

A charge is two durable commits (reserve, settle with its release). The measure is SQLite alone on the same disk: one row
inserted in a transaction of its own, write-ahead log, synchronous = FULL. In each round one insert and one charge take turns, so
that both find the disk in the same state, then eight clients charge at once; rates are so many in all over the time of all, and
the median of the rounds' ratios is compared.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sqlite3
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from _report import report

from cloister.ledger import Ledger, operations
from cloister.ledger.commit import Entry
from cloister.ledger.request import Request
from cloister.ledger.writer import Act
from cloister.privacy.guarantee import PureDP

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
ROUNDS = 5 if QUICK else 9
CHARGES = 200 if QUICK else 800
CLIENTS = 8
WARM = 1200
ROW = "x" * 700  # as many bytes as a charge keeps: two lines and a release
PAST = 20_000 if QUICK else 1_000_000
COST = PureDP("0.001")
BUDGET = PureDP(10**6)
RELEASE = b"x" * 200
DIGEST = hashlib.sha256(RELEASE).hexdigest()


def main() -> None:
    """Measure, print for people, print for programs."""
    with tempfile.TemporaryDirectory() as folder:
        rounds = rates(Path(folder))
    bare = statistics.median(each[0] for each in rounds)
    for place, clients, limit in ((1, "one client", 0.35), (2, f"{CLIENTS} clients", 0.8)):
        ratio = statistics.median(each[place] / each[0] for each in rounds)
        rate = statistics.median(each[place] for each in rounds)
        detail = f"{rate:,.0f} charges a second against {bare:,.0f} bare inserts; median of {ROUNDS} rounds"
        report(f"durable charges, {clients}", ratio, limit, detail)
    with tempfile.TemporaryDirectory() as folder:
        empty, full = costs(Path(folder))
    detail = f"{full * 1e6:,.0f} µs after {PAST:,} charges, {empty * 1e6:,.0f} µs in an empty ledger"
    report("a new charge in a long ledger", full / empty, 2, detail, most=True)


def rates(folder: Path) -> list[tuple[float, float, float]]:
    """Bare inserts, charges by one client, and charges by several, a second, in each round: so many in all over the time of
    all. In a round an insert and a charge take turns, so that both meet the same disk."""
    connection = sqlite3.connect(folder / "bare.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, text TEXT)")

    def insert() -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO rows (text) VALUES (?)", (ROW,))
        connection.execute("COMMIT")

    with Ledger(folder / "ledger.db") as ledger:
        ledger.open("people", BUDGET, who="owner")
        for _ in range(WARM):
            insert()
        charge(ledger, WARM, "warm")  # until both logs are written over and no longer grow
        rounds = []
        for number in range(ROUNDS):
            inserts = charges = 0.0
            for turn in range(CHARGES):
                inserts += timed(insert)
                charges += timed(functools.partial(charge, ledger, 1, f"one-{number}-{turn}"))
            group = timed(functools.partial(together, ledger, f"many-{number}"))
            rounds.append((CHARGES / inserts, CHARGES / charges, CHARGES // CLIENTS * CLIENTS / group))
        assert ledger.verify() is True
    connection.close()
    return rounds


def costs(folder: Path) -> tuple[float, float]:
    """Seconds a charge in an empty ledger and in one with many past charges."""
    with Ledger(folder / "empty.db") as empty, Ledger(folder / "full.db") as full:
        empty.open("people", BUDGET, who="owner")
        full.open("people", BUDGET, who="owner")
        fill(full, PAST)
        charge(empty, WARM, "warm")
        charge(full, WARM, "warm")
        seconds: list[list[float]] = [[], []]
        for number in range(ROUNDS):
            for ledger, times in zip((empty, full), seconds, strict=True):
                times.append(timed(functools.partial(charge, ledger, CHARGES // 2, f"new-{number}")))
    a, b = (statistics.median(times) / (CHARGES // 2) for times in seconds)
    return a, b


def charge(ledger: Ledger, count: int, name: str) -> None:
    """So many charges, each reserved and settled."""
    for number in range(count):
        reservation = ledger.reserve({"people": COST}, who="ada", what=f"plan-{name}-{number}")
        ledger.settle(reservation, RELEASE)


def together(ledger: Ledger, name: str) -> None:
    """The same number of charges, by several clients at once."""
    clients = [
        threading.Thread(target=charge, args=(ledger, CHARGES // CLIENTS, f"{name}-{client}")) for client in range(CLIENTS)
    ]
    for client in clients:
        client.start()
    for client in clients:
        client.join()


def fill(ledger: Ledger, count: int, batch: int = 1000) -> None:
    """Past charges, by the ledger's own steps, a thousand to a transaction."""
    for start in range(0, count, batch):
        requests = [
            Request.of({"people": COST}, "ada", f"past-{number}", "", rerun=True) for number in range(start, start + batch)
        ]
        reserved = [Entry(Act(lambda book, request=request: operations.reserve(book, request))) for request in requests]
        ledger._writer.run(reserved)
        settled = [
            Entry(Act(lambda book, entry=entry: operations.settle(book, entry.result, RELEASE, DIGEST))) for entry in reserved
        ]
        ledger._writer.run(settled)


def timed(work: Callable[[], object]) -> float:
    """Seconds that it took."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
