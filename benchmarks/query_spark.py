"""What a private question on Spark costs beside the same question in plain Spark SQL: COUNT and SUM by a hundred declared keys.

Both sides read rows that Spark holds in memory; ours runs the whole way, with a durable charge. Where no Java is found that Spark
runs on, one line says that it was skipped.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from _clock import alternating
from _report import report

import cloister as cl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from scripts.engines import java_home

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
ROWS = 1_000_000 if QUICK else 10_000_000
ROUNDS = 5 if QUICK else 11
LIMIT = 3 if QUICK else 1.3  # on fewer rows the whole way of a question outweighs Spark's work
SQL = "SELECT key, COUNT(*) AS n, SUM(pay) AS total FROM people GROUP BY key"


def main() -> None:
    """Measure, print for people, print for programs."""
    home = java_home()
    if home is not None:
        os.environ["JAVA_HOME"] = str(home)
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        print("Spark is not installed: skipped")
        return
    with tempfile.TemporaryDirectory() as folder:
        builder: Any = SparkSession.builder.master("local[2]").appName("benchmark")
        settings = {
            "spark.sql.shuffle.partitions": "2",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.driver.memory": "4g",
            "spark.sql.warehouse.dir": folder,
            "spark.local.dir": folder,
        }
        for name, value in settings.items():
            builder = builder.config(name, value)
        spark = builder.getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
        try:
            ours, theirs = measured(spark, Path(folder))
        finally:
            spark.stop()
    detail = f"{ours * 1e3:,.0f} ms against {theirs * 1e3:,.0f} ms of plain Spark SQL on {ROWS:,} rows, 100 keys, 2 threads"
    report("count and sum on Spark", ours / theirs, LIMIT, detail, most=True)


def measured(spark: Any, folder: Path) -> tuple[float, float]:
    """Medians of alternating rounds, after two that do not count (Java compiles while it runs)."""
    frame = spark.range(ROWS).selectExpr(
        "CAST(pmod(hash(id), 100) AS INT) AS key", "CAST(pmod(hash(id + 1), 100001) AS INT) AS pay"
    )
    frame = frame.persist()
    frame.count()
    frame.createOrReplaceTempView("people")
    columns = {"key": cl.Integer(0, 99), "pay": cl.Integer(0, 100_000)}
    table = cl.PrivateTable(frame, columns=columns, version="1")
    with cl.Session({"people": table}, budget=cl.PureDP(10**9), ledger=folder / "ledger.db") as session:
        ours, theirs = alternating(
            lambda place: session.sql(SQL, spend=place + 1), lambda _: spark.sql(SQL).collect(), rounds=ROUNDS, uncounted=2
        )
    return ours, theirs


if __name__ == "__main__":
    main()
