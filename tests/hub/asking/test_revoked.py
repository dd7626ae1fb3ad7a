"""What is taken away while a question waits or is worked on: the charge stands, and the answer does not leave."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from sqlalchemy import select, update

from cloister.hub.generation import bump
from cloister.hub.platform.jobs.workers import Workers
from cloister.hub.problems import TooMany
from cloister.hub.records.access import Grant
from cloister.hub.records.accounts import ApiToken, Person
from cloister.hub.records.releases import StoredRelease
from cloister.hub.records.trail import AuditLine
from cloister.hub.work.concurrency import ConcurrencyLimit
from cloister.query import Session
from tests.hub.asking.conftest import COUNT, Stage


def revoke(stage: Stage) -> None:
    with stage.hub.database.begin() as db:
        db.execute(update(Grant).values(revoked=stage.hub.now()))
        bump(db)


def take_token(stage: Stage) -> None:
    with stage.hub.database.begin() as db:
        db.execute(update(ApiToken).where(ApiToken.person == stage.ana.id).values(revoked=stage.hub.now()))


def block(stage: Stage) -> None:
    with stage.hub.database.begin() as db:
        db.execute(update(Person).where(Person.id == stage.ana.id).values(blocked=True))


@pytest.mark.parametrize("taken", [revoke, take_token, block], ids=["grant", "token", "account"])
def test_what_is_revoked_between_decision_and_answer_keeps_it_back(stage: Stage, monkeypatch: pytest.MonkeyPatch, taken: Any):
    real = Session.sql

    def slow(self: Session, *how: Any, **more: Any) -> Any:
        taken(stage)
        return real(self, *how, **more)

    monkeypatch.setattr(Session, "sql", slow)
    answer = stage.post("/questions", {"sql": COUNT, "spend": "0.2"})
    assert answer.status_code == 403
    assert answer.json()["title"] == "The answer was not released"
    assert "the charge stands" in answer.json()["detail"]
    assert stage.spent == "ε = 0.2"
    with stage.hub.database.reading() as db:
        assert list(db.scalars(select(StoredRelease))) == []
        line = db.scalars(select(AuditLine).order_by(AuditLine.number.desc()).limit(1)).one()
    assert (line.outcome, line.cost) == ("denied", {"people": "ε = 0.2"})


def test_another_change_of_policies_keeps_nothing_back(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    real = Session.sql

    def slow(self: Session, *how: Any, **more: Any) -> Any:
        with stage.hub.database.begin() as db:
            bump(db)
        return real(self, *how, **more)

    monkeypatch.setattr(Session, "sql", slow)
    assert stage.ask(COUNT)["columns"]


def test_a_job_ends_with_the_token_that_it_was_asked_with(stage: Stage):
    number = stage.post("/questions", {"sql": COUNT, "spend": "0.3"}, Prefer="respond-async").json()["job"]
    take_token(stage)
    assert Workers(stage.hub, 0).run_one()
    told = stage.ana.client.get(f"/api/v1/jobs/{number}").json()
    assert told["state"] == "failed"
    assert "token" in str(told)
    assert stage.charges == []


@pytest.mark.parametrize("taken", [take_token, block], ids=["token", "account"])
def test_who_is_shut_out_while_a_question_waits_for_a_seat_is_charged_nothing(stage: Stage, taken: Any):
    seats = stage.hub.parts["asking seats"] = ConcurrencyLimit(1)
    answers = list[Any]()
    asking = threading.Thread(target=lambda: answers.append(stage.post("/questions", {"sql": COUNT, "spend": "0.2"})))
    with seats.taken("another"):
        asking.start()
        while stage.ana.id not in seats._own:  # it came in, and waits
            assert asking.is_alive()
        taken(stage)
    asking.join(60)
    assert answers[0].status_code == 403
    assert "charge" not in answers[0].text
    assert stage.charges == []


def test_nobody_takes_the_key_of_a_job_beforehand(stage: Stage):
    number = stage.post("/questions", {"sql": COUNT, "spend": "0.3"}, Prefer="respond-async").json()["job"]
    taken = [
        stage.post("/questions", {"sql": COUNT, "spend": "0.1"}, stage.ana, **{"Idempotency-Key": key}).status_code
        for key in (f"hub: job {number}", f"job {number}")
    ]
    assert taken[0] == 422
    assert Workers(stage.hub, 0).run_one()
    assert stage.get(f"/jobs/{number}").json()["state"] == "done"


def test_one_person_takes_at_most_half_of_the_seats():
    seats, held, end = ConcurrencyLimit(2), threading.Semaphore(0), threading.Event()

    def sit(person: str) -> None:
        with seats.taken(person):
            held.release()
            end.wait(30)

    first = [threading.Thread(target=sit, args=("ana",)) for _ in range(4)]
    [thread.start() for thread in first]
    assert held.acquire(timeout=10)
    bob = threading.Thread(target=sit, args=("bob",))
    bob.start()
    assert held.acquire(timeout=10), "bob has a seat beside four of ana's"
    assert not held.acquire(blocking=False), "ana has one of two"
    with pytest.raises(TooMany), seats.taken("ana"):
        pass
    end.set()
    [thread.join(timeout=10) for thread in (*first, bob)]
    with seats.taken("ana"), seats.taken("bob"):
        assert seats.each == 1


def test_a_question_of_thousands_of_conditions_is_refused_before_it_is_read(stage: Stage):
    many = " AND ".join(f"age > {number % 60 + 18}" for number in range(2500))
    answer = stage.post("/questions/explain", {"sql": f"{COUNT} WHERE {many}", "spend": "0.1"})
    assert (answer.status_code, "500 conditions" in answer.json()["detail"]) == (422, True)
