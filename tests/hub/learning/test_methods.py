"""Which methods a grant opens, and how much: said by the owner and above by the institution, kept on every way to a model."""

from __future__ import annotations

import re
from typing import Any

import pytest
from sqlalchemy import select

from cloister.hub.generation import bump
from cloister.hub.platform.jobs import Workers
from cloister.hub.records.access import Grant
from cloister.hub.work import orders
from tests.hub.house import Visitor
from tests.hub.learning.conftest import MAY, ORDER, Stage
from tests.hub.learning.test_models import lines
from tests.hub.learning.test_pages import FORM

SIMPLE = ["GaussianNB", "LinearRegression"]
FOREST = {**ORDER, "method": "RandomForestClassifier"}


@pytest.fixture
def bob(stage: Stage) -> Visitor:
    """Somebody to whom simple models alone are open."""
    bob = stage.house.person("analyst", email="bob@example.org", name="Bob")
    stage.house.grant(stage.people, bob, by=stage.owner, actions=MAY, methods=SIMPLE)
    return bob


def narrow(stage: Stage, methods: list[str]) -> None:
    """Take every grant back, and give each again for these methods."""
    with stage.hub.database.begin() as db:
        for grant in db.scalars(select(Grant)):
            grant.rules = {**grant.rules, "methods": methods}
        bump(db)


def sent(stage: Stage, who: Visitor, path: str = "/learn", **changed: Any) -> Any:
    """The page's form, filled in by somebody."""
    key = re.search(r'name="key" value="([^"]+)"', who.client.get("/learn?about=people").text)
    assert key is not None
    return who.client.post(path, data={**FORM, "form_token": who.csrf()["X-CSRF-Token"], "key": key[1], **changed})


@pytest.mark.parametrize("path", ["/models", "/models/expected"])
def test_the_api_refuses_another_method_by_the_rule_and_says_whom_to_ask(stage: Stage, bob: Visitor, path: str):
    answer = stage.post(path, FOREST, bob)
    assert answer.status_code == 403, answer.text
    told = answer.json()
    assert told["rule"].startswith("grant:")
    assert told["detail"].startswith("the method must be one of: GaussianNB, LinearRegression (rule grant:")
    assert told["instead"] == "ask its owner (Olga Owner)"
    assert stage.get("/jobs", bob).json()["jobs"] == []
    assert stage.spent == "ε = 0"


def test_a_method_that_is_open_is_trained_and_a_refusal_stands_in_the_trail(stage: Stage, bob: Visitor):
    stage.learnt(bob)
    assert stage.post("/models", FOREST, bob).status_code == 403
    done, denied = lines(stage, "learn.run")
    assert (done["outcome"], denied["outcome"], denied["method"]) == ("done", "denied", "RandomForestClassifier")
    assert denied["rule"].startswith("grant:")
    assert stage.post("/models", FOREST).status_code == 202, "the grant of somebody else limits nobody"


def test_the_page_offers_what_is_open_and_refuses_the_rest(stage: Stage, bob: Visitor):
    page = bob.client.get("/learn?about=people").text
    assert re.findall(r'<option value="([A-Z]\w+)"', page) == SIMPLE
    assert "Those that are open to you here" in page
    assert "Those that are open to you here" not in stage.ana.client.get("/learn").text
    for path in ("/learn", "/learn/expected"):
        refused = sent(stage, bob, path, method="RandomForestClassifier")
        assert refused.status_code == 403
        assert "the method must be one of: GaussianNB, LinearRegression" in refused.text
        assert "ask its owner (Olga Owner)" in refused.text
    assert sent(stage, bob).status_code == 303


def test_a_method_that_was_closed_before_the_worker_comes_is_not_trained(stage: Stage):
    job = stage.post("/models", FOREST).json()["job"]
    narrow(stage, SIMPLE)
    assert Workers(stage.hub, 0).run_one()
    told = stage.get(f"/jobs/{job}").json()
    assert (told["state"], told["problem"]["status"]) == ("failed", 403)
    assert "the method must be one of" in told["problem"]["detail"]
    assert stage.spent == "ε = 0"


@pytest.mark.parametrize(("methods", "state"), [(["PCA"], "failed"), (SIMPLE, "done")])
def test_a_method_that_was_closed_while_it_learnt_keeps_the_model_back(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, methods: list[str], state: str
):
    keep = orders.keep

    def narrowed(*how: Any) -> Any:
        narrow(stage, methods)
        return keep(*how)

    monkeypatch.setattr(orders, "keep", narrowed)
    told = stage.run()
    assert told["state"] == state, told
    if state == "failed":
        assert told["problem"]["title"] == "The model was not released"
        assert "the method must be one of: PCA" in told["problem"]["detail"]
        assert stage.get("/models").json()["models"] == []
    assert stage.spent == "ε = 0.25"


def test_the_institution_stands_above_the_owner(stage: Stage):
    steward = stage.house.person("steward", email="stew@example.org")
    rule = {"title": "Simple models", "methods": ["Ridge"]}
    made = steward.client.post("/api/v1/policy/rules", json=rule, headers=steward.csrf())
    assert made.status_code == 201, made.text
    assert made.json()["says"] == ["Where: everywhere", "Requires: a model is trained by one of these methods: Ridge regression"]
    for who in (stage.ana, stage.owner):
        answer = stage.post("/models", ORDER, who)
        assert (answer.status_code, answer.json()["rule"]) == (403, f"mandatory:{made.json()['id']}")
        assert answer.json()["detail"].startswith("the method must be one of: Ridge (rule mandatory:")
        assert answer.json()["instead"] == "ask the steward"
    assert re.findall(r'<option value="([A-Z]\w+)"', stage.owner.client.get("/learn").text) == ["Ridge"]
    assert stage.post("/models", {**ORDER, "method": "Ridge", "target": "pay", "features": ["age"]}).status_code == 202


def test_a_data_set_of_which_no_method_is_open_is_not_offered(stage: Stage, bob: Visitor):
    steward = stage.house.person("steward", email="stew@example.org")
    rule = {"title": "Nothing simple", "methods": ["PCA"]}
    assert steward.client.post("/api/v1/policy/rules", json=rule, headers=steward.csrf()).status_code == 201
    assert "No data set is open to you for learning" in bob.client.get("/learn").text


def test_a_rule_names_methods_that_there_are(stage: Stage):
    steward = stage.house.person("steward", email="stew@example.org")
    for names in (["GausianNB"], ["BoundedScaler"], []):
        rule = {"title": "Simple models", "methods": names}
        assert steward.client.post("/api/v1/policy/rules", json=rule, headers=steward.csrf()).status_code == 422


# ── how much ─────────────────────────────────────────────────────────────────────────────────────


def reader(stage: Stage, share: str, *, more: tuple[str, ...] = ()) -> Visitor:
    """Somebody with a share of the budget."""
    rea = stage.house.person("analyst", email="rea@example.org", name="Rea")
    stage.house.grant(stage.people, rea, by=stage.owner, actions=(*MAY, *more), share={"epsilon": share})
    return rea


@pytest.mark.parametrize("method", ["GaussianNB", "LogisticRegression"])
def test_two_orders_that_each_fit_the_share_and_not_both_are_one_model(stage: Stage, method: str):
    """Both are accepted; the ledger holds the second charge against the share when its worker comes."""
    rea = reader(stage, "0.4")
    for column in ("age", "pay"):
        assert stage.post("/models", {**ORDER, "method": method, "features": [column]}, rea).status_code == 202
    for _ in range(2):
        assert Workers(stage.hub, 0).run_one()
    jobs = stage.get("/jobs", rea).json()["jobs"]
    assert sorted(each["state"] for each in jobs) == ["done", "failed"]
    [failed] = [stage.get(f"/jobs/{each['id']}", rea).json() for each in jobs if each["state"] == "failed"]
    left = "ε = 0.15 of your share of the budget under this grant, ε = 0.4, is left, and this costs ε = 0.25"
    assert left in failed["problem"]["detail"]
    assert stage.spent == "ε = 0.25"


def test_questions_and_models_draw_on_one_share(stage: Stage):
    rea = reader(stage, "0.3", more=("question.ask",))
    asked = stage.post("/questions", {"sql": "SELECT COUNT(*) AS n FROM people", "spend": "0.1"}, rea)
    assert asked.status_code == 201, asked.text
    refused = stage.post("/models", ORDER, rea)
    assert refused.status_code == 403
    left = "ε = 0.2 of your share of the budget under this grant, ε = 0.3, is left, and this costs ε = 0.25 (rule grant:"
    assert refused.json()["detail"].startswith(left)
    assert stage.run(rea, spend="0.2")["state"] == "done"
    assert stage.post("/questions", {"sql": "SELECT SUM(age) AS n FROM people", "spend": "0.1"}, rea).status_code == 403
    assert str(stage.hub.ledger.spent("people")) == "ε = 0.3"
