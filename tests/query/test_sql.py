"""SQL in, private answers out; everything off the list is refused by name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import cloister as cl
from cloister.noise import Random


@pytest.fixture(scope="module")
def session() -> Iterator[cl.Session]:
    """So much budget that the noise is nil: the answers are the exact ones."""
    people = cl.PrivateTable(
        {
            "age": [20, 30, 40, 50, None, 90] * 10,
            "sex": ["F", "M"] * 30,
            "pay": [1.5, 2.5, 3.5, 4.5, 5.5, 6.5] * 10,
            "smoker": [True, False, None] * 20,
            "born": ["1990-01-31", "1980-02-01", "1970-03-01"] * 20,
            "Two Words": ["a", "b", "c"] * 20,
        },
        columns={
            "age": cl.Integer(17, 90),
            "sex": cl.Category(["F", "M"]),
            "pay": cl.Real(0, 10, step="0.5"),
            "smoker": cl.Boolean(),
            "born": cl.Date("1900-01-01", "2026-12-31"),
            "Two Words": cl.Category(["a", "b", "c"]),
        },
    )
    visits = cl.PrivateTable(
        {"who": ["x", "x", "y"], "cost": [1, 2, 3]},
        columns={"cost": cl.Integer(0, 9)},
        unit="who",
        max_rows=2,
        population="patients",
    )
    tables = {"people": people, "census.visits": visits, "towns": cl.PublicTable({"name": ["Delft"]})}
    with cl.Session(tables, budget=cl.PureDP(10**15), random=Random.deterministic(1)) as opened:
        yield opened


@pytest.mark.parametrize(
    ("where", "count"),
    [
        ("age > 30", 30),
        ("30 < age", 30),
        ("age BETWEEN 30 AND 50", 30),
        ("NOT age BETWEEN 30 AND 50", 20),
        ("age IN (20, 50)", 20),
        ("age NOT IN (20, 50)", 30),
        ("age IS NULL", 10),
        ("age IS NOT NULL AND sex = 'F'", 20),
        ("sex <> 'F' OR age = 20", 40),
        ("pay >= 2.5 AND pay < 4.75", 30),
        ("smoker", 20),
        ("NOT smoker", 20),
        ("smoker IS TRUE", 20),
        ("born >= DATE '1980-01-01'", 40),
        ("born = '1970-03-01'", 20),
        ("born = '1970-03-01 00:00:00'", 20),
        ("age = '20'", 10),
        ("'30.0' >= age", 20),
        ("age IN ('20', ' 50 ')", 20),
        ("pay BETWEEN '2.5' AND '4.5'", 30),
        ("FLOOR(age / 10) = '2'", 10),
        ("smoker = 't'", 20),
        ("smoker <> 'FALSE'", 20),
        ("smoker = 1", 20),
        ("\"Two Words\" LIKE 'a%'", 20),
        ("sex = 'nobody'", 0),
        ("(age > 30 AND (sex = 'M'))", 20),
        ("age > -1e3", 50),
    ],
)
def test_conditions(session: cl.Session, where: str, count: int) -> None:
    answer = session.sql(f"SELECT COUNT(*) AS n FROM people WHERE {where}", spend=10**9)
    assert answer["n"].tolist() == [count]


def test_aggregates_keys_and_their_layout(session: cl.Session) -> None:
    answer = session.sql(
        "SELECT AVG(age) AS mean, p.sex AS s, COUNT(*) AS n, SUM(pay) AS total, COUNT(age) AS known"
        " FROM people AS p GROUP BY sex ORDER BY s DESC",
        spend=10**9,
    )
    assert answer.column_names == ["mean", "s", "n", "total", "known"]
    assert answer["s"].tolist() == ["M", "F"]
    assert answer["n"].tolist() == [30, 30]
    assert answer["known"].tolist() == [30, 20]
    assert answer["total"].tolist() == [135.0, 105.0]
    assert answer["mean"] == pytest.approx([(30 + 50 + 90) / 3, 30.0])


def test_order_and_limit_act_on_the_answer(session: cl.Session) -> None:
    answer = session.sql('SELECT "Two Words" AS w, SUM(age) AS t FROM people GROUP BY 1 ORDER BY 2 DESC LIMIT 2', spend=10**9)
    assert answer["w"].tolist() == ["c", "a"]
    assert answer.margin().num_rows == 2


@pytest.mark.parametrize(
    ("way", "keys"), [("", "acdb"), (" DESC NULLS LAST", "dcab"), (" NULLS FIRST", "bacd"), (" DESC NULLS LAST LIMIT 2", "dc")]
)
def test_what_is_divided_by_0_stands_where_null_does(way: str, keys: str) -> None:
    table = cl.PrivateTable({"k": list("abbddd")}, columns={"k": cl.Category(list("abcd"))})
    with cl.Session({"t": table}, budget=cl.PureDP(10**12), random=Random.deterministic(1)) as exact:
        answer = exact.sql(f"SELECT k, 10*COUNT(*)/(COUNT(*)-2) AS x FROM t GROUP BY k ORDER BY x{way}", spend=10**9)
    assert "".join(answer["k"]) == keys


def test_names_fold_case_unless_quoted(session: cl.Session) -> None:
    assert session.sql("select count(*) as n from PEOPLE where AGE > 30", spend=10**9)["n"].tolist() == [30]
    with pytest.raises(cl.UnknownColumn):
        session.sql('SELECT COUNT("AGE") FROM people', spend=1)


def test_persons_and_names_with_a_schema(session: cl.Session) -> None:
    answer = session.sql("SELECT COUNT(DISTINCT who) AS persons, COUNT(*) AS visits FROM census.visits", spend=10**9)
    assert list(answer) == [(2, 3)]


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("SELECT * FROM people", cl.UnsupportedQuery),
        ("SELECT age FROM people", cl.UnsupportedQuery),
        ("SELECT sex, COUNT(*) FROM people", cl.UnsupportedQuery),
        ("SELECT COUNT(*) FROM people; DROP TABLE people", cl.UnsupportedQuery),
        ("DROP TABLE people", cl.UnsupportedQuery),
        ("COPY people TO 'x.csv'", cl.UnsupportedQuery),
        ("SELECT COUNT(*) FROM read_csv('/etc/passwd')", cl.UnsupportedQuery),
        ("SELECT COUNT(*) FROM information_schema.tables", cl.UnknownTable),
        ("SELECT COUNT(*) FROM people, towns", cl.UnsupportedQuery),
        ("SELECT COUNT(*) FROM people JOIN towns ON TRUE", cl.UnsupportedQuery),
        ("SELECT age FROM people UNION SELECT age FROM people", cl.UnsupportedQuery),
        ("SELECT COUNT(*) OVER () FROM people", cl.UnsupportedQuery),
        ("SELECT SUM(DISTINCT age) FROM people", cl.UnsupportedQuery),
        ("SELECT AVG(DISTINCT age) FROM people", cl.UnsupportedQuery),
        ("SELECT SUM(sex) FROM people", cl.UnsupportedQuery),
        ("SELECT COUNT(*) FROM people WHERE 1/(age-30) > 0", cl.MissingBound),
        ("SELECT COUNT(*) FROM people WHERE age = (SELECT 1)", cl.UnsupportedQuery),
        ("SELECT COUNT(*) FROM people WHERE regexp_matches(sex, '(a+)+$')", cl.UnsupportedQuery),
        ("SELECT COUNT(*) FROM people WHERE age = 'thirty'", cl.CloisterError),
        ("SELECT COUNT(*) FROM people WHERE age = ''", cl.CloisterError),
        ("SELECT COUNT(*) FROM people WHERE smoker = 2", cl.CloisterError),
        ("SELECT COUNT(*) FROM people WHERE sex = 1", cl.CloisterError),
        ("SELECT COUNT(*) FROM people WHERE nothing = 1", cl.UnknownColumn),
        ("SELECT COUNT(*) FROM people TABLESAMPLE (10 PERCENT)", cl.UnsupportedQuery),
        ("SELECT COUNT(*) AS n, SUM(age) AS n FROM people", cl.UnsupportedQuery),
        ("SELECT COUNT(*) FROM", cl.UnsupportedQuery),
        ("", cl.UnsupportedQuery),
        ("SELECT", cl.UnsupportedQuery),
        ("/* only a comment */", cl.UnsupportedQuery),
        ("SELECT COUNT(*) FROM people WHERE " + "(" * 500 + "age = 1" + ")" * 500, cl.UnsupportedQuery),
        ("SELECT COUNT(*) FROM people WHERE " + "NOT " * 3000 + "smoker", cl.UnsupportedQuery),
    ],
)
def test_what_is_not_on_the_list_is_refused_and_costs_nothing(session: cl.Session, sql: str, error: type[Exception]) -> None:
    before = session.spent_by
    with pytest.raises(error) as refusal:
        session.sql(sql, spend=1)
    assert refusal.value.instead  # type: ignore[attr-defined]
    assert session.spent_by == before


def test_a_spend_or_a_margin_but_not_both(session: cl.Session) -> None:
    with pytest.raises(cl.InvalidParameter):
        session.sql("SELECT COUNT(*) FROM people")
    with pytest.raises(cl.InvalidParameter):
        session.sql("SELECT COUNT(*) FROM people", spend=1, within=3)
    answer = session.sql("SELECT COUNT(*) AS n FROM people WHERE age < 77", within=25)
    assert answer.margin()["n"][0] <= 25


def test_explain_takes_sql(session: cl.Session) -> None:
    plan = session.explain("SELECT sex, AVG(age) AS a FROM people WHERE pay > 17 GROUP BY sex", spend="0.1")
    assert plan.cost == cl.PureDP("0.1")
    assert "people" in str(plan)
    assert plan.margin(group_size=100)["a"][0] < plan.margin(group_size=10)["a"][0]
