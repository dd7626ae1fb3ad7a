"""What a model asked for again costs: of sums what is missing, of rows all; and nobody's first answer is free."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sqlalchemy import select

from cloister.hub.records.catalogue import DataSet
from cloister.hub.services.learning import fitting
from cloister.hub.services.learning.fitting import FITTING
from cloister.hub.services.learning.order import Training
from cloister.hub.web.formats import guarantee
from cloister.hub.work.ordering import price
from cloister.privacy import ZCDP, ApproxDP, Guarantee, PureDP, zero_of
from tests.hub.house import PEOPLE, Visitor
from tests.hub.learning.conftest import MAY, ORDER, Stage
from tests.hub.learning.test_methods import sent
from tests.hub.learning.test_models import lines
from tests.hub.learning.test_pages import FORM

SUMS: list[dict[str, Any]] = [
    {"method": "GaussianNB"},
    {"method": "MixedNB", "features": ["sex", "pay"], "target": "age"},
    {"method": "CategoricalNB", "features": ["sex"], "target": "age"},
    {"method": "LinearDiscriminantAnalysis"},
    {"method": "LinearRegression", "features": ["age", "sex"], "target": "pay"},
    {"method": "Ridge", "features": ["age"], "target": "pay"},
    {"method": "PCA", "target": "", "table": "crowd"},
    {"method": "PCA", "target": "", "parameters": {"method": "moments"}},
]
NAMES = [" ".join((each["method"], *each.get("parameters", {}).values())) for each in SUMS]


@pytest.fixture
def crowd(stage: Stage) -> DataSet:
    """The same population, of whom so many are declared that the table's engine sums for every method that can be summed."""
    large = {**PEOPLE, "size": 1_000_000}
    found = stage.house.sample_data_set("crowd", owner=stage.owner, declaration=large, population="people")
    stage.house.grant(found, stage.ana, by=stage.owner, actions=MAY)
    return found


def reader(stage: Stage, share: str, *, email: str = "rea@example.org") -> Visitor:
    """Somebody with a share of the budget."""
    rea = stage.house.person("analyst", email=email)
    stage.house.grant(stage.people, rea, by=stage.owner, actions=MAY, share={"epsilon": share})
    return rea


def order(**changed: Any) -> Training:
    """As it was sent."""
    told = {**ORDER, **changed}
    return Training(**{**told, "features": tuple(told["features"])})


def to_pay(stage: Stage, who: Visitor, **changed: Any) -> Guarantee:
    """What the hub says that an order would be charged now."""
    return price(stage.hub, who.caller, FITTING, order(**changed)).charge


@pytest.mark.parametrize("asked", SUMS, ids=NAMES)
def test_a_model_of_sums_is_had_again_once_the_share_is_used_up(stage: Stage, crowd: DataSet, asked: dict[str, Any]):
    rea = reader(stage, "0.25")
    stage.house.grant(crowd, rea, by=stage.owner, actions=MAY, share={"epsilon": "0.25"})
    first = stage.learnt(rea, **asked)
    assert stage.post("/models", {**ORDER, "features": ["pay"], "spend": "0.01"}, rea).status_code == 403
    assert to_pay(stage, rea, **asked) == PureDP(0)
    again = stage.learnt(rea, **asked)
    bodies = [stage.get(f"/models/{number}", rea).json()["model"] for number in (first, again)]
    assert json.loads(bodies[0])["learned"] == json.loads(bodies[1])["learned"]
    assert stage.spent == "ε = 0.25"
    assert [line["cost"] for line in lines(stage, "learn.run") if line["outcome"] == "done"] == [{"people": "ε = 0.25"}, {}]


def test_a_larger_spend_is_asked_for_with_the_difference(stage: Stage):
    rea = reader(stage, "0.3")
    stage.learnt(rea)
    assert to_pay(stage, rea, spend="0.3") == PureDP("0.05")
    assert stage.post("/models", {**ORDER, "spend": "0.31"}, rea).status_code == 403
    stage.learnt(rea, spend="0.3")
    assert stage.spent == "ε = 0.3"
    assert to_pay(stage, rea, spend="0.1") == PureDP(0)
    stage.learnt(rea, spend="0.1")
    assert stage.spent == "ε = 0.3"


@pytest.mark.parametrize(
    "changed",
    [
        {"features": ["age"]},
        {"features": ["pay", "age"]},
        {"method": "LogisticRegression"},
        {"method": "PoissonRegressor", "features": ["pay", "sex"], "target": "age"},
        {"method": "LinearDiscriminantAnalysis"},
        {"method": "LinearRegression", "features": ["age"], "target": "pay"},
    ],
)
def test_another_question_and_rows_are_asked_for_with_all_of_it(stage: Stage, changed: dict[str, Any]):
    """The order of columns is of the question: what was not asked in that order is not known."""
    rea = reader(stage, "0.25")
    stage.learnt(rea)
    answer = stage.post("/models", {**ORDER, **changed}, rea)
    assert answer.status_code == 403, answer.text
    assert answer.json()["detail"].startswith("your share of the budget under this grant is used up: ε = 0.25")
    assert stage.spent == "ε = 0.25"


def test_rows_are_charged_each_time(stage: Stage):
    rea = reader(stage, "0.3")
    stage.learnt(rea, method="LogisticRegression")
    assert to_pay(stage, stage.ana, method="LogisticRegression") == PureDP("0.25")
    assert stage.post("/models", {**ORDER, "method": "LogisticRegression"}, rea).status_code == 403


def test_a_question_about_very_many_pairs_is_not_read_before_it_is_asked(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    asked = {"method": "LinearRegression", "features": ["age", "sex"], "target": "pay"}  # three features: age, and sex by value
    stage.learnt(**asked)
    monkeypatch.setattr(fitting, "_MOST_PAIRED", 3)
    assert to_pay(stage, stage.ana, **asked) == PureDP(0)
    monkeypatch.setattr(fitting, "_MOST_PAIRED", 2)
    assert to_pay(stage, stage.ana, **asked) == PureDP("0.25")
    stage.learnt(**asked)
    assert stage.spent == "ε = 0.25", "all of it was asked for, and nothing was charged"


@pytest.mark.parametrize("asked", [{"table": "crowd"}, {"parameters": {"n_clusters": 2, "method": "engine"}}])
def test_of_questions_that_follow_from_answers_the_first_alone_is_known(stage: Stage, crowd: DataSet, asked: dict[str, Any]):
    """k-means asks for a place, and then rounds around centres that it draws: only the place is the same each time."""
    asked = {"method": "KMeans", "target": "", "parameters": {"n_clusters": 2}, **asked}
    assert to_pay(stage, stage.ana, **asked) == PureDP("0.25")
    stage.learnt(**asked)
    assert to_pay(stage, stage.ana, **asked) == PureDP("0.225")
    before = stage.hub.ledger.spent("people")
    stage.learnt(**asked)
    assert stage.hub.ledger.spent("people") <= before + PureDP("0.225")


def test_what_others_bought_is_no_free_first_answer(stage: Stage):
    """The population is not charged for it, and so the policy has no objection; the share of who uses it is debited."""
    stage.learnt()
    rea, ron = reader(stage, "0.1"), reader(stage, "0.3", email="ron@example.org")
    told = stage.run(rea)
    assert (told["state"], told["problem"]["code"]) == ("failed", "budget-exceeded")
    left = "ε = 0.1 of your share of the budget under this grant, ε = 0.1, is left, and this costs ε = 0.25"
    assert told["problem"]["detail"] == left
    assert stage.get("/models", rea).json()["models"] == []
    for _ in range(2):
        assert stage.run(ron)["state"] == "done"
    assert stage.post("/models", {**ORDER, "features": ["age"], "spend": "0.1"}, ron).status_code == 403
    assert stage.run(ron, features=["age"], spend="0.05")["state"] == "done"
    assert stage.spent == "ε = 0.3"


@pytest.mark.parametrize("method", ["GaussianNB", "LogisticRegression"])
def test_the_ledger_holds_the_charge_whatever_was_said_of_it(stage: Stage, monkeypatch: pytest.MonkeyPatch, method: str):
    rea = reader(stage, "0.1")
    monkeypatch.setattr(fitting, "still_to_pay", lambda *_: PureDP(0))
    told = stage.run(rea, method=method)
    assert (told["state"], told["problem"]["code"]) == ("failed", "budget-exceeded")
    left = "ε = 0.1 of your share of the budget under this grant, ε = 0.1, is left, and this costs ε = 0.25"
    assert told["problem"]["detail"] == left
    assert stage.spent == "ε = 0"


def test_what_was_bought_of_other_rows_is_not_had(stage: Stage):
    """A grant on some rows makes another question of it, whose answer nobody has yet."""
    stage.learnt()
    bob = stage.house.person("analyst", email="bob@example.org")
    stage.house.grant(stage.people, bob, by=stage.owner, actions=MAY, rows="age < 35")
    assert to_pay(stage, bob) == PureDP("0.25")
    stage.learnt(bob)
    assert to_pay(stage, bob) == PureDP(0)
    assert stage.spent == "ε = 0.5"


def test_a_ceiling_of_the_institution_is_passed_by_what_costs_nothing(stage: Stage):
    steward = stage.house.person("steward", email="stew@example.org")
    rule = {"title": "A quarter", "epsilon_of_population": "0.25"}
    made = steward.client.post("/api/v1/policy/rules", json=rule, headers=steward.csrf())
    assert made.status_code == 201, made.text
    stage.learnt()
    assert stage.post("/models", {**ORDER, "spend": "0.26"}).status_code == 403
    stage.learnt()
    assert stage.spent == "ε = 0.25"


@pytest.mark.parametrize("budget", [ApproxDP(2, "1e-4"), ZCDP("0.5")])
def test_other_budgets(stage: Stage, budget: Guarantee):
    stage.house.sample_data_set("wards", owner=stage.owner, budget=budget)
    with stage.hub.database.reading() as db:
        wards = db.scalars(select(DataSet).where(DataSet.name == "wards")).one()
    stage.house.grant(wards, stage.ana, by=stage.owner, actions=MAY)
    before = to_pay(stage, stage.ana, table="wards")
    stage.learnt(table="wards")
    assert stage.hub.ledger.spent("wards") == before
    told = price(stage.hub, stage.ana.caller, FITTING, order(table="wards"))
    assert (told.bought_before, str(told.charge)) == (True, str(zero_of(budget)))
    stage.learnt(table="wards")
    assert stage.hub.ledger.spent("wards") == before


def test_the_page_says_what_is_still_charged(stage: Stage):
    sentence = "Sums that were charged before are not charged again."
    looked = sent(stage, stage.ana, "/learn/expected")
    assert f"<strong>{guarantee(PureDP('0.25'))}</strong>" in looked.text
    assert sentence not in looked.text
    stage.learnt()
    looked = sent(stage, stage.ana, "/learn/expected", **{**FORM, "spend": "0.3"})
    assert f"<strong>{guarantee(PureDP('0.05'))}</strong>" in looked.text
    assert sentence in looked.text
    assert stage.spent == "ε = 0.25"
