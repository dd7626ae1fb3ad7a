"""Way "ask": whatever the code asks, it gets answers at the door, and its share is the most that it costs."""

from __future__ import annotations

import json
from typing import Any

import pytest

import cloister as cl
from cloister.guests.asking import Answers
from cloister.privacy import PureDP


def guest_of(body: str, **how: Any) -> cl.Guest:
    """A guest that asks."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return cl.Guest(code=f"def f(about):\n{lines}\n", entry="f", way="ask", **how)


@pytest.fixture
def session() -> Any:
    """Two tables, of which a guest sees one."""
    tables = {
        name: cl.PrivateTable({"age": [20, 40, 60] * 300}, {"age": cl.Integer(0, 100)}, population=name)
        for name in ("people", "others")
    }
    with cl.Session(tables, budget=PureDP(10)) as opened:
        yield opened


def test_it_asks_adaptively_within_its_share(session: Any) -> None:
    body = (
        "low, high = 0, 100\n"
        "for _ in range(4):\n"
        "    middle = (low + high) // 2\n"
        "    told = ask(f\"SELECT COUNT(*) AS n FROM {about['table']} WHERE age <= {middle}\", '0.5')\n"
        "    low, high = (low, middle) if told['columns']['n'][0] > 450 else (middle, high)\n"
        "return [low, high, about['spend'], sorted(about['columns'])]"
    )
    found = guest_of(body).run(session, "people", 2)
    low, high, spend, columns = found.values
    assert low <= 40 <= high
    assert (spend, columns) == ("ε = 2", ["age"])
    assert len(found.asked) == 4
    assert str(found.cost) == str(session.spent_by["people"]) == "ε = 2"


def test_its_most_is_known_beforehand(session: Any) -> None:
    session.add("told", cl.PrivateTable({"age": [20]}, {"age": cl.Integer(0, 100)}, population="people", size=1))
    for table in ("people", "told"):
        plan, margins = guest_of("return 1").explain(session, table, 2)
        assert (plan.population, str(plan.cost), margins) == ("people", "ε = 2", {})
    assert str(session.spent_by["people"]) == "ε = 0"


def test_what_it_asks_is_kept_up_to_a_million_characters(session: Any) -> None:
    answers = Answers(session, "people", "")
    said = [
        answers(json.dumps({"sql": "SELECT " + "x" * length, "spend": "0.1"})) for length in (600_000, 600_000, *[9_000] * 60)
    ]
    assert ["together" in text for text in said] == [False, True] + [False] * 44 + [True] * 16
    assert 990_000 < sum(map(len, answers.asked)) <= 1_000_000


def test_it_spends_no_more_than_its_share_however_often_it_tries(session: Any) -> None:
    body = (
        "got = 0\n"
        "for k in range(50):\n"
        "    try:\n"
        "        ask(f'SELECT COUNT(*) AS n FROM people WHERE age <= {k}', '0.3')\n"
        "        got += 1\n"
        "    except ValueError: pass\n"
        "return got"
    )
    found = guest_of(body).run(session, "people", 1)
    assert found.values == 3
    assert str(found.cost) == "ε = 0.9"


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("return ask('SELECT COUNT(*) AS n FROM people', 5)", "share"),
        ("return ask('SELECT COUNT(*) AS n FROM others', 0.1)", "others"),
        ("return ask('SELECT COUNT(*) AS n FROM people; DROP TABLE people', 0.1)", ""),
        ("return ask('SELECT age FROM people', 0.1)", ""),
        ("return ask('', 0.1)", ""),
        ("return ask('SELECT COUNT(*) AS n FROM people', 'much')", "much"),
        ("return ask('SELECT COUNT(*) AS n FROM people', -1)", ""),
        ("return ask('SELECT m + 1 AS k FROM (SELECT COUNT(*) AS m FROM people) AS t', 1)", ""),
        ("return 1 / 0", "ZeroDivisionError"),
    ],
)
def test_refusals_reach_the_code_and_its_caller_in_words(session: Any, body: str, says: str) -> None:
    found = guest_of(body).run(session, "people", 1)
    assert found.values is None or "SELECT m" in body
    assert says in found.why
    if "SELECT m" not in body:
        assert str(found.cost) == "ε = 0"


def test_junk_by_the_pipe_is_refused(session: Any) -> None:
    junk = "'', '[]', '{}', '{\"sql\": 1}', 'x' * 1000"
    body = f"import wit_world, json\nreturn [json.loads(wit_world.ask(each)) for each in ({junk})]"
    found = guest_of(body).run(session, "people", 1)
    assert all("refused" in each for each in found.values)
    assert str(found.cost) == "ε = 0"


def test_it_is_tried_at_home_on_made_up_rows(session: Any) -> None:
    guest = guest_of("print('here')\nreturn ask('SELECT COUNT(*) AS n FROM people', 1)['columns']")
    [found] = guest.rehearse(session, "people")
    assert found.done
    assert found.printed == "here\n"
    assert str(session.spent_by["people"]) == "ε = 0"


def test_a_function_becomes_a_guest_with_its_helpers() -> None:
    assert twice.code.count("def ") == 2
    assert twice(3) == 6
    assert twice.digest != cl.Guest(code=twice.code, entry="twice", way="ask", seconds=1).digest
    with pytest.raises(cl.InvalidParameter, match="was not found"):
        cl.guest(way="ask")(eval("lambda about: 1"))


def helper(number: float) -> float:
    """Beside it."""
    return number * 2


@cl.guest(way="ask", uses=[helper])
def twice(about: Any) -> float:
    """Uses its helper."""
    return helper(about)
