"""What may not be: others' ids, fields that nobody offers, forged forms, hostile texts, tokens for what needs a browser."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from cloister.hub.platform.access import grant
from cloister.hub.records.access import AccessRequest, Grant
from tests.hub.access.forms import post
from tests.hub.house import House, Visitor

People = Callable[..., Visitor]
ASKING = {"actions": ["question.ask"]}


@pytest.fixture
def owner(house: House, person: People) -> Visitor:
    found = person("owner")
    house.sample_data_set("people", owner=found)
    return found


def test_others_cannot_touch_or_tell_a_grant(house: House, owner: Visitor, person: People) -> None:
    bob, mallory = person("analyst"), person("owner")
    house.sample_data_set("mine", owner=mallory)
    number = grant(house.hub, owner.caller, data_set="people", role="r", members={"people": [bob.id]}, rules=ASKING)
    real = mallory.client.delete(f"/api/v1/grants/{number}", headers=mallory.csrf())
    made_up = mallory.client.delete("/api/v1/grants/AAAAAAAAAAAAAAAAAAAAAA", headers=mallory.csrf())
    assert (real.status_code, real.json()) == (404, made_up.json()), "whether it exists is not told"
    assert post(mallory, f"/datasets/mine/access/{number}/revoke", "/datasets/mine/access").status_code == 404
    assert mallory.client.get("/datasets/people/access").status_code == 404
    assert mallory.client.get("/api/v1/grants", params={"data_set": "people"}, headers=mallory.csrf()).status_code == 404
    body = {"data_set": "people", "role": "me", "members": {"people": [mallory.id]}, "rules": ASKING}
    assert mallory.client.post("/api/v1/grants", json=body, headers=mallory.csrf()).status_code == 404
    assert bob.client.post("/api/v1/grants", json=body, headers=bob.csrf()).status_code == 403, "the role is missing"
    with house.hub.database.reading() as db:
        assert db.get_one(Grant, number).revoked is None


def test_an_own_grant_is_not_revoked_through_another_data_set(house: House, owner: Visitor) -> None:
    house.sample_data_set("other", owner=owner)
    number = grant(house.hub, owner.caller, data_set="people", role="r", members={"anybody": True}, rules=ASKING)
    assert post(owner, f"/datasets/other/access/{number}/revoke", "/datasets/other/access").status_code == 404
    with house.hub.database.reading() as db:
        assert db.get_one(Grant, number).revoked is None, "what was refused was undone"


def test_requests_of_others_are_missing(house: House, owner: Visitor, person: People) -> None:
    bob, eve, steward = person("analyst"), person("analyst", "owner"), person("steward")
    grant(house.hub, owner.caller, data_set="people", role="l", members={"anybody": True}, rules={"actions": ["dataset.see"]})
    body = {"data_set": "people", "purpose": "secret plans", "wanted": ASKING}
    number = bob.client.post("/api/v1/access-requests", json=body, headers=bob.csrf()).json()["id"]
    for path in ("", "/messages", "/withdraw", "/grant", "/refuse"):
        method = eve.client.get if not path else eve.client.post
        more = (
            {}
            if not path
            else {"json": {"/messages": {"text": "x"}, "/grant": {"rules": ASKING}, "/refuse": {"reason": "x"}}.get(path)}
        )
        answer = method(f"/api/v1/access-requests/{number}{path}", headers=eve.csrf(), **more)
        assert answer.status_code == 404, path
        assert "secret plans" not in answer.text
    for path in ("withdraw", "grant"):
        refused = steward.client.post(f"/api/v1/access-requests/{number}/{path}", json={"rules": ASKING}, headers=steward.csrf())
        assert refused.status_code in (403, 404)
    assert steward.client.get(f"/api/v1/access-requests/{number}", headers=steward.csrf()).status_code == 200, "a steward watches"
    assert owner.client.post(f"/api/v1/access-requests/{number}/withdraw", headers=owner.csrf()).status_code == 404
    bob_grants = bob.client.post(f"/api/v1/access-requests/{number}/grant", json={"rules": ASKING}, headers=bob.csrf())
    assert bob_grants.status_code == 403
    with house.hub.database.reading() as db:
        assert db.get_one(AccessRequest, number).state == "open"


@pytest.mark.parametrize(
    "more",
    [{"granted_by": "x"}, {"id": "x"}, {"revoked": None}, {"kind": "project"}, {"request": "x"}, {"object": "x"}],
)
def test_nobody_sets_what_nobody_offers(owner: Visitor, more: dict[str, Any]) -> None:
    body = {"data_set": "people", "role": "r", "members": {"anybody": True}, "rules": ASKING, **more}
    assert owner.client.post("/api/v1/grants", json=body, headers=owner.csrf()).status_code == 422
    del body[next(iter(more))]
    assert owner.client.post("/api/v1/grants", json=body, headers=owner.csrf()).status_code == 201


def test_a_request_is_always_ones_own(house: House, owner: Visitor, person: People) -> None:
    bob, eve = person("analyst"), person("analyst")
    grant(house.hub, owner.caller, data_set="people", role="l", members={"anybody": True}, rules={"actions": ["dataset.see"]})
    body = {"data_set": "people", "purpose": "p", "wanted": ASKING}
    for more in ({"person": eve.id}, {"state": "granted"}, {"decided_by": owner.id}):
        assert bob.client.post("/api/v1/access-requests", json=body | more, headers=bob.csrf()).status_code == 422
    form = {"data_set": "people", "purpose": "p", "actions": "question.ask", "person": eve.id, "state": "granted"}
    made = post(bob, "/access/requests", "/", **form)
    assert made.status_code == 303
    assert [each["state"] for each in bob.client.get("/api/v1/access-requests", headers=bob.csrf()).json()["items"]] == ["open"]
    assert eve.client.get("/api/v1/access-requests", headers=eve.csrf()).json()["items"] == []


def test_forged_forms_are_refused(owner: Visitor, person: People) -> None:
    steward = person("steward")
    for visitor, path in (
        (owner, "/datasets/people/access"),
        (owner, "/access/requests"),
        (owner, "/projects"),
        (steward, "/policy/rules"),
    ):
        assert visitor.client.post(path, data={"preset": "listed", "title": "x"}).status_code == 403
        foreign = {"Origin": "https://evil.example"}
        assert visitor.client.post(path, data={"preset": "listed"}, headers=foreign).status_code == 403
    body = {"data_set": "people", "role": "r", "members": {"anybody": True}, "rules": ASKING}
    assert owner.client.post("/api/v1/grants", json=body).status_code == 403, "a session without its token against forgery"
    assert owner.client.get("/api/v1/grants", params={"data_set": "people"}).json()["items"] == []


def test_a_token_does_not_write_the_policy(person: People) -> None:
    steward = person("steward")
    body = {"title": "Nothing", "deny": True}
    fresh = steward.client.post("/api/v1/policy/rules", json=body, headers=steward.csrf())
    assert fresh.status_code == 201
    steward.client.cookies.clear()
    assert steward.client.post("/api/v1/policy/rules", json=body, headers=steward.bearer).status_code == 403


@pytest.mark.parametrize(
    "rules",
    [
        {"actions": ["question.ask"], "rows": "1=1) OR (1=1"},
        {"actions": ["question.ask"], "rows": "age >= 18; DROP TABLE people"},
        {"actions": ["question.ask"], "rows": "(SELECT COUNT(*) FROM people) > 1"},
        {"actions": ["question.ask"], "rows": "secret = 1"},
        {"actions": ["question.ask"], "columns": ["secret"]},
        {"actions": ["question.ask"], "share": {"rho": "0.1"}},
        {"actions": ["question.ask"], "share": {"epsilon": 0.1}},
        {"actions": ["question.ask"], "until": "2020-01-01"},
        {"actions": ["question.ask"], "purpose": "typo"},
        {"actions": ["dataset.grant"]},
        {"actions": ["project.see"]},
        {"actions": []},
        {"actions": ["question.ask"], "algorithms": ["nobody-knows"]},
        {"actions": ["question.ask"], "networks": ["10.0.0.1/8"]},
    ],
)
def test_what_could_never_hold_is_refused(owner: Visitor, rules: dict[str, Any]) -> None:
    body = {"data_set": "people", "role": "r", "members": {"anybody": True}, "rules": rules}
    answer = owner.client.post("/api/v1/grants", json=body, headers=owner.csrf())
    assert answer.status_code == 422, answer.text
    assert answer.json()["instead"]
    assert owner.client.get("/api/v1/grants", params={"data_set": "people"}, headers=owner.csrf()).json()["items"] == []


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", "{{ 7*7 }}", "'; DROP TABLE grant_; --", "=HYPERLINK(1)", "名字"])
def test_hostile_texts_are_shown_as_texts(owner: Visitor, person: People, text: str) -> None:
    bob = person("analyst", name="Bob <img src=x>")
    form = {"role": text, "people": bob.caller.email, "actions": "question.ask", "purposes": text.replace(";", "")}
    assert post(owner, "/datasets/people/access", **form).status_code == 303
    page = owner.client.get("/datasets/people/access").text
    assert "<script>alert" not in page
    assert "<img" not in page
    assert (text in page) or (text.replace("<", "&lt;").replace(">", "&gt;").replace("'", "&#39;") in page)
    listed = owner.client.get("/api/v1/grants", params={"data_set": "people"}, headers=owner.csrf()).json()["items"]
    assert listed[0]["role"] == text


@pytest.mark.parametrize("text", ["a\ud800b", "a\x00b"])
def test_texts_that_no_database_keeps_are_refused(owner: Visitor, person: People, text: str) -> None:
    raw = json.dumps({"name": "fine", "title": text, "purpose": "p"})
    headers = {**owner.csrf(), "Content-Type": "application/json"}
    assert owner.client.post("/api/v1/projects", content=raw, headers=headers).status_code == 422
    for members in ({"people": [text]}, {"people": [f"{text}@x.example"]}, {"projects": [text]}, {"institutions": [text]}):
        grant_of = json.dumps({"data_set": "people", "role": "r", "members": members, "rules": ASKING})
        assert owner.client.post("/api/v1/grants", content=grant_of, headers=headers).status_code == 422, members
    rules = json.dumps({"title": text, "deny": True})
    steward = person("steward")
    own = {**steward.csrf(), "Content-Type": "application/json"}
    assert steward.client.post("/api/v1/policy/rules", content=rules, headers=own).status_code == 422


def test_the_json_box_is_as_strict_as_the_fields(owner: Visitor) -> None:
    for text, status in (
        ("{", 422),
        ("[]", 422),
        ('{"role": "r"}', 422),
        ('{"role": "r", "members": {}, "rules": {"actions": ["question.ask"]}}', 422),
        ('{"role": "r", "members": {"anybody": true}, "rules": {"actions": ["question.ask"]}, "id": "x"}', 422),
        ('{"role": "r", "members": {"anybody": true}, "rules": {"actions": ["question.ask"], "columns": ["age"]}}', 303),
    ):
        answer = post(owner, "/datasets/people/access", "/datasets/people/access/new", json=text)
        assert answer.status_code == status, text
