"""What a word means in the dialect that is named: the answer is that of its engine, or the question is refused before a charge.

Each condition is about one row; what its engine says of it is in the manuals of the engines, and for DuckDB is asked of it."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

import cloister as cl
from cloister.errors import CloisterError

ROW: dict[str, Any] = {"s": "abc", "p": "a_b", "a": None, "b": 4}
DAYS = {"sun": "2021-01-03", "mon": "2021-01-04", "jan": "2021-01-31", "feb": "2021-02-01"}
COLUMNS: dict[str, Any] = {
    "s": cl.Category(["abc", "x"]),
    "p": cl.Category(["a_b", "axb", "a\\_b"]),
    "a": cl.Integer(0, 9, nullable=True),
    "b": cl.Integer(0, 9),
    **dict.fromkeys(DAYS, cl.Date("2021-01-01", "2021-12-31")),
}
TRUE = [
    ("postgres", "SUBSTRING(s, -2) = 'abc'"),
    ("tsql", "SUBSTRING(s, 0, 2) = 'a'"),
    ("duckdb", "SUBSTR(s, 0, 2) = 'a'"),
    ("mysql", "SUBSTR(s, 2) = 'bc'"),
    ("mysql", "LEAST(a, b) IS NULL"),
    ("mysql", "LEAST(b, 3) = 3"),
    ("bigquery", "GREATEST(a, b) IS NULL"),
    ("snowflake", "GREATEST(LEAST(a, 5), 1) IS NULL"),
    ("oracle", "LEAST(GREATEST(b, 5), 7) = 5"),
    ("snowflake", "GREATEST_IGNORE_NULLS(a, 3) = 3"),
    ("oracle", "(s || CAST(a AS VARCHAR)) = 'abc'"),
    ("oracle", "CONCAT(s, CAST(a AS VARCHAR)) = 'abc'"),
    ("postgres", "LEAST(a, b) = 4"),
    ("duckdb", "GREATEST(LEAST(a, 5), 1) = 5"),
    ("spark", "EXTRACT(DOW FROM sun) = 1"),
    ("trino", "EXTRACT(DOW FROM sun) = 7"),
    ("duckdb", "EXTRACT(DOW FROM sun) = 0"),
    ("duckdb", "DATE_DIFF('month', jan, feb) = 1"),
    ("spark", "DATEDIFF(mon, sun) = 1"),
    ("postgres", r"p LIKE 'a\_b'"),
    ("mysql", r"p LIKE 'a\_b'"),
    ("postgres", "p LIKE 'a!_b' ESCAPE '!'"),
    ("postgres", r"NOT p LIKE '%\%'"),
    ("duckdb", r"NOT p LIKE 'a\_b'"),
    ("duckdb", "p LIKE 'a_b'"),
    ("postgres", "EXTRACT(WEEK FROM mon) / 2 = 0.5"),
    ("trino", "EXTRACT(WEEK FROM mon) / 2 = 0"),
    ("postgres", "EXTRACT(EPOCH FROM jan) / 7 > 230293028.57"),
    ("postgres", "SIGN(b) / 4 = 0.25"),
    ("tsql", "SIGN(b) / 4 = 0"),
    ("postgres", "WIDTH_BUCKET(b, 0, 10, 7) / 2 = 1"),
    ("postgres", "NULLIF(b, 1.5) / 8 = 0.5"),
    ("trino", "NULLIF(b, 1) / 8 = 0"),
    ("tsql", "s LIKE '[a-c]bc' AND s LIKE 'a[b]%' AND NOT s LIKE '[bx]bc'"),
    ("sqlite", "MAX(b, 3) = 4 AND MIN(b, 3) = 3 AND MAX(a, b) IS NULL"),
]
REFUSED = [
    *(("duckdb", "SUBSTRING(s, -2) = 'bc'"), (None, "SUBSTRING(s, -2) = 'bc'"), ("spark", "SUBSTR(s, 0, 2) = 'ab'")),
    *(("trino", "DATE_DIFF('month', jan, feb) = 0"), ("spark", "DATEDIFF(MONTH, jan, feb) = 0")),
    *(("duckdb", "DATE_DIFF('week', sun, mon) = 0"), ("tsql", "DATEDIFF(WEEK, sun, mon) = 0")),
    *(("tsql", "s LIKE '[a-c](bc)'"), ("tsql", "s LIKE '[^x]bc'"), ("tsql", "s LIKE '[a-c]b%' ESCAPE '!'")),
    *(("tsql", "DATETRUNC(week, sun) = '2021-01-03'"), ("postgres", r"p LIKE 'a\_b_c\%'")),
]


@pytest.fixture(scope="module")
def session() -> Any:
    table = cl.PrivateTable({name: [value] for name, value in (ROW | DAYS).items()}, columns=COLUMNS)
    made = cl.Session({"o": table}, budget=cl.PureDP(10**9))
    yield made
    made.close()


@pytest.mark.parametrize(
    ("key", "wanted"),
    [
        ("CONCAT(a, s)", {"abc": 1}),  # as DuckDB has it, where no dialect is said
        ("a || s", {None: 1}),
        ("b IN (7, NULL)", {None: 1, True: 0}),
        ("NULL > b OR b > 8", {None: 1, True: 0}),
        ("b IN (4, NULL)", {None: 0, True: 1}),
    ],
)
def test_a_key_of_a_written_null_has_its_group(key: str, wanted: dict[Any, int], session: cl.Session) -> None:
    found = session.sql(f"SELECT {key} AS k, COUNT(*) AS n FROM o GROUP BY k", spend=10**5).to_pydict()
    assert {name: n for name, n in zip(found["k"], found["n"], strict=True) if n or name in wanted} == wanted


@pytest.mark.parametrize(("dialect", "condition"), TRUE)
def test_it_means_what_it_means_there(session: cl.Session, dialect: str, condition: str) -> None:
    found = session.sql(f"SELECT COUNT(*) AS n FROM o WHERE {condition}", spend=10**5, dialect=dialect)
    assert found.to_pydict() == {"n": [1]}
    if dialect == "duckdb":
        columns = ", ".join(f"{'NULL::BIGINT' if value is None else repr(value)} AS {name}" for name, value in ROW.items())
        columns += "".join(f", DATE '{day}' AS {name}" for name, day in DAYS.items())
        assert duckdb.sql(f"SELECT COUNT(*) FROM (SELECT {columns}) WHERE {condition}").fetchall() == [(1,)]


@pytest.mark.parametrize(("dialect", "condition"), REFUSED)
def test_what_would_mean_another_thing_is_refused(session: cl.Session, dialect: str, condition: str) -> None:
    before = session.remaining
    with pytest.raises(CloisterError, match="not supported"):
        session.sql(f"SELECT COUNT(*) AS n FROM o WHERE {condition}", spend=1, dialect=dialect)
    assert session.remaining == before


PEOPLE = {"who": [1, 1, 2, 2, 3, 3], "x": ["A", "B", None, "A", None, None], "y": [1, None, 3, 1, None, 2]}
KINDS = {"x": cl.Category(["A", "B"], nullable=True), "y": cl.Integer(0, 5, nullable=True)}


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("SELECT COUNT(DISTINCT (x, y)) AS n FROM v", 5),  # a tuple is a value where a part of it is NULL
        ("SELECT COUNT(DISTINCT x, y) AS n FROM v", 1),
        ("SELECT SUM(n) AS n FROM (SELECT who, COUNT(1) AS n FROM v GROUP BY who) AS t", 6),
        ("SELECT SUM(n) AS n FROM (SELECT COUNT(1) OVER (PARTITION BY who) AS n FROM v) AS t", 12),
        ("SELECT SUM(n) AS n FROM (SELECT who, COUNT(NULL) AS n FROM v GROUP BY who) AS t", None),
        ("SELECT SUM(n) AS n FROM (SELECT COUNT(NULL) OVER (PARTITION BY who) AS n FROM v) AS t", None),
        ("SELECT COUNT(*) AS n FROM (SELECT who FROM v GROUP BY who HAVING COUNT(NULL) > 0) AS t", None),
        ("SELECT COUNT(NULL, contribution_bounds_per_group => (0, 3)) AS n FROM v", None),
        ("SELECT COUNT(NULL) AS n FROM v", None),
    ],
)
def test_null_is_counted_nowhere(sql: str, wanted: int | None) -> None:
    table = cl.PrivateTable(PEOPLE, columns=KINDS, unit="who", max_rows=3)
    with cl.Session({"v": table}, budget=cl.PureDP(10**9)) as session:
        if wanted is None:
            with pytest.raises(CloisterError, match="NULL"):
                session.sql(sql, spend=10**5)
        else:
            assert session.sql(sql, spend=10**5).to_pydict() == {"n": [wanted]}


@pytest.mark.parametrize(
    ("sql", "truth"),
    [
        ("SELECT SUM(x) * SUM(x) AS n FROM t", 9e18),
        ("SELECT SUM(x) * 1e18 AS n FROM t", 3e27),
        ("SELECT SUM(x) + 1e20 AS n FROM t", 1e20 + 3e9),
        ("SELECT MAX(n) AS n FROM (SELECT SUM(x) * 1e19 AS n FROM t) AS q", 3e28),
        ("SELECT COUNT(*) * 100 AS n FROM t", 3_000_000),
        ("SELECT COUNT(*) * 4611686018427387904 AS n FROM t", 30_000 * 2.0**62),
    ],
)
def test_a_number_beyond_64_bits_is_a_double_with_its_margin(sql: str, truth: float) -> None:
    table = cl.PrivateTable({"x": [10**5] * 30_000}, columns={"x": cl.Integer(0, 500_000)})
    with cl.Session({"t": table}, budget=cl.PureDP(10**9)) as session:
        found = session.sql(sql, spend=10**4)
    assert abs(found.to_pydict()["n"][0] - truth) <= found.margin().to_pydict()["n"][0] + 1e-9 * truth


@pytest.mark.parametrize(
    "above", ["COUNT(*) + 1e309", "SUM(c) * 1e400", "AVG(c) - 1e309", "COUNT(*) / 1e-400", "COUNT(*) + (SELECT 1e309)"]
)
def test_a_constant_that_no_double_holds_is_refused_before_the_charge(above: str) -> None:
    with cl.Session({"r": cl.PrivateTable({"c": [1]}, columns={"c": cl.Integer(0, 9)})}, budget=cl.PureDP(5)) as session:
        for sql in (f"SELECT {above} AS n FROM r", f"SELECT COUNT(*) AS n FROM r ORDER BY {above}"):
            with pytest.raises(CloisterError):
                session.sql(sql, spend=1)
            with pytest.raises(CloisterError):
                session.explain(sql, spend=1)
        assert str(session.remaining) == "ε = 5"


@pytest.mark.parametrize(
    ("written", "value"), [("1e300", 1e300), ("9223372036854775808", 2.0**63), ("-1e30", -1e30), ("2e3", 2000)]
)
def test_a_constant_beyond_64_bits_is_shown_as_a_double(written: str, value: float) -> None:
    with cl.Session({"r": cl.PrivateTable({"c": [1]}, columns={"c": cl.Integer(0, 9)})}, budget=cl.PureDP(5)) as session:
        for sql in (f"SELECT {written} AS x, COUNT(*) AS n FROM r", f"SELECT {written} AS x, COUNT(*) AS n FROM r WHERE c = 77"):
            found = session.sql(sql, spend=1)
            assert session.columns(sql)[0] == ("x", "integer" if value == 2000 else "real", False)
            assert found.table.to_arrow().num_rows == 1
            assert cl.Release.from_json(found.to_json()).to_pydict()["x"] == [value]
        spent = session.spent
        with pytest.raises(CloisterError, match="too large"):
            session.sql("SELECT 1e400 AS x, COUNT(*) AS n FROM r", spend=1)
        assert session.spent == spent
        assert session.sql("SELECT COUNT(*) AS n FROM r HAVING COUNT(*) < 1e400", spend=1).num_rows == 1


@pytest.mark.parametrize("condition", ["town LIKE 'd%'", "town LIKE 'DE%' ESCAPE '!'", "SUBSTR(town, 1, 2) LIKE 'De'"])
def test_like_of_sqlite_knows_no_case(condition: str) -> None:
    towns = ["Delft", "delft", "Gouda"]
    people = cl.PrivateTable({"town": towns * 10}, columns={"town": cl.Category(towns)})
    with cl.Session({"people": people}, budget=cl.PureDP(10**6)) as session:
        sql = f"SELECT COUNT(*) AS n FROM people WHERE {condition}"
        assert session.sql(sql, spend=100, dialect="sqlite")["n"].tolist() == [20]
        assert session.sql(sql, spend=100, dialect="duckdb")["n"].tolist() < [20]


@pytest.mark.parametrize(
    ("dialect", "name", "wanted"),
    [
        ("mysql", "STDDEV", 1),
        ("mysql", "STD", 1),
        ("mysql", "VARIANCE", 1),
        ("mysql", "VAR_SAMP", 2),
        ("mysql", "STDDEV_SAMP", 2**0.5),
        ("duckdb", "STDDEV", 2**0.5),
        (None, "VARIANCE", 2),
    ],
)
def test_a_variance_divides_by_n_where_the_dialect_has_it(dialect: str | None, name: str, wanted: float) -> None:
    table = cl.PrivateTable({"k": ["a", "b", "b", "b"], "x": [3, 1, 3, 2]}, {"k": cl.Category(["a", "b"]), "x": cl.Integer(0, 4)})
    answers = "(SELECT k, COUNT(*) AS n FROM t GROUP BY k) AS u"
    with cl.Session({"t": table}, budget=cl.PureDP(10**9)) as session:
        found = session.sql(f"SELECT {name}(n) AS v FROM {answers}", spend=10**6, dialect=dialect)
        assert found["v"][0] == pytest.approx(wanted, abs=1e-3)


@pytest.mark.parametrize("call", ["DATE_TRUNC('century', day)", "DATE_TRUNC('Monat', born)", "DATE_DIFF('century', day, day)"])
def test_a_unit_of_time_that_is_not_known_is_refused_by_its_name(call: str) -> None:
    """Of a column called day as of any other: it is not taken for the unit."""
    days = dict.fromkeys(("day", "born"), cl.Date("2026-01-01", "2026-12-31"))
    people = cl.PrivateTable({name: ["2026-01-01"] for name in days}, columns=days)
    with (
        cl.Session({"people": people}, budget=cl.PureDP(1)) as opened,
        pytest.raises(cl.UnsupportedQuery, match=r"its unit is not one of year, quarter, month, week, day\."),
    ):
        opened.explain(f"SELECT {call} AS c, COUNT(*) AS n FROM people GROUP BY 1", spend=1)
