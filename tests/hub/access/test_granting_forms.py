"""Granting from ready-made bundles: purposes from a list, days on the hub's clock, addresses that nobody has."""

from __future__ import annotations

import html
import re
from datetime import datetime
from typing import Any

import pytest

from cloister.hub.decisions.policy import actions
from cloister.hub.generation import bump
from cloister.hub.platform.access import grant
from cloister.hub.platform.access.drafts import BUNDLES, PRESETS, grantable
from cloister.hub.records.access import AccessRequest
from cloister.hub.records.catalogue import DataSet
from cloister.hub.web.render import ZONE_COOKIE
from tests.hub.access.test_stories import ask, day, post
from tests.hub.anonymizing.ordering import RELEASE
from tests.hub.anonymizing.ordering import run as anonymised
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


def test_whatever_a_grant_opens_an_owner_can_grant():
    offered = {name for kind in ("data-set", "algorithm", "project") for name, _ in grantable(kind)}
    left_out = {name for name, action in actions().items() if action.grantable} - offered
    assert left_out == {"question.see", "question.manage"}, "those of a project's shared queries, which its members have"


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
    assert "A grant to an address without an account applies" in page
    assert "No account has the address" not in page, "an owner is not told who is here"
    both = house.person("owner", "steward", email="sam@example.org")
    house.sample_data_set("wards", owner=both)
    post(both, "/datasets/wards/access", preset="ask", people="bob@example.org, nobody@example.org")
    page = both.client.get("/datasets/wards/access").text
    strict(page)
    assert re.findall(r"No account has the address (\S+)\. The", page) == ["nobody@example.org"]
    assert 'href="/people/invite"' in page


def test_one_who_has_several_ways_is_offered_the_purposes_of_each(house: House, owner: Visitor, bob: Visitor):
    people = house.sample_data_set(owner=owner)
    with house.hub.database.begin() as db:
        stored = db.get(DataSet, people.id)
        assert stored is not None
        stored.metadata_ = {"columns": {"age": {"purposes": ["care"]}, "sex": {"purposes": ["quality assurance"]}}}
        bump(db)
    post(owner, PAGE, preset="ask-and-train", people="bob@example.org", columns=["age", "pay"])
    post(owner, PAGE, preset="ask", people="carl@example.org", other_purposes="a secret study")
    dora = house.person("analyst", email="dora@example.org")
    post(owner, PAGE, preset="ask-and-train", people="dora@example.org", columns=["age"])
    for path in ("/ask", "/learn"):
        page = bob.client.get(path).text
        strict(page)
        assert re.search(r'<label for="f-purpose">Purpose <span class="optional">', page), "the pay is for any purpose"
        assert re.findall(r'<datalist id="purposes">(.*?)</datalist>', page) == ['<option value="care">'], path
        page = dora.client.get(path).text
        strict(page)
        picker = re.search(r'<select id="f-purpose"(.*?)</select>', page, re.DOTALL)
        assert picker is not None, "without a purpose she sees no column"
        assert re.findall(r'value="([^"]*)"', picker[1]) == ["", "care"]
    assert ask(bob, "SELECT AVG(age) FROM people", purpose="care").status_code == 201
    assert ask(bob, "SELECT AVG(age) FROM people", purpose="research").status_code == 403
    counted = ask(bob, "SELECT COUNT(*) FROM people", purpose="")
    assert counted.status_code == 201, counted.text


def test_where_the_owners_policy_names_purposes_a_model_is_offered_for_them(house: House, owner: Visitor, bob: Visitor):
    people = house.sample_data_set(owner=owner)
    with house.hub.database.begin() as db:
        stored = db.get(DataSet, people.id)
        assert stored is not None
        stored.metadata_ = {"policy": {"purposes": ["care", "research"]}}
        bump(db)
    post(owner, PAGE, preset="ask-and-train", people="bob@example.org")
    for path in ("/ask", "/learn"):
        page = bob.client.get(path).text
        picker = re.search(r'<select id="f-purpose"(.*?)</select>', page, re.DOTALL)
        assert picker is not None, path
        assert re.findall(r'value="([^"]*)"', picker[1]) == ["", "care", "research"]
        assert "selected" not in picker[1], "nobody chooses it but Bob"


def test_a_purpose_with_a_comma_in_its_name_stays_one(house: House, owner: Visitor, bob: Visitor):
    house.sample_data_set(owner=owner)
    rules = {"actions": ["question.ask"], "purposes": ["heart, lung"]}
    grant(house.hub, owner.caller, data_set="people", role="reader", members={"people": [bob.id]}, rules=rules)
    post(owner, PAGE, preset="ask", people="carl@example.org", purposes=["heart, lung"])
    assert [each["grant"]["rules"]["purposes"] for each in grants(owner)] == [["heart, lung"], ["heart, lung"]]


@pytest.mark.parametrize("field", ["other_purposes", "networks", "training", "institutions", "only_with"])
def test_commas_alone_are_no_condition_that_is_left_out(house: House, owner: Visitor, field: str):
    house.sample_data_set(owner=owner)
    answer = post(owner, PAGE, role="reader", people="bob@example.org", actions=["question.ask"], **{field: " , ,"})
    assert answer.status_code == 422
    assert "no name is between the commas" in answer.text
    assert not grants(owner)


@pytest.mark.parametrize("day_typed", ["9999-12-31", "0001-01-01"])
@pytest.mark.parametrize("field", ["until", "not_before"])
@pytest.mark.parametrize("zone", ["Asia/Shanghai", "America/New_York"])
def test_a_day_that_no_clock_shows_is_refused(tmp_path: Any, clock: Clock, zone: str, field: str, day_typed: str):
    house = House(tmp_path / "hub", clock, zone=zone)
    try:
        owner = house.person("owner")
        house.sample_data_set(owner=owner)
        answer = post(owner, PAGE, preset="ask", people="bob@example.org", **{field: day_typed})
        assert answer.status_code == 422
        assert "no calendar shows it in every time zone" in answer.text
        chinese = owner.client.get(PAGE, headers={"accept-language": "zh-CN"})
        assert chinese.status_code == 200
    finally:
        house.close()


@pytest.mark.parametrize("zone", ["UTC", "Asia/Shanghai", "America/New_York"])
def test_a_stored_end_of_the_calendar_is_shown(tmp_path: Any, clock: Clock, zone: str):
    house = House(tmp_path / "hub", clock, zone=zone)
    try:
        owner, bob = house.person("owner"), house.person("analyst", email="bob@example.org")
        people = house.sample_data_set(owner=owner)
        house.grant(people, bob, by=owner, until="9999-12-31T23:59:59Z", not_before="0001-01-01T00:00:00Z")
        house.grant(people, bob, by=owner, until="9999-12-31T00:00:00Z")
        house.grant(people, bob, by=owner, actions=["dataset.see"], until="0001-01-01T00:00:00Z")
        post(bob, "/access/requests", data_set="people", purpose="a study", actions=["question.ask"], until=day(house, 5))
        with house.hub.database.begin() as db:
            [wanted] = db.query(AccessRequest).all()
            wanted.wanted = {**wanted.wanted, "until": "9999-12-31T23:59:59Z"}
            number = wanted.id
        for who, path in ((owner, PAGE), (bob, "/datasets/people"), (owner, f"/access/requests/{number}"), (bob, "/ask")):
            for browser in ("UTC", "Asia/Tokyo", "America/Lima"):
                who.client.cookies.set(ZONE_COOKIE, browser)
                assert who.client.get(path).status_code == 200, (path, browser)
        assert ask(bob).status_code == 201
    finally:
        house.close()


def test_the_day_of_a_request_is_never_later_than_what_was_asked_for(house: House, owner: Visitor, bob: Visitor):
    house.sample_data_set(owner=owner)
    post(owner, PAGE, preset="listed")
    until = f"{day(house, 5)}T18:00:00+00:00"
    body = {"data_set": "people", "purpose": "a study", "wanted": {"actions": ["question.ask"], "until": until}}
    made = bob.client.post("/api/v1/access-requests", json=body, headers=bob.bearer)
    assert made.status_code == 201, made.text
    page = owner.client.get(f"/access/requests/{made.json()['id']}").text
    assert re.findall(r'name="until" type="date" value="([^"]*)"', page) == [day(house, 4)]


def test_a_revoked_grant_waits_for_nobody(house: House):
    both = house.person("owner", "steward", email="sam@example.org")
    house.sample_data_set(owner=both)
    post(both, PAGE, preset="ask", people="nobody@example.org")
    [made] = grants(both)
    assert "The grant waits until one does" in both.client.get(PAGE).text
    assert post(both, f"{PAGE}/{made['id']}/revoke").status_code == 303
    assert "The grant waits until one does" not in both.client.get(PAGE).text


def test_a_refused_rule_keeps_its_purposes(house: House):
    sam = house.person("steward", email="sam@example.org")
    refused = post(sam, "/policy/rules", title="", purposes="research, teaching", second_factor="1")
    assert refused.status_code == 422
    assert 'name="purposes" type="text" value="research, teaching"' in refused.text


def test_on_a_released_table_the_bundles_say_that_it_is_read_whole(house: House, owner: Visitor, bob: Visitor):
    house.sample_data_set(owner=owner)
    assert anonymised(house, owner, "/anonymised", RELEASE)["state"] == "done"
    page = owner.client.get("/datasets/people_public/access").text
    strict(page)
    assert "see and download every row of this released table" in page
    assert re.findall(r'name="preset" value="([^"]*)"', page) == ["listed", "ask", "answers"]
    [number] = [each["id"] for each in owner.client.get("/api/v1/anonymised", headers=owner.bearer).json()["tables"]]
    assert bob.client.get(f"/releases/{number}/download/csv").status_code == 404
    post(owner, "/datasets/people_public/access", preset="answers", people="bob@example.org")
    assert bob.client.get(f"/releases/{number}/download/csv").status_code == 200
    assert ask(bob, "SELECT COUNT(*) FROM people_public").status_code == 403
    carl = house.person("analyst", email="carl@example.org")
    assert "no one sees or downloads the table itself" in page
    post(owner, "/datasets/people_public/access", preset="ask", people="carl@example.org", purposes=["research"])
    assert ask(carl, "SELECT COUNT(*) FROM people_public").status_code == 201
    assert carl.client.get(f"/releases/{number}/download/csv").status_code == 404


def test_limits_that_the_form_has_no_field_for_hold_as_they_were_asked_for(house: House, owner: Visitor, bob: Visitor):
    house.sample_data_set(owner=owner)
    post(owner, PAGE, preset="listed")
    limits = {"networks": ["10.0.0.0/8"], "hours": [{"days": ["monday"], "from": "08:00", "to": "18:00"}], "risk": "0.1"}
    wanted = {"actions": ["question.ask"], "not_before": day(house, 2), **limits}
    body = {"data_set": "people", "purpose": "a study", "wanted": wanted}
    number = bob.client.post("/api/v1/access-requests", json=body, headers=bob.bearer).json()["id"]
    page = owner.client.get(f"/access/requests/{number}").text
    assert "10.0.0.0/8" in page
    assert "The other limits of the request apply too" in page
    assert post(owner, f"/access/requests/{number}/grant", actions=["question.ask"]).status_code == 303
    rules = next(each for each in grants(owner) if each["role"] == "granted on request")["grant"]["rules"]
    assert {name: rules[name] for name in limits} == limits
    assert rules["not_before"] == f"{day(house, 2)}T00:00:00Z"
    assert ask(bob).status_code == 403


@pytest.mark.parametrize("text", ["{}", '{"rules": 3}', '{"rules": ["question.ask"]}', '{"members": {"anybody": true}}', "[]"])
def test_a_request_as_json_that_holds_no_rules_is_refused(house: House, owner: Visitor, bob: Visitor, text: str):
    house.sample_data_set(owner=owner)
    post(owner, PAGE, preset="listed")
    answer = post(bob, "/access/requests", data_set="people", purpose="a study", json=text)
    assert answer.status_code == 422
    assert "is invalid" in html.unescape(answer.text)


def test_a_common_purpose_is_read_in_ones_own_words(house: House, owner: Visitor):
    house.sample_data_set(owner=owner)
    post(owner, PAGE, preset="ask", people="bob@example.org", purposes=["care"], other_purposes="bicycle lanes")
    said = re.findall(r"<dt>用途</dt><dd>(.*?)</dd>", owner.client.get(PAGE, headers={"accept-language": "zh-CN"}).text)
    assert said == ["bicycle lanes或医疗照护 (care)"]


@pytest.mark.parametrize("retention", ["9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z"])
def test_a_stored_retention_at_an_end_of_the_calendar_is_shown(house: House, owner: Visitor, retention: str):
    people, giver = house.sample_data_set(owner=owner), house.person("provider", email="gia@example.org")
    with house.hub.database.begin() as db:
        stored = db.get(DataSet, people.id)
        assert stored is not None
        stored.provider = "gia@example.org"
        stored.metadata_ = {"policy": {"retention": retention}, "contribution": {"retention": retention}}
        bump(db)
    for browser in ("UTC", "Asia/Tokyo", "America/Lima"):
        pages = [(owner, path) for path in ("/datasets", "/datasets/people", "/datasets/people/manage", PAGE)]
        for who, path in [*pages, (giver, "/contributions/people")]:
            who.client.cookies.set(ZONE_COOKIE, browser)
            assert who.client.get(path).status_code == 200, (path, browser)


def test_a_form_that_is_sent_twice_grants_once(house: House, owner: Visitor, bob: Visitor):
    """Whoever revokes the one that they see would leave a twin that still lets in."""
    house.sample_data_set(owner=owner)
    fields: dict[str, Any] = {"preset": "ask", "people": "bob@example.org", "until": day(house, 9)}
    for _ in range(2):
        assert post(owner, PAGE, **fields).status_code == 303
    [made] = grants(owner)
    assert ask(bob).status_code == 201
    assert post(owner, f"{PAGE}/{made['id']}/revoke").status_code == 303
    assert ask(bob).status_code == 404
    post(owner, PAGE, **fields)
    assert ask(bob).status_code == 201, "one that was revoked is granted anew"
