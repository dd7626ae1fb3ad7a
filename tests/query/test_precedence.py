"""Operators mean what SQL means by them, or are refused: compared with DuckDB on random expressions without parentheses."""

from __future__ import annotations

import duckdb
import pytest

import cloister as cl
from cloister.noise import Random

ROWS = {"x": list(range(60)), "y": [(7 * n) % 60 for n in range(60)], "p": [n % 3 == 0 if n % 5 else None for n in range(60)]}
COLUMNS = {"x": cl.Integer(0, 59), "y": cl.Integer(0, 59), "p": cl.Boolean()}


def _expressions(count: int) -> list[str]:
    random = Random.deterministic(11)

    def pick(options: list[str]) -> str:
        return options[int(random.below(len(options), 1)[0])]

    found = []
    for _ in range(count):
        text = pick(["x", "y", "3"])
        for _ in range(1 + int(random.below(3, 1)[0])):
            text += f" {pick(['+', '-', '*', '%'])} {pick(['x', 'y', '2', '5'])}"
        found.append(text)
    return list(dict.fromkeys(found))


@pytest.fixture(scope="module")
def session() -> cl.Session:
    """The rows behind a budget so large that the noise is nothing."""
    return cl.Session({"t": cl.PrivateTable(ROWS, columns=COLUMNS)}, budget=cl.PureDP(10**15), random=Random.deterministic(1))


@pytest.fixture(scope="module")
def plain() -> duckdb.DuckDBPyConnection:
    """The same rows in DuckDB."""
    connection = duckdb.connect()
    connection.execute("SET error_on_division_by_zero = false")
    connection.execute("CREATE TABLE t (x INTEGER, y INTEGER, p BOOLEAN)")
    connection.executemany("INSERT INTO t VALUES (?, ?, ?)", list(zip(*ROWS.values(), strict=True)))
    return connection


def test_arithmetic_without_parentheses_is_read_as_sql_reads_it_or_refused(
    session: cl.Session, plain: duckdb.DuckDBPyConnection
) -> None:
    answered = refused = 0
    for expression in _expressions(120):
        sql = f"SELECT COUNT(*) AS n FROM t WHERE {expression} > 4"
        try:
            found = int(session.sql(sql, spend=10**9)["n"][0])
        except cl.UnsupportedQuery:
            assert "%" in expression, sql
            refused += 1
            continue
        [(expected,)] = plain.execute(sql).fetchall()
        assert found == expected, sql
        answered += 1
    assert answered > 20
    assert refused > 20


@pytest.mark.parametrize(
    ("condition", "same"),
    [
        ("p = p IS NULL", False),
        ("x > 3 IS NOT NULL", False),
        ("(x > 3) IS NULL", True),
        ("NOT p IS NULL", True),
        ("p IS NULL OR x > 50", True),
        ("MOD(x - 1, 3) = 1 AND x > 1", True),
        ("x % 3 + 1 = 2", True),
        ("2 * x % 3 = 1", True),
    ],
)
def test_is_and_mod(session: cl.Session, plain: duckdb.DuckDBPyConnection, condition: str, same: bool) -> None:
    sql = f"SELECT COUNT(*) AS n FROM t WHERE {condition}"
    if not same:
        with pytest.raises(cl.UnsupportedQuery, match="without parentheses it is not read alike everywhere"):
            session.sql(sql, spend=10**9)
        return
    assert int(session.sql(sql, spend=10**9)["n"][0]) == plain.execute(sql).fetchall()[0][0]


def test_a_join_on_the_right_side_of_a_left_join_is_refused() -> None:
    def table(column: str) -> cl.PrivateTable:
        columns = {column: cl.Integer(0, 9)}
        return cl.PrivateTable({"who": [1, 2], column: [3, 4]}, columns=columns, unit="who", max_rows=1, population="p")

    tables = {"people": table("age"), "visits": table("cost"), "tests": table("score")}
    chain = "SELECT COUNT(*) AS n FROM people p LEFT JOIN visits v ON p.who = v.who JOIN tests t ON t.who ="
    with cl.Session(tables, budget=cl.PureDP(10**9)) as opened:
        with pytest.raises(cl.UnsupportedQuery, match="it is tied to the right side of a LEFT JOIN, which a row may lack"):
            opened.sql(f"{chain} v.who", spend=1)
        assert opened.sql(f"{chain} p.who", spend=10**8)["n"].tolist() == [2]
