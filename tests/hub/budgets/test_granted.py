"""The shares of grants on the page of a budget and in its API: whose, how much is drawn, and that they end with their grants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cloister.hub.platform.access import grant, revoke
from cloister.privacy import PureDP
from tests.hub.budgets.test_budgets import ask, one
from tests.hub.house import House, Visitor

People = Callable[..., Visitor]
MAY = ["question.ask", "release.see"]


@pytest.fixture
def owner(house: House, person: People) -> Visitor:
    found = person("owner", email="olga@north.example", name="Olga")
    house.sample_data_set(owner=found)
    return found


@pytest.fixture
def bob(person: People) -> Visitor:
    return person("analyst", email="bob@south.example", name="Bob")


def given(house: House, owner: Visitor, share: str, members: dict[str, Any], **rules: Any) -> str:
    told = {"actions": MAY, "share": {"epsilon": share}, **rules}
    return grant(house.hub, owner.caller, data_set="people", role="readers", members=members, rules=told)


def granted(visitor: Visitor) -> list[tuple[Any, ...]]:
    listed = one(visitor).json()["granted"]
    return [(each["who"], each["share"]["epsilon"], (each["drawn"] or {}).get("epsilon"), each["state"]) for each in listed]


def test_the_owner_sees_whose_how_much_is_drawn_and_what_ended_when(house: House, owner: Visitor, bob: Visitor) -> None:
    first = given(house, owner, "0.3", {"people": ["bob@south.example", "nobody@x.example"]})
    assert ask(bob, spend="0.2").status_code == 201
    assert granted(owner) == [("bob@south.example", "0.3", "0.2", "active"), ("nobody@x.example", "0.3", "0", "active")]
    assert one(owner).json()["shares"] == [], "nobody set any by hand"
    page = owner.client.get("/budgets/people").text
    assert "Shares of grants" in page
    assert "nobody@x.example" in page
    house.clock.move(hours=1)
    revoke(house.hub, owner.caller, first)
    given(house, owner, "0.5", {"people": ["bob@south.example"]}, until="2026-03-03")
    assert granted(owner)[0] == ("bob@south.example", "0.5", "0.2", "active"), "what stands is first; what was spent is counted"
    assert {each[3] for each in granted(owner)[1:]} == {"revoked"}
    ended = one(owner).json()["granted"][1]["ends"]
    assert ended == house.hub.now().isoformat().replace("+00:00", "Z")
    house.clock.move(days=3)
    house.awake(owner)
    assert {each[3] for each in granted(owner)} == {"expired", "revoked"}
    page = owner.client.get("/budgets/people").text
    assert "Expired" in page
    assert "ended" in page


def test_a_share_for_many_names_nobody_and_is_each_ones_own(house: House, owner: Visitor, bob: Visitor) -> None:
    given(house, owner, "0.3", {"anybody": True})
    assert ask(bob, spend="0.2").status_code == 201
    assert [each[1:] for each in granted(owner)] == [("0.3", None, "active")]
    assert granted(bob) == [("bob@south.example", "0.3", "0.2", "active")]
    assert "each by themselves" in owner.client.get("/budgets/people").text


def test_an_analyst_sees_their_own_and_nobody_elses(house: House, owner: Visitor, bob: Visitor, person: People) -> None:
    eve = person("analyst", email="eve@south.example")
    given(house, owner, "0.3", {"people": ["bob@south.example", "eve@south.example"]})
    given(house, owner, "0.1", {"people": ["eve@south.example"]})
    assert granted(bob) == [("bob@south.example", "0.3", "0", "active")]
    assert {each[1] for each in granted(eve)} == {"0.1", "0.3"}
    page = bob.client.get("/budgets/people").text
    assert "eve@south.example" not in page


def test_what_is_set_by_hand_stands_beside_it_and_stays(house: House, owner: Visitor, bob: Visitor) -> None:
    number = given(house, owner, "0.3", {"people": ["bob@south.example"]})
    body = {"who": "bob@south.example", "amount": "0.25"}
    set_ = owner.client.post("/api/v1/budgets/people/shares", json=body, headers=owner.csrf())
    assert [each["share"] for each in set_.json()["shares"]] == [{"epsilon": "0.25"}]
    assert ask(bob, spend="0.3").status_code == 409
    revoke(house.hub, owner.caller, number)
    assert [each["share"] for each in one(owner).json()["shares"]] == [{"epsilon": "0.25"}]
    assert house.hub.ledger.allotment("people", "bob@south.example") == (PureDP("0.25"), PureDP("0.25"))
