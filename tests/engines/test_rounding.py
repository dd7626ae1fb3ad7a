"""Rounding, casts, whole quotients and remainders in a dialect are what the dialect's own engine says, row by row.

The vectors are not written down: DuckDB, PostgreSQL, Spark and SQLite are asked for them here, over the same rows, and the
scalars that each dialect's text is read as are computed on each of our engines.
"""

from __future__ import annotations

import decimal
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import pytest

from cloister.query.dialect import dialect_named
from cloister.query.rows import Field
from cloister.query.rows import Rows as Names
from cloister.query.scalars import Reader
from cloister.tables import Base, Boolean, Integer, PrivateTable, Real, prepare
from cloister.tables.expression.scalars import Scalar
from tests.tables.scalar_rows import Rows, exact

from .conftest import DuckDBLoader, Loader, PostgresLoader, SparkLoader

Ask = Callable[[str], Sequence[tuple[Any, ...]]]
"""What an engine answers to a statement."""

QUARTERS = [i / 4 for i in range(-44, 45)] + [1234.5, -1234.5, 999999.75, -35.25]
COLUMNS = {
    "row": Integer(0, 999), "b": Real(-(10**6), 10**6, step="0.25"), "d": Real(-(10**6), 10**6, step="0.25"),
    "i": Integer(-(10**7), 10**7), "t": Boolean(),
}  # fmt: skip
KINDS = {"row": "integer", "b": "float", "d": "decimal", "i": "integer", "t": "boolean"}
DATA = {
    "row": list(range(len(QUARTERS) + 1)),
    "b": [*QUARTERS, None],
    "d": [*(decimal.Decimal(str(x)) for x in QUARTERS), None],
    "i": [*(int(x * 4) for x in QUARTERS), None],
    "t": [*(int(x) % 2 == 0 for x in QUARTERS), None],
}
OF_BOTH = ["ROUND({})", "ROUND({}, -1)", "ROUND({}, 1)", "CAST({} AS INTEGER)", "FLOOR({})", "CEIL({})", "-{}", "ABS({})"]
OF_WHOLE = [
    "ROUND(i)", "ROUND(i, -1)", "i % 7", "i % -7", "i / 7", "i / 2.0", "CAST(i * 0.5 AS INTEGER)", "CAST(i / 4.0 AS INTEGER)",
    "CAST(i / 4 AS INTEGER)", "ROUND(i * 0.5)", "ROUND(i / 8.0, 1)", "CAST(t AS INTEGER)", "CAST(ABS(i) / 2.0 AS INTEGER)",
    "CAST(i * 5e-1 AS INTEGER)", "CAST(CASE WHEN t THEN i ELSE i * 0.5 END AS INTEGER)", "CAST(i AS INTEGER) / 4",
    "CAST(COALESCE(b, 1) AS INTEGER)", "CAST(b * 2 AS INTEGER) / 2", "CAST(ROUND(b * 2) / 4 AS INTEGER)", "FLOOR(i) / 4",
]  # fmt: skip
SPOKEN: dict[str, list[str]] = {
    "duckdb": [
        *(each.format(x) for each in (*OF_BOTH, "TRUNC({})", "CAST({} AS DECIMAL(18, 1))", "{} % 3") for x in "bd"),
        *OF_WHOLE, "i // 7", "-i // 7", "CAST(i * d AS BIGINT)", "CAST(d / 2 AS INTEGER)", "ROUND(d / 2)", "ROUND_EVEN(b, 0)",
        "CAST(CAST(b AS DECIMAL(18, 3)) AS INTEGER)", "CAST(CAST(d AS DOUBLE) AS INTEGER)", "TRUNC(d, 1)",
        "CAST(i / 8.0 AS DECIMAL)", "CAST(FLOOR(i) * 0.5 AS INTEGER)", "CAST(CEIL(i) * 0.5 AS INTEGER)",
        "CAST(TRUNC(i) * 0.5 AS INTEGER)", "CAST(ROUND(i) * 0.5 AS INTEGER)", "TRUNC(i) // 4",
        "CAST(i * (1 / 2) AS INTEGER)", "CAST(i * (0.5 + 0e0) AS INTEGER)", "CAST(i * (1.0 / 2) AS INTEGER)",
    ],
    "postgres": [
        *(each.format("b") for each in OF_BOTH if ", " not in each), "CAST(b AS NUMERIC(18, 1))", "TRUNC(b)",
        *(each.format("d") for each in (*OF_BOTH, "TRUNC({})", "TRUNC({}, 1)", "CAST({} AS NUMERIC(18, 0))", "{} % 3")),
        *OF_WHOLE, "ROUND(i * 5e-1)", "CAST(i * 5e-1::float8 AS INTEGER)", "d / 2", "DIV(d, 3)",
        "CAST(d / 2 AS INTEGER)", "CAST(i * (1 / 2.0) AS INTEGER)", "CAST(i * (0.5 + 0e0::float8) AS INTEGER)",
        "CAST(CAST(b AS NUMERIC) AS INTEGER)", "ROUND(CAST(d AS DOUBLE PRECISION))", "DIV(i, 7)",
    ],
    "spark": [
        *(each.format(x) for each in (*OF_BOTH, "CAST({} AS DECIMAL(18, 1))", "{} % 3") for x in "bd"),
        *OF_WHOLE, "i div 7", "BROUND(b)", "BROUND(d, 1)", "CAST(d / 2 AS INTEGER)", "TRY_CAST(b AS INT)", "CAST(b AS DECIMAL)",
    ],
    "sqlite": [
        *(each.format("b") for each in OF_BOTH if "FLOOR" not in each and "CEIL" not in each), "b % 3",
        "CAST(b AS DECIMAL(9, 0))",
        *(each for each in OF_WHOLE if "FLOOR" not in each), "CAST(b AS REAL) / 2",
        "CAST(i AS DECIMAL(9, 1)) / 4", "CAST(COALESCE(i, b) AS REAL) / 4", "CAST(d AS NUMERIC) / 4",
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def rows(loader: Loader) -> Iterator[Any]:
    with prepare(PrivateTable(loader.load(DATA, KINDS), columns=COLUMNS), secret="0") as prepared:
        yield Rows(prepared)


def by_duckdb(data: Any) -> Ask:
    import duckdb

    def ask(sql: str) -> Sequence[tuple[Any, ...]]:
        connection = duckdb.connect()
        connection.register("t", DuckDBLoader().load(DATA, KINDS))
        return connection.execute(sql).fetchall()

    return ask


def by_sqlite(data: Any) -> Ask:
    connection = sqlite3.connect(":memory:")
    connection.execute('CREATE TABLE t ("row" INTEGER, b REAL, d REAL, i INTEGER, t INTEGER)')
    plain = [
        [None if x is None else float(x) if isinstance(x, decimal.Decimal) else x for x in column] for column in DATA.values()
    ]
    connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", zip(*plain, strict=True))
    return lambda sql: connection.execute(sql).fetchall()


def by_postgres(data: Any) -> Ask:
    def ask(sql: str) -> Sequence[tuple[Any, ...]]:
        import psycopg

        url, _, table = data.partition("::")
        with psycopg.connect(url) as connection:
            return connection.execute(sql.replace("FROM t ", f"FROM {table} ")).fetchall()

    return ask


def by_spark(data: Any) -> Ask:
    def ask(sql: str) -> Sequence[tuple[Any, ...]]:
        data.createOrReplaceTempView("t")
        try:
            return [tuple(row) for row in data.sparkSession.sql(sql.replace('"', "`")).collect()]
        finally:
            data.sparkSession.catalog.dropTempView("t")

    return ask


ENGINES: dict[str, Callable[[Any], Ask]] = {"duckdb": by_duckdb, "sqlite": by_sqlite, "postgres": by_postgres, "spark": by_spark}


def read(expressions: Sequence[str], dialect: str | None, table: PrivateTable) -> list[Scalar]:
    """What a dialect's texts mean."""
    names = Names(relation=Base(name="t", table=table), fields=[Field(name=n, column=n) for n in table.columns], label="t")
    reader = Reader(rows=names, dialect=dialect)
    return [reader.scalar(dialect_named(dialect).parse(text)[0]) for text in expressions]


def number(value: Any) -> Any:
    return None if value is None else Fraction(int(value)) if isinstance(value, bool) else Fraction(str(value))


def alike(mine: Any, theirs: Any) -> bool:
    """The same, but for what a double or a decimal of a few digits can't hold, where it is no whole number."""
    if mine is None or theirs is None or theirs.denominator == 1:
        return bool(mine == theirs)
    return abs(mine - theirs) <= Fraction(1, 10**4) and (mine.denominator != 1)


@pytest.mark.parametrize("dialect", [None, "duckdb", "sqlite", "own"])
def test_a_dialect_rounds_as_its_engine_does(rows: Rows, loader: Loader, dialect: str | None) -> None:
    """Every engine of ours computes what DuckDB and SQLite say in their dialects, and what it says itself in its own."""
    source: Any = None
    if dialect == "own":
        dialect = {PostgresLoader: "postgres", SparkLoader: "spark", DuckDBLoader: "duckdb"}[type(loader)]
        source = loader.load(DATA, KINDS)
    expressions = SPOKEN[dialect or "duckdb"]
    ask = ENGINES[dialect or "duckdb"](source)
    theirs = ask(f'SELECT {", ".join(expressions)} FROM t ORDER BY "row"')
    scalars = read(expressions, dialect, rows.prepared.declaration)
    wrong = []
    for place, (text, scalar, codes) in enumerate(zip(expressions, scalars, rows.computed(scalars), strict=True)):
        domain = scalar.domain(rows.domains)
        mine = [exact(domain, code) for code in codes]
        wanted = [number(row[place]) for row in theirs]
        wrong += [(text, x, a, b) for x, a, b in zip(DATA["b"], mine, wanted, strict=True) if not alike(a, b)][:2]
        assert rows.by_arrays(scalar) == codes.tolist(), text
    assert not wrong
