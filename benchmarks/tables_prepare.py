"""What preparation costs beside a plain load, and what an aggregation over prepared rows costs beside plain DuckDB.

From CSV the plain load is `CREATE TABLE … AS FROM read_csv`, of a tenth of the rows; once without quotes, once with every text
in quotes.

The source is a Parquet file of 10⁷ rows: a key of 100 values, an amount, a category, and a person with three rows on average. A
plain load is `CREATE TABLE … AS SELECT *`; plain aggregation is `GROUP BY` over that table, on the same settings.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
from _report import report

from cloister.tables import Aggregate, Aggregation, Category, Integer, PrivateTable, Real, prepare

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
ROWS = 1_000_000 if QUICK else 10_000_000
COLUMNS = {"k": Integer(0, 99), "x": Real(0, 1000, step="0.01"), "sex": Category(["F", "M"])}
QUESTION = (Aggregate("n", "rows"), Aggregate("s", "sum", (("x", 0),)))
PLAIN = "SELECT k, COUNT(*), SUM(x) FROM plain GROUP BY k"


def main() -> None:
    """Measure in turns, and compare the best of each."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        make(path)
        seconds: dict[str, list[float]] = {"load": [], "rows": [], "persons": []}
        for last in (False, False, True):
            plain, took = timed(lambda: loaded(path))
            seconds["load"].append(took)
            rows, took = timed(lambda: prepare(PrivateTable(path, columns=COLUMNS), temporary_directory=folder))
            seconds["rows"].append(took)
            table = PrivateTable(path, columns=COLUMNS, unit="p", max_rows=3)
            persons, took = timed(lambda table=table: prepare(table, temporary_directory=folder))
            seconds["persons"].append(took)
            if not last:
                for each in (plain, rows, persons):
                    each.close()
        load, without, with_unit = (min(each) for each in seconds.values())
        detail = f"{ROWS:,} rows of Parquet against CREATE TABLE AS, best of 3, DuckDB {duckdb.__version__}"
        report("preparation against a plain load, one row a person", without / load, 10, detail, most=True)
        report("preparation against a plain load, several rows a person", with_unit / load, 10, detail, most=True)
        for quotes in (False, True):
            csv = Path(folder) / "rows.csv"
            with duckdb.connect() as connection:
                forced = ", FORCE_QUOTE (sex)" if quotes else ""
                few = f"SELECT * FROM read_parquet('{path}') LIMIT {ROWS // 10}"
                connection.execute(f"COPY ({few}) TO '{csv}' (FORMAT csv, HEADER{forced})")
            taken: dict[str, list[float]] = {"load": [], "rows": []}
            for _ in range(3):
                made, took = timed(lambda csv=csv: loaded(csv, "read_csv"))
                taken["load"].append(took)
                made.close()
                made, took = timed(lambda csv=csv: prepare(PrivateTable(csv, columns=COLUMNS), temporary_directory=folder))
                taken["rows"].append(took)
                made.close()
            detail = f"{ROWS // 10:,} lines of CSV against CREATE TABLE AS, best of 3, DuckDB {duckdb.__version__}"
            name = f"preparation from CSV {'with' if quotes else 'without'} quotes against a plain load"
            report(name, min(taken["rows"]) / min(taken["load"]), 10, detail, most=True)
        times: dict[str, list[float]] = {"plain": [], "rows": [], "capped": []}
        for _ in range(8):
            times["plain"].append(timed(lambda: plain.execute(PLAIN).fetchnumpy())[1])
            times["rows"].append(timed(lambda: rows.aggregate(Aggregation(rows, None, ("k",), QUESTION)))[1])
            times["capped"].append(timed(lambda: persons.aggregate(Aggregation(persons, None, ("k",), QUESTION, 3)))[1])
        detail = f"COUNT and SUM by 100 keys over {ROWS:,} rows, best of 8, DuckDB {duckdb.__version__}"
        report("aggregation against plain DuckDB", min(times["rows"]) / min(times["plain"]), 1.5, detail, most=True)
        report(
            "aggregation of capped persons against plain DuckDB", min(times["capped"]) / min(times["plain"]), 2, detail, most=True
        )
        rows.close()
        persons.close()
        plain.close()


def make(path: Path) -> None:
    """Rows that no two runs share: their times are compared within one run."""
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT (random() * 99)::INTEGER AS k, random() * 1000 AS x, (random() * {ROWS // 3})::BIGINT AS p, "
            f"CASE WHEN random() < 0.5 THEN 'F' ELSE 'M' END AS sex FROM range({ROWS})) TO '{path}' (FORMAT parquet)"
        )


def loaded(path: Path, reader: str = "read_parquet") -> Any:
    """A plain table in memory."""
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE plain AS SELECT * FROM {reader}('{path}')")
    return connection


def timed(act: Callable[[], Any]) -> tuple[Any, float]:
    """What it gives and how long it took."""
    start = time.perf_counter()
    result = act()
    return result, time.perf_counter() - start


if __name__ == "__main__":
    main()
