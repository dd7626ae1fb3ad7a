"""Where halves go in each dialect, by its manual where its engine is not installed; and what is refused instead."""

from __future__ import annotations

import decimal
import random
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pytest

import cloister as cl
from cloister.errors import UnsupportedQuery
from cloister.noise import Random
from cloister.query import parse
from cloister.query.dialect import DIALECTS, dialect_named
from cloister.query.numbers import RULES
from cloister.query.rows import Field, Rows
from cloister.query.scalars import Reader
from cloister.tables import Base
from cloister.tables.expression.evaluate import evaluate

HALVES = [-3.5, -2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5]
AWAY, EVEN, CUT = [-4, -3, -2, -1, 1, 2, 3, 4], [-4, -2, -2, 0, 0, 2, 2, 4], [-3, -2, -1, 0, 0, 1, 2, 3]
TABLE = cl.PrivateTable(
    {"f": HALVES, "d": [decimal.Decimal(str(x)) for x in HALVES], "i": [int(2 * x) for x in HALVES], "n": [0.125] * 8},
    columns={
        "f": cl.Real(-4, 4, step="0.5"),
        "d": cl.Real(-4, 4, step="0.5"),
        "i": cl.Integer(-9, 9),
        "n": cl.Real(0, 9, step="0.001"),
    },
)
ROUNDED = {  # ROUND of doubles, of decimals; CAST of doubles, of decimals
    None: (AWAY, AWAY, EVEN, AWAY), "duckdb": (AWAY, AWAY, EVEN, AWAY), "postgres": (EVEN, AWAY, EVEN, AWAY),
    "mysql": (EVEN, AWAY, EVEN, AWAY), "spark": (AWAY, AWAY, CUT, CUT), "databricks": (AWAY, AWAY, CUT, CUT),
    "tsql": (AWAY, AWAY, CUT, CUT), "sqlserver": (AWAY, AWAY, CUT, CUT), "sqlite": (AWAY, AWAY, CUT, CUT),
    "bigquery": (AWAY, AWAY, AWAY, AWAY), "snowflake": (AWAY, AWAY, AWAY, AWAY), "oracle": (AWAY, AWAY, AWAY, AWAY),
    "trino": (AWAY, AWAY, AWAY, AWAY), "postgresql": (EVEN, AWAY, EVEN, AWAY), "ansi": (AWAY, AWAY, EVEN, AWAY),
}  # fmt: skip
SCHEMA = {"f": "float", "d": "decimal", "i": "integer", "n": "float"}


def values(text: str, dialect: str | None) -> list[Any]:
    """What an expression is in the rows of the table, exactly."""
    from cloister.query.dialect import canonical

    TABLE.source.schema.update(SCHEMA)
    names = Rows(
        relation=Base(name="t", table=TABLE), fields=[Field(name=name, column=name) for name in TABLE.columns], label="t"
    )
    scalar = Reader(rows=names, dialect=canonical(dialect)).scalar(dialect_named(dialect).parse(text)[0])
    codes = {
        name: np.array([TABLE.columns[name].encode(x) for x in column], dtype=object)
        for name, column in {"f": HALVES, "d": HALVES, "i": [int(2 * x) for x in HALVES], "n": [0.125] * 8}.items()
    }
    domain = scalar.domain(TABLE.columns)
    return [None if code is None else domain.origin + int(code) * domain.step for code in evaluate(scalar, TABLE.columns, codes)]


@pytest.mark.parametrize("dialect", ROUNDED)
def test_halves_go_where_the_dialect_says(dialect: str | None) -> None:
    found = [values(text, dialect) for text in ("ROUND(f)", "ROUND(d)", "CAST(f AS INTEGER)", "CAST(d AS INTEGER)")]
    assert tuple(found) == ROUNDED[dialect]


def test_every_dialect_has_its_rules() -> None:
    assert set(RULES) == set(DIALECTS)


def test_what_is_not_known_is_refused() -> None:
    with pytest.raises(UnsupportedQuery, match=r"CAST\(f AS DECIMAL\(38, 1\)\)"):
        values("CAST(f AS INTEGER)", "redshift")
    assert values("ROUND(CAST(f AS DECIMAL(38, 1)), 0)", "redshift") == AWAY
    assert values("CAST(i AS INTEGER)", "redshift") == [-7, -5, -3, -1, 1, 3, 5, 7]


@pytest.mark.parametrize(
    ("text", "dialect", "expected"),
    [
        ("i / 2", "postgres", CUT), ("i / 2", "tsql", CUT), ("i / 2", "sqlite", CUT), ("i / 2", "trino", CUT),
        ("i / 2", None, HALVES), ("i / 2", "spark", HALVES), ("i / 2", "mysql", HALVES), ("i / 2", "bigquery", HALVES),
        ("i / 2.0", "postgres", HALVES), ("i / CAST(2 AS DOUBLE PRECISION)", "postgres", HALVES), ("f / 1", "tsql", HALVES),
        ("FLOOR(i) / 2", "postgres", HALVES), ("FLOOR(i) / 2", "tsql", CUT), ("i // 2", None, CUT), ("i DIV 2", "mysql", CUT),
        ("i % 2", None, [-1, -1, -1, -1, 1, 1, 1, 1]), ("f % 2", "sqlite", [-1, 0, -1, 0, 0, 1, 0, 1]),
        ("ROUND(f, -1)", "sqlite", AWAY), ("ROUND(f, 0, 1)", "tsql", CUT),
        ("ROUND(f, 0, 'ROUND_HALF_EVEN')", "bigquery", EVEN),
        ("ROUND_EVEN(f, 0)", "duckdb", EVEN), ("BROUND(f)", "spark", EVEN), ("TRUNC(f)", "oracle", CUT),
        ("TRUNCATE(f, 0)", "mysql", CUT), ("CAST(f AS DECIMAL(9, 0))", "spark", AWAY),
        ("CAST(f AS DECIMAL(9, 0))", "sqlite", HALVES),
        ("CAST(f AS DECIMAL)", "tsql", AWAY), ("CAST(f AS NUMERIC)", "postgres", HALVES), ("TRY_CAST(f AS INT)", "spark", CUT),
        ("CAST(i * 0.5 AS INTEGER)", "bigquery", AWAY), ("CAST(i * 0.5 AS INTEGER)", "duckdb", AWAY),
        ("CAST(i * 5e-1 AS INTEGER)", "duckdb", EVEN), ("CAST(i / 2 AS INTEGER)", "duckdb", EVEN),
        ("CAST(CASE WHEN i > 0 THEN f ELSE i * 0.5 END AS INTEGER)", "postgres", EVEN),
        ("CAST(FLOOR(i) * 0.5 AS INTEGER)", "duckdb", EVEN), ("CAST(TRUNC(i) * 0.5 AS INTEGER)", "duckdb", AWAY),
        ("CAST(i AS DECIMAL(9, 1)) / 2", "sqlite", CUT), ("CAST(COALESCE(i, f) AS REAL) / 2", "sqlite", HALVES),
        ("CAST(CAST(f AS DECIMAL(9, 1)) AS INTEGER)", None, AWAY), ("CAST(CAST(d AS DOUBLE) AS INTEGER)", None, EVEN),
    ],
)  # fmt: skip
def test_whole_quotients_casts_and_remainders(text: str, dialect: str | None, expected: list[float]) -> None:
    assert values(text, dialect) == [Fraction(x) for x in expected]


@pytest.mark.parametrize("mixed", ["CASE WHEN i > 0 THEN f ELSE i END", "COALESCE(i, f)", "IFNULL(i, f)"])
def test_what_is_whole_in_some_rows_alone_is_not_divided_where_that_decides(mixed: str) -> None:
    """SQLite divides row by row, as whole numbers where both sides are whole there."""
    with pytest.raises(UnsupportedQuery, match=r"CAST\(.* AS REAL\) / 3"):
        values(f"({mixed}) / 3", "sqlite")
    for dialect in (None, "postgres", "tsql"):
        assert values(f"({mixed}) / 2", dialect) == [x / 2 for x in values(mixed, dialect)]


def test_the_floor_of_a_whole_number_is_no_whole_number_in_duckdb() -> None:
    with pytest.raises(UnsupportedQuery, match="keeps the fraction"):
        values("CEIL(i) // 2", "duckdb")
    assert values("TRUNC(i) // 2", "duckdb") == CUT


def test_a_half_that_a_double_cannot_hold_is_refused_and_a_decimal_is_not() -> None:
    """DuckDB rounds the double x * 100, and 1.005 * 100 is below 100.5."""
    assert duckdb.sql("SELECT ROUND(1.005::DOUBLE, 2), ROUND(1.005::DECIMAL(9, 3), 2)").fetchall() == [
        (1.0, decimal.Decimal("1.01"))
    ]
    for text in ("ROUND(n, 2)", "CAST(n AS DECIMAL(9, 2))", "ROUND(n * 3, 2)"):
        with pytest.raises(UnsupportedQuery, match=r"ROUND\(CAST\(n( \* 3)? AS DECIMAL\(38, 3\)\), 2\)"):
            values(text, None)
    assert values("ROUND(n, 2)", "spark") == values("ROUND(CAST(n AS DECIMAL(38, 3)), 2)", None) == [Fraction(13, 100)] * 8
    assert values("ROUND(n, 1)", None) == [Fraction(1, 10)] * 8
    draw = random.Random(1)
    for _ in range(40):  # what is accepted is what DuckDB says of every value that the column may have
        places, digits, high = draw.randint(1, 3), draw.randint(1, 2), draw.randint(1, 40)
        table = cl.PrivateTable({"x": [0.5]}, columns={"x": cl.Real(-high, high, step=str(Fraction(1, 10**places)))})
        try:
            parse(f"SELECT SUM(ROUND(x, {digits})) FROM t", {"t": table})
        except UnsupportedQuery:
            continue
        codes = np.arange(-high * 10**places, high * 10**places + 1)
        said = duckdb.sql(f"SELECT ROUND(c::DOUBLE / {10**places}, {digits}) AS said FROM codes t(c)").fetchnumpy()["said"]
        halves_up = (2 * np.abs(codes) * 10**digits + 10**places) // (2 * 10**places)
        exact = np.sign(codes) * halves_up / 10**digits  # the double that is nearest, as a quotient of whole numbers is
        assert (said == exact).all(), codes[said != exact]


def test_the_sum_of_rounded_quarters_is_nothing() -> None:
    """Halves on both sides of 0 weigh the same: 250 where the truth is 0 was what halves upwards gave."""
    quarters = [i / 4 for i in range(-20, 21)] * 50
    table = cl.PrivateTable({"b": quarters}, columns={"b": cl.Real(-5, 5, step="0.25")})
    with cl.Session({"t": table}, budget=cl.PureDP(10**9), random=Random.deterministic(1)) as session:
        for dialect in (None, *sorted(DIALECTS)):
            for text in ("ROUND(b)", "CAST(b AS INTEGER)", "ROUND(b, 1)", "TRUNC(b)"):
                if dialect == "redshift" and "TRUNC" not in text:
                    continue  # refused
                if dialect in ("spark", "databricks", "tsql", "mysql") and "TRUNC" in text:
                    continue  # no such function there, or another one
                answer = session.sql(f"SELECT SUM({text}) AS s FROM t", spend=10**6, dialect=dialect)
                assert abs(answer.to_pydict()["s"][0]) < 1e-6, (dialect, text)


@pytest.mark.parametrize("text", [".5", "0.5", "5e-1", "5.e-1"])
def test_epsilon_is_any_number(text: str) -> None:
    sql = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = {text}, delta = .1e-5) COUNT(*) FROM t"
    for dialect in (None, "bigquery", "postgres"):
        assert parse(sql, {"t": TABLE}, dialect).spend == cl.ApproxDP("0.5", "1e-6")


def test_rounding_beside_aggregates_is_away_from_zero() -> None:
    from cloister.session.releases.combined import _rounded
    from cloister.session.releases.linearised import Linearised

    given = np.array([-2.5, -0.25, 0.25, 0.35, 2.5, 25.0, -35.0, np.nan])
    for digits, expected in (
        (0, [-3, 0, 0, 0, 3, 25, -35]),
        (1, [-2.5, -0.3, 0.3, 0.4, 2.5, 25, -35]),
        (-1, [0, 0, 0, 0, 0, 30, -40]),
    ):
        found = _rounded(Linearised(given, {}, np.zeros(8)), digits).value
        assert np.isnan(found[-1])
        np.testing.assert_allclose(found[:-1], expected)
