"""The stories of access: asked for, granted, used, revoked; and what narrows, expires or stands above it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cloister.hub.platform.access import grant, revoke
from cloister.hub.platform.catalogue.managing import delete
from cloister.hub.records.access import AccessRequest
from cloister.hub.records.accounts import Person
from cloister.hub.records.trail import AuditLine
from cloister.privacy import PureDP
from tests.hub.access.forms import post
from tests.hub.house import Clock, House, Visitor

COUNT = "SELECT COUNT(*) AS n FROM people"
People = Callable[..., Visitor]


@pytest.fixture
def owner(person: People) -> Visitor:
    return person("owner", email="olga@north.example", name="Olga")


@pytest.fixture
def bob(person: People) -> Visitor:
    return person("analyst", email="bob@south.example", name="Bob")


def ask(visitor: Visitor, sql: str = COUNT, spend: str = "0.1", purpose: str = "research", **more: Any) -> Any:
    """A real question, through the API."""
    body = {"sql": sql, "spend": spend, "purpose": purpose, **more}
    return visitor.client.post("/api/v1/questions", json=body, headers=visitor.bearer)


def day(house: House, days: int) -> str:
    return (datetime.fromtimestamp(house.clock(), UTC) + timedelta(days=days)).date().isoformat()


def lines(house: House, action: str) -> list[AuditLine]:
    with house.hub.database.reading() as db:
        found = [line for line in db.query(AuditLine).order_by(AuditLine.number) if line.action == action]
        db.expunge_all()
    return found


def test_nobody_is_asked_who_is_blocked(house: House, owner: Visitor, bob: Visitor) -> None:
    house.sample_data_set(owner=owner)
    post(owner, "/datasets/people/access", preset="listed")
    with house.hub.database.begin() as db:
        db.get_one(Person, owner.id).blocked = True
    body = {"data_set": "people", "purpose": "a study", "wanted": {"actions": ["question.ask"]}}
    refused = bob.client.post("/api/v1/access-requests", json=body, headers=bob.bearer)
    assert (refused.status_code, "would not be answered" in refused.json()["detail"]) == (409, True)


def test_asked_talked_over_granted_used_and_revoked(house: House, owner: Visitor, bob: Visitor) -> None:
    house.sample_data_set(owner=owner)
    assert bob.client.get("/access/requests/new", params={"data_set": "people"}).status_code == 404
    post(owner, "/datasets/people/access", preset="listed")
    denied = ask(bob)
    assert (denied.status_code, denied.json()["rule"]) == (403, "grants")

    form = {
        "data_set": "people",
        "purpose": "a study of ages",
        "actions": "question.ask",
        "purposes": "research",
        "message": "Hello",
    }
    asked = post(bob, "/access/requests", "/access/requests/new?data_set=people", **form)
    assert asked.status_code == 303, asked.text
    path = asked.headers["location"]
    assert "a study of ages" in owner.client.get("/access/requests").text
    assert "Requests to decide" in owner.client.get("/").text
    assert post(owner, f"{path}/messages", path, text="Which <b>ages</b>?").status_code == 303
    page = bob.client.get(path).text
    assert "Which &lt;b&gt;ages&lt;/b&gt;?" in page
    assert "Hello" in page
    assert "Grant it" not in page, "who asks does not decide"

    narrower = {
        "actions": ["question.ask"],
        "purposes": "research",
        "columns": ["age"],
        "until": day(house, 5),
        "message": "Ages only",
    }
    assert post(owner, f"{path}/grant", path, **narrower).status_code == 303
    assert "Granted" in bob.client.get(path).text
    allowed = ask(bob)
    assert allowed.status_code == 201, allowed.text
    assert allowed.json()["cost"] == {"people": "ε = 0.1"}

    grants = owner.client.get("/api/v1/grants", params={"data_set": "people"}).json()["items"]
    number = next(each["id"] for each in grants if each["role"] == "granted on request")
    assert post(owner, f"/datasets/people/access/{number}/revoke", "/datasets/people/access").status_code == 303
    again = ask(bob, sql="SELECT AVG(age) AS a FROM people")
    assert again.status_code == 403
    assert again.json()["rule"] == f"grant:{number}"
    assert "the grant was revoked" in again.json()["detail"]
    assert "Olga" in again.json()["instead"]
    assert ask(bob).status_code == 403, "a stored answer is behind the same gate"
    assert [line.person for line in lines(house, "dataset.revoke")] == [owner.id]
    assert [line.details["about"]["decision"] for line in lines(house, "access.decide")] == ["granted"]


def test_a_grant_ends_with_its_last_day(house: House, clock: Clock, owner: Visitor, bob: Visitor) -> None:
    house.sample_data_set(owner=owner)
    post(owner, "/datasets/people/access", preset="listed")
    rules = {"actions": ["question.ask"], "until": day(house, 1)}
    grant(house.hub, owner.caller, data_set="people", role="reader", members={"people": [bob.caller.email]}, rules=rules)
    assert ask(bob).status_code == 201
    clock.move(days=1, hours=14, minutes=59)
    assert ask(bob, fresh=True).status_code == 201
    clock.move(minutes=2)
    late = ask(bob, fresh=True)
    assert late.status_code == 403
    assert "the grant ended at" in late.json()["detail"]
    house.awake(owner)
    grants = owner.client.get("/api/v1/grants", params={"data_set": "people"}).json()["items"]
    assert sorted(each["state"] for each in grants) == ["active", "expired"]


def test_columns_and_rows_narrow_a_real_question(house: House, owner: Visitor, bob: Visitor) -> None:
    house.sample_data_set(owner=owner, budget=PureDP(10_000))
    rules = {"actions": ["question.ask"], "columns": ["sex"], "rows": "age >= 45"}
    grant(house.hub, owner.caller, data_set="people", role="reader", members={"people": [bob.id]}, rules=rules)
    answer = ask(bob, spend="50")
    assert answer.status_code == 201, answer.text
    assert abs(answer.json()["columns"]["n"][0] - 100) < 3, "of three hundred a third is over 45"
    hidden = ask(bob, sql="SELECT AVG(pay) AS p FROM people", spend="1")
    assert hidden.status_code == 403
    assert "pay" in hidden.json()["detail"]
    assert abs(ask(owner, spend="50").json()["columns"]["n"][0] - 300) < 3, "the owner sees all rows"


def test_purposes_bind(house: House, owner: Visitor, bob: Visitor) -> None:
    house.sample_data_set(owner=owner)
    post(owner, "/datasets/people/access", preset="research", people="bob@south.example", until=day(house, 30), share="0.25")
    assert ask(bob, purpose="marketing").json()["detail"].startswith("the purpose must be one of: research")
    assert ask(bob).status_code == 201
    assert ask(bob, sql="SELECT AVG(age) AS a FROM people").status_code == 201
    over = ask(bob, sql="SELECT AVG(pay) AS p FROM people")
    assert over.status_code == 403
    left = "ε = 0.05 of your share of the budget under this grant, ε = 0.25, is left, and this costs ε = 0.1"
    assert left in over.json()["detail"]


def test_the_institution_stands_above(house: House, owner: Visitor, bob: Visitor, person: People) -> None:
    house.sample_data_set(owner=owner)
    steward = person("steward", name="Stella")
    members = {"people": [bob.id]}
    grant(house.hub, owner.caller, data_set="people", role="reader", members=members, rules={"actions": ["question.ask"]})
    assert ask(bob).status_code == 201
    made = post(steward, "/policy/rules", "/policy", title="Certified people only", training="GCP")
    assert made.status_code == 303, made.text
    denied = ask(bob, sql="SELECT AVG(age) AS a FROM people")
    assert denied.status_code == 403
    assert denied.json()["rule"].startswith("mandatory:")
    assert "GCP" in denied.json()["detail"]
    page = owner.client.get("/datasets/people/access").text
    assert "overrides a grant" in page
    assert "Certified people only" in bob.client.get("/policy").text
    number = steward.client.get("/api/v1/policy/rules").json()["items"][0]["id"]
    assert post(bob, f"/policy/rules/{number}/end", "/policy").status_code == 403
    assert post(owner, "/policy/rules", "/policy", title="Mine", deny="yes").status_code == 403
    assert post(steward, f"/policy/rules/{number}/end", "/policy").status_code == 303
    assert ask(bob, sql="SELECT AVG(age) AS a FROM people").status_code == 201
    assert "Ended rules" in bob.client.get("/policy").text


def test_a_share_above_the_ceiling_is_not_granted(house: House, owner: Visitor, bob: Visitor, person: People) -> None:
    house.sample_data_set(owner=owner)
    post(person("steward"), "/policy/rules", "/policy", title="Small shares", epsilon_of_allotment="0.3")
    form = {"role": "reader", "people": bob.caller.email, "actions": "question.ask"}
    refused = post(owner, "/datasets/people/access", "/datasets/people/access/new", **form, share="0.4")
    assert refused.status_code == 403
    assert "ceiling" in refused.text
    assert post(owner, "/datasets/people/access", "/datasets/people/access/new", **form, share="0.3").status_code == 303


def test_refused_with_a_reason_and_withdrawn(house: House, owner: Visitor, bob: Visitor) -> None:
    house.sample_data_set(owner=owner)
    post(owner, "/datasets/people/access", preset="listed")
    body = {"data_set": "people", "purpose": "curiosity", "wanted": {"actions": ["question.ask"]}}
    first = bob.client.post("/api/v1/access-requests", json=body, headers=bob.csrf())
    assert first.status_code == 201, first.text
    assert bob.client.post("/api/v1/access-requests", json=body, headers=bob.csrf()).status_code == 409
    path = f"/access/requests/{first.json()['id']}"
    assert post(owner, f"{path}/refuse", path, reason=" ").status_code == 422
    assert post(owner, f"{path}/refuse", path, reason="No study plan").status_code == 303
    assert "No study plan" in bob.client.get(path).text
    assert post(owner, f"{path}/grant", path, actions="question.ask").status_code == 409, "decided is decided"
    second = bob.client.post("/api/v1/access-requests", json=body, headers=bob.csrf()).json()["id"]
    gone = bob.client.post(f"/api/v1/access-requests/{second}/withdraw", headers=bob.csrf())
    assert gone.json()["state"] == "withdrawn"
    assert ask(bob).status_code == 403


def test_a_request_expires_with_what_it_asks_for(house: House, clock: Clock, owner: Visitor, bob: Visitor) -> None:
    house.sample_data_set(owner=owner)
    post(owner, "/datasets/people/access", preset="listed")
    wanted = {"actions": ["question.ask"], "until": day(house, 2)}
    body = {"data_set": "people", "purpose": "soon", "wanted": wanted}
    number = bob.client.post("/api/v1/access-requests", json=body, headers=bob.csrf()).json()["id"]
    clock.move(days=4)
    path = f"/api/v1/access-requests/{number}"
    assert bob.client.get(path, headers=bob.bearer).json()["state"] == "expired"
    house.awake(owner)
    late = owner.client.post(f"{path}/grant", json={"rules": {"actions": ["question.ask"]}}, headers=owner.csrf())
    assert late.status_code == 409, late.text
    assert owner.client.get("/api/v1/access-requests?to_decide=true", headers=owner.bearer).json()["items"] == []
    assert "No requests to decide." in owner.client.get("/").text
    again = bob.client.post("/api/v1/access-requests", json=body | {"wanted": {"actions": ["question.ask"]}}, headers=bob.bearer)
    assert again.status_code == 201, "one that nobody can decide any more stands in nobody's way"


def test_what_was_asked_of_a_data_set_that_is_deleted_waits_for_nobody(house: House, owner: Visitor, bob: Visitor) -> None:
    house.sample_data_set(owner=owner)
    post(owner, "/datasets/people/access", preset="listed")
    body = {"data_set": "people", "purpose": "a study", "wanted": {"actions": ["question.ask"]}}
    number = bob.client.post("/api/v1/access-requests", json=body, headers=bob.bearer).json()["id"]
    project = {"name": "heart", "title": "The heart study", "purpose": "hearts"}
    bob.client.post("/api/v1/projects", json=project, headers=bob.bearer)
    bob.client.post("/api/v1/projects/heart/data-sets", json={"data_set": "people"}, headers=bob.bearer)
    waiting = owner.client.get("/").text
    assert f"/access/requests/{number}" in waiting
    assert "/projects/heart" in waiting
    delete(house.hub, owner.caller, "people", "people")
    assert "No requests to decide." in owner.client.get("/").text
    assert owner.client.get("/api/v1/access-requests?to_decide=true", headers=owner.bearer).json()["items"] == []
    assert "The heart study" not in owner.client.get("/access/requests").text
    assert "Grant it" not in owner.client.get(f"/access/requests/{number}").text
    assert bob.client.get(f"/api/v1/access-requests/{number}", headers=bob.bearer).json()["state"] == "expired"


def test_a_granted_request_is_as_its_grant_is(house: House, clock: Clock, owner: Visitor, bob: Visitor) -> None:
    house.sample_data_set(owner=owner)
    post(owner, "/datasets/people/access", preset="listed")

    def granted(wanted: dict[str, str], given: dict[str, str]) -> str:
        body = {"data_set": "people", "purpose": "ages", "wanted": {"actions": ["question.ask"], **wanted}}
        path = f"/api/v1/access-requests/{bob.client.post('/api/v1/access-requests', json=body, headers=bob.bearer).json()['id']}"
        rules = {"actions": ["question.ask"], **given}
        assert owner.client.post(f"{path}/grant", json={"rules": rules}, headers=owner.csrf()).status_code == 200
        return path

    def states() -> list[str]:
        return [bob.client.get(path, headers=bob.bearer).json()["state"] for path in (shorter, longer)]

    shorter, longer = granted({}, {"until": day(house, 2)}), granted({"until": day(house, 2)}, {})
    assert states() == ["granted", "granted"]
    clock.move(days=4)
    assert states() == ["expired", "granted"]
    house.awake(owner)
    grants = owner.client.get("/api/v1/grants", params={"data_set": "people"}).json()["items"]
    for each in grants:
        owner.client.delete(f"/api/v1/grants/{each['id']}", headers=owner.csrf())
    assert states() == ["revoked", "revoked"]


def test_a_new_request_is_shown_to_an_owner_who_decided_many(house: House, owner: Visitor, bob: Visitor) -> None:
    row = house.sample_data_set(owner=owner, readers=[bob])
    with house.hub.database.begin() as db:
        for place in range(201):
            more = {"id": f"old-{place}", "state": "denied", "purpose": "old", "wanted": {"actions": ["question.ask"]}}
            db.add(AccessRequest(data_set=row.id, person=bob.id, project="", created=house.hub.now(), **more))
    house.clock.move(minutes=1)
    body = {"data_set": "people", "purpose": "a new study", "wanted": {"actions": ["question.ask"]}}
    assert bob.client.post("/api/v1/access-requests", json=body, headers=bob.bearer).status_code == 201
    assert "a new study" in owner.client.get("/access/requests").text


def test_python_grants_and_revokes(house: House, owner: Visitor, bob: Visitor) -> None:
    house.sample_data_set(owner=owner)
    number = grant(
        house.hub, owner.caller, data_set="people", role="r", members={"people": [bob.id]}, rules={"actions": ["question.ask"]}
    )
    assert ask(bob).status_code == 201
    revoke(house.hub, owner.caller, number)
    revoke(house.hub, owner.caller, number)
    assert ask(bob).status_code == 404, "what nobody shows to one does not exist for one"
    assert len(lines(house, "dataset.revoke")) == 1, "what is over does not end twice"


def test_the_preview_tells_what_the_policy_decides(house: House, owner: Visitor, bob: Visitor) -> None:
    house.sample_data_set(owner=owner)
    rules = {"actions": ["question.ask"], "purposes": ["research"], "networks": ["10.0.0.0/8"]}
    grant(house.hub, owner.caller, data_set="people", role="r", members={"people": [bob.id]}, rules=rules)

    def foreseen(**how: str) -> dict[str, tuple[bool, str]]:
        given = {"data_set": "people", "person": bob.caller.email, **how}
        found = owner.client.get("/api/v1/grants/preview", params=given).json()["items"]
        return {each["action"]: (each["allowed"], each["reason"]) for each in found}

    assert foreseen(purpose="research", address="10.1.1.1")["question.ask"] == (True, "granted")
    assert foreseen(purpose="marketing", address="10.1.1.1")["question.ask"] == (False, "purpose")
    assert foreseen(purpose="research")["question.ask"] == (False, "network")
    assert foreseen(purpose="research", address="10.1.1.1")["learn.run"] == (False, "no-grant")
    page = owner.client.get("/datasets/people/access/preview", params={"person": bob.caller.email, "purpose": "research"})
    assert "it is not allowed from your network" in page.text
    assert owner.client.get("/datasets/people/access/preview", params={"person": "who@x.example"}).status_code == 422
