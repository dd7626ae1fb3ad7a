"""Promise 1: what is not a release is the same for neighbouring tables, and holds nothing of a row."""

from __future__ import annotations

import logging
from typing import Any

import pytest

import cloister as cl
from cloister.noise import Random

TOWNS = cl.PublicTable({"name": ["Delft", "Leiden"], "large": [True, False]})
SECRET_TOWN = "Unterpfaffenhofen"
SECRET_PAY = 77_123.25
SECRET_PERSON = "NL-4711-0815"

QUESTIONS = [
    "SELECT COUNT(*) AS n FROM people",
    "SELECT sex, COUNT(*) AS n, AVG(pay) AS pay, SUM(age) AS s FROM people GROUP BY sex",
    "SELECT age, COUNT(DISTINCT person) AS p FROM people WHERE pay > 77123 GROUP BY age",
    "SELECT town, COUNT(*) AS n FROM people GROUP BY town",
    f"SELECT COUNT(*) AS n FROM people WHERE town = '{SECRET_TOWN}'",
    "SELECT COUNT(*) AS n FROM people WHERE born BETWEEN '1950-01-01' AND '1960-01-01' AND NOT smoker",
    "SELECT sex, smoker, COUNT(*) AS n, AVG(age) AS a FROM people GROUP BY ROLLUP (sex, smoker)",
    "SELECT MEDIAN(pay) AS m, MIN(age) AS low, MAX(born) AS late, MODE(sex) AS s, VAR_SAMP(pay) AS v FROM people",
    "SELECT AVG(total) AS a, STDDEV_POP(n) AS d FROM"
    " (SELECT person, SUM(pay) AS total, COUNT(*) AS n FROM people GROUP BY person) AS t",
    "SELECT a.sex, COUNT(*) AS n FROM people AS a JOIN people AS b ON a.person = b.person AND a.age = b.age GROUP BY a.sex",
    "SELECT a.sex, town, COUNT(*) AS n FROM people AS a JOIN (SELECT person, MAX(age) AS m FROM people GROUP BY person) AS b"
    " ON a.person = b.person WHERE m > 30 GROUP BY a.sex, town",
    "SELECT COUNT(DISTINCT town) AS n FROM people",
    "SELECT CASE WHEN pay > 77000 THEN 'rich' ELSE 'other' END AS c, SUM(CLAMP(pay / (age - 20), 0, 9)) AS s"
    " FROM people GROUP BY c",
    "SELECT COUNT(*) AS n FROM (SELECT person, age FROM people UNION ALL SELECT person, age FROM people WHERE smoker) AS u",
    "SELECT COUNT(*) AS n FROM people WHERE person IN (SELECT person FROM people WHERE pay > 77000)",
    "SELECT COUNT(*) AS n FROM people AS p JOIN towns AS t ON p.town = t.name WHERE t.large",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.4, max_groups_contributed = 1)"
    " sex, SUM(pay, contribution_bounds_per_group => (0, 100)) AS s FROM people GROUP BY sex",
    "SELECT sex, 100 * SUM(pay) / COUNT(*) AS share FROM people GROUP BY sex HAVING COUNT(*) > -1000 ORDER BY sex LIMIT 1",
]
REFUSED = [
    "SELECT person, COUNT(*) FROM people GROUP BY person",
    "SELECT MAX(town) FROM people",
    "SELECT SUM(pay / (age - 33)) FROM people",
    "SELECT COUNT(*) FROM people WHERE pay > (SELECT AVG(pay) FROM people)",
    "SELECT COUNT(*) FROM people AS a JOIN people AS b ON a.age = b.age",
    "SELECT person, SUM(pay) FROM people GROUP BY person HAVING SUM(pay) > 77000",
    "SELECT town FROM people WHERE person = 'NL-4711-0815' LIMIT 1",
    "SELECT COUNT(*) FROM people WHERE pay = 'x'",
    "SELECT COUNT(*) FROM people WHERE 1/(pay-77123) > 0",
    "SELECT SUM(town) FROM people",
]


def world(*, secret: bool, broken: bool = False) -> cl.PrivateTable:
    """Fifty persons with two rows each; with `secret`, one more with three strange ones."""
    persons = [f"p{number // 2}" for number in range(100)]
    rows: dict[str, list[Any]] = {
        "person": persons,
        "age": [20 + number % 50 for number in range(100)],
        "sex": ["F", "M"] * 50,
        "pay": [1000.0 * (number % 9) for number in range(100)],
        "town": ["Delft", "Leiden"] * 50,
        "born": ["1980-05-05"] * 100,
        "smoker": [True, False] * 50,
    }
    if secret:
        strange: dict[str, list[Any]] = {
            "person": [SECRET_PERSON] * 3,
            "age": [10**30, None, float("nan")] if broken else [99, 98, 97],
            "sex": [None, "X", "F"],
            "pay": [SECRET_PAY, float("inf"), -1e308],
            "town": [SECRET_TOWN, "'; DROP TABLE people; --", "🤷"],
            "born": ["1955-05-05", "0000-99-99", None],
            "smoker": [True, None, False],
        }
        rows = {name: values + strange[name] for name, values in rows.items()}
    return cl.PrivateTable(
        rows,
        columns={
            "age": cl.Integer(17, 90),
            "sex": cl.Category(["F", "M"]),
            "pay": cl.Real(0, 100_000, step="0.25"),
            "town": cl.Text(),
            "born": cl.Date("1900-01-01", "2026-12-31"),
            "smoker": cl.Boolean(),
        },
        unit="person",
        max_rows=3,
        version="1",
    )


def everything_said(table: cl.PrivateTable, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> list[str]:
    """Plans, refusals, shapes, states, logs and prints of one session; no released value."""
    said: list[str] = []
    caplog.clear()
    with (
        caplog.at_level(logging.DEBUG),
        cl.Session({"people": table, "towns": TOWNS}, budget=cl.ApproxDP(9, "1e-5"), who="ada") as session,
    ):
        for sql in QUESTIONS:
            said.append(str(session.explain(sql, spend="0.4")))
            try:
                answer = session.sql(sql, spend="0.4")
            except cl.CloisterError as refusal:
                said.append(f"{type(refusal).__name__} {refusal}")
                continue
            types = [str(answer[name].dtype) for name in answer.statistics()]
            notes = [
                note for note in answer.notes if not note.startswith("mode(")
            ]  # how sure a mode is follows from noisy counts
            said.append(f"{answer.column_names} {types} {notes} {answer.cost}")
            if "town" not in answer.column_names:
                said.append(str(answer.num_rows))
        for sql in REFUSED:
            with pytest.raises(cl.CloisterError) as refused:
                session.sql(sql, spend="0.1")
            said.append(f"{type(refused.value).__name__} {refused.value}")
        with pytest.raises(cl.BudgetExceeded) as broke:
            session.sql("SELECT COUNT(*) AS n FROM people WHERE age < 33", spend=9)
        said += [str(broke.value), repr(session), str(session.spent)]
        said += [f"{charge.who} {charge.cost} {charge.state} {charge.what}" for charge in session.ledger.charges("people")]
    said += [record.getMessage() for record in caplog.records]
    printed = capfd.readouterr()
    return [*said, printed.out, printed.err]


@pytest.mark.parametrize("broken", [False, True])
def test_all_but_the_released_values_is_the_same_for_neighbours(
    broken: bool, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    without = everything_said(world(secret=False), caplog, capfd)
    with_one = everything_said(world(secret=True, broken=broken), caplog, capfd)
    assert without == with_one
    text = "\n".join(line for line in with_one).replace(f"town = '{SECRET_TOWN}'", "")
    assert SECRET_PERSON not in text
    assert str(SECRET_PAY) not in text
    assert "DROP TABLE" not in text


def test_a_key_that_one_person_alone_has_is_not_shown() -> None:
    """Its noisy count would have to pass a threshold that one person passes with probability 1e-7 at most."""
    with cl.Session({"people": world(secret=True)}, budget=cl.ApproxDP(10, "1e-7"), random=Random.deterministic(4)) as session:
        answer = session.sql("SELECT town, COUNT(*) AS n FROM people GROUP BY town", spend=10)
        assert answer["town"].tolist() == ["Delft", "Leiden"]


def test_no_group_passing_the_threshold_is_an_empty_answer() -> None:
    with cl.Session({"people": world(secret=True)}, budget=cl.ApproxDP(1, "1e-9"), random=Random.deterministic(4)) as session:
        answer = session.sql("SELECT town, COUNT(*) AS n, AVG(age) AS a FROM people GROUP BY town", spend="0.01")
        assert answer.num_rows == 0
        assert answer.column_names == ["town", "n", "a"]
        assert answer.to_arrow().num_rows == 0
        assert answer.margin().num_rows == 0
        assert "not shown" in repr(answer)
