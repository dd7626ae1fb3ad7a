"""What an answer costs in time: on a small table with a durable charge, and on ten million rows against plain DuckDB.

The large question is `GROUP BY` a hundred declared keys with COUNT and SUM. Plain DuckDB runs the same SQL on the raw table
in the same process; we run the whole way of a question: plan, durable reservation, aggregates, noise, durable settlement,
release.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from pathlib import Path

import duckdb
import numpy as np
from _clock import alternating
from _report import report

import cloister as cl
from cloister.samples import census

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
ROWS = 1_000_000 if QUICK else 10_000_000
ROUNDS = 5 if QUICK else 11
KEYS = 100
SMALL = 10_000


def main() -> None:
    """Measure, print for people, print for programs."""
    with tempfile.TemporaryDirectory() as folder:
        median = small(Path(folder))
        report(
            "an answer on a small table, durably charged",
            median / 0.015,
            1,
            f"{median * 1e3:.1f} ms a question on {SMALL:,} rows, limit 15 ms",
            most=True,
        )
        ours, plain = large(Path(folder))
        detail = (
            f"{ours * 1e3:,.0f} ms against {plain * 1e3:,.0f} ms of DuckDB {duckdb.__version__} on {ROWS:,} rows, {KEYS} keys"
        )
        report("count and sum of many rows", ours / plain, 1.5, detail, most=True)


def small(folder: Path) -> float:
    """The median time of fresh questions about ten thousand persons."""
    with cl.Session({"census": census(SMALL)}, budget=cl.PureDP(10**6), ledger=folder / "small.db") as session:
        times = []
        for hours in range(1, 12 if QUICK else 90):
            begun = time.perf_counter()
            session.sql(f"SELECT sex, COUNT(*) AS n, AVG(age) AS age FROM census WHERE hours > {hours} GROUP BY sex", spend=1)
            times.append(time.perf_counter() - begun)
    return statistics.median(times[1:])


def large(folder: Path) -> tuple[float, float]:
    """Medians of alternating rounds: our answer, and the same SQL without privacy."""
    place = np.arange(ROWS, dtype=np.int64)
    columns = {"key": (place * 2_654_435_761 >> 7) % KEYS, "pay": (place * 40_503) % 100_001}
    raw = duckdb.connect()
    raw.execute("SET threads = 2")
    raw.register("given", columns)
    raw.execute("CREATE TABLE people AS SELECT * FROM given")
    people = cl.PrivateTable(columns, columns={"key": cl.Integer(0, KEYS - 1), "pay": cl.Integer(0, 100_000)}, version="1")
    sql = "SELECT key, COUNT(*) AS n, SUM(pay) AS total FROM people GROUP BY key"
    with cl.Session({"people": people}, budget=cl.PureDP(10**6), ledger=folder / "large.db") as session:
        ours, plain = alternating(
            lambda place: session.sql(sql, spend=place + 1), lambda _: raw.execute(sql).fetchall(), rounds=ROUNDS
        )
    return ours, plain


if __name__ == "__main__":
    main()
