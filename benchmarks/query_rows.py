"""How the cost of a question grows with the rows, beside plain DuckDB: 10⁵, 10⁶, 10⁷ and 10⁸, the last one out of core.

COUNT and SUM by a hundred declared keys, one row a person. Both sides hold the rows in a file of their own and have the same
memory limit, which the largest table does not fit in. What a question may cost is 1.5 times what plain DuckDB needs, whose work
is taken to begin with the 15 ms that a question about a small table may take. `docs/figures/query_rows.py` draws what a full run
printed.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import duckdb
from _clock import alternating
from _report import report

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
SIZES = (100_000, 1_000_000) if QUICK else (100_000, 1_000_000, 10_000_000, 100_000_000)
ROUNDS = 5 if QUICK else 9
MEMORY = "256MiB"
LIMIT, SMALL_QUESTION = 1.5, 0.015
SQL = "SELECT key, COUNT(*) AS n, SUM(pay) AS total FROM people GROUP BY key"

os.environ["CLOISTER_MEMORY_LIMIT"] = MEMORY

import cloister as cl  # noqa: E402  the limit is read when the engine starts


def main() -> None:
    """One line for each size."""
    for rows in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            ours, theirs = measured(Path(folder), rows)
        detail = f"{ours * 1e3:,.1f} ms against {theirs * 1e3:,.1f} ms of DuckDB {duckdb.__version__}, each within {MEMORY}"
        name = f"count and sum of {rows:,} rows, against plain DuckDB and 15 ms"
        report(name, ours / (theirs + SMALL_QUESTION), LIMIT, f"{ours / theirs:.3g} times: {detail}", most=True)


def measured(folder: Path, rows: int) -> tuple[float, float]:
    """Medians of alternating rounds: our answer, durably charged, and the same SQL without privacy."""
    path = folder / "rows.parquet"
    with duckdb.connect(folder / "plain.db", config={"memory_limit": MEMORY, "preserve_insertion_order": False}) as plain:
        plain.execute("SET enable_progress_bar = false")
        plain.execute(
            "CREATE TABLE people AS SELECT (hash(range) % 100)::INTEGER AS key, (hash(range + 1) % 100001)::INTEGER AS pay"
            f" FROM range({rows})"
        )
        plain.execute(f"COPY people TO '{path}' (FORMAT parquet)")
        columns = {"key": cl.Integer(0, 99), "pay": cl.Integer(0, 100_000)}
        table = cl.PrivateTable(path, columns=columns, version="1")
        with cl.Session({"people": table}, budget=cl.PureDP(10**9), ledger=folder / "ledger.db") as session:
            ours, theirs = alternating(
                lambda place: session.sql(SQL, spend=place + 1), lambda _: plain.execute(SQL).fetchall(), rounds=ROUNDS
            )
    return ours, theirs


if __name__ == "__main__":
    main()
