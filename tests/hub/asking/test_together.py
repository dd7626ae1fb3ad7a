"""Questions that come at once: each is allowed, charged, kept and written down by itself."""

from __future__ import annotations

import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from cloister.hub import middleware
from cloister.privacy import PureDP
from tests.hub.asking.conftest import COUNT, Stage
from tests.hub.house import Clock, House, Visitor

AT_ONCE = 8


@pytest.fixture
def house(tmp_path: Path, empty_hub: Path, clock: Clock) -> Iterator[House]:
    """A hub of so many turns that one person's share, an eighth of them, is all that a test asks at once."""
    shutil.copytree(empty_hub, tmp_path / "hub")
    made = House(tmp_path / "hub", clock, asking=8 * AT_ONCE)
    yield made
    made.close()


def at_once(stage: Stage, monkeypatch: pytest.MonkeyPatch, asked: list[tuple[dict[str, str], Visitor]]) -> list[Any]:
    """The answers to questions of which none is worked on before all have their threads."""
    come, answered = threading.Barrier(len(asked), timeout=30), middleware.Middleware._answered

    def late(self: middleware.Middleware, *how: Any) -> Any:
        come.wait()
        return answered(self, *how)

    monkeypatch.setattr(middleware.Middleware, "_answered", late)
    with ThreadPoolExecutor(len(asked)) as pool:
        return list(pool.map(lambda each: stage.post("/questions", each[0], each[1]), asked))


def question(number: int, spend: str = "0.01") -> dict[str, str]:
    return {"sql": f"{COUNT} WHERE age > {20 + number}", "spend": spend}


def known(stage: Stage) -> None:
    """The rows are in memory, and the form of the questions is known, from here on."""
    for number in (30, 31, 32):
        stage.ask(question(number)["sql"], "0.01")


def test_each_is_charged_and_kept_once(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    known(stage)
    answers = at_once(stage, monkeypatch, [(question(number), stage.ana) for number in range(AT_ONCE)])
    assert [each.status_code for each in answers] == [201] * AT_ONCE
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


def test_each_is_allowed_by_itself(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    known(stage)
    stranger = stage.house.person("analyst", email="mallory@example.org")
    asked = [(question(number), (stage.ana, stranger)[number % 2]) for number in range(AT_ONCE)]
    answers = at_once(stage, monkeypatch, asked)
    assert [each.status_code for each in answers] == [201, 404] * (AT_ONCE // 2)
    assert {charge.who for charge in stage.charges} == {stage.ana.caller.email}
