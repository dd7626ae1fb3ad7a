"""What a condition asks for that is not declared is said before anything is charged."""

from __future__ import annotations

import math

import numpy as np
import pytest

import cloister as cl
from cloister.noise import Random
from cloister.query.session import Session

COLUMNS = {
    "age": cl.Integer(17, 90),
    "sex": cl.Category(["Female", "Male"]),
    "pay": cl.Real(0, 10_000_000, step="0.01"),
    "day": cl.Date("2020-01-01", "2020-12-31"),
    "smoker": cl.Boolean(),
    "town": cl.Text(),
}
ROWS = {
    "age": [17, 40, 90],
    "sex": ["Female", "Male", "Male"],
    "pay": [0.0, 10.5, 1e6],
    "day": ["2020-01-01"] * 3,
    "smoker": [True, False, True],
    "town": ["Delft"] * 3,
}


@pytest.fixture
def session() -> Session:
    return cl.Session({"people": cl.PrivateTable(ROWS, COLUMNS)}, budget=cl.PureDP(100), random=Random.deterministic(1))


CERTAIN = {
    "sex = 'female'": "sex = 'female' holds for no row: declared for sex are 'Female', 'Male'",
    "sex IN ('male', 'f')": "sex = 'male' holds for no row: declared for sex are 'Female', 'Male'",
    "sex LIKE 'f%'": "sex LIKE 'f%' holds for no row: declared for sex are 'Female', 'Male'",
    "age > 200": "age > 200 holds for no row: age is declared from 17 to 90",
    "age BETWEEN 91 AND 95": "age BETWEEN 91 AND 95 holds for no row: age is declared from 17 to 90",
    "16 >= age": "16 >= age holds for no row: age is declared from 17 to 90",
    "age = 40.5": "holds for no row: age is declared from 17 to 90",
    "pay < 0": "pay < 0 holds for no row: pay is declared from 0",
    "pay = 20000000": "pay = 20000000 holds for no row: pay is declared from 0",
    "pay BETWEEN 20000000 AND 30000000": "holds for no row: pay is declared from 0",
    "day >= DATE '2021-01-01'": "holds for no row: day is declared from 2020-01-01 to 2020-12-31",
    "smoker AND age > 200": "age > 200 holds for no row: age is declared from 17 to 90",
    "FLOOR(age / 10) * 10 = 100": "holds for no row",
}


@pytest.mark.parametrize("condition", CERTAIN)
def test_a_certain_answer_costs_nothing(session: Session, condition: str) -> None:
    sql = f"SELECT COUNT(*) AS n, SUM(age) AS s, 7 AS seven FROM people WHERE {condition}"
    plan, answer = session.explain(sql, spend=1), session.sql(sql, spend=1)
    for said in (str(plan), str(answer)):
        assert CERTAIN[condition] in said
        assert "the answer is certain" in said
    assert answer.to_pydict() == {"n": [0], "s": [0], "seven": [7]}
    assert answer.margin(0.95).to_pydict() == {"n": [0.0], "s": [0.0], "seven": [7]}
    assert plan.costs == {}
    assert session.spent == cl.PureDP(0) == answer.cost


def test_what_is_worked_out_of_nothing_is_what_sql_makes_of_it(session: Session) -> None:
    sql = """SELECT COALESCE(SUM(pay), 7) AS s, COALESCE(AVG(age), 5) AS a, COUNT(*) + 1 AS n, SUM(pay) / COUNT(*) AS q,
        ROUND(COALESCE(AVG(age), SUM(pay)) * 2 - 1.5, 1) AS r FROM people WHERE sex = 'female'"""
    answer = session.sql(sql, spend=1)
    for each in (answer, cl.Release.from_json(answer.to_json())):
        found = each.to_pydict()
        assert math.isnan(found.pop("q")[0])
        assert found == {"s": [0.0], "a": [5.0], "n": [1], "r": [-1.5]}
        assert [each.margin()[name][0] for name in found] == [0.0] * 4
    assert session.spent == cl.PureDP(0) == answer.cost


def test_a_mean_of_nothing_has_no_value_and_costs_nothing(session: Session) -> None:
    sql = """SELECT COUNT(*) AS n, AVG(age) AS a, SUM(pay) AS s, STDDEV(pay) AS sd, MEDIAN(age) AS m,
        MAX(day) AS d, MODE(sex) AS x FROM people WHERE sex = 'female'"""
    assert session.explain(sql, spend=1).costs == {}
    answer = session.sql(sql, spend=1)
    for each in (answer, cl.Release.from_json(answer.to_json())):
        found = each.to_pydict()
        assert all(math.isnan(found.pop(name)[0]) for name in ("a", "sd"))
        assert found == {"n": [0], "s": [0.0], "m": [None], "d": [None], "x": [None]}
        assert each.margin()["n"].tolist() == each.margin()["s"].tolist() == [0.0]
        assert np.isnan([each.margin()[name] for name in ("a", "sd", "m", "d", "x")]).all()
    assert session.spent == cl.PureDP(0) == answer.cost


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT smoker, COUNT(*) AS n FROM people WHERE age > 200 GROUP BY smoker",
        "SELECT COUNT(*) AS n FROM people WHERE sex = 'female' HAVING COUNT(*) > 1",
    ],
)
def test_what_is_not_certain_is_noted_and_charged(session: Session, sql: str) -> None:
    """Groups, and rows that a released number chooses."""
    assert "holds for no row" in str(session.sql(sql, spend=1))
    assert session.spent == cl.PureDP(1)


NOTED = {
    "sex = 'female' OR age > 40": "sex = 'female' holds for no row: declared for sex are 'Female', 'Male'",
    "sex IN ('Female', 'male')": "sex = 'male' holds for no row: declared for sex are 'Female', 'Male'",
    "sex <> 'female'": "sex != 'female' holds for every row with a value: declared for sex are 'Female', 'Male'",
    "NOT (age > 200)": "age > 200 holds for no row: age is declared from 17 to 90",
}


@pytest.mark.parametrize("condition", NOTED)
def test_what_may_be_a_mistake_is_noted(session: Session, condition: str) -> None:
    sql = f"SELECT COUNT(*) AS n FROM people WHERE {condition}"
    assert NOTED[condition] in str(session.explain(sql, spend=1))
    answer = session.sql(sql, spend=1)
    assert NOTED[condition] in answer.notes
    assert session.spent == cl.PureDP(1)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT SUM(CASE WHEN sex = 'female' THEN 1 ELSE 0 END) AS n FROM people",
        "SELECT COUNT(*) FILTER (WHERE sex = 'female') AS n FROM people",
        "SELECT COUNT(*) AS n FROM (SELECT age FROM people WHERE sex = 'female' OR age > 20)",
        "WITH some AS (SELECT age FROM people WHERE sex = 'female' OR age > 20) SELECT COUNT(*) AS n FROM some",
    ],
)
def test_it_is_noted_wherever_it_stands(session: Session, sql: str) -> None:
    assert "sex = 'female' holds for no row" in str(session.explain(sql, spend=1))


@pytest.mark.parametrize(
    "condition",
    ["sex = 'Female'", "age >= 17", "age > 89.5", "sex IS NULL", "town = 'nowhere'", "age < 18 AND sex IN ('Male')",
     "sex LIKE 'F%'", "smoker", "day = DATE '2020-02-29'", "pay = 0.01", "sex < 'G'", "age = NULL"],
)  # fmt: skip
def test_what_is_declared_is_asked_without_a_word(session: Session, condition: str) -> None:
    """A text has no declared values, and a comparison with NULL is written on purpose."""
    answer = session.sql(f"SELECT COUNT(*) AS n FROM people WHERE {condition}", spend=1)
    assert not [note for note in answer.notes if "holds for" in note]
    assert session.spent == cl.PureDP(1)


def test_an_owner_s_condition_is_not_told(session: Session) -> None:
    """Whoever asks through a view hears of their own conditions, and of none that the owner wrote."""
    ana = session.on_behalf("ana", rows={"people": "sex = 'female'"})
    answer = ana.sql("SELECT COUNT(*) AS n FROM people WHERE age > 200 OR age > 20", spend=1)
    assert [note for note in answer.notes if "holds for" in note] == ["age > 200 holds for no row: age is declared from 17 to 90"]
    assert "female" not in str(ana.explain("SELECT COUNT(*) AS n FROM people", spend=1))


@pytest.mark.parametrize(
    "condition",
    [
        *("SUM(age) > 'few'", "sex > 5", "sex = DATE '2026-01-01'", "born > 5", "born > '1999-xx'", "COUNT(*) IN ('a', 3)"),
        *("MIN(born) = 3", "MODE(sex) = 5", "COUNT(*) = TRUE", "COUNT(*) LIKE '1%'", "born LIKE '19%'", "n > 0 OR sex > 5"),
    ],
)
def test_having_of_two_kinds_is_refused_before_the_charge(condition: str) -> None:
    columns = {"age": cl.Integer(17, 90), "sex": cl.Category(["F", "M"]), "born": cl.Date("1999-01-01", "1999-01-09")}
    people = cl.PrivateTable({"age": [30], "sex": ["F"], "born": ["1999-01-02"]}, columns=columns)
    with cl.Session({"people": people}, budget=cl.PureDP(9)) as session:
        sql = "SELECT sex, born, COUNT(*) AS n FROM people GROUP BY sex, born HAVING {}"
        for ask in (session.explain, session.sql):
            with pytest.raises(cl.UnsupportedQuery, match="are compared with"):
                ask(sql.format(condition), spend=1)
        assert session.spent == cl.PureDP(0)
        session.sql(sql.format("sex > '5' AND born > '1999-01-01' AND COUNT(*) < '7' AND sex LIKE 'F%'"), spend=1)
