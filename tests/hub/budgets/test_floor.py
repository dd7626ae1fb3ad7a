"""The floor on δ: no budget and no share beyond it, and no release, also of a budget that was opened before it."""

from __future__ import annotations

from typing import Any

import pytest

from cloister.errors import BudgetExceeded, InvalidParameter
from cloister.hub.max_delta import MaxDeltaLedger
from cloister.hub.platform.jobs import Workers
from cloister.privacy import ZCDP, ApproxDP, Guarantee, PureDP
from tests.hub.access.forms import post
from tests.hub.house import READS, House, Visitor

PATH = "/budgets/people"
KEYS = "SELECT town, COUNT(*) AS n FROM people GROUP BY town"
"""Its keys are not declared, so its answer takes a share of δ."""
TOWNS: dict[str, Any] = {"columns": {"town": {"kind": "text"}, "age": {"kind": "integer", "low": 17, "high": 90}}, "size": 300}


@pytest.fixture
def owner(person: Any) -> Visitor:
    found: Visitor = person("owner", email="olga@north.example", name="Olga")
    return found


@pytest.fixture
def bob(person: Any) -> Visitor:
    found: Visitor = person("analyst", email="bob@south.example", name="Bob")
    return found


def opened(house: House, owner: Visitor, bob: Visitor, budget: Guarantee) -> None:
    rows: dict[str, list[Any]] = {"town": ["Delft", "Porto"] * 150, "age": [30, 40] * 150}
    row = house.sample_data_set(owner=owner, rows=rows, declaration=TOWNS, budget=budget)
    house.grant(row, bob, by=owner, actions=(*READS, "learn.run"))


def asked(visitor: Visitor, path: str, body: dict[str, Any]) -> Any:
    return visitor.client.post(f"/api/v1{path}", json=body, headers=visitor.bearer)


def test_no_budget_is_raised_and_no_share_given_beyond_it(house: House, owner: Visitor, bob: Visitor) -> None:
    opened(house, owner, bob, ApproxDP(1, "1e-5"))
    refused = post(owner, f"{PATH}/raise", PATH, amount="2", delta="0.00002", why="more")
    assert refused.status_code == 403
    assert "delta-floor" in refused.text
    assert house.hub.ledger.budget("people") == ApproxDP(1, "1e-5")
    assert post(owner, f"{PATH}/raise", PATH, amount="2", why="more").status_code == 303
    house.hub.ledger.raise_budget("people", ApproxDP(2, "1e-3"), who="olga", why="before there was a floor")
    assert post(owner, f"{PATH}/allot", PATH, who="bob@south.example", amount="1").status_code == 403
    assert post(owner, f"{PATH}/allot", PATH, who="bob@south.example", amount="0.01").status_code == 303


def test_an_older_budget_lets_no_question_pass_it(house: House, owner: Visitor, bob: Visitor) -> None:
    opened(house, owner, bob, ApproxDP(1, "1e-3"))
    body = {"sql": KEYS, "spend": "0.1"}
    told = asked(bob, "/questions/explain", body).json()
    assert "δ may be at most 0.00001 here" in told["denied"]
    refused = asked(bob, "/questions", body)
    assert refused.status_code in (403, 409)
    assert "δ may be at most 0.00001" in refused.json()["detail"]
    assert house.hub.ledger.charges("people") == []
    assert asked(bob, "/questions", {"sql": "SELECT COUNT(*) AS n FROM people", "spend": "0.1"}).status_code == 201
    assert asked(bob, "/questions", {"sql": KEYS, "spend": "0.005"}).status_code == 201
    assert 0 < house.hub.ledger.spent("people").delta <= ApproxDP(1, "1e-5").delta


MODEL: dict[str, Any] = {
    "table": "people",
    "method": "LinearSVC",
    "features": ["age", "pay"],
    "target": "sex",
    "spend": "1",
    "delta": "0.000001",
}


def test_an_older_budget_lets_no_model_be_ordered_that_passes_it(house: House, owner: Visitor, bob: Visitor) -> None:
    row = house.sample_data_set(owner=owner, budget=ApproxDP(2, "1e-3"))
    house.grant(row, bob, by=owner, actions=(*READS, "learn.run"))
    for path in ("/models", "/models/expected"):
        refused = asked(bob, path, {**MODEL, "delta": "0.0001"})
        assert (refused.status_code, refused.json()["rule"]) == (403, "delta-floor"), refused.text
        assert "its δ would come to 0.0001, and δ may be at most 0.00001 here" in refused.json()["detail"]
    page = post(bob, "/learn/expected", "/learn", **{**MODEL, "features": "age", "delta": "0.0001"})
    assert "δ may be at most 0.00001 here" in page.text
    assert bob.client.get("/api/v1/jobs", headers=bob.bearer).json()["jobs"] == []
    assert asked(bob, "/models", MODEL).status_code == 202
    assert Workers(house.hub, 0).run_one()
    assert house.hub.ledger.spent("people") == ApproxDP(1, "1e-6")


def test_a_model_that_passes_it_by_the_time_it_is_learnt_is_not_charged(house: House, owner: Visitor, bob: Visitor) -> None:
    row = house.sample_data_set(owner=owner, budget=ApproxDP(2, "1e-3"))
    house.grant(row, bob, by=owner, actions=(*READS, "learn.run"))
    answer = asked(bob, "/models", MODEL)
    house.hub.ledger.reserve({"people": ApproxDP("0.1", "9.5e-6")}, who="ada", what="another question")
    assert Workers(house.hub, 0).run_one()
    told = bob.client.get(f"/api/v1/jobs/{answer.json()['job']}", headers=bob.bearer).json()
    assert (told["state"], told["problem"]["rule"]) == ("failed", "delta-floor")
    assert len(house.hub.ledger.charges("people")) == 1


def test_a_model_of_sums_that_needs_no_delta_is_not_refused_for_one(house: House, owner: Visitor, bob: Visitor) -> None:
    """A number is a share of all amounts of the budget; what is charged of it is what the sums need."""
    row = house.sample_data_set(owner=owner, budget=ApproxDP(2, "1e-3"))
    house.grant(row, bob, by=owner, actions=(*READS, "learn.run"))
    order = {name: each for name, each in MODEL.items() if name != "delta"} | {"method": "GaussianNB"}
    answer = asked(bob, "/models", order)
    assert answer.status_code == 202, answer.text
    assert Workers(house.hub, 0).run_one()
    told = bob.client.get(f"/api/v1/jobs/{answer.json()['job']}", headers=bob.bearer).json()
    assert told["state"] == "done", told
    assert house.hub.ledger.spent("people").delta == 0


def test_the_ledger_of_a_hub_keeps_to_its_setting(house: House, owner: Visitor, bob: Visitor) -> None:
    assert isinstance(house.hub.ledger, MaxDeltaLedger)
    assert house.hub.ledger.max_delta == house.settings.max_delta
    opened(house, owner, bob, ApproxDP(9, "1e-3"))
    ledger = house.hub.ledger
    ledger.reserve({"people": ApproxDP(1, "6e-6")}, who="bob", what="one")
    with pytest.raises(BudgetExceeded, match=r"δ may be at most 0\.00001 ") as caught:
        ledger.reserve({"people": ApproxDP(1, "6e-6")}, who="bob", what="two")
    assert caught.value.rule == "delta-floor"
    ledger.reserve({"people": ApproxDP(1, "4e-6")}, who="bob", what="three")
    ledger.reserve({"people": PureDP(1)}, who="bob", what="four")


def test_the_floor_of_a_budget_in_rho_and_of_none_beyond_a_setting_that_is_no_number() -> None:
    ledger = MaxDeltaLedger()
    ledger.open("people", ZCDP(1, "1e-3"), who="owner")
    with pytest.raises(BudgetExceeded, match="delta-floor"):
        ledger.reserve({"people": ZCDP("0.1", "1e-4")}, who="ada", what="one")
    ledger.reserve({"people": ZCDP("0.1", "1e-5")}, who="ada", what="two")
    ledger.max_delta = "much"
    with pytest.raises(InvalidParameter, match="delta_floor"):
        ledger.reserve({"people": ZCDP("0.1", "1e-9")}, who="ada", what="three")
    assert len(ledger.charges("people")) == 1
    ledger.close()
