"""Models over the API: ordered, learnt by a worker, charged, kept, loaded, used; and who is denied."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from sqlalchemy import select

from cloister.hub.generation import bump
from cloister.hub.platform.jobs import Stopped, Workers
from cloister.hub.records.access import Grant
from cloister.hub.records.jobs import Job
from cloister.hub.records.trail import AuditLine
from cloister.hub.services.learning import fitting
from cloister.hub.services.learning.models import reliability
from cloister.hub.work import orders
from cloister.installed import install
from cloister.learn import load
from cloister.privacy import ApproxDP, PureDP
from tests.hub.house import PEOPLE, people_rows
from tests.hub.learning.conftest import MAY, ORDER, Stage

SUMS, ROWS = "GaussianNB", "LogisticRegression"


class Died(BaseException):
    """The process ends, as by kill -9."""


def lines(stage: Stage, action: str) -> list[dict[str, Any]]:
    """What the trail says of an action."""
    with stage.hub.database.reading() as db:
        rows = db.scalars(select(AuditLine).where(AuditLine.action == action).order_by(AuditLine.number)).all()
        return [{"outcome": row.outcome, "cost": row.cost, "object": row.object, **row.details} for row in rows]


@pytest.mark.parametrize("method", [SUMS, ROWS])
def test_a_model_is_learnt_charged_kept_and_loaded(stage: Stage, method: str):
    answer = stage.post("/models", {**ORDER, "method": method, "purpose": "a study"})
    assert answer.status_code == 202, answer.text
    job = answer.json()["job"]
    assert answer.headers["location"] == f"/api/v1/jobs/{job}"
    assert stage.spent == "ε = 0"
    assert Workers(stage.hub, 0).run_one()
    told = stage.get(f"/jobs/{job}").json()
    assert told["state"] == "done", told
    assert stage.spent == "ε = 0.25"
    found = stage.get(f"/models/{told['result']['model']}").json()
    assert (found["method"], found["features"], found["target"], found["purpose"]) == (method, ["age", "pay"], "sex", "a study")
    assert found["cost"] == {"people": "ε = 0.25"}
    assert found["card"]["data"] == "people"
    assert found["card"]["features"] == [["age", 17.0, 90.0], ["pay", 0.0, 100.0]]
    model = load(found["model"])
    assert model.classes_.tolist() == ["F", "M"]
    assert model.guarantee_ == PureDP("0.25")
    file = stage.get(f"/models/{found['id']}/download")
    assert file.headers["content-disposition"] == f'attachment; filename="model-{found["id"]}.json"'
    assert file.text == found["model"]
    [line] = lines(stage, "learn.run")
    assert line["cost"] == {"people": "ε = 0.25"}
    assert (line["outcome"], line["object"], line["data_sets"]) == ("done", found["id"], [stage.people.id])
    assert line["columns"] == ["people.age", "people.pay", "people.sex"]
    assert [each["object"] for each in lines(stage, "release.download")] == [found["id"]]


def test_the_policy_of_the_data_travels_with_the_model(stage: Stage):
    number = stage.learnt()
    with stage.hub.database.reading() as db:
        from cloister.hub.records.releases import StoredRelease

        row = db.get(StoredRelease, number)
        assert row is not None
        [source] = row.policy["sources"]
    assert (source["object"], source["columns"]) == (stage.people.id, ["age", "pay", "sex"])
    with stage.hub.database.begin() as db:
        for grant in db.scalars(select(Grant)):
            grant.revoked = stage.hub.now()
        bump(db)
    assert stage.get(f"/models/{number}").status_code == 200  # what was read cannot be unread
    assert stage.get(f"/models/{number}/download").status_code == 403


def test_the_same_sums_are_answered_from_the_ledger_and_rows_are_charged_again(stage: Stage):
    first, again = (stage.get(f"/models/{stage.learnt()}").json()["model"] for _ in range(2))
    assert stage.spent == "ε = 0.25"
    assert json.loads(first)["learned"] == json.loads(again)["learned"]
    assert [line["cost"] for line in lines(stage, "learn.run")] == [{"people": "ε = 0.25"}, {}]
    stage.learnt(method=ROWS)
    stage.learnt(method=ROWS)
    assert stage.spent == "ε = 0.75"


def test_a_key_submits_one_job(stage: Stage):
    key = {"Idempotency-Key": "one"}
    assert stage.post("/models", ORDER, **key).json() == stage.post("/models", ORDER, **key).json()
    assert stage.post("/models", {**ORDER, "spend": "0.3"}, **key).status_code == 409
    assert len(stage.get("/jobs").json()["jobs"]) == 1


@pytest.mark.parametrize("actions", [(), ("dataset.see", "question.ask", "release.see")])
def test_without_the_grant_it_is_denied(stage: Stage, actions: tuple[str, ...]):
    bob = stage.house.person("analyst", email="bob@example.org")
    if actions:
        stage.house.grant(stage.people, bob, by=stage.owner, actions=actions)
    answer = stage.post("/models", ORDER, bob)
    assert answer.status_code == (403 if actions else 404), answer.text
    missing = stage.post("/models", {**ORDER, "table": "nobody"}, bob).json()
    if not actions:
        assert answer.json() == missing  # nobody learns that the data set exists
    assert stage.get("/jobs", bob).json()["jobs"] == []
    assert [line["outcome"] for line in lines(stage, "learn.run")] == (["denied", "failed"] if actions else ["failed", "failed"])


def test_what_an_allotment_does_not_hold_is_refused_before_it_is_a_job(stage: Stage):
    stage.hub.ledger.allot("people", "ana@example.org", PureDP("0.1"), who="olga@example.org")
    refused = stage.post("/models", ORDER)
    assert (refused.status_code, refused.json()["code"]) == (409, "budget-exceeded")
    assert refused.json()["detail"] == "ε = 0.1 of the share of 'ana@example.org', ε = 0.1, remains"
    assert stage.get("/jobs").json()["jobs"] == []
    assert stage.run(spend="0.1")["state"] == "done"


def test_a_grant_that_ends_before_the_worker_comes_counts(stage: Stage):
    answer = stage.post("/models", ORDER)
    with stage.hub.database.begin() as db:
        for grant in db.scalars(select(Grant)):
            grant.revoked = stage.hub.now()
        bump(db)
    assert Workers(stage.hub, 0).run_one()
    assert stage.get(f"/jobs/{answer.json()['job']}").json()["state"] == "failed"
    assert stage.spent == "ε = 0"


@pytest.mark.parametrize("method", [SUMS, ROWS])
def test_a_budget_and_a_share_are_kept(stage: Stage, method: str):
    refused = stage.post("/models", {**ORDER, "method": method, "spend": "1.5"})  # before it is a job
    assert (refused.status_code, refused.json()["detail"]) == (409, "ε = 1 of its budget of ε = 1 remains")
    job = stage.post("/models", {**ORDER, "method": method, "spend": "0.75"}).json()["job"]
    meanwhile = stage.hub.ledger.reserve({"people": PureDP("0.5")}, who="bob@example.org", what="another")
    assert Workers(stage.hub, 0).run_one()
    told = stage.get(f"/jobs/{job}").json()
    assert (told["state"], told["problem"]["code"]) == ("failed", "budget-exceeded")
    stage.hub.ledger.void(meanwhile)
    bob = stage.house.person("analyst", email="bob@example.org")
    stage.house.grant(stage.people, bob, by=stage.owner, actions=MAY, share={"epsilon": "0.3"})
    assert stage.run(bob, method=method)["state"] == "done"
    refused = stage.post("/models", {**ORDER, "method": method, "spend": "0.2", "features": ["age"]}, bob)
    assert refused.status_code == 403
    assert "share" in refused.json()["detail"]
    assert stage.spent == "ε = 0.25"


def test_columns_and_rows_of_a_grant_are_what_is_learnt_from(stage: Stage):
    bob = stage.house.person("analyst", email="bob@example.org")
    stage.house.grant(stage.people, bob, by=stage.owner, actions=MAY, columns=["age", "sex"], rows="age < 35")
    refused = stage.post("/models", ORDER, bob)
    assert refused.status_code == 403
    for method in (SUMS, ROWS):
        assert stage.run(bob, features=["age"], method=method)["state"] == "done"
    whole = stage.learnt(features=["age"])
    narrow = stage.learnt(bob, features=["age"])
    bodies = [json.loads(stage.get(f"/models/{number}", who).json()["model"]) for number, who in ((whole, None), (narrow, bob))]
    assert bodies[0]["learned"] != bodies[1]["learned"]
    assert stage.spent == "ε = 0.75"  # bob's two, and the whole rows: a view is a question of its own


def test_another_persons_model_is_not_seen(stage: Stage):
    number = stage.learnt()
    bob = stage.house.person("analyst", "administrator", "steward", email="bob@example.org")
    stage.house.grant(stage.people, bob, by=stage.owner, actions=MAY)
    for who in (bob, stage.owner):
        assert stage.get(f"/models/{number}", who).status_code == 404
        assert stage.get(f"/models/{number}/download", who).status_code == 404
        assert stage.post(f"/models/{number}/predictions", {"csv": "age,pay\n30,1\n"}, who).status_code == 404
        assert stage.get("/models", who).json()["models"] == []
        assert stage.get(f"/models/{number}", who).json() == stage.get("/models/nothing", who).json()
    assert [each["id"] for each in stage.get("/models").json()["models"]] == [number]


def test_lists_go_on(stage: Stage):
    numbers = [stage.learnt(title=f"model {each}") for each in range(3)]
    first = stage.get("/models?limit=2").json()
    rest = stage.get(f"/models?limit=2&after={first['next']}").json()
    assert {each["id"] for each in (*first["models"], *rest["models"])} == set(numbers)
    assert rest["next"] is None


def test_a_page_is_full_where_some_models_are_closed_since(stage: Stage):
    for purpose in ("care", "study", "care", "study", "study"):
        stage.house.clock.move(seconds=1)
        stage.learnt(purpose=purpose)
    steward = stage.house.person("steward", email="stew@example.org")
    rule = {"title": "For care alone", "purposes": ["care"]}
    assert steward.client.post("/api/v1/policy/rules", json=rule, headers=steward.csrf()).status_code == 201
    first = stage.get("/models?limit=1").json()
    rest = stage.get(f"/models?limit=1&after={first['next']}").json()
    assert [each["purpose"] for each in (*first["models"], *rest["models"])] == ["care", "care"]
    assert rest["next"] is None
    assert stage.ana.client.get("/models").text.count('href="/models/') == 2


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"method": "os.system"}, 422),
        ({"method": "BoundedScaler"}, 422),
        ({"features": ["age", "age"]}, 422),
        ({"features": ["sex"]}, 422),
        ({"features": ["shoe"]}, 422),
        ({"target": ""}, 422),
        ({"target": "pay", "features": ["age"]}, 422),  # no declared classes
        ({"method": "KMeans"}, 422),  # it has no target
        ({"method": "NeuralClassifier"}, 422),  # it needs a δ
        ({"spend": "0"}, 422),
        ({"spend": "-1"}, 422),
        ({"delta": "1e-6", "kind": "pure"}, 422),
        ({"parameters": {"privacy": None}}, 422),
        ({"parameters": {"bounds": [0, 1]}}, 422),
        ({"parameters": {"random": 1}}, 422),
        ({"method": "LogisticRegression", "parameters": {"method": "nothing"}}, 422),
        ({"method": "RandomForestClassifier", "parameters": {"n_estimators": "many"}}, 422),
        ({"method": "PoissonRegressor", "target": "pay", "features": ["age"]}, 422),  # no column of whole numbers
        ({"method": "PoissonRegressor", "features": ["age"]}, 422),
        ({"parameters": {"var_smoothing": {"model": "x"}}}, 422),
        ({"purpose": "a\nb"}, 422),
    ],
)
def test_what_is_wrong_is_refused_before_anything_is_charged(stage: Stage, changed: dict[str, Any], status: int):
    answer = stage.post("/models", {**ORDER, **changed})
    assert answer.status_code == status, answer.text
    assert stage.get("/jobs").json()["jobs"] == []
    assert stage.spent == "ε = 0"


def test_days_are_features_of_the_methods_that_learn_from_sums(stage: Stage):
    columns = {**PEOPLE["columns"], "born": {"kind": "date", "low": "1990-01-01", "high": "2020-12-31"}}
    rows = {**people_rows(), "born": ["2000-01-01"] * 300}
    dated = stage.house.sample_data_set("dated", owner=stage.owner, rows=rows, declaration={**PEOPLE, "columns": columns})
    stage.house.grant(dated, stage.ana, by=stage.owner, actions=MAY)
    for method, target in (("GaussianNB", "sex"), ("LinearRegression", "pay")):
        order = {**ORDER, "table": "dated", "method": method, "features": ["age", "born"], "target": target}
        for how in ({}, {"held_out": "0.25"}):  # by sums, and by rows
            answer = stage.post("/models/expected", {**order, **how})
            assert answer.status_code == 200, answer.text


def test_a_delta_where_the_budget_has_one(stage: Stage):
    stage.house.sample_data_set("wards", owner=stage.owner, budget=ApproxDP(2, "1e-4"))
    with stage.hub.database.reading() as db:
        from cloister.hub.records.catalogue import DataSet

        wards = db.scalars(select(DataSet).where(DataSet.name == "wards")).one()
    stage.house.grant(wards, stage.ana, by=stage.owner, actions=MAY)
    number = stage.learnt(table="wards", method=ROWS, spend="1", delta="1e-6")
    found = stage.get(f"/models/{number}").json()
    assert load(found["model"]).guarantee_ == ApproxDP(1, "1e-6")
    assert str(stage.hub.ledger.spent("wards")) == str(ApproxDP(1, "1e-6"))


@pytest.mark.parametrize("method", ["CategoricalNB", "MixedNB"])
def test_categories_are_learnt_from(stage: Stage, method: str):
    features = ["sex"] if method == "CategoricalNB" else ["sex", "pay"]
    number = stage.learnt(method=method, features=features, target="age")
    told = stage.post(f"/models/{number}/predictions", {"csv": "sex,pay\r\nF,30\r\n"}).json()["csv"].splitlines()
    assert 17 <= int(told[1].split(",")[2]) <= 90
    order = {**ORDER, "method": method, "features": features, "target": "age"}
    assert [stage.post("/models/expected", {**order, **more}).status_code for more in ({}, {"spend": "1e400"})] == [200, 200]


@pytest.mark.parametrize(("method", "changed"), [("LinearRegression", {"target": "pay", "features": ["age", "sex"]})])
def test_numbers_are_learnt_too(stage: Stage, method: str, changed: dict[str, Any]):
    number = stage.learnt(method=method, **changed)
    told = stage.post(f"/models/{number}/predictions", {"csv": "sex,age\r\nF,30\r\nM,\r\n"}).json()["csv"].splitlines()
    assert told[0] == "sex,age,prediction"
    assert 0 <= float(told[1].split(",")[2]) <= 100
    assert told[2] == "M,,"


def test_a_job_that_is_stopped_before_its_charge_costs_nothing(stage: Stage):
    class Stopping:
        job, who, attempt, notes = "j", stage.ana.id, 1, ()

        def tell(self, stage: str, share: float | None = None) -> None:
            raise AssertionError(stage)

        def stopped(self) -> bool:
            return True

    job = stage.post("/models", ORDER).json()["job"]
    with stage.hub.database.reading() as db:
        row = db.get(Job, job)
        assert row is not None
        payload = row.payload
    with pytest.raises(Stopped):
        fitting.FIT.run(stage.hub, payload, Stopping())  # type: ignore[arg-type]
    assert stage.spent == "ε = 0"


def test_what_was_taken_away_while_it_learnt_keeps_the_model_back(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    keep = orders.keep

    def revoked(*how: Any) -> Any:
        with stage.hub.database.begin() as db:
            for grant in db.scalars(select(Grant)):
                grant.revoked = stage.hub.now()
            bump(db)
        return keep(*how)

    monkeypatch.setattr(orders, "keep", revoked)
    told = stage.run()
    assert (told["state"], told["problem"]["title"]) == ("failed", "The model was not released")
    assert lines(stage, "learn.run")[-1]["cost"] == {"people": "ε = 0.25"}
    assert stage.get("/models").json()["models"] == []


def test_a_hub_without_what_learning_needs_says_so(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    answer = stage.post("/models", {**ORDER, "method": "LinearSVC"})
    assert (answer.status_code, answer.json()["code"]) == (501, "not-installed")
    assert install("learn") in answer.json()["instead"]


def test_methods_are_told(stage: Stage):
    told = {each["name"]: each for each in stage.get("/models/methods").json()}
    assert told["NeuralClassifier"]["pure"] is False
    assert "BoundedScaler" not in told


def test_a_margin_of_nothing_is_no_unknown_one():
    """From ε = 4.4 on, 19 of 20 counts come without noise."""
    sure, unsure, unknown = (
        reliability({"bins": [{"low": 0.9, "rows": 100.0, "value": 0.95, "margin": margin}]}, str) for margin in (0.0, 0.5, None)
    )
    assert len({sure, unsure, unknown}) == 3
