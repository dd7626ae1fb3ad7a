"""Projects, algorithms and contributions: several owners, one study; U3, A1 and D1; what a provider attaches and sees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cloister.errors import AccessDenied
from cloister.hub.decisions.callers import caller_for
from cloister.hub.decisions.checking import check_together, context_of
from cloister.hub.decisions.facts import facts_of
from cloister.hub.platform.access import grant
from cloister.hub.records.catalogue import DataSet
from tests.hub.access.forms import post
from tests.hub.house import House, Visitor

People = Callable[..., Visitor]
ASKING = {"actions": ["question.ask"]}


def ask(visitor: Visitor, sql: str, **more: Any) -> Any:
    body = {"sql": sql, "spend": "0.1", "purpose": "research", **more}
    return visitor.client.post("/api/v1/questions", json=body, headers=visitor.bearer)


def test_a_project_over_two_owners_is_charged_as_one(house: House, person: People) -> None:
    olga, otto = person("owner", name="Olga"), person("owner", name="Otto")
    lead, mate, other = person("analyst", name="Lea"), person("analyst", name="Max"), person("analyst")
    house.sample_data_set("people", owner=olga)
    house.sample_data_set("staff", owner=otto)
    for owner, name in ((olga, "people"), (otto, "staff")):
        grant(house.hub, owner.caller, data_set=name, role="l", members={"anybody": True}, rules={"actions": ["dataset.see"]})
    started = post(lead, "/projects", name="heart", title="The heart study", purpose="hearts")
    assert started.status_code == 303, started.text
    assert post(lead, "/projects/heart/members", "/projects/heart", email=mate.caller.email).status_code == 303
    assert post(mate, "/projects/heart/join", "/projects").status_code == 303
    for name in ("people", "staff"):
        assert post(lead, "/projects/heart/data", "/projects/heart", data_set=name).status_code == 303
    project = lead.client.get("/api/v1/projects/heart").json()
    assert project["data_sets"] == {"people": False, "staff": False}

    count = "SELECT COUNT(*) AS n FROM people"
    assert ask(mate, count, project=project["id"]).status_code == 403, "nobody approved yet"
    approval = {"data_set": "people", "actions": ["question.ask"], "purposes": "research"}
    assert "The heart study" in olga.client.get("/access/requests").text
    assert post(olga, "/projects/heart/data/approve", "/projects/heart", **approval).status_code == 303
    assert post(otto, "/projects/heart/data/approve", "/projects/heart", **approval).status_code == 403, "not his to approve"
    assert ask(mate, count).status_code == 403, "a grant to the project is for work inside it"
    assert ask(other, count, project=project["id"]).status_code == 403, "who is no member does not ask in it"
    answered = ask(mate, count, project=project["id"])
    assert answered.status_code == 201, answered.text
    assert {each.who for each in house.hub.ledger.charges("people")} == {"project heart"}
    assert count in lead.client.get("/projects/heart").text, "members see what was asked"
    assert count not in olga.client.get("/projects/heart").text, "an owner sees the study, not its questions"
    assert other.client.get("/projects/heart").status_code == 404

    assert ask(mate, "SELECT COUNT(*) AS n FROM staff", project=project["id"]).status_code == 403
    house_grant = {"members": {"people": [mate.id]}, "rules": ASKING}
    grant(house.hub, otto.caller, data_set="staff", role="r", **house_grant)
    assert ask(mate, "SELECT COUNT(*) AS n FROM staff").status_code == 201
    inside = ask(mate, "SELECT COUNT(*) AS n FROM staff", project=project["id"])
    assert inside.status_code == 403, "one's own grant brings no data into a project"

    assert post(olga, "/projects/heart/data/remove", "/projects/heart", data_set="people").status_code == 303
    assert ask(mate, count, project=project["id"]).status_code == 403
    assert post(mate, "/projects/heart/close", "/projects/heart").status_code == 403, "members do not close it"
    assert post(lead, "/projects/heart/close", "/projects/heart").status_code == 303
    assert "This project is closed" in mate.client.get("/projects/heart").text
    assert post(lead, "/projects/heart/members", "/projects/heart", email=other.caller.email).status_code == 409


def test_closing_and_leaving_end_what_the_project_was_granted(house: House, person: People) -> None:
    olga, lead, mate = person("owner"), person("analyst"), person("analyst")
    house.sample_data_set("people", owner=olga)
    post(lead, "/projects", name="heart", title="The heart study", purpose="hearts")
    number = lead.client.get("/api/v1/projects/heart").json()["id"]
    post(lead, "/projects/heart/members", "/projects/heart", email=mate.caller.email)
    post(mate, "/projects/heart/join", "/projects")
    grant(house.hub, olga.caller, data_set="people", role="l", members={"anybody": True}, rules={"actions": ["dataset.see"]})
    post(lead, "/projects/heart/data", "/projects/heart", data_set="people")
    grant(house.hub, olga.caller, data_set="people", role="r", members={"projects": ["heart"]}, rules=ASKING)
    count = "SELECT COUNT(*) AS n FROM people"
    assert ask(mate, count, project=number).status_code == 201
    post(lead, "/projects/heart/members/remove", "/projects/heart", person=mate.id)
    assert ask(mate, count, project=number).status_code == 403
    assert ask(lead, count, project=number).status_code == 201
    post(lead, "/projects/heart/members", "/projects/heart", email=mate.caller.email)
    post(mate, "/projects/heart/join", "/projects")
    assert ask(mate, count, project=number).status_code == 403, "the owner let them in who were members then"
    post(lead, "/projects/heart/close", "/projects/heart")
    assert ask(lead, count, project=number).status_code == 403


def test_u3_may_run_a1_on_d1_and_nothing_else(house: House, person: People) -> None:
    owner, provider, u3, u4 = person("owner"), person("algorithm-provider"), person("analyst"), person("analyst")
    for name in ("d1", "d2"):
        house.sample_data_set(name, owner=owner)
        grant(house.hub, owner.caller, data_set=name, role="l", members={"anybody": True}, rules={"actions": ["dataset.see"]})
    for name in ("a1", "a2"):
        form = {"name": name, "title": name.upper(), "service": "learning", "settings": '{"method": "GaussianNB"}'}
        assert post(provider, "/algorithms", **form).status_code == 303
        run = {"actions": ["algorithm.see"], "role": "known", "anybody": "yes"}
        assert post(provider, f"/algorithms/{name}/grants", f"/algorithms/{name}", **run).status_code == 303
    hidden = {"role": "runner", "people": u3.caller.email, "actions": "algorithm.run", "only_with": "secret"}
    house.sample_data_set("secret", owner=owner)
    assert post(provider, "/algorithms/a1/grants", "/algorithms/a1", **hidden).status_code == 422, "it was not shown to them"
    rules = {"actions": ["algorithm.run"], "algorithms": ["a1"]}
    grant(house.hub, owner.caller, data_set="d1", role="runner", members={"people": [u3.id]}, rules=rules)
    with house.hub.database.reading() as db:
        ids = {each.name: each.id for each in db.query(DataSet)}
    body = {"role": "runner", "members": {"people": [u3.id]}, "rules": {"actions": ["algorithm.run"], "only_with": ["d1"]}}
    made = provider.client.post("/api/v1/algorithms/a1/grants", json=body, headers=provider.bearer)
    assert made.status_code == 201, made.text
    assert made.json()["grant"]["rules"]["only_with"] == [ids["d1"]]

    def may(visitor: Visitor, algorithm: str, *data: str) -> bool:
        with house.hub.database.reading() as db:
            facts = facts_of(house.hub, db)
            caller = caller_for(house.hub, db, visitor.id)
            assert caller is not None
            method = next(each for each in facts.algorithms.values() if each.name == algorithm)
            tables = [facts.data_sets[ids[name]] for name in data]
            try:
                context = context_of(house.hub, caller, purpose="research", algorithm=method.id)
                check_together(house.hub, db, caller, "algorithm.run", tables, context)
            except AccessDenied:
                return False
            return True

    assert may(u3, "a1", "d1")
    assert not may(u3, "a2", "d1")
    assert not may(u3, "a1", "d2")
    assert not may(u3, "a1", "d1", "d2")
    assert not may(u4, "a1", "d1")
    assert ask(u3, "SELECT COUNT(*) AS n FROM d1").status_code == 403, "no plain question"
    assert post(provider, "/algorithms/a2/withdraw", "/algorithms/a2").status_code == 303
    assert u3.client.get("/algorithms/a2").status_code == 404
    assert post(owner, "/algorithms/a1/withdraw", "/algorithms").status_code == 403


def test_a_provider_attaches_a_policy_and_sees_for_what_it_was_used(house: House, person: People) -> None:
    owner, giver, bob, stranger = person("owner"), person("provider"), person("analyst"), person("provider")
    row = house.sample_data_set("people", owner=owner)
    with house.hub.database.begin() as db:
        db.get_one(DataSet, row.id).provider = giver.caller.email
    grant(house.hub, owner.caller, data_set="people", role="r", members={"people": [bob.id]}, rules=ASKING)
    assert ask(bob, "SELECT AVG(age) AS a FROM people", purpose="marketing").status_code == 201
    kept = post(giver, "/contributions/people", purposes="research", prohibitions=["synthesise.run"], retention="2030-12-31")
    assert kept.status_code == 303, kept.text
    denied = ask(bob, "SELECT AVG(pay) AS p FROM people", purpose="marketing")
    assert denied.status_code == 403
    assert denied.json()["rule"].startswith("policy:")
    assert denied.json()["instead"].startswith("ask the data provider"), "its owner can't change it"
    assert ask(owner, "SELECT AVG(pay) AS p FROM people", purpose="marketing").status_code == 403, "it binds the owner too"
    page = giver.client.get("/contributions/people").text
    assert 'value="synthesise.run" checked' in page, "what was prohibited once stays so"
    assert "marketing" in page
    assert 'value="2030-12-31"' in page
    for path in ("/contributions/people", "/trail/uses", "/trail/uses/export/jsonl", "/api/v1/trail/uses"):
        told = giver.client.get(path).text
        assert bob.caller.email not in told, path
        assert bob.id not in told, path
    assert stranger.client.get("/contributions/people").status_code == 404
    assert post(stranger, "/contributions/people", "/", purposes="x").status_code == 404


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("/projects", {"name": "Bad Name", "title": "t", "purpose": "p"}),
        ("/projects", {"name": "x" * 64, "title": "t", "purpose": "p"}),
        ("/projects", {"name": "fine", "title": " ", "purpose": "p"}),
        ("/projects", {"name": "fine", "title": "t", "purpose": " "}),
        ("/projects", {"name": "../etc", "title": "t", "purpose": "p"}),
    ],
)
def test_hostile_names_are_refused(person: People, path: str, form: dict[str, str]) -> None:
    assert post(person("analyst"), path, path, **form).status_code in (413, 422)
