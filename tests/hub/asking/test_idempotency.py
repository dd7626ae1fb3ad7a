"""The same key: the same bytes, one draw, one charge; another body or another person is a conflict; crashes and races."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest
from sqlalchemy import delete, select, update

from cloister.errors import CloisterError
from cloister.hub.records.accounts import ApiToken, Person, PersonRole
from cloister.hub.records.asking import Idempotency
from cloister.hub.records.releases import StoredRelease
from cloister.hub.services.asking import answering as way
from cloister.hub.work import idempotency
from tests.hub.asking.conftest import BY_SEX, COUNT, Stage
from tests.hub.asking.test_policy import rule
from tests.hub.asking.test_sources import end_rules

BODY = {"sql": BY_SEX, "spend": "0.25"}
KEY = {"Idempotency-Key": "one"}


def test_the_same_key_gives_the_same_bytes_and_one_charge(stage: Stage):
    first = stage.post("/questions", BODY, **KEY)
    again = stage.post("/questions", BODY, **KEY)
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.content == first.content
    assert len(stage.charges) == 1
    assert len(stage.get("/releases").json()["releases"]) == 1


def test_without_a_key_the_answer_is_kept_again_under_the_same_charge(stage: Stage):
    assert stage.post("/questions", BODY).json()["id"] != stage.post("/questions", BODY).json()["id"]
    assert len(stage.charges) == 1


@pytest.mark.parametrize(
    ("path", "body"),
    [("/questions", BODY), ("/questions/workload", {"questions": [BY_SEX, COUNT], "spend": "0.25"})],
    ids=["one", "several"],
)
def test_a_key_gives_nothing_that_may_not_be_looked_at_any_more(stage: Stage, path: str, body: dict[str, Any]):
    first = stage.post(path, body, **KEY)
    told = first.json()
    numbers = [each["id"] for each in told.get("releases", [told])]
    rule(stage, populations=["people"], deny=True)
    assert {stage.get(f"/releases/{number}").status_code for number in numbers} == {403}
    again = stage.post(path, body, **KEY)
    assert (again.status_code, again.json()["code"]) == (403, "access-denied")
    end_rules(stage)
    assert stage.post(path, body, **KEY).content == first.content
    with stage.hub.database.begin() as db:
        db.execute(update(StoredRelease).where(StoredRelease.id == numbers[-1]).values(withdrawn=stage.hub.now()))
    assert stage.post(path, body, **KEY).status_code == 404
    assert len(stage.charges) == 1


def test_a_token_that_may_only_ask_gets_its_answer_again(stage: Stage):
    with stage.hub.database.begin() as db:
        db.execute(update(ApiToken).where(ApiToken.person == stage.ana.id).values(scopes=["question.ask"]))
    first = stage.post("/questions", BODY, **KEY)
    assert stage.get(f"/releases/{first.json()['id']}").status_code == 403
    assert stage.post("/questions", BODY, **KEY).content == first.content


@pytest.mark.parametrize("other", [BODY | {"spend": "0.3"}, BODY | {"sql": COUNT}, BODY | {"purpose": "another"}])
def test_another_body_under_the_key_is_a_conflict(stage: Stage, other: dict[str, Any]):
    stage.post("/questions", BODY, **KEY)
    answer = stage.post("/questions", other, **KEY)
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
    assert stage.spent == "ε = 0.25"


def test_another_way_under_the_key_is_a_conflict(stage: Stage):
    stage.post("/questions", BODY, **KEY)
    assert stage.post("/questions", BODY, **KEY, Prefer="respond-async").status_code == 409
    assert stage.post("/questions/workload", {"questions": [BY_SEX], "spend": "0.25"}, **KEY).status_code == 409


def test_a_key_of_somebody_else_is_a_conflict_that_tells_nothing_of_them(stage: Stage):
    bob = stage.house.person("analyst", email="bob@example.org")
    stage.house.grant(stage.people, bob, by=stage.owner)
    stage.post("/questions", BODY, **KEY)
    theirs = stage.post("/questions", BODY, bob, **KEY)
    own = stage.post("/questions", BODY | {"spend": "0.5"}, **KEY)
    assert theirs.status_code == 409
    assert theirs.json() == own.json()


@pytest.mark.parametrize("key", ["x" * 201, "a\tb"])
def test_a_key_that_is_none_is_refused(stage: Stage, key: str):
    assert stage.post("/questions", BODY, **{"Idempotency-Key": key}).status_code == 422
    assert stage.charges == []


def test_a_refusal_frees_the_key(stage: Stage):
    assert stage.post("/questions", BODY | {"spend": "7"}, **KEY).status_code == 409
    assert stage.post("/questions", BODY, **KEY).status_code == 201


def test_a_failure_after_the_charge_is_answered_at_the_next_attempt(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    keep = way._keep

    def breaks(*how: Any) -> Any:
        raise RuntimeError("the disk is gone")

    monkeypatch.setattr(way, "_keep", breaks)
    broken = stage.house.client(raise_server_exceptions=False).post(
        "/api/v1/questions", json=BODY, headers={**stage.ana.bearer, **KEY}
    )
    assert broken.status_code == 500
    assert "disk" not in broken.text
    assert len(stage.charges) == 1
    monkeypatch.setattr(way, "_keep", keep)
    answer = stage.post("/questions", BODY, **KEY)
    assert answer.status_code == 201
    assert answer.json()["repeated"]
    assert len(stage.charges) == 1
    assert stage.spent == "ε = 0.25"


class Died(BaseException):
    """The process ends, as by kill -9: nothing of ours runs any more."""


@pytest.mark.parametrize("place", ["between charge and store", "before the charge"])
def test_a_process_that_died_leaves_a_key_that_is_taken_over(stage: Stage, monkeypatch: pytest.MonkeyPatch, place: str):
    def dies(*how: Any, **more: Any) -> Any:
        raise Died

    with monkeypatch.context() as here:
        here.setattr(way, "_keep" if place == "between charge and store" else "ready", dies)
        with pytest.raises(Died):
            idempotency.once(stage.hub, stage.ana.caller, "one", b"x", lambda claim: (201, _ask(stage, claim)))
    monkeypatch.setattr(idempotency, "_PATIENCE", 0)
    with pytest.raises(Exception, match="still being answered"):
        idempotency.once(stage.hub, stage.ana.caller, "one", b"x", lambda claim: (201, _ask(stage, claim)))
    stage.house.clock.move(seconds=16)
    status, body = idempotency.once(stage.hub, stage.ana.caller, "one", b"x", lambda claim: (201, _ask(stage, claim)))
    assert status == 201
    assert idempotency.once(stage.hub, stage.ana.caller, "one", b"x", lambda claim: (500, b"")) == (201, body)
    assert len(stage.charges) == 1


def _ask(stage: Stage, claim: idempotency.Claim) -> bytes:
    wish = way.QuestionRequest(sql=BY_SEX, spend="0.25")

    def beside(db: Any, kept: Any) -> None:
        claim.store(db, 201, kept[0].id.encode())

    return way.ask(stage.hub, stage.ana.caller, wish, beside=beside).id.encode()


def test_the_second_of_two_attempts_gives_what_the_first_stored(stage: Stage):
    """The first was taken for dead, and was not: both end, and one answer stands."""
    ids: list[str] = []

    def slow(claim: idempotency.Claim) -> tuple[int, bytes]:
        stage.house.clock.move(seconds=16)
        ids.append(idempotency.once(stage.hub, stage.ana.caller, "one", b"x", lambda mine: (201, _ask(stage, mine)))[1].decode())
        return 201, _ask(stage, claim)

    _, body = idempotency.once(stage.hub, stage.ana.caller, "one", b"x", slow)
    assert body.decode() == ids[0]
    assert [each["id"] for each in stage.get("/releases").json()["releases"]] == ids
    assert len(stage.charges) == 1


@pytest.mark.parametrize("taken", ["role", "token", "account"])
def test_who_waited_takes_nothing_over_that_was_taken_from_them_meanwhile(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, taken: str
):
    def taken_away(seconds: float) -> None:
        with stage.hub.database.begin() as db:
            if taken == "role":
                db.execute(delete(PersonRole).where(PersonRole.person == stage.ana.id))
            elif taken == "token":
                db.execute(update(ApiToken).values(revoked=stage.hub.now()))
            else:
                db.execute(update(Person).where(Person.id == stage.ana.id).values(blocked=True))
            db.execute(delete(Idempotency))  # the first one failed

    with stage.hub.database.begin() as db:
        token = db.scalars(select(ApiToken.id).where(ApiToken.person == stage.ana.id)).first()
        db.add(Idempotency(key="one", person=stage.ana.id, request=sha256(b"x").hexdigest(), created=stage.hub.now()))
    caller = replace(stage.ana.caller, via="token", token=token or "")
    monkeypatch.setattr(idempotency.time, "sleep", taken_away)
    with pytest.raises(CloisterError, match=r"blocked|revoked|changed while it waited"):
        idempotency.once(stage.hub, caller, "one", b"x", lambda claim: pytest.fail("it was worked on"))


def test_what_another_attempt_stored_is_looked_at_before_it_is_given(stage: Stage):
    def late(claim: idempotency.Claim) -> tuple[int, bytes]:
        with stage.hub.database.begin() as db:
            db.execute(update(Idempotency).values(status=201, response=b"the other's"))
        return 201, b"mine"

    seen: list[bytes] = []
    told = idempotency.once(stage.hub, stage.ana.caller, "one", b"x", late, again=lambda _, body: seen.append(body))
    assert told == (201, b"the other's")
    assert seen == [b"the other's"]


def test_many_at_once_under_one_key_are_charged_once(stage: Stage):
    barrier = threading.Barrier(6)

    def one(_: int) -> Any:
        client = stage.house.client()
        barrier.wait()
        return client.post("/api/v1/questions", json=BODY, headers={**stage.ana.bearer, **KEY})

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(one, range(6)))
    assert {each.status_code for each in answers} <= {201, 409}
    assert len({each.content for each in answers if each.status_code == 201}) == 1
    assert len(stage.charges) == 1
