"""U3 may run the algorithm A1 on the data set D1, and nothing else: as a model that is ordered under an algorithm."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy import select

from cloister.hub.platform.access import grant
from cloister.hub.platform.jobs import Workers
from cloister.hub.platform.trail import verify
from cloister.hub.records.access import Algorithm
from cloister.hub.work import orders
from tests.hub.house import Visitor
from tests.hub.learning.conftest import Stage
from tests.hub.learning.test_models import lines

A1 = {"method": "LogisticRegression", "parameters": {"method": "auto", "ridge": 0.5}}
UNDER: dict[str, Any] = {"table": "people", "features": ["age", "pay"], "target": "sex", "spend": "0.25", "algorithm": "a1"}


@dataclass
class Play:
    """The stage with U3, the provider of three algorithms, and a second data set."""

    stage: Stage
    u3: Visitor
    provider: Visitor
    ids: dict[str, str]

    def order(self, **changed: Any) -> Any:
        """U3's order under A1 on D1, or what it is changed to."""
        body = {name: value for name, value in {**UNDER, **changed}.items() if value is not None}
        return self.stage.post("/models", body, self.u3)

    def learnt(self) -> str:
        """The id of what A1 learnt."""
        answer = self.order(purpose="research")
        assert answer.status_code == 202, answer.text
        assert Workers(self.stage.hub, 0).run_one()
        told = self.stage.get(f"/jobs/{answer.json()['job']}", self.u3).json()
        assert told["state"] == "done", told
        number: str = told["result"]["model"]
        return number


def register(who: Visitor, name: str, settings: dict[str, Any], service: str = "learning") -> Any:
    body = {"name": name, "title": name.upper(), "service": service, "settings": settings}
    return who.client.post("/api/v1/algorithms", json=body, headers=who.bearer)


def let(provider: Visitor, name: str, who: Visitor, **rules: Any) -> Any:
    body = {"role": "runner", "members": {"people": [who.id]}, "rules": {"actions": ["algorithm.run"], **rules}}
    made = provider.client.post(f"/api/v1/algorithms/{name}/grants", json=body, headers=provider.bearer)
    assert made.status_code == 201, made.text
    return made.json()["id"]


@pytest.fixture
def play(stage: Stage, request: pytest.FixtureRequest) -> Play:
    """The owner's grant names the algorithm, and that it runs, or what it does."""
    house = stage.house
    u3 = house.person("analyst", email="u3@example.org", name="U3")
    provider = house.person("algorithm-provider", email="pia@example.org", name="Pia")
    d2 = house.sample_data_set("others", owner=stage.owner)
    for name, settings in (("a1", A1), ("a2", {"method": "GaussianNB"}), ("a3", {})):
        made = register(provider, name, settings)
        assert made.status_code == 201, made.text
        let(provider, name, stage.owner, actions=["algorithm.see"])
    with stage.hub.database.reading() as db:
        ids = {row.name: row.id for row in db.scalars(select(Algorithm))}
    runs = getattr(request, "param", "algorithm.run")
    rules = {"actions": [runs, "release.see", "release.download"], "algorithms": ["a1"]}
    grant(stage.hub, stage.owner.caller, data_set="people", role="runner", members={"people": [u3.id]}, rules=rules)
    house.grant(d2, u3, by=stage.owner, actions=("dataset.see",))
    house.grant(stage.people, provider, by=stage.owner, actions=("dataset.see",))  # who may name it, then
    for name in ("a1", "a2", "a3"):
        let(provider, name, u3, only_with=["people"])
    return Play(stage, u3, provider, ids)


@pytest.mark.parametrize("play", ["algorithm.run", "learn.run"], indirect=True)
def test_u3_may_run_a1_on_d1_and_nothing_else(play: Play):
    stage = play.stage
    number = play.learnt()
    assert stage.spent == "ε = 0.25"
    told = stage.get(f"/models/{number}", play.u3).json()
    assert (told["method"], told["algorithm"]) == ("LogisticRegression", play.ids["a1"])
    assert '"ridge": 0.5' in told["model"] or '"ridge":0.5' in told["model"]
    assert play.order(algorithm=play.ids["a1"]).status_code == 202, "by its id as by its name"
    for changed, why in (
        ({"algorithm": "a2"}, "algorithm"),
        ({"algorithm": "a3", "method": "LogisticRegression"}, "algorithm"),
        ({"algorithm": None, "method": "LogisticRegression"}, "grant"),
        ({"table": "others"}, "others"),
    ):
        answer = play.order(**changed)
        assert answer.status_code == 403, (changed, answer.text)
        assert why in answer.text
    ask = {"sql": "SELECT COUNT(*) AS n FROM people", "spend": "0.1"}
    assert stage.post("/questions", ask, play.u3).status_code == 403
    assert stage.spent == "ε = 0.25"


def test_others_are_kept_out_by_the_provider_and_by_the_owner(play: Play):
    """Ana may train, but nobody lets her run A1; with the provider's grant alone, the owner's names no algorithm."""
    assert play.stage.post("/models", UNDER).status_code == 404
    let(play.provider, "a1", play.stage.ana, only_with=["people"])
    answer = play.stage.post("/models", UNDER)
    assert answer.status_code == 403
    assert "the grant does not cover this algorithm" in answer.text


def test_the_provider_and_the_owner_close_it_again(play: Play, monkeypatch: pytest.MonkeyPatch):
    stage = play.stage
    job = play.order().json()["job"]
    withdrawn = play.provider.client.delete("/api/v1/algorithms/a1", headers=play.provider.bearer)
    assert withdrawn.status_code == 200, withdrawn.text
    for name in ("a1", play.ids["a1"], "never-was"):
        answer = play.order(algorithm=name)
        assert answer.status_code == 404
        assert answer.json()["title"] == "There is no such algorithm"
    assert Workers(stage.hub, 0).run_one()
    told = stage.get(f"/jobs/{job}", play.u3).json()
    assert (told["state"], told["problem"]["status"]) == ("failed", 404)
    assert stage.spent == "ε = 0"


def test_what_is_withdrawn_while_it_learns_is_withheld(play: Play, monkeypatch: pytest.MonkeyPatch):
    keep = orders.keep

    def late(*how: Any) -> Any:
        assert play.provider.client.delete("/api/v1/algorithms/a1", headers=play.provider.bearer).status_code == 200
        return keep(*how)

    monkeypatch.setattr(orders, "keep", late)
    job = play.order().json()["job"]
    assert Workers(play.stage.hub, 0).run_one()
    told = play.stage.get(f"/jobs/{job}", play.u3).json()
    assert told["problem"]["title"] == "The model was not released"
    assert play.stage.get("/models", play.u3).json()["models"] == []
    assert play.stage.spent == "ε = 0.25"


@pytest.mark.parametrize(
    "changed",
    [
        {"method": "GaussianNB"},
        {"parameters": {"ridge": 0.25}},
        {"parameters": {"width": 0.5}},
        {"parameters": {"method": "output"}},
    ],
)
def test_what_contradicts_the_algorithm_is_refused(play: Play, changed: dict[str, Any]):
    for path in ("/models", "/models/expected"):
        answer = play.stage.post(path, {**UNDER, **changed}, play.u3)
        assert answer.status_code in (400, 422), answer.text
        assert "says otherwise" in answer.text
    same = play.order(method="LogisticRegression", parameters={"ridge": 0.5, "method": "auto"})
    assert same.status_code == 202, same.text
    assert play.stage.spent == "ε = 0"


def test_an_algorithm_of_another_service_is_refused(play: Play):
    with play.stage.hub.database.begin() as db:
        db.get_one(Algorithm, play.ids["a1"]).service = "asking"
    answer = play.order()
    assert answer.status_code in (400, 422)
    assert "it belongs to another service" in answer.text


def test_an_algorithm_without_settings_is_the_service(play: Play):
    play.stage.house.grant(
        play.stage.people, play.u3, by=play.stage.owner, actions=("algorithm.run",), algorithms=[play.ids["a3"]]
    )
    assert play.order(algorithm="a3", method="GaussianNB", parameters={"var_smoothing": 0.1}).status_code == 202
    missing = play.order(algorithm="a3")
    assert missing.status_code in (400, 422)
    assert "it leaves that open" in missing.text


def test_the_institution_and_the_data_close_algorithms(play: Play):
    steward = play.stage.house.person("steward", email="stew@example.org")
    for actions in (["algorithm.run"], ["learn.run"]):
        rule = {"title": "None of this", "actions": actions, "deny": True}
        made = steward.client.post("/api/v1/policy/rules", json=rule, headers=steward.csrf())
        assert made.status_code == 201, made.text
        answer = play.order()
        assert (answer.status_code, answer.json()["rule"]) == (403, f"mandatory:{made.json()['id']}")
        ended = steward.client.delete(f"/api/v1/policy/rules/{made.json()['id']}", headers=steward.csrf())
        assert ended.status_code < 300, ended.text
    assert play.order().status_code == 202


def test_owner_and_provider_see_that_it_ran(play: Play):
    stage = play.stage
    number = play.learnt()
    assert play.order(algorithm="a2").status_code == 403
    done, denied = lines(stage, "learn.run")
    assert (done["outcome"], done["algorithm"], done["object"]) == ("done", play.ids["a1"], number)
    assert (denied["outcome"], denied["algorithm"]) == ("denied", play.ids["a2"])
    assert verify(stage.hub)
    uses = stage.owner.client.get("/trail/uses").text
    assert "by a1" in uses
    told = stage.get("/trail/uses", stage.owner).json()
    assert any(each["details"].get("algorithm") == play.ids["a1"] for each in told["lines"])
    page = play.provider.client.get("/algorithms/a1").text
    assert "Runs" in page
    rows = re.findall(r"<tbody>(.*?)</tbody>", page, re.DOTALL)[-1]
    assert "Model trained" in rows
    assert "research" in rows
    assert "people" in rows
    assert "u3@example.org" not in rows
    assert "U3" not in rows
    assert number not in page
    assert "No runs yet" in play.provider.client.get("/algorithms/a2").text, "a refusal is no run"
    assert "Runs" not in play.u3.client.get("/algorithms/a1").text


def test_what_is_not_open_to_somebody_is_told_nowhere(play: Play):
    """A hidden algorithm and one that never was read alike, in the refusal and in one's own trail."""
    assert register(play.provider, "hidden", {"method": "Ridge"}).status_code == 201
    answers = [play.order(algorithm=name) for name in ("hidden", "never-was")]
    assert {each.status_code for each in answers} == {404}
    assert answers[0].json()["detail"] == answers[1].json()["detail"]
    assert [each["algorithm"] for each in lines(play.stage, "learn.run")] == ["hidden", "never-was"]


def test_what_was_learnt_may_be_taken_away_as_the_grant_says(play: Play):
    number = play.learnt()
    assert play.stage.get(f"/models/{number}/download", play.u3).status_code == 200
    page = play.u3.client.get(f"/models/{number}").text
    assert "<dt>Algorithm</dt><dd>A1</dd>" in page


def test_the_page_offers_it(play: Play):
    u3 = play.u3
    page = u3.client.get("/learn?about=people").text
    assert re.findall(r'<option value="(\w+)" selected>A1', page) == ["a1"]
    assert 'value="a2"' not in page
    assert 'name="method"' not in page, "no other method is open to them"
    key = re.search(r'name="key" value="([^"]+)"', page)
    assert key is not None
    form = {"table": "people", "features": ["age"], "target": "sex", "spend": "0.25", "algorithm": "a1"}
    sent = {**form, "form_token": u3.csrf()["X-CSRF-Token"], "key": key[1]}
    assert u3.client.post("/learn/expected", data=sent).status_code == 200
    assert u3.client.post("/learn", data=sent).status_code == 303
    assert 'name="algorithm"' not in play.stage.ana.client.get("/learn?about=people").text


@pytest.mark.parametrize(
    ("service", "settings", "why"),
    [
        ("learning", {"method": "GausianNB"}, "not a training method of this hub"),
        ("learning", {"parameters": {"ridge": 1}}, "name no method"),
        ("learning", {"method": "Ridge", "alpha": 1}, "not known there"),
        ("learning", {"method": "Ridge", "parameters": {"epsilon": 1}}, "has none of that name that may be sent"),
        ("learning", {"method": "Ridge", "parameters": {"alpha": 1_000_000}}, "a parameter is a number up to"),
        ("jobs", {}, "that runs algorithms"),
        ("no-such", {}, "that runs algorithms"),
    ],
)
def test_settings_are_checked_when_an_algorithm_is_registered(stage: Stage, service: str, settings: dict[str, Any], why: str):
    provider = stage.house.person("algorithm-provider", email="pia@example.org")
    answer = register(provider, "a1", settings, service)
    assert answer.status_code == 422, answer.text
    assert why in answer.text
