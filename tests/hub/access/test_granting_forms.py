"""Granting from ready-made bundles: purposes from a list, days on the hub's clock, addresses that nobody has."""

from __future__ import annotations

import html
import re
from datetime import datetime
from typing import Any

import pytest

from cloister.hub.services.access import grant
from cloister.hub.services.access.drafts import BUNDLES, PRESETS
from tests.hub.access.test_stories import ask, day, post
from tests.hub.house import Clock, House, Visitor
from tests.hub.web.browser import strict

PAGE = "/datasets/people/access"


@pytest.fixture
def owner(house: House) -> Visitor:
    return house.person("owner", email="olga@example.org", name="Olga Owner")


@pytest.fixture
def bob(house: House) -> Visitor:
    return house.person("analyst", email="bob@example.org", name="Bob")


def grants(owner: Visitor) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = owner.client.get("/api/v1/grants", params={"data_set": "people"}).json()["items"]
    return found


def model(bob: Visitor) -> int:
    order = {"table": "people", "method": "GaussianNB", "features": ["age"], "target": "sex", "spend": "0.1"}
    return int(bob.client.post("/api/v1/models", json=order, headers=bob.bearer).status_code)


@pytest.mark.parametrize(
    ("bundle", "asks", "trains", "downloads"),
    [("ask", 201, 403, 200), ("ask-and-train", 201, 202, 200), ("answers", 403, 403, 200), ("explain", 403, 403, 403)],
)
def test_a_bundle_gives_what_it_says(
    house: House, owner: Visitor, bob: Visitor, bundle: str, asks: int, trains: int, downloads: int
):
    house.sample_data_set(owner=owner)
    assert {key for key, *_ in BUNDLES} <= set(PRESETS)
    answer = post(owner, PAGE, preset=bundle, people="bob@example.org", until=day(house, 9))
    assert answer.status_code == 303, answer.text
    assert ask(bob).status_code == asks
    assert model(bob) == trains
    shown = ask(owner, purpose="").json()["id"]
    shared = owner.client.post(f"/api/v1/releases/{shown}/shares", json={"email": "bob@example.org"}, headers=owner.bearer)
    assert shared.status_code == 200
    assert bob.client.get(f"/releases/{shown}/download/csv").status_code == downloads


def test_purposes_are_ticked_and_written_and_ticked_the_next_time(house: House, owner: Visitor):
    house.sample_data_set(owner=owner)
    page = owner.client.get(PAGE).text
    strict(page)
    assert page.count('name="purposes" value="research"') == 1
    post(owner, PAGE, preset="ask", people="bob@example.org", purposes=["research", "care"], other_purposes="bicycle lanes")
    [made] = grants(owner)
    assert made["grant"]["rules"]["purposes"] == ["bicycle lanes", "care", "research"]
    for path in (PAGE, f"{PAGE}/new"):
        page = owner.client.get(path).text
        strict(page)
        assert 'name="purposes" value="bicycle lanes"' in page
    refused = post(
        owner, PAGE, role="reader", people="bob@example.org", purposes=["care"], other_purposes="a walk", actions="no such"
    )
    assert refused.status_code == 422
    assert 'value="a walk" checked' in refused.text
    chinese = owner.client.get(PAGE, headers={"accept-language": "zh-CN"}).text
    assert "科学研究 (research)" in chinese


def test_what_others_named_for_it_is_offered_to_its_owner_alone(house: House, owner: Visitor, bob: Visitor):
    house.sample_data_set(owner=owner)
    post(owner, PAGE, preset="listed")
    post(owner, PAGE, preset="ask", people="carl@example.org", other_purposes="a secret study")
    asking = bob.client.get("/access/requests/new?data_set=people").text
    assert 'value="teaching"' in asking
    assert "a secret study" not in asking
    assert "a secret study" in owner.client.get(f"{PAGE}/new").text


def test_one_who_must_name_a_purpose_picks_one(house: House, owner: Visitor, bob: Visitor):
    house.sample_data_set(owner=owner)
    post(owner, PAGE, preset="ask-and-train", people="bob@example.org", purposes=["research", "teaching"])
    post(owner, PAGE, preset="ask", people="carl@example.org", purposes=["care"])
    for path in ("/ask", "/learn"):
        page = bob.client.get(path).text
        strict(page)
        picker = re.search(r'<label for="f-purpose">Purpose(.*?)</label>.*?<select id="f-purpose"(.*?)</select>', page, re.DOTALL)
        assert picker is not None, path
        assert "optional" not in picker[1]
        assert re.findall(r'value="([^"]*)"', picker[2]) == ["", "research", "teaching"], "another's purpose is not offered"
    house.sample_data_set("visits", owner=owner)
    post(owner, "/datasets/visits/access", preset="ask", people="bob@example.org")
    page = bob.client.get("/ask").text
    strict(page)
    assert re.search(r'<label for="f-purpose">Purpose <span class="optional">', page), "of visits anything may be asked"
    assert re.findall(r'<datalist id="purposes">(.*?)</datalist>', page) == ['<option value="research"><option value="teaching">']


@pytest.mark.parametrize("zone", ["UTC", "Asia/Shanghai", "America/New_York"])
def test_a_day_ends_on_the_hubs_clock(tmp_path: Any, clock: Clock, zone: str):
    ends = {"UTC": 24, "Asia/Shanghai": 16, "America/New_York": 29}[zone]
    house = House(tmp_path / "hub", clock, zone=zone)
    try:
        owner, bob = house.person("owner"), house.person("analyst", email="bob@example.org")
        house.sample_data_set(owner=owner)
        today = day(house, 0)
        post(owner, PAGE, preset="ask", people="bob@example.org", until=day(house, 1))
        rules = {"actions": ["dataset.describe"], "until": day(house, 1)}
        grant(house.hub, owner.caller, data_set="people", role="reader", members={"people": [bob.id]}, rules=rules)
        assert {each["grant"]["rules"]["until"] for each in grants(owner)} == {
            {"UTC": f"{day(house, 2)}T00:00:00Z", "Asia/Shanghai": f"{day(house, 1)}T16:00:00Z"}.get(
                zone, f"{day(house, 2)}T05:00:00Z"
            )
        }
        assert f"the end of {day(house, 1)} ({zone})" in html.unescape(owner.client.get(PAGE).text)
        midnight = datetime.fromisoformat(f"{today}T00:00:00+00:00").timestamp()
        clock.move(seconds=midnight + (24 + ends) * 3600 - clock() - 60)
        assert ask(bob).status_code == 201
        clock.move(minutes=2)
        assert ask(bob, fresh=True).status_code == 404, "nothing else shows it to Bob"
    finally:
        house.close()


def test_an_address_that_nobody_has_is_pointed_out_to_those_who_may_know(house: House, owner: Visitor, bob: Visitor):
    house.sample_data_set(owner=owner)
    said = [post(owner, PAGE, preset="ask", people=each) for each in ("bob@example.org", "nobody@example.org")]
    assert [each.status_code for each in said] == [303, 303]
    page = owner.client.get(PAGE).text
    assert "For an address that has no account" in page
    assert "No one has an account with the address" not in page, "an owner is not told who is here"
    both = house.person("owner", "steward", email="sam@example.org")
    house.sample_data_set("wards", owner=both)
    post(both, "/datasets/wards/access", preset="ask", people="bob@example.org, nobody@example.org")
    page = both.client.get("/datasets/wards/access").text
    strict(page)
    assert re.findall(r"No one has an account with the address ([^:]+):", page) == ["nobody@example.org"]
    assert 'href="/people/invite"' in page
