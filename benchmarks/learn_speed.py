"""Learning from a table in DuckDB against the plain moments in DuckDB: what the promise and its sums cost on top of the sums.

Twenty numbers in a Parquet file. The plain moments of naive Bayes are a SELECT of the count, the sum and the sum of squares of
each column by class; those of linear regression, the sums of all columns and of all products of two. DuckDB runs them over a
table of its own in memory; ours are measured after the table was prepared, which is done once and serves all questions.
"""

from __future__ import annotations

import os
import tempfile
from itertools import combinations_with_replacement
from pathlib import Path

import duckdb
from _clock import alternating
from _report import report

import cloister as cl
from cloister.learn import GaussianNB, LinearRegression

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
ROWS = 1_000_000 if QUICK else 10_000_000
FEATURES = [f"x{place}" for place in range(20)]
LIMIT = 2
ROUNDS = 3


def main() -> None:
    """Make the rows, prepare them, and ask in turns."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        plain = duckdb.connect()
        numbers = ", ".join(f"(random() * 1000)::INTEGER AS {name}" for name in FEATURES)
        plain.execute(
            f"COPY (SELECT {numbers}, (random() < 0.3)::INTEGER AS label, (random() * 1000)::INTEGER AS y FROM range({ROWS}))"
            f" TO '{path}' (FORMAT parquet)"
        )
        plain.execute(f"CREATE TABLE rows AS SELECT * FROM '{path}'")
        columns = {name: cl.Integer(0, 1000) for name in [*FEATURES, "y"]} | {"label": cl.Integer(0, 1)}
        people = cl.PrivateTable(str(path), columns=columns)
        with cl.Session({"people": people}, budget=cl.PureDP(10**6)) as session:
            compare(session, plain)


def compare(session: cl.Session, plain: duckdb.DuckDBPyConnection) -> None:
    """Both models; each round spends a little more, so that nothing is answered from what was bought before."""
    moments = ", ".join(f"sum({name}), sum({name} * {name})" for name in FEATURES)
    by_class = f"SELECT label, count(*), {moments} FROM rows GROUP BY label"
    pairs = [pair for pair in combinations_with_replacement([*FEATURES, "y"], 2) if pair != ("y", "y")]
    products = f"SELECT count(*), {', '.join(f'sum({name})' for name in [*FEATURES, 'y'])}, " + ", ".join(
        f"sum({one} * {other})" for one, other in pairs
    )

    def bayes(place: int) -> None:
        GaussianNB(epsilon=1 + place).fit_table(session, "people", features=FEATURES, target="label")

    def line(place: int) -> None:
        LinearRegression(epsilon=1 + place).fit_table(session, "people", features=FEATURES, target="y")

    for name, ours, query in (("naive Bayes", bayes, by_class), ("linear regression", line, f"{products} FROM rows")):
        mine, theirs = alternating(ours, lambda _, query=query: plain.execute(query).fetchall(), rounds=ROUNDS)
        detail = f"{ROWS:,} rows × 20 columns: {mine:.2f} s and {theirs:.2f} s, DuckDB {duckdb.__version__}"
        report(f"{name} from a table: our time over the plain moments'", mine / theirs, LIMIT, detail, most=True)


if __name__ == "__main__":
    main()
