"""Who comes into a project, and works with whose data by it; and that nobody learns who is here by inviting and granting."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import select

from cloister.hub.decisions.checking import allowed, context_of
from cloister.hub.decisions.facts import facts_of
from cloister.hub.hub import Hub
from cloister.hub.platform.access import grant
from cloister.hub.platform.access.granting import grants_on
from cloister.hub.platform.jobs import Workers
from cloister.hub.records.access import Grant
from cloister.hub.records.catalogue import DataSet
from cloister.hub.records.releases import StoredRelease
from cloister.hub.records.trail import AuditLine
from tests.hub.access.forms import post
from tests.hub.house import Clock, House, Visitor

People = Callable[..., Visitor]
ASKING = {"actions": ["question.ask"]}
COUNT = "SELECT COUNT(*) AS n FROM people"


@pytest.fixture
def owner(house: House, person: People) -> Visitor:
    found = person("owner", email="olga@example.org", name="Olga")
    house.sample_data_set("people", owner=found)
    grant(house.hub, found.caller, data_set="people", role="l", members={"anybody": True}, rules={"actions": ["dataset.see"]})
    return found


def api(who: Visitor, path: str, body: Any = None, method: str = "POST") -> Any:
    return who.client.request(method, f"/api/v1{path}", json=body, headers=who.csrf())


def ask(who: Visitor, project: str) -> int:
    return int(api(who, "/questions", {"sql": COUNT, "spend": "0.1", "project": project}).status_code)


def study(lead: Visitor) -> str:
    return str(api(lead, "/projects", {"name": "study", "title": "The study", "purpose": "hearts"}).json()["id"])


def test_who_joins_after_the_approval_waits_for_the_owner(house: House, owner: Visitor, person: People) -> None:
    lead, late = person("analyst", name="Lea"), person("analyst", name="Tom")
    project = study(lead)
    assert api(lead, "/projects/study/data-sets", {"data_set": "people"}).status_code == 200
    assert api(owner, "/projects/study/data-sets/people/approve", ASKING).status_code == 200
    assert ask(lead, project) == 201
    assert api(lead, "/projects/study/members", {"email": late.caller.email}).status_code == 200
    assert api(late, "/projects/study/join").status_code == 200
    assert ask(late, project) == 403, "the owner approved it for others"
    told = api(owner, "/projects/study", method="GET").json()
    assert told["waiting"] == {"people": ["Tom"]}
    assert "Tom" in owner.client.get("/projects/study").text
    assert "The study" in owner.client.get("/projects").text
    assert "The study" in owner.client.get("/").text, "the owner is told"
    assert api(lead, "/projects/study/data-sets/people/confirm").status_code == 403
    assert ask(late, project) == 403
    for status in (303, 409):  # a page that was loaded before says nothing untrue
        sent = post(owner, "/projects/study/data/confirm", "/projects/study", data_set="people", person=late.id)
        assert sent.status_code == status
    assert ask(late, project) == 201
    assert api(owner, "/projects/study", method="GET").json()["waiting"] == {}
    assert api(lead, f"/projects/study/members/{late.id}", method="DELETE").status_code == 200
    assert ask(late, project) == 403
    api(lead, "/projects/study/members", {"email": late.caller.email})
    api(late, "/projects/study/join")
    assert ask(late, project) == 403, "they joined after the approval, once more"
    assert api(owner, "/projects/study", method="GET").json()["waiting"] == {"people": ["Tom"]}


def test_who_joins_after_a_grant_is_let_in_on_the_page_of_grants(house: House, owner: Visitor, person: People) -> None:
    lead, late, out = person("analyst", name="Lea"), person("analyst", name="Tom"), person("analyst", name="Una")
    project, page = study(lead), "/datasets/people/access"
    api(lead, "/projects/study/data-sets", {"data_set": "people"})  # so that the owner sees the project
    api(lead, "/projects/study/members", {"email": out.caller.email})
    api(out, "/projects/study/join")
    house.clock.move(seconds=1)
    members = {"projects": ["study"], "people": [lead.id]}
    number = grant(house.hub, owner.caller, data_set="people", role="readers", members=members, rules=ASKING)
    assert "not covered by this grant" not in owner.client.get(page).text, "Una was left out on purpose"
    house.clock.move(seconds=1)
    api(lead, "/projects/study/members", {"email": late.caller.email})
    api(late, "/projects/study/join")
    assert ask(late, project) == 403
    shown = owner.client.get(page).text
    assert re.findall(r"not covered by this grant:([^<]*)", shown) == [" Tom"]
    assert post(lead, f"{page}/{number}/confirm", "/projects", person=late.id).status_code == 403
    for status in (303, 409):
        sent = post(owner, f"{page}/{number}/confirm", page, person=[late.id, out.id])
        assert sent.status_code == status, sent.text
    assert (ask(lead, project), ask(late, project), ask(out, project)) == (201, 201, 403)
    with house.hub.database.reading() as db:
        told = [line.details.get("joined") for line in db.scalars(select(AuditLine)) if line.action == "dataset.grant"]
    assert told[-1] == [late.id]


def test_a_project_is_named_wherever_its_id_may_stand(house: House, owner: Visitor, person: People) -> None:
    lead, other = person("analyst"), person("analyst")
    project, rules = study(lead), {"actions": ["question.ask", "learn.run", "release.share"]}
    api(lead, "/projects/study/data-sets", {"data_set": "people"})
    assert api(owner, "/projects/study/data-sets/people/approve", rules).status_code == 200
    question, order = {"sql": COUNT, "spend": "0.1"}, {"table": "people", "features": ["age"], "target": "sex", "spend": "0.1"}
    for named in ("study", project):
        asked = api(lead, "/questions", {**question, "project": named})
        assert asked.status_code == 201, asked.text
        assert api(lead, "/questions/explain", {**question, "project": named}).status_code == 200
        kept = api(lead, "/questions/saved", {**question, "title": "How many", "project": named})
        assert (kept.status_code, kept.json()["project"]) == (201, project)
        assert api(lead, f"/releases/{asked.json()['id']}/shares", {"project": named}).status_code == 200
        trained = api(lead, "/models", {**order, "method": "GaussianNB", "project": named})
        assert trained.status_code == 202, trained.text
        assert Workers(house.hub, 0).run_one()
    with house.hub.database.reading() as db:
        assert {row.asked_in for row in db.scalars(select(StoredRelease))} == {project}
    assert {each.who for each in house.hub.ledger.charges("people")} == {"project study"}
    assert ask(other, "study") == ask(other, project) == 403
    wish = {"data_set": "people", "purpose": "hearts", "wanted": ASKING, "project": "study"}
    assert api(lead, "/access-requests", wish).json()["project"] == "study"
    assert api(other, "/access-requests", wish).status_code == 404


def test_an_approval_ends_with_its_grant_and_is_asked_for_again(
    house: House, clock: Clock, owner: Visitor, person: People
) -> None:
    lead, late = person("analyst"), person("analyst", name="Tom")
    project = study(lead)
    last = {**ASKING, "until": house.hub.now().date().isoformat()}
    api(lead, "/projects/study/data-sets", {"data_set": "people"})
    assert api(owner, "/projects/study/data-sets/people/approve", last).status_code == 200
    assert ask(lead, project) == 201
    clock.move(days=2)
    for each in (owner, lead, late):
        house.awake(each)
    api(lead, "/projects/study/members", {"email": late.caller.email})
    api(late, "/projects/study/join")
    told = api(owner, "/projects/study", method="GET").json()
    assert (told["data_sets"], told["waiting"]) == ({"people": False}, {}), "nobody is let into what has ended"
    assert "Expired" in lead.client.get("/projects/study").text
    assert "The study" not in owner.client.get("/access/requests").text, "nobody asked again"
    assert api(lead, "/projects/study/data-sets", {"data_set": "people"}).status_code == 200
    assert "The study" in owner.client.get("/access/requests").text
    last["until"] = house.hub.now().date().isoformat()
    assert api(owner, "/projects/study/data-sets/people/approve", last).json()["data_sets"] == {"people": True}
    assert api(owner, "/projects/study/data-sets/people/approve", last).status_code == 409
    assert (ask(lead, project), ask(late, project)) == (201, 201)
    assert post(lead, "/projects/study/data/remove", "/projects/study", data_set="people").status_code == 409
    clock.move(days=2)
    house.awake(lead)
    assert post(lead, "/projects/study/data/remove", "/projects/study", data_set="people").status_code == 303


def test_a_request_for_a_project_is_granted_to_its_members(house: House, owner: Visitor, person: People) -> None:
    lead, late = person("analyst"), person("analyst", name="Tom")
    project = study(lead)
    wish = {"data_set": "people", "purpose": "hearts", "wanted": ASKING, "project": project}
    number = api(lead, "/access-requests", wish).json()["id"]
    assert api(owner, "/projects/study", method="GET").status_code == 404, "the request shows them its name alone"
    granted = api(owner, f"/access-requests/{number}/grant", {"rules": ASKING})
    assert (granted.status_code, granted.json()["state"]) == (200, "granted"), granted.text
    assert ask(lead, project) == 201
    assert api(owner, "/projects/study", method="GET").json()["data_sets"] == {"people": True}
    api(lead, "/projects/study/members", {"email": late.caller.email})
    api(late, "/projects/study/join")
    assert ask(late, project) == 403
    assert api(owner, "/projects/study/data-sets/people/confirm").status_code == 200
    assert ask(late, project) == 201
    with house.hub.database.reading() as db:
        [grant] = [each for each in grants_on(db, "data-set", db.scalars(select(DataSet.id)).one()) if each.request]
    assert post(owner, f"/datasets/people/access/{grant.id}/revoke", "/datasets/people/access").status_code == 303
    assert api(owner, "/projects/study", method="GET").json()["data_sets"] == {"people": False}
    second = api(lead, "/access-requests", wish).json()["id"]
    assert api(lead, "/projects/study/close").status_code == 200
    assert api(owner, f"/access-requests/{second}/grant", {"rules": ASKING}).json()["detail"] == "its project is closed"


def test_a_grant_to_a_project_is_given_to_its_members_of_that_day(house: House, owner: Visitor, person: People) -> None:
    lead, late = person("analyst"), person("analyst")
    project = study(lead)
    api(lead, "/projects/study/data-sets", {"data_set": "people"})
    number = grant(house.hub, owner.caller, data_set="people", role="r", members={"projects": [project]}, rules=ASKING)
    with house.hub.database.reading() as db:
        assert db.get_one(Grant, number).attributes == {"people": [lead.id], "projects": [project]}
    api(lead, "/projects/study/members", {"email": late.caller.email})
    api(late, "/projects/study/join")
    assert (ask(lead, project), ask(late, project)) == (201, 403)


def test_an_invitation_is_answered_in_the_same_way_whoever_has_the_address(owner: Visitor, person: People) -> None:
    lead, bob, eve = person("analyst"), person("analyst", email="bob@example.org"), person("analyst")
    study(lead)
    told = [api(lead, "/projects/study/members", {"email": each}) for each in ("bob@example.org", "nil@example.org")]
    assert [each.status_code for each in told] == [200, 200]
    assert [each.json()["invited"] for each in told] == [["bob@example.org"], ["bob@example.org", "nil@example.org"]]
    assert told[0].json()["members"] == told[1].json()["members"]
    assert "The study" in bob.client.get("/projects").text
    assert "The study" not in eve.client.get("/projects").text
    assert api(eve, "/projects/study/join").status_code == 404
    assert post(bob, "/projects/study/join", "/projects", decline="1").status_code == 303
    assert api(bob, "/projects/study/join").status_code == 404
    assert api(lead, "/projects/study/members/nil@example.org", method="DELETE").json()["invited"] == []


def test_a_lead_takes_a_member_out_by_address(owner: Visitor, person: People) -> None:
    lead, bob = person("analyst", name="Lea"), person("analyst", email="bob@example.org", name="Bob")
    person("analyst", email="eve@example.org")
    study(lead)
    api(lead, "/projects/study/members", {"email": "bob@example.org"})
    assert sorted(api(bob, "/projects/study/join").json()["members"]) == ["Bob", "Lea"]
    for nobody in ("eve@example.org", "nil@example.org", "Bob", owner.id):
        told = api(lead, f"/projects/study/members/{nobody}", method="DELETE")
        assert (told.status_code, told.json()["title"]) == (404, "There is no such member"), nobody
    assert api(lead, f"/projects/study/members/{lead.caller.email}", method="DELETE").status_code == 409
    assert api(lead, "/projects/study/members/Bob@Example.org", method="DELETE").json()["members"] == ["Lea"]
    assert api(bob, "/projects/study", method="GET").status_code == 404


def test_a_grant_by_address_is_answered_in_the_same_way_whoever_has_it(house: House, owner: Visitor, person: People) -> None:
    bob = person("analyst", email="bob@example.org", name="Secret Name")
    body: dict[str, Any] = {"data_set": "people", "role": "r", "rules": ASKING}
    told = [
        api(owner, "/grants", body | {"members": {"people": [each]}})
        for each in ("Bob@Example.org", "nil@example.org", "no address")
    ]
    assert [each.status_code for each in told] == [201, 201, 422]
    found = [{**each.json(), "id": "", "created": ""} for each in told[:2]]
    assert "Secret" not in str(found)
    assert str(found[0]).replace("bob@example.org", "nil@example.org") == str(found[1])
    assert api(bob, "/questions", {"sql": COUNT, "spend": "0.1"}).status_code == 201
    nil = person("analyst", email="nil@example.org")
    assert api(nil, "/questions", {"sql": COUNT, "spend": "0.1"}).status_code == 201, "it was pending"


def test_an_owner_looks_only_at_those_whom_they_know(house: House, owner: Visitor, person: People) -> None:
    bob, _ = person("analyst", email="bob@example.org"), person("analyst", email="eve@example.org")

    def foreseen(who: str) -> Any:
        return owner.client.get("/api/v1/grants/preview", params={"data_set": "people", "person": who}, headers=owner.csrf())

    here, nobody = foreseen("eve@example.org"), foreseen("nil@example.org")
    assert (here.status_code, here.json()) == (422, nobody.json())
    assert foreseen("bob@example.org").json() == nobody.json()
    api(bob, "/access-requests", {"data_set": "people", "purpose": "hearts", "wanted": ASKING})
    assert foreseen("bob@example.org").status_code == 200


def test_hours_are_those_of_the_hubs_zone(tmp_path: Any, clock: Clock) -> None:
    """Nine in London in March is five in the evening in Shanghai."""

    def may_at_nine(hub: Hub, reader: Visitor) -> bool:
        with hub.database.reading() as db:
            [which] = facts_of(hub, db).data_sets.values()
            return allowed(hub, db, reader.caller, "question.ask", which, context_of(hub, reader.caller)).allowed

    for zone, expected in (("UTC", True), ("Asia/Shanghai", False)):
        house = House(tmp_path / zone.replace("/", "-"), clock, zone=zone)
        try:
            owner, reader = house.person("owner"), house.person("analyst")
            people = house.sample_data_set("people", owner=owner)
            house.grant(people, reader, by=owner, hours=[{"from": "08:00", "to": "12:00"}])
            assert may_at_nine(house.hub, reader) is expected
            page = owner.client.get("/datasets/people/access").text
            assert f"08:00–12:00 {zone}" in page
        finally:
            house.close()


def test_a_request_of_somebody_who_left_the_project_lets_nobody_in(house: House, owner: Visitor, person: People) -> None:
    lead, gone = person("analyst"), person("analyst")
    project = study(lead)
    api(lead, "/projects/study/members", {"email": gone.caller.email})
    api(gone, "/projects/study/join")
    wish = {"data_set": "people", "purpose": "hearts", "wanted": ASKING, "project": project}
    number = api(gone, "/access-requests", wish).json()["id"]
    api(lead, f"/projects/study/members/{gone.id}", method="DELETE")
    told = api(owner, f"/access-requests/{number}/grant", {"rules": ASKING})
    assert (told.status_code, told.json()["detail"]) == (409, "the person who sent it has left its project")
    assert ask(lead, project) == 403
    assert api(owner, f"/access-requests/{number}/refuse", {"reason": "you left"}).status_code == 200


def test_what_a_blocked_owner_left_open_is_said_and_closed_by_a_rule(house: House, owner: Visitor, person: People) -> None:
    analyst, root, steward = person("analyst"), person("administrator"), person("steward")
    members = {"people": [analyst.id]}
    grant(house.hub, owner.caller, data_set="people", role="reader", members=members, rules=ASKING)
    page = f"/people/{owner.id}"
    assert "still open" not in root.client.get(page).text
    assert post(root, f"{page}/block", page).status_code == 303
    assert ask(analyst, "") == 201
    assert "rule that never allows queries of their populations: people." in steward.client.get(page).text
    rule = {"title": "Owner left", "populations": "people", "deny": "yes"}
    assert post(steward, "/policy/rules", "/policy", **rule).status_code == 303
    assert ask(analyst, "") == 403
