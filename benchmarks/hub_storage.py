"""Tables at rest: to load an encrypted table of 10⁷ rows takes at most half as long again as the same file in plain.

    python benchmarks/hub_storage.py --rows 10000000

A load is what a hub does when it opens a data set: the digest of the file is checked, the rows are decrypted, authenticated and
prepared as codes. The plain side prepares the same rows from the Parquet file that was uploaded. Both run in turns.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

import duckdb
from _clock import alternating
from _report import report

from cloister.hub.keys import hub_keyring
from cloister.hub.storage import Limits, TableStore
from cloister.tables import Aggregation, Category, Integer, PrivateTable, Real, prepare

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
LIMIT = 1.5
COLUMNS = {"k": Integer(0, 99), "x": Real(0, 1000, step="0.01"), "sex": Category(["F", "M"])}


def main() -> None:
    """Make the file, send it to a store, and load both."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rows", type=int, default=500_000 if QUICK else 10_000_000)
    rows = arguments.parse_args().rows
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.parquet"
        with duckdb.connect() as connection:
            connection.execute(
                f"COPY (SELECT (random() * 99)::INTEGER AS k, random() * 1000 AS x, (random() * {rows // 3})::BIGINT AS p, "
                f"CASE WHEN random() < 0.5 THEN 'F' ELSE 'M' END AS sex FROM range({rows})) TO '{path}' (FORMAT parquet)"
            )
        store = TableStore(Path(folder) / "vault", hub_keyring(bytes(32)), limits=Limits(memory="4GiB"))
        begun = time.perf_counter()
        with path.open("rb") as file:
            received = store.receive(iter(lambda: file.read(2**16), b""), "parquet")
        sent = time.perf_counter()
        stored = store.add(received, about="benchmark")
        kept = time.perf_counter()

        def encrypted(_: int) -> None:
            load(store.open(stored, name="people"), rows, folder)

        def plain(_: int) -> None:
            load(path, rows, folder)

        ours, theirs = alternating(encrypted, plain, rounds=3)
        detail = (
            f"{rows:,} rows of 4 columns, {path.stat().st_size / 2**20:.0f} MiB: {ours:.2f} s encrypted, digest checked, against "
            f"{theirs:.2f} s plain; received in {sent - begun:.2f} s, stored in {kept - sent:.2f} s, DuckDB {duckdb.__version__}"
        )
        report("loading an encrypted table, against plain", ours / theirs, LIMIT, detail, most=True)


def load(source: object, rows: int, folder: str) -> None:
    """The rows of a source, ready to be asked."""
    table = PrivateTable(source, columns=COLUMNS, unit="p", max_rows=3)
    with prepare(table, temporary_directory=folder) as prepared:
        found = int(prepared.aggregate(Aggregation(prepared, max_rows=2**31 - 1)).values["rows"].sum())
    assert found == rows, found


if __name__ == "__main__":
    main()
