"""The meaning of a question: without noise, its answer is what DuckDB says of the same rows."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import cloister as cl
from cloister.noise import Random
from tests.query.hospital import plain, rows, tables

QUESTIONS = (Path(__file__).parent / "questions.sql").read_text(encoding="utf-8").strip().splitlines()
SETS = (
    "SELECT sex, GROUPING(sex) AS g, COUNT(*) FROM people GROUP BY ROLLUP (sex)",
    "SELECT sex, town, COUNT(*) AS n FROM people GROUP BY CUBE (sex, town)",
    "SELECT sex, town, COUNT(pay) AS n FROM people GROUP BY GROUPING SETS ((sex, town), (sex), ())",
    "SELECT sex, COUNT(*) AS n FROM people WHERE age > 30 GROUP BY sex WITH ROLLUP",
    "SELECT sex, town, COUNT(*) AS n FROM people GROUP BY GROUPING SETS (ROLLUP (sex, town), (town))",
)
OTHERWISE = {
    "SELECT TOP 3 town, COUNT(*) AS c FROM people GROUP BY town ORDER BY c DESC, town": (
        "SELECT town, COUNT(*) AS c FROM people GROUP BY town ORDER BY c DESC, town LIMIT 3"
    ),
    "SELECT SUM(CLAMP(pay / (age - 30), 0, 10)) FROM people": (
        "SELECT SUM(LEAST(GREATEST(pay / NULLIF(age - 30, 0), 0), 10)) FROM people WHERE age <> 30"
    ),
    "SELECT WIDTH_BUCKET(age, 20, 80, 6) AS b, COUNT(*) FROM people GROUP BY b HAVING COUNT(*) > 0.5": (
        "SELECT CASE WHEN age < 20 THEN 0 WHEN age >= 80 THEN 7 ELSE (age - 20) // 10 + 1 END, COUNT(*) FROM people GROUP BY 1"
    ),
    "SELECT COUNT(*) FROM visits a RIGHT JOIN patients b USING (patient)": (
        "SELECT COUNT(*) FROM patients LEFT JOIN visits USING (patient)"
    ),
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = 9) ward, AVG(cost) FROM visits GROUP BY ward": (
        "SELECT ward, AVG(cost) FROM visits GROUP BY ward"
    ),
    "SELECT ward, SUM(fee, contribution_bounds_per_group => (10, 40)) AS s FROM visits GROUP BY ward": (
        "SELECT ward, SUM(LEAST(GREATEST(s, 10), 40))"
        " FROM (SELECT patient, ward, SUM(fee) AS s FROM visits GROUP BY ALL) GROUP BY ward"
    ),
    "SELECT SUM(age, contribution_bounds_per_group => (30, 40)) FROM people": (
        "SELECT SUM(LEAST(GREATEST(age, 30), 40)) FROM people"
    ),
}


@pytest.fixture(scope="module")
def session() -> Iterator[cl.Session]:
    """So much budget that the noise is nil."""
    with cl.Session(tables(rows()), budget=cl.PureDP(10**15), random=Random.deterministic(1)) as opened:
        yield opened


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    """The same rows, unprotected."""
    connection = plain(rows())
    yield connection
    connection.close()


def cells(found: Any) -> list[tuple[Any, ...]]:
    def one(value: Any) -> Any:
        if isinstance(value, decimal.Decimal):
            return float(value)
        return value.date() if isinstance(value, datetime.datetime) else value

    return [tuple(one(value) for value in row) for row in found]


def alike(left: Any, right: Any) -> bool:
    """Numbers agree to a hundred-thousandth: quotients and roots are rounded to a step."""
    if isinstance(left, float) or isinstance(right, float):
        return left is not None and right is not None and abs(left - right) <= 1e-5 * max(1, abs(right))
    return bool(left == right)


def agree(session: cl.Session, engine: duckdb.DuckDBPyConnection, sql: str, expected: str, spend: int = 10**9) -> None:
    mine, theirs = cells(session.sql(sql, spend=spend)), cells(engine.execute(expected).fetchall())
    if "ORDER BY" not in sql:
        mine, theirs = sorted(mine, key=repr), sorted(theirs, key=repr)
    assert theirs, "the question has no rows to compare"
    assert [len(row) for row in mine] == [len(row) for row in theirs]
    for left, right in zip(mine, theirs, strict=True):
        assert all(map(alike, left, right)), (left, right)


@pytest.mark.parametrize("sql", QUESTIONS)
def test_the_answer_without_noise_is_duckdbs(session: cl.Session, engine: duckdb.DuckDBPyConnection, sql: str) -> None:
    agree(session, engine, sql, sql)


@pytest.mark.parametrize("sql", OTHERWISE)
def test_what_duckdb_writes_otherwise(session: cl.Session, engine: duckdb.DuckDBPyConnection, sql: str) -> None:
    agree(session, engine, sql, OTHERWISE[sql])


@pytest.mark.parametrize("sql", SETS)
def test_grouping_sets(session: cl.Session, engine: duckdb.DuckDBPyConnection, sql: str) -> None:
    """With ε = 120, 30 for each of at most four groupings, some cell has noise with a chance below 1e-11."""
    agree(session, engine, sql, sql.replace("sex WITH ROLLUP", "ROLLUP (sex)"), spend=120)


def test_medians_and_modes_are_near(session: cl.Session, engine: duckdb.DuckDBPyConnection) -> None:
    """A quantile is one of the values, and DuckDB interpolates between two."""
    sql = "SELECT MEDIAN(age), QUANTILE_CONT(pay, 0.25), MODE(town) FROM people"
    ((median, quarter, mode),), ((exact, exact_quarter, exact_mode),) = (
        cells(session.sql(sql, spend=10**9)),
        engine.execute(sql).fetchall(),
    )
    assert abs(median - exact) <= 2
    assert abs(quarter - exact_quarter) <= 2
    assert mode == exact_mode
