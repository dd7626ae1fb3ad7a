"""A model's job whose worker died is begun once more: decided anew, under what it had charged, and never for two models."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from cloister.hub.generation import bump
from cloister.hub.platform.jobs import Workers, cancel
from cloister.hub.records.access import Grant
from cloister.hub.records.accounts import ApiToken, Person
from cloister.hub.records.catalogue import DataSet
from cloister.hub.records.jobs import Job
from cloister.hub.records.releases import StoredRelease
from cloister.hub.work import orders
from cloister.ledger import Charge, Ledger
from cloister.privacy import PureDP
from tests.hub.house import PEOPLE, Visitor
from tests.hub.learning.conftest import MAY, ORDER, Stage
from tests.hub.learning.test_models import Died, lines

SUMS, ROWS = "GaussianNB", "LogisticRegression"
ROUNDS = {"table": "crowd", "method": "KMeans", "target": "", "parameters": {"n_clusters": 2, "rounds": 2}, "spend": "1"}


def dies(*_: Any, **__: Any) -> Any:
    raise Died


def and_dies(work: Callable[..., Any], *, times: int = 1) -> Callable[..., Any]:
    """The work; the end of the process comes with it for the so-manieth time."""
    left = [times]

    def done(*how: Any, **more: Any) -> Any:
        found = work(*how, **more)
        left[0] -= 1
        if not left[0]:
            raise Died
        return found

    return done


def begun(stage: Stage, monkeypatch: pytest.MonkeyPatch, where: str, *, who: Visitor | None = None, **order: Any) -> str:
    """A job whose worker died there, a minute ago."""
    answer = stage.post("/models", {**ORDER, **order}, who)
    assert answer.status_code == 202, answer.text
    with monkeypatch.context() as here:
        target: tuple[Any, str, Any] = {
            "reserved": (Ledger, "reserve", and_dies(Ledger.reserve)),
            "settled": (Ledger, "settle", and_dies(Ledger.settle)),
            "settled twice": (Ledger, "settle", and_dies(Ledger.settle, times=2)),
            "reserved thrice": (Ledger, "reserve", and_dies(Ledger.reserve, times=3)),
            "not kept": (orders, "keep", dies),
        }[where]
        here.setattr(*target)
        with pytest.raises(Died):
            Workers(stage.hub, 0).run_one()
    stage.house.clock.move(seconds=61)
    job: str = answer.json()["job"]
    return job


def ended(stage: Stage, job: str, who: Visitor | None = None) -> dict[str, Any]:
    """The job after its second attempt."""
    assert Workers(stage.hub, 0).run_one()
    told: dict[str, Any] = stage.get(f"/jobs/{job}", who).json()
    assert told["attempts"] == 2
    return told


def charges(stage: Stage) -> list[Charge]:
    assert stage.hub.ledger.verify() is True
    return stage.hub.ledger.charges("people")


def models(stage: Stage) -> int:
    with stage.hub.database.reading() as db:
        return db.query(StoredRelease).count()


def block(stage: Stage) -> None:
    with stage.hub.database.begin() as db:
        db.get_one(Person, stage.ana.id).blocked = True
        bump(db)


def take_the_token(stage: Stage) -> None:
    with stage.hub.database.begin() as db:
        for each in db.query(ApiToken).filter(ApiToken.person == stage.ana.id):
            each.revoked = stage.hub.now()
        bump(db)


def take_the_grant(stage: Stage) -> None:
    with stage.hub.database.begin() as db:
        for grant in db.query(Grant):
            grant.revoked = stage.hub.now()
        bump(db)


def narrow_the_grant(stage: Stage) -> None:
    with stage.hub.database.begin() as db:
        for grant in db.query(Grant):
            grant.rules = {**grant.rules, "methods": ["PCA"]}
        bump(db)


def forbid_the_purpose(stage: Stage) -> None:
    steward = stage.house.person("steward", email="stew@example.org")
    rule = {"title": "For care alone", "purposes": ["care"]}
    assert steward.client.post("/api/v1/policy/rules", json=rule, headers=steward.csrf()).status_code == 201


@pytest.mark.parametrize("method", [SUMS, ROWS])
@pytest.mark.parametrize("where", ["reserved", "not kept"])
@pytest.mark.parametrize("change", [block, take_the_token, take_the_grant, narrow_the_grant, forbid_the_purpose])
def test_it_is_decided_anew(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, change: Callable[[Stage], None], where: str, method: str
) -> None:
    job = begun(stage, monkeypatch, where, method=method, purpose="a study")
    change(stage)
    assert Workers(stage.hub, 0).run_one()
    with stage.hub.database.reading() as db:
        row = db.get_one(Job, job)
    assert (row.state, row.problem["title"], row.problem["status"]) == ("failed", "The model was not released", 403)
    assert row.problem["detail"].endswith("after the request was submitted; it was charged, and the charge stands")
    assert models(stage) == 0
    [charge] = charges(stage)
    assert (charge.state, charge.attempt) == ("settled" if where == "not kept" else "reserved", 1)
    assert stage.spent == "ε = 0.25"
    [line] = lines(stage, "learn.run")
    assert (line["outcome"], line["cost"], line["attempt"]) == ("denied", {"people": "ε = 0.25"}, 2)
    assert (line["charged_by"], line["ledger_lines"]) == ("the first attempt", [charge.id])


@pytest.mark.parametrize("method", [SUMS, ROWS])
@pytest.mark.parametrize("where", ["reserved", "settled"])
def test_other_rows_are_no_second_attempt(stage: Stage, monkeypatch: pytest.MonkeyPatch, where: str, method: str) -> None:
    """The ledger says which plan was charged: a version that came meanwhile is another one."""
    job = begun(stage, monkeypatch, where, method=method)
    upload = stage.house.client().post(
        "/api/v1/uploads",
        content=("age,sex,pay\n" + "40,F,7\n41,M,7\n" * 50).encode(),
        headers={**stage.owner.bearer, "Content-Type": "text/csv"},
    )
    assert stage.post("/datasets/people/versions", {"upload": upload.json()["id"]}, stage.owner).status_code == 201
    told = ended(stage, job)
    assert (told["state"], told["problem"]["title"]) == ("failed", "The second attempt was not made")
    assert "has changed since it was charged; the charge stands" in told["problem"]["detail"]
    assert (len(charges(stage)), models(stage), stage.spent) == (1, 0, "ε = 0.25")
    assert lines(stage, "learn.run")[-1]["cost"] == {"people": "ε = 0.25"}
    assert stage.learnt(method=method)
    assert stage.spent == "ε = 0.5"


def crowd(stage: Stage, budget: str) -> None:
    """Of another population, whose engine sums for k-means."""
    large = {**PEOPLE, "size": 1_000_000}
    found = stage.house.sample_data_set("crowd", owner=stage.owner, declaration=large, budget=PureDP(budget))
    stage.house.grant(found, stage.ana, by=stage.owner, actions=MAY)


@pytest.mark.parametrize("where", ["settled", "settled twice", "reserved thrice", "not kept"])
def test_rounds_go_on_where_they_stopped(stage: Stage, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    """Each round of k-means is a charge, and asks about centres that follow from where it began and from the answers before."""
    crowd(stage, "1")
    job = begun(stage, monkeypatch, where, **ROUNDS)
    before = [each.what for each in stage.hub.ledger.charges("crowd")]
    told = ended(stage, job)
    assert told["state"] == "done", told
    after = stage.hub.ledger.charges("crowd")
    assert [each.what for each in after][: len(before)] == before
    assert len({each.what for each in after}) == len(after) == 3
    assert {each.state for each in after} == {"settled"}
    assert stage.hub.ledger.spent("crowd") == PureDP(1)
    assert lines(stage, "learn.run")[-1]["cost"] == {"crowd": "ε = 1"}
    assert stage.hub.ledger.verify() is True


def test_rounds_that_would_ask_something_else_are_not_charged(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    from cloister.hub.work import attempts as paying
    from cloister.noise import Random

    crowd(stage, "2")
    job = begun(stage, monkeypatch, "settled twice", **ROUNDS)
    spent = stage.hub.ledger.spent("crowd")
    monkeypatch.setattr(paying.Charges, "choices", lambda _: Random.derived(bytes(32)))
    told = ended(stage, job)
    assert (told["state"], told["problem"]["title"]) == ("failed", "The second attempt was not made")
    assert stage.hub.ledger.spent("crowd") == spent


def test_two_orders_alike_keep_to_their_own_charges(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are paid for with each order: a second order neither takes the first one's charge over nor is given its model."""
    job = begun(stage, monkeypatch, "reserved", method=ROWS)
    with stage.hub.database.begin() as db:
        row = db.get_one(Job, job)
        row.beat = stage.hub.now()  # not lost yet
    other = stage.learnt(method=ROWS)
    assert [(each.state, each.attempt) for each in charges(stage)] == [("reserved", 1), ("settled", 1)]
    stage.house.clock.move(seconds=61)
    told = ended(stage, job)
    assert [(each.state, each.attempt) for each in charges(stage)] == [("settled", 2), ("settled", 1)]
    assert told["result"]["model"] != other
    first, second = (json.loads(stage.get(f"/models/{each}").json()["model"]) for each in (told["result"]["model"], other))
    assert first["learned"] != second["learned"]
    assert stage.spent == "ε = 0.5"


@pytest.mark.parametrize("method", [SUMS, ROWS])
@pytest.mark.parametrize("where", ["settle", "keep"])
def test_a_worker_that_was_taken_for_dead_keeps_nothing(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, where: str, method: str
) -> None:
    job = stage.post("/models", {**ORDER, "method": method}).json()["job"]
    whose, name = (Ledger, "settle") if where == "settle" else (orders, "keep")
    work: Callable[..., Any] = getattr(whose, name)
    others: list[str] = []

    def overtaken(*how: Any, **more: Any) -> Any:
        """Before it does it, it is silent for a minute, and another worker does the whole."""
        monkeypatch.setattr(whose, name, work)
        stage.house.clock.move(seconds=61)
        others.append(ended(stage, job)["state"])
        return work(*how, **more)

    monkeypatch.setattr(whose, name, overtaken)
    assert Workers(stage.hub, 0).run_one()
    assert others == ["done"]
    told = stage.get(f"/jobs/{job}").json()
    assert (told["state"], told["attempts"], models(stage)) == ("done", 2, 1)
    [charge] = charges(stage)
    assert (charge.state, charge.attempt) == ("settled", 2 if where == "settle" else 1)
    assert [line["outcome"] for line in lines(stage, "learn.run")] == ["done"]
    assert [line["state"] for line in lines(stage, "job.end")] == ["done"]
    assert stage.spent == "ε = 0.25"


def test_what_others_bought_of_it_meanwhile_makes_no_second_charge(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Less of the sums is missing then: that would be another charge beside the one that stands."""
    job = begun(stage, monkeypatch, "reserved", method=SUMS)
    bob = stage.house.person("analyst", email="bob@example.org")
    stage.house.grant(stage.people, bob, by=stage.owner, actions=MAY)
    with stage.hub.database.begin() as db:
        db.get_one(Job, job).beat = stage.hub.now()
    stage.learnt(bob, method=SUMS, spend="0.125")
    stage.house.clock.move(seconds=61)
    told = ended(stage, job)
    assert (told["state"], stage.spent) == ("failed", "ε = 0.375")
    assert "the charge stands" in told["problem"]["detail"]


def test_one_that_was_to_stop_is_not_begun_again(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    job = begun(stage, monkeypatch, "reserved")
    with stage.hub.database.begin() as db:
        assert cancel(stage.hub, db, stage.ana.caller, job) == "running"
    assert not Workers(stage.hub, 0).run_one()
    told = stage.get(f"/jobs/{job}").json()
    assert (told["state"], told["attempts"], stage.spent) == ("cancelled", 1, "ε = 0.25")


@pytest.mark.parametrize("method", [SUMS, ROWS])
def test_a_ceiling_and_a_share_that_the_first_attempt_filled_are_no_bar(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    steward = stage.house.person("steward", email="stew@example.org")
    rule = {"title": "A quarter", "epsilon_of_population": "0.25"}
    assert steward.client.post("/api/v1/policy/rules", json=rule, headers=steward.csrf()).status_code == 201
    rea = stage.house.person("analyst", email="rea@example.org")
    stage.house.grant(stage.people, rea, by=stage.owner, actions=MAY, share={"epsilon": "0.25"})
    job = begun(stage, monkeypatch, "reserved", who=rea, method=method)
    assert ended(stage, job, rea)["state"] == "done"
    assert (len(charges(stage)), stage.spent) == (1, "ε = 0.25")


def test_the_rows_are_those_of_the_same_data_set(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another one that has taken the name, with persons of its own, is not charged for what the first was charged for."""
    job = begun(stage, monkeypatch, "reserved", method=ROWS)
    with stage.hub.database.begin() as db:
        db.get_one(DataSet, stage.people.id).name = "former"
        bump(db)
    other = stage.house.sample_data_set("people", owner=stage.owner, population="others")
    stage.house.grant(other, stage.ana, by=stage.owner, actions=MAY)
    told = ended(stage, job)
    assert (told["state"], models(stage)) == ("failed", 0)
    assert stage.hub.ledger.charges("others") == []
