"""What a question costs in time beside plain DuckDB, where a question does more than COUNT and SUM of one row a person.

Ten million rows: persons with many rows, of whom a few count; the median by group; a hundred thousand keys that nobody declared.
The plain side runs the same SQL on the raw rows in the same process; ours runs the whole way: plan, durable reservation, engine,
noise, durable settlement, release. (Counts and sums of one row a person, and a small table: session_answers.py.)
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
from _clock import alternating
from _report import report

import cloister as cl

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
ROWS = 2_000_000 if QUICK else 10_000_000
ROUNDS = 3 if QUICK else 7
KEYS, CAP = 100, 3
TOWNS = TOP = 1_000 if QUICK else 100_000  # what follows from keys and bounds alone takes as long on few rows
COLUMNS = {"key": cl.Integer(0, KEYS - 1), "pay": cl.Integer(0, TOP)}

COUNT_AND_SUM = "SELECT key, COUNT(*) AS n, SUM(pay) AS total FROM people WHERE pay >= {} GROUP BY key"
CLAMPED = (
    "SELECT key, COUNT(*) AS n, SUM(pay) AS total FROM (SELECT key, pay, row_number() OVER"
    f" (PARTITION BY person ORDER BY hash(id)) AS place FROM people) WHERE place <= {CAP} AND pay >= 0 GROUP BY key"
)
MEDIAN = "SELECT key, MEDIAN(pay) AS middle FROM people WHERE pay >= {} GROUP BY key"
TOWN = "SELECT town, COUNT(*) AS n, SUM(pay) AS total FROM people WHERE pay >= {} GROUP BY town"


def main() -> None:
    """Measure, print for people, print for programs."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "rows.parquet"
        make(path)
        with duckdb.connect() as plain:
            plain.execute("SET enable_progress_bar = false")
            plain.execute(f"CREATE TABLE people AS SELECT * FROM '{path}'")
            capped(folder, path, plain)
            median(folder, path, plain)
            undeclared(folder, path, plain)


def make(path: Path) -> None:
    """Every value is a hash of the row's number: the same rows on every machine."""
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT range AS id, (hash(range) % {ROWS // 5})::BIGINT AS person,"
            f" (hash(range + 1) % {KEYS})::INTEGER AS key, (hash(range + 2) % {TOP + 1})::INTEGER AS pay,"
            f" 'town ' || (hash(range + 3) % {TOWNS}) AS town FROM range({ROWS})) TO '{path}' (FORMAT parquet)"
        )


def capped(folder: Path, path: Path, plain: duckdb.DuckDBPyConnection) -> None:
    """Five rows a person, of which three count: which ones was settled when the table was prepared."""
    table = cl.PrivateTable(path, columns=COLUMNS, unit="person", max_rows=CAP, version="1")
    with cl.Session({"people": table}, budget=cl.PureDP(10**9), ledger=folder / "capped.db") as session:
        ours, theirs = alternating(asked(session, COUNT_AND_SUM, 1), answered(plain, COUNT_AND_SUM), rounds=ROUNDS)
        begun = time.perf_counter()
        plain.execute(CLAMPED).fetchall()
        clamped = time.perf_counter() - begun
    told("capped persons, count and sum", ours, theirs, 2, "plain DuckDB, which caps nobody")
    told("capped persons, against a window clamp", ours, clamped, 2, "a clamp by row_number() in DuckDB")


def median(folder: Path, path: Path, plain: duckdb.DuckDBPyConnection) -> None:
    """The exact median needs all values of a group; ours needs noisy counts of a hierarchy of ranges."""
    table = cl.PrivateTable(path, columns=COLUMNS, version="1")
    with cl.Session({"people": table}, budget=cl.PureDP(10**9), ledger=folder / "median.db") as session:
        ours, theirs = alternating(asked(session, MEDIAN, 1), answered(plain, MEDIAN), rounds=ROUNDS)
    told("median by group", ours, theirs, 3, "the exact median of DuckDB")


def undeclared(folder: Path, path: Path, plain: duckdb.DuckDBPyConnection) -> None:
    """Keys that nobody declared appear only where a noisy count of persons passes a threshold."""
    table = cl.PrivateTable(path, columns=COLUMNS | {"town": cl.Text()}, version="1")
    budget = cl.ApproxDP(10**9, "0.1")
    with cl.Session({"people": table}, budget=budget, ledger=folder / "undeclared.db") as session:
        ours, theirs = alternating(asked(session, TOWN, cl.ApproxDP(1, "1e-9")), answered(plain, TOWN), rounds=ROUNDS)
    told(f"{TOWNS:,} undeclared keys", ours, theirs, 3, "plain DuckDB")


def asked(session: cl.Session, sql: str, spend: int | cl.ApproxDP) -> Callable[[int], object]:
    """Each round has another condition, so that no answer builds on one that was bought before."""
    return lambda place: session.sql(sql.format(place), spend=spend)


def answered(plain: duckdb.DuckDBPyConnection, sql: str) -> Callable[[int], object]:
    """The same rows are fetched into Python."""
    return lambda place: plain.execute(sql.format(place)).fetchall()


def told(name: str, ours: float, theirs: float, limit: float, peer: str) -> None:
    """One promise."""
    detail = f"{ours * 1e3:,.0f} ms against {theirs * 1e3:,.0f} ms of {peer} ({duckdb.__version__}) on {ROWS:,} rows"
    report(name, ours / theirs, limit, detail, most=True)


if __name__ == "__main__":
    main()
