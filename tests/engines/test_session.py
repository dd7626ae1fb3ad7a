"""The whole way of a question, from SQL to release, on each engine: the same answers from the same rows."""

from __future__ import annotations

import pytest

import cloister as cl
from cloister.noise import Random

from .conftest import Loader

PERSONS = 60
DATA = {
    "who": [f"p{number % PERSONS}" for number in range(300)],
    "age": [None if number % 17 == 0 else 10 + number % 95 for number in range(300)],
    "pay": [float("nan") if number % 13 == 0 else 7.25 * (number % 41) - 20 for number in range(300)],
    "sex": [["F", "M", None, "X"][number % 4] for number in range(300)],
    "town": [["Delft", "Leiden", "'; DROP TABLE people; --"][number % 3] for number in range(300)],
}
KINDS = {"who": "text", "age": "integer", "pay": "float", "sex": "text", "town": "text"}
COLUMNS = {
    "age": cl.Integer(17, 90),
    "pay": cl.Real(0, 200, step="0.25"),
    "sex": cl.Category(["F", "M"], nullable=True),
    "town": cl.Text(),
}


@pytest.fixture
def people(loader: Loader) -> cl.PrivateTable:
    """Sixty persons with five rows each, of which all count, so that no engine has a choice of rows."""
    return cl.PrivateTable(loader.load(DATA, KINDS), columns=COLUMNS, unit="who", max_rows=5, version="1")


def test_questions_have_the_same_answers_on_every_engine(people: cl.PrivateTable) -> None:
    with cl.Session({"people": people}, budget=cl.PureDP(10**12), random=Random.deterministic(1)) as session:
        answer = session.sql(
            "SELECT sex, COUNT(*) AS n, COUNT(age) AS known, SUM(pay) AS pay, AVG(age) AS age, COUNT(DISTINCT who) AS persons"
            " FROM people WHERE age > 20 OR pay < 50 GROUP BY sex",
            spend=10**9,
        )
    rows = [
        (
            None if sex is None or sex == "X" else sex,
            None if age is None else min(max(age, 17), 90),
            None if pay != pay else min(max(pay, 0.0), 200.0),
            who,
        )
        for who, age, pay, sex in zip(DATA["who"], DATA["age"], DATA["pay"], DATA["sex"], strict=True)
    ]
    kept = [row for row in rows if (row[1] is not None and row[1] > 20) or (row[2] is not None and row[2] < 50)]
    for place, sex in enumerate(["F", "M", None]):
        mine = [row for row in kept if row[0] == sex]
        ages = [row[1] for row in mine if row[1] is not None]
        assert answer["sex"][place] == sex
        assert answer["n"][place] == len(mine)
        assert answer["known"][place] == len(ages)
        assert answer["pay"][place] == pytest.approx(sum(row[2] for row in mine if row[2] is not None))
        assert answer["age"][place] == pytest.approx(sum(ages) / len(ages))
        assert answer["persons"][place] == len({row[3] for row in mine})


def test_undeclared_keys_on_every_engine(people: cl.PrivateTable) -> None:
    with cl.Session({"people": people}, budget=cl.ApproxDP(10**6, "1e-3"), random=Random.deterministic(1)) as session:
        answer = session.sql("SELECT town, COUNT(*) AS n FROM people GROUP BY town", spend=cl.ApproxDP(10**5, "1e-6"))
    assert dict(answer) == {"'; DROP TABLE people; --": 100, "Delft": 100, "Leiden": 100}
    assert answer["town"].tolist() == sorted(answer["town"].tolist())
