"""Questions that come at once are answered in company: each allowed, charged, kept and written down by itself."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from cloister.hub import gates
from cloister.hub.company import Company
from cloister.privacy import PureDP
from tests.hub.asking.conftest import COUNT, Stage
from tests.hub.house import Visitor

AT_ONCE = 8


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """In which thread each question was begun."""
    found: list[str] = []
    answered = gates.Gates._answered

    def noted(self: gates.Gates, *how: Any) -> Any:
        found.append(threading.current_thread().name.split("_")[0])
        return answered(self, *how)

    monkeypatch.setattr(gates.Gates, "_answered", noted)
    return found


def at_once(stage: Stage, monkeypatch: pytest.MonkeyPatch, asked: list[tuple[dict[str, str], Visitor]]) -> list[Any]:
    """The answers to questions of which none is let in before all are at the door; but for the first, where the door was open."""
    come, welcome, answer = threading.Semaphore(0), Company._welcome, Company.answer

    async def counted(company: Company, work: Any) -> Any:
        come.release()
        return await answer(company, work)

    def late(company: Company) -> list[Any]:
        for _ in asked:
            assert come.acquire(timeout=30)
        monkeypatch.setattr(Company, "_welcome", welcome)
        return welcome(company)

    monkeypatch.setattr(Company, "answer", counted)
    monkeypatch.setattr(Company, "_welcome", late)
    with ThreadPoolExecutor(len(asked)) as pool:
        return list(pool.map(lambda each: stage.post("/questions", each[0], each[1]), asked))


def question(number: int, spend: str = "0.01") -> dict[str, str]:
    return {"sql": f"{COUNT} WHERE age > {20 + number}", "spend": spend}


def known(stage: Stage) -> None:
    """The rows are in memory, and the form of the questions is known, from here on."""
    for number in (30, 31, 32):
        stage.ask(question(number)["sql"], "0.01")


def test_each_is_charged_and_kept_once(stage: Stage, monkeypatch: pytest.MonkeyPatch, places: list[str]) -> None:
    known(stage)
    places.clear()
    answers = at_once(stage, monkeypatch, [(question(number), stage.ana) for number in range(AT_ONCE)])
    assert [each.status_code for each in answers] == [201] * AT_ONCE
    assert places == ["cloister-company"] * AT_ONCE
    assert len({each.json()["id"] for each in answers}) == AT_ONCE
    assert len(stage.charges) == AT_ONCE + 3
    assert stage.spent == "ε = 0.11"
    for number, each in enumerate(answers):
        assert each.json()["sql"] == question(number)["sql"]
    assert stage.hub.ledger.verify() is True


def test_one_question_asked_at_once_by_one_person_is_charged_once(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    known(stage)
    answers = at_once(stage, monkeypatch, [(question(1), stage.ana)] * AT_ONCE)
    assert [each.status_code for each in answers] == [201] * AT_ONCE
    assert len({str(each.json()["columns"]) for each in answers}) == 1
    assert stage.spent == "ε = 0.04"
    assert stage.hub.ledger.verify() is True


def test_of_a_budget_for_half_half_are_answered(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    known(stage)
    left = stage.hub.ledger.remaining("people")
    assert isinstance(left, PureDP)
    each = str(left.epsilon / (AT_ONCE // 2))
    answers = at_once(stage, monkeypatch, [(question(number, each), stage.ana) for number in range(AT_ONCE)])
    assert Counter(each.status_code for each in answers) == {201: AT_ONCE // 2, 409: AT_ONCE // 2}
    assert stage.hub.ledger.remaining("people") == PureDP(0)
    assert stage.hub.ledger.verify() is True


def test_each_is_allowed_by_itself(stage: Stage, monkeypatch: pytest.MonkeyPatch, places: list[str]) -> None:
    known(stage)
    stranger = stage.house.person("analyst", email="mallory@example.org")
    places.clear()
    asked = [(question(number), (stage.ana, stranger)[number % 2]) for number in range(AT_ONCE)]
    answers = at_once(stage, monkeypatch, asked)
    assert [each.status_code for each in answers] == [201, 404] * (AT_ONCE // 2)
    assert {charge.who for charge in stage.charges} == {stage.ana.caller.email}
    left = AT_ONCE // 2  # a stranger's: against what they see it is no known form
    assert Counter(places) == {"cloister-company": AT_ONCE, "cloister-asking": left}


LONG = [
    "SELECT SUM(pay) AS s FROM people WHERE age > 31",
    "SELECT sex, COUNT(*) AS n FROM people WHERE age > 31 GROUP BY sex",
    "SELECT COUNT(*) AS n, COUNT(pay) AS m FROM people WHERE age > 31",
    "SELECT COUNT(*) AS n FROM people -- and a word\n WHERE age > 31",
]


@pytest.mark.parametrize("sql", LONG)
def test_what_may_take_long_is_asked_in_a_thread_of_its_own(stage: Stage, places: list[str], sql: str) -> None:
    known(stage)
    for number in (31, 32, 33, 34):
        places.clear()
        stage.ask(sql.replace("31", str(number)), spend="0.01")
        assert places == ["cloister-company", "cloister-asking"]
    assert len(stage.charges) >= 4 + 3


def test_who_may_wait_is_asked_in_a_thread_of_its_own(stage: Stage, places: list[str]) -> None:
    known(stage)
    assert places == [*["cloister-company", "cloister-asking"] * 2, "cloister-company"]  # read, learnt, known
    places.clear()
    stage.ask(question(33)["sql"], "0.01")
    assert places == ["cloister-company"]
    places.clear()
    key = {"Idempotency-Key": "one"}
    first, again = (stage.post("/questions", question(3), **key) for _ in range(2))
    assert places == ["cloister-company", "cloister-asking"] * 2
    assert first.content == again.content
    places.clear()
    wanted = stage.post("/questions", {"sql": question(4)["sql"], "within": 60})
    assert wanted.status_code == 201, wanted.text
    assert places == ["cloister-company", "cloister-asking"]
    assert len(stage.charges) == 6
