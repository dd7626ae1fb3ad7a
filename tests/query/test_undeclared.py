"""What a condition asks for that is not declared is said before anything is charged."""

from __future__ import annotations

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
    "sex = 'female'": ("declared for sex are 'Female', 'Male'", "sex = 'Female'"),
    "sex IN ('male', 'f')": ("declared for sex are 'Female', 'Male'", "sex = 'Male'"),
    "sex LIKE 'f%'": ("declared for sex are 'Female', 'Male'", "sex = 'Female'"),
    "age > 200": ("age is declared from 17 to 90", "age <= 90"),
    "age BETWEEN 91 AND 95": ("age is declared from 17 to 90", "age <= 90"),
    "16 >= age": ("age is declared from 17 to 90", "age <= 90"),
    "age = 40.5": ("age is declared from 17 to 90", "age <= 90"),
    "pay < 0": ("pay is declared from 0", "pay <= "),
    "pay = 20000000": ("pay is declared from 0", "pay <= "),
    "pay BETWEEN 20000000 AND 30000000": ("pay is declared from 0", "pay <= "),
    "day >= DATE '2021-01-01'": ("day is declared from 2020-01-01 to 2020-12-31", "day <= "),
    "smoker AND age > 200": ("age is declared from 17 to 90", "age <= 90"),
    "FLOOR(age / 10) * 10 = 100": ("is declared from 10 to 90", "<= 90"),
}


@pytest.mark.parametrize("condition", CERTAIN)
def test_a_certain_answer_costs_nothing(session: Session, condition: str) -> None:
    declared, instead = CERTAIN[condition]
    for ask in (lambda sql: session.sql(sql, spend=1), lambda sql: session.explain(sql, spend=1)):
        with pytest.raises(cl.UnsupportedQuery) as refusal:
            ask(f"SELECT COUNT(*) AS n FROM people WHERE {condition}")
        assert declared in refusal.value.why
        assert "nothing was charged" in refusal.value.why
        assert instead in str(refusal.value.instead)
    assert session.spent == cl.PureDP(0)


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
