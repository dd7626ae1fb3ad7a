"""Models that a hub learns for a session: over real connections, and against a script."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import cloister as cl
from cloister import errors
from cloister.client import HubError, RemoteSession
from cloister.client.refusals import HubUnreachable
from cloister.hub.platform.jobs import Workers
from cloister.learn import GaussianNB, LogisticRegression, RandomForestClassifier, load
from tests.client.test_transport import Scripted, answered, problem
from tests.hub.house import READS, Clock, House, Visitor, served

FEATURES = ["age", "pay"]


@dataclass
class Stage:
    """A hub that is served, with a worker, a data set and who may learn from it."""

    house: House
    url: str
    ana: Visitor

    def session(self, **how: str) -> RemoteSession:
        return cl.connect(self.url, token=self.ana.token, **how)

    @property
    def spent(self) -> str:
        return str(self.house.hub.ledger.spent("people"))


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    house = House(tmp_path / "hub", Clock())
    ana, owner = house.person("analyst", email="ana@example.org"), house.person("owner", email="olga@example.org")
    house.grant(house.sample_data_set("people", owner=owner), ana, by=owner, actions=(*READS, "learn.run"))
    workers, ended = Workers(house.hub, 0), threading.Event()

    def work() -> None:
        while not ended.is_set():
            if not workers.run_one():
                time.sleep(0.02)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    with served(house.hub) as url:
        yield Stage(house, url, ana)
    ended.set()
    thread.join(timeout=30)
    house.close()


@pytest.mark.parametrize("model", [GaussianNB(epsilon="0.5"), LogisticRegression(epsilon="0.5")])
def test_a_model_comes_filled_and_is_charged_once(stage: Stage, model: GaussianNB) -> None:
    told: list[str] = []
    with stage.session(purpose="a study") as session:
        assert model.fit_table(session, "people", features=FEATURES, target="sex") is model
        assert stage.spent == "ε = 0.5"
        assert model.guarantee_ == cl.PureDP("0.5")
        assert [share.portion for share in model.spent_]
        assert model.feature_names_in_.tolist() == FEATURES
        assert model.bounds == ([17.0, 0.0], [90.0, 100.0])
        assert set(model.predict(np.array([[30, 10.5], [40, 20.0]])).tolist()) <= {"F", "M"}
        number = session.fit_model(
            GaussianNB(), "people", features=["age"], target="sex", spend="0.25", purpose="more", progress=told.append
        )
    asked = {"preparing the tables", "reserving the cost", "asking the engine", "settling the charge"}
    known = {"waiting", "running", *asked, "learning", "keeping the model"}
    assert set(told) <= known  # which of them a quick job was seen in is chance
    kept = stage.ana.client.get(f"/api/v1/models/{number}").json()
    assert (kept["purpose"], kept["cost"]) == ("more", {"people": "ε = 0.25"})
    assert load(model.to_json()).predict([[30.0, 10.5]]).tolist() == model.predict([[30.0, 10.5]]).tolist()


def test_a_model_has_its_title_and_the_rows_that_judge_it(stage: Stage) -> None:
    how: dict[str, Any] = {"features": FEATURES, "target": "sex", "spend": "0.5"}
    with stage.session(purpose="a study") as session:
        number = session.fit_model(GaussianNB(), "people", title="By age and pay", held_out=0.25, **how)
        with pytest.raises(errors.InvalidParameter, match="held_out"):
            session.fit_model(GaussianNB(), "people", held_out="all", **how)
    kept = stage.ana.client.get(f"/api/v1/models/{number}").json()
    assert kept["title"] == "By age and pay"
    assert "accuracy" in json.dumps(kept["card"])
    assert stage.spent == "ε = 0.5"


def test_refusals_are_those_of_the_hub(stage: Stage) -> None:
    with stage.session() as session:
        with pytest.raises(errors.UnknownTable):
            GaussianNB().fit_table(session, "nobody", features=FEATURES, target="sex")
        with pytest.raises(errors.UnknownColumn):
            GaussianNB().fit_table(session, "people", features=["shoe"], target="sex")
        with pytest.raises(errors.BudgetExceeded):
            GaussianNB(epsilon=3).fit_table(session, "people", features=FEATURES, target="sex")
        with pytest.raises(errors.InvalidParameter):
            GaussianNB(privacy=None).fit_table(session, "people", features=FEATURES, target="sex")
    assert stage.spent == "ε = 0"


def test_a_method_that_the_owner_did_not_open_is_denied(stage: Stage) -> None:
    house, owner = stage.house, stage.house.person("owner", email="ona@example.org", name="Ona")
    wards = house.sample_data_set("wards", owner=owner)
    house.grant(wards, stage.ana, by=owner, actions=(*READS, "learn.run"), methods=["Ridge", "GaussianNB"])
    with stage.session() as session:
        with pytest.raises(errors.AccessDenied, match="the method must be one of: GaussianNB, Ridge") as caught:
            LogisticRegression(epsilon="0.5").fit_table(session, "wards", features=FEATURES, target="sex")
        assert caught.value.instead == "ask its owner (Ona)"
        GaussianNB(epsilon="0.5").fit_table(session, "wards", features=FEATURES, target="sex")
    assert str(house.hub.ledger.spent("wards")) == "ε = 0.5"


def _job(state: str, **more: object) -> object:
    return lambda request: answered(request).__class__(200, json={"id": "j", "state": state, "stage": "", **more})


def test_the_order_travels_as_plain_data() -> None:
    submitted = _job("waiting", job="j1")
    failed = _job("failed", problem={"status": 409, "code": "budget-exceeded", "title": "No", "detail": "too little"})
    hub = Scripted(submitted, _job("waiting"), _job("running", stage="learning"), failed)  # type: ignore[arg-type]
    told: list[str] = []
    model = RandomForestClassifier(n_estimators=5, epsilon=2)
    with pytest.raises(errors.BudgetExceeded, match="No"):
        hub.session(project="p1", purpose="a study").fit_model(
            model, "people", features=("age",), target="sex", spend=cl.ApproxDP(2, "1e-6"), progress=told.append
        )
    assert json.loads(hub.seen[0].content) == {
        "table": "people", "method": "RandomForestClassifier", "features": ["age"], "target": "sex", "spend": "2",
        "delta": "0.000001", "kind": "approx", "parameters": {"n_estimators": 5}, "purpose": "a study", "project": "p1",
    }  # fmt: skip
    assert hub.seen[0].headers["idempotency-key"]
    assert [request.url.path for request in hub.seen[1:]] == ["/api/v1/jobs/j1"] * 3
    assert told == ["waiting", "learning"]
    assert len(hub.slept) == 2


def test_a_purpose_that_is_empty_on_purpose_stays_so() -> None:
    """As of every other question; the estimator's own way, which knows no other than "", leaves it to the session."""
    refused = problem(403, "access-denied")
    hub = Scripted(refused, refused)
    session = hub.session(purpose="a study")
    with pytest.raises(errors.AccessDenied):
        session.fit_model(GaussianNB(), "people", features=["age"], target="sex", spend=1, purpose="")
    with pytest.raises(errors.AccessDenied):
        GaussianNB().fit_table(session, "people", features=["age"], target="sex")  # type: ignore[arg-type]
    assert [json.loads(request.content)["purpose"] for request in hub.seen] == ["", "a study"]


def test_an_order_whose_job_is_lost_from_sight_is_not_sent_again() -> None:
    """Another order would be another job, and another charge."""
    hub = Scripted(_job("waiting", job="j1"), *([httpx.Response(502)] * 60))  # type: ignore[arg-type]
    with pytest.raises(HubUnreachable, match="/jobs/j1"):
        hub.session().fit_model(GaussianNB(), "people", features=["age"], target="sex", spend=1)


def test_a_hub_that_cannot_answer_for_a_while_is_asked_again_and_the_job_is_named() -> None:
    busy = problem(503, "database")
    hub = Scripted(_job("waiting", job="j1"), busy, httpx.Response(503), _job("cancelled"))  # type: ignore[arg-type]
    with pytest.raises(errors.InvalidParameter, match="cancelled"):
        hub.session().fit_model(GaussianNB(), "people", features=["age"], target="sex", spend=1)
    hub = Scripted(_job("waiting", job="j1"), *([problem(429, "too-many")] * 60))  # type: ignore[arg-type]
    with pytest.raises(HubError, match="/jobs/j1"):
        hub.session().fit_model(GaussianNB(), "people", features=["age"], target="sex", spend=1)
    failed = _job("failed", problem={"status": 500, "code": "failed", "title": "It failed", "instead": "write to us"})
    with pytest.raises(HubError, match="write to us"):
        Scripted(_job("waiting", job="j1"), failed).session().fit_model(  # type: ignore[arg-type]
            GaussianNB(), "people", features=["age"], target="sex", spend=1
        )


def test_a_cancelled_job_and_an_old_hub_are_said() -> None:
    hub = Scripted(_job("waiting", job="j1"), _job("cancelled"))  # type: ignore[arg-type]
    with pytest.raises(errors.InvalidParameter, match="cancelled"):
        hub.session().fit_model(GaussianNB(), "people", features=["age"], target="sex", spend=1)
    with pytest.raises(HubError):
        Scripted(problem(404, "missing")).session().fit_model(GaussianNB(), "people", features=["age"], target="sex", spend=1)
    with pytest.raises(errors.InvalidParameter, match="ρ without a δ"):
        Scripted().session().fit_model(GaussianNB(), "people", features=["age"], target="sex", spend=cl.ZCDP(1, "1e-6"))
    with pytest.raises(errors.InvalidParameter, match="var_smoothing"):
        Scripted().session().fit_model(
            GaussianNB(var_smoothing=object()),
            "people",
            features=["age"],
            target="sex",
            spend=1,  # type: ignore[arg-type]
        )
