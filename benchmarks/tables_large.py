"""A data set larger than memory allows: 10⁸ rows in a file, prepared and asked within 4 GiB, measured by the operating system.

    python benchmarks/tables_large.py --rows 100000000

The rows are persons' rows (three a person on average), so preparation orders them within each person: the part that needs the
most memory, and that spills. The peak is that of a process of its own, which does nothing but prepare and ask.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb
from _report import report

from cloister.tables import Aggregate, Aggregation, Category, Integer, PrivateTable, Real, prepare

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
GIB = 2**30
LIMIT = 4
DUCKDB_LIMIT = "2200MiB"  # DuckDB's own buffers; the rest of the 4 GiB is for Python and what DuckDB does not count


def main() -> None:
    """Make the file, then run the measured part in a process of its own."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rows", type=int, default=1_000_000 if QUICK else 100_000_000)
    arguments.add_argument("--measured", type=Path)
    given = arguments.parse_args()
    if given.measured is not None:
        measured(given.measured)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        make(path, given.rows)
        environment = os.environ | {"CLOISTER_MEMORY_LIMIT": DUCKDB_LIMIT}
        command = [sys.executable, __file__, "--measured", str(path)]
        said = json.loads(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)
    assert said["rows"] == given.rows
    ratio = said["peak"] / GIB
    detail = (
        f"{given.rows:,} rows of persons from Parquet: prepared in {said['prepare']:.0f} s, COUNT and SUM by 100 keys in "
        f"{said['ask']:.2f} s, persons counted in {said['persons']:.1f} s, DuckDB {duckdb.__version__}"
    )
    name = "a large table, peak memory in GiB"
    report(name, ratio, LIMIT, detail, most=True)


def measured(path: Path) -> None:
    """Prepare, ask, and print what it took."""
    columns = {"k": Integer(0, 99), "x": Real(0, 1000, step="0.01"), "sex": Category(["F", "M"])}
    question = (Aggregate("n", "rows"), Aggregate("s", "sum", (("x", 0),)))
    start = time.perf_counter()
    table = PrivateTable(path, columns=columns, unit="p", max_rows=3)
    with prepare(table, temporary_directory=path.parent) as prepared:
        done = time.perf_counter()
        rows = int(prepared.aggregate(Aggregation(prepared, None, ("k",), question, 2**31 - 1)).values["n"].sum())
        asked = time.perf_counter()
        prepared.aggregate(Aggregation(prepared, None, ("sex",), (Aggregate("u", "units"),), 3))
        counted = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"rows": rows, "prepare": done - start, "ask": asked - done, "persons": counted - asked, "peak": peak}))


def make(path: Path, rows: int) -> None:
    """Written in a process of its own memory limit, so that making the file is not what is measured."""
    with duckdb.connect(config={"memory_limit": "2GiB", "preserve_insertion_order": False}) as connection:
        connection.execute(
            f"COPY (SELECT (random() * 99)::INTEGER AS k, random() * 1000 AS x, (random() * {rows // 3})::BIGINT AS p, "
            f"CASE WHEN random() < 0.5 THEN 'F' ELSE 'M' END AS sex FROM range({rows})) TO '{path}' (FORMAT parquet)"
        )


if __name__ == "__main__":
    main()
