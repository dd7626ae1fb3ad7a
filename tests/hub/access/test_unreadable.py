"""What is kept is read back first; and one row that can't be read closes what it governs, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from click.testing import CliRunner
from sqlalchemy import delete

from cloister.cli.hub import hub as command
from cloister.hub.decisions.facts import facts_of
from cloister.hub.generation import bump
from cloister.hub.records.access import AccessRequest, Grant, InstitutionRule
from cloister.hub.records.catalogue import DataSet
from cloister.hub.records.releases import StoredRelease
from tests.hub.access.forms import post
from tests.hub.house import House, Visitor

People = Callable[..., Visitor]
COUNT = "SELECT COUNT(*) AS n FROM people"
ASKING = {"actions": ["question.ask"]}


@pytest.fixture
def owner(house: House, person: People) -> Visitor:
    found = person("owner", name="Olga")
    house.sample_data_set("people", owner=found)
    return found


@pytest.fixture
def bob(person: People) -> Visitor:
    return person("analyst", email="bob@south.example", name="Bob")


@dataclass
class Whole:
    """Two data sets, `people` and `clinic`, that Eve may ask and Bob may not, and both offices."""

    house: House
    owner: Visitor
    eve: Visitor
    bob: Visitor
    steward: Visitor
    boss: Visitor
    people: DataSet


@pytest.fixture(scope="module")
def opened(one_house: House) -> Whole:
    owner, eve, bob, steward, boss = map(one_house.person, ("owner", "analyst", "analyst", "steward", "administrator"))
    people, _ = (one_house.sample_data_set(name, owner=owner, readers=[eve]) for name in ("people", "clinic"))
    return Whole(one_house, owner, eve, bob, steward, boss, people)


@pytest.fixture
def whole(opened: Whole) -> Whole:
    """One for all tests that mend, in the end, what they spoil."""
    opened.house.in_front()
    return opened


def ask(visitor: Visitor, sql: str = COUNT, **more: Any) -> Any:
    body = {"sql": sql, "spend": "0.1", "purpose": "research", **more}
    return visitor.client.post("/api/v1/questions", json=body, headers=visitor.bearer)


def give(owner: Visitor, rules: dict[str, Any], members: Any = None) -> Any:
    body = {"data_set": "people", "role": "r", "members": members or {"anybody": True}, "rules": {**ASKING, **rules}}
    return owner.client.post("/api/v1/grants", json=body, headers=owner.csrf())


def spoil(house: House, row: Any, **columns: Any) -> None:
    """Write into the database what no door of the hub lets in."""
    with house.hub.database.begin() as db:
        found = db.get_one(type(row), row.id)
        for name, value in columns.items():
            setattr(found, name, value)
        bump(db)


def first_pages(*visitors: Visitor) -> list[int]:
    return [each.client.get(path).status_code for each in visitors for path in ("/", "/datasets", "/policy", "/access/requests")]


LARGE = ["1e400", "1e-400", "9" * 300 + "e300", "0." + "7" * 380]


@pytest.mark.parametrize("rules", [{"risk": each} for each in LARGE] + [{"share": {"epsilon": each}} for each in LARGE])
def test_no_number_takes_the_hub_down(whole: Whole, rules: dict[str, Any]) -> None:
    def grants() -> set[str]:
        told = owner.client.get("/api/v1/grants", params={"data_set": "people"}, headers=owner.csrf())
        return {each["id"] for each in told.json()["items"]}

    house, owner = whole.house, whole.owner
    before = grants()
    made = give(owner, rules)
    assert made.status_code in (201, 422), made.text
    assert first_pages(owner, whole.bob) == [200] * 8
    new = grants() - before
    assert len(new) == (made.status_code == 201), "what was refused was not kept"
    with house.hub.database.reading() as db:
        assert facts_of(house.hub, db).unreadable == ()
    with house.hub.database.begin() as db:
        db.execute(delete(Grant).where(Grant.id.in_(new)))
        bump(db)


@pytest.mark.parametrize("share", [{"epsilon": "1e400"}, {"epsilon": 10**401}, {"epsilon": "1000000000001"}])
def test_a_share_beyond_all_sense_is_refused_in_words(owner: Visitor, share: dict[str, Any]) -> None:
    told = give(owner, {"share": share})
    assert told.status_code == 422
    assert "at most 1,000,000,000,000" in told.json()["detail"]
    assert len(told.text) < 600
    assert give(owner, {"share": {"epsilon": "1000000000"}}).status_code == 201


@pytest.mark.parametrize(
    ("rules", "members", "told"),
    [
        ({"columns": []}, None, "it names no column"),
        ({}, {"attributes": {}}, "no one is named"),
        ({}, {"attributes": {}, "anybody": False, "training": []}, "no one is named"),
    ],
)
def test_what_says_nothing_is_refused(owner: Visitor, rules: dict[str, Any], members: Any, told: str) -> None:
    """Members with no attributes at all would be kept as nobody, and that is not read."""
    answer = give(owner, rules, members)
    assert answer.status_code == 422
    assert told in answer.json()["detail"]
    assert first_pages(owner) == [200] * 4


def test_what_would_not_be_read_back_is_not_kept(house: House, owner: Visitor, person: People, monkeypatch: Any) -> None:
    """A project of more members than a list holds: the grant to it is refused, and nothing of it is left."""
    from cloister.hub.platform.access import granting

    monkeypatch.setattr(granting, "_members", lambda db, found: frozenset(f"p{each}" for each in range(1001)))
    post(owner, "/projects", name="heart", title="The heart study", purpose="hearts")
    told = give(owner, {}, members={"projects": ["heart"]})
    assert (told.status_code, told.json()["title"]) == (422, "members.people is invalid")
    with house.hub.database.reading() as db:
        assert db.query(Grant).count() == 0
    assert first_pages(owner) == [200] * 4


@pytest.mark.parametrize("rules", [{"actions": ["no.such.action"]}, {**ASKING, "share": {"epsilon": "NaN"}}, [], {"actions": 3}])
def test_an_unreadable_grant_grants_nothing_and_is_revoked(whole: Whole, rules: Any) -> None:
    house, owner, eve, bob, steward, boss = whole.house, whole.owner, whole.eve, whole.bob, whole.steward, whole.boss
    number = house.grant(whole.people, bob, by=owner)
    assert ask(bob).status_code == 201
    with house.hub.database.reading() as db:
        kept = db.get_one(Grant, number)
    spoil(house, kept, rules=rules)
    assert ask(bob).status_code in (403, 404)
    assert ask(eve, "SELECT AVG(age) AS a FROM people").status_code == 201, "whom it does not concern asks on"
    assert first_pages(owner, bob, eve, steward, boss) == [200] * 20
    page = owner.client.get("/datasets/people/access")
    assert "Stored but unreadable" in page.text
    assert number in page.text, "it can be revoked there"
    assert "A grant on people" in steward.client.get("/policy").text
    assert "A grant on people" in boss.client.get("/settings").text
    assert "A grant on people" not in bob.client.get("/policy").text
    told = house.client().get("/healthz")
    assert (told.status_code, told.json()["status"], told.json()["policy"]) == (200, "degraded", "unreadable")
    listed = owner.client.get("/api/v1/grants", params={"data_set": "people"}, headers=owner.csrf()).json()["items"]
    assert "unreadable" in {each["state"] for each in listed}
    assert post(owner, f"/datasets/people/access/{number}/revoke", "/datasets/people/access").status_code == 303
    assert house.client().get("/healthz").json()["status"] == "ok"
    assert owner.client.get("/datasets/people/access").status_code == 200


@pytest.mark.parametrize(
    ("rule", "governed"),
    [
        ({"labels": ["clinical"], "purposes": 3}, "clinic"),
        ({"populations": ["clinic"], "epsilon_of_population": "much"}, "clinic"),
        ({"labels": ["clinical"], "a new demand": True}, "clinic"),
        ({"labels": 3, "second_factor": True}, ""),
        ({"second_factor": "yes"}, ""),
        ([], ""),
    ],
)
def test_an_unreadable_rule_denies_what_it_governs(whole: Whole, rule: Any, governed: str) -> None:
    house, owner, eve, steward = whole.house, whole.owner, whole.eve, whole.steward
    with house.hub.database.begin() as db:
        row = db.query(DataSet).filter(DataSet.name == "clinic").one()
        row.metadata_ = {"policy": {"labels": ["clinical"]}}
        bump(db)
    made = steward.client.post("/api/v1/policy/rules", json={"title": "Clinical", "second_factor": True}, headers=steward.csrf())
    assert made.status_code == 201, made.text
    number = made.json()["id"]
    spoil(house, InstitutionRule(id=number), rule=rule)
    asked = {name: ask(eve, f"SELECT COUNT(*) AS n FROM {name}") for name in ("people", "clinic")}
    assert asked["clinic"].status_code == 403
    assert asked["clinic"].json()["rule"] == f"mandatory:{number}"
    assert asked["people"].status_code == (201 if governed else 403), asked["people"].text
    assert first_pages(owner, eve, steward) == [200] * 12
    assert "The rule Clinical" in steward.client.get("/policy").text
    assert house.client().get("/healthz").json()["status"] == "degraded"
    api = steward.client.get("/api/v1/policy/rules", headers=steward.bearer)
    assert "Unreadable" in api.text
    assert post(steward, f"/policy/rules/{number}/end", "/policy").status_code == 303
    assert ask(eve, "SELECT COUNT(*) AS n FROM clinic").status_code == 201
    assert steward.client.get("/policy").status_code == 200


def test_an_unreadable_rule_about_the_policy_itself_can_be_ended(house: House, person: People) -> None:
    steward = person("steward")
    body = {"title": "Offices", "actions": ["policy.write", "policy.see", "question.ask"], "second_factor": True}
    number = steward.client.post("/api/v1/policy/rules", json=body, headers=steward.csrf()).json()["id"]
    spoil(house, InstitutionRule(id=number), rule={**body, "second_factor": "perhaps"})
    assert post(steward, f"/policy/rules/{number}/end", "/policy").status_code == 303


@pytest.mark.parametrize("place", ["policy", "contribution", "columns", "all"])
def test_an_unreadable_policy_closes_its_data_set(house: House, person: People, bob: Visitor, place: str) -> None:
    owner, steward = person("owner"), person("steward")
    row = house.sample_data_set("people", owner=owner, readers=[bob])
    house.sample_data_set("other", owner=owner, readers=[bob])
    broken = {"retention": "for ever"}
    metadata: Any = {"policy": {}, "columns": {}, "contribution": {}, place: {"age": broken} if place == "columns" else broken}
    spoil(house, row, metadata_=[] if place == "all" else metadata)
    with house.hub.database.reading() as db:
        facts = facts_of(house.hub, db)
    assert [each.kind for each in facts.unreadable] == ["policy"]
    if place == "columns":
        assert ask(bob, "SELECT AVG(age) AS a FROM people").status_code == 403
        assert ask(bob, "SELECT COUNT(*) AS n FROM people WHERE sex = 'F'").status_code == 201
    else:
        assert ask(bob).status_code == 403
        assert ask(owner).status_code == 403, "it binds the owner too"
        raised = owner.client.post("/api/v1/budgets/people/raise", json={"amount": "2", "why": "w"}, headers=owner.csrf())
        assert raised.status_code == 403, "which ceilings go by its labels is not known"
    assert ask(bob, "SELECT COUNT(*) AS n FROM other").status_code == 201
    assert "A policy of people" in steward.client.get("/policy").text


def kept(house: House, row: DataSet) -> Any:
    with house.hub.database.reading() as db:
        return db.get_one(DataSet, row.id).metadata_


@pytest.mark.parametrize(
    "metadata",
    [
        {"policy": {"retention": "for ever", "labels": ["clinical"], "prohibitions": ["learn.run"]}, "columns": {}},
        {"policy": {"purposes": 3}, "columns": {}, "contribution": {}},
        {"policy": [], "columns": {}, "contribution": {}},
        [],
    ],
)
def test_an_unreadable_policy_is_shown_to_its_owner_and_mended(whole: Whole, metadata: Any) -> None:
    house, owner, eve, row = whole.house, whole.owner, whole.eve, whole.people
    spoil(house, row, metadata_=metadata)
    for visitor in (owner, eve):
        for path in ("/datasets", "/datasets/people", "/datasets?search=people", "/ask", "/anonymised/new?table=people"):
            assert visitor.client.get(path).status_code in (200, 403, 404), path
        assert visitor.client.get("/api/v1/datasets", headers=visitor.bearer).status_code == 200
        assert visitor.client.get("/api/v1/datasets/people", headers=visitor.bearer).status_code == 200
    page = owner.client.get("/datasets/people/manage")
    assert (page.status_code, "Stored but unreadable" in page.text) == (200, True)
    assert ask(eve).status_code == 403
    assert post(owner, "/datasets/people/close", "/datasets/people/manage").status_code == 303
    refused = post(owner, "/datasets/people/open", "/datasets/people/manage")
    assert (refused.status_code, "one of its policies can&#39;t be read" in refused.text) == (409, True)
    told = post(owner, "/datasets/people/describe", "/datasets/people/manage", title="People", purposes="research")
    assert told.status_code == 303, told.text
    policy = kept(house, row)["policy"]
    assert policy["purposes"] == ["research"]
    assert ("prohibitions" in policy) is (isinstance(metadata, dict) and "retention" in metadata["policy"]), (
        "what could be read stays"
    )
    assert post(owner, "/datasets/people/open", "/datasets/people/manage").status_code == 303
    assert ask(eve).status_code == 201
    with house.hub.database.reading() as db:
        assert facts_of(house.hub, db).unreadable == ()


def test_an_unreadable_policy_of_a_column_stays_until_it_is_taken_away(house: House, owner: Visitor) -> None:
    with house.hub.database.reading() as db:
        row = db.query(DataSet).one()
    broken = {"age": {"retention": "for ever", "labels": ["secret"]}, "pay": {"labels": ["money"]}}
    spoil(house, row, metadata_={"policy": {}, "columns": broken, "contribution": {}})
    form = {"title": "Anew", "purposes": "research"}
    assert 'name="forget"' in owner.client.get("/datasets/people/manage").text
    assert post(owner, "/datasets/people/describe", "/datasets/people/manage", **form).status_code == 303
    assert kept(house, row)["columns"] == broken, "no other change touches it"
    body = {"column_policies": {"age": {"labels": ["secret"]}}}
    mended = owner.client.patch("/api/v1/datasets/people", json=body, headers=owner.csrf())
    assert (mended.status_code, kept(house, row)["columns"]) == (200, {"age": {"labels": ["secret"]}})
    for columns in (broken, [], {"age": 3}):
        spoil(house, row, metadata_={"policy": {}, "columns": columns, "contribution": {}})
        assert post(owner, "/datasets/people/describe", "/datasets/people/manage", **form, forget="yes").status_code == 303
        left = {"pay": broken["pay"]} if columns == broken else {}
        assert kept(house, row)["columns"] == left
    assert 'name="forget"' not in owner.client.get("/datasets/people/manage").text


def test_a_label_in_an_unreadable_policy_is_not_lost(house: House, owner: Visitor, person: People) -> None:
    """Who spoils a policy does not get rid of the rules that go by its labels."""
    with house.hub.database.reading() as db:
        row = db.query(DataSet).one()
    steward = person("steward")
    rule = {"title": "Clinical", "labels": ["clinical"], "second_factor": True}
    assert steward.client.post("/api/v1/policy/rules", json=rule, headers=steward.csrf()).status_code == 201
    spoil(house, row, metadata_={"policy": {"labels": ["clinical"], "retention": 3}, "columns": {}, "contribution": {}})
    form = {"title": "People", "retention": "2030-12-31"}
    refused = post(owner, "/datasets/people/describe", "/datasets/people/manage", **form)
    assert (refused.status_code, "goes by the label" in refused.text) == (403, True)
    assert post(owner, "/datasets/people/describe", "/datasets/people/manage", **form, labels="clinical").status_code == 303


def test_what_a_provider_attached_is_mended_by_them_alone(house: House, owner: Visitor, person: People) -> None:
    giver = person("provider", email="gil@example.org")
    with house.hub.database.reading() as db:
        row = db.query(DataSet).one()
    spoil(house, row, provider="gil@example.org", metadata_={"policy": {}, "columns": {}, "contribution": {"purposes": 3}})
    assert (
        post(owner, "/datasets/people/describe", "/datasets/people/manage", title="Anew", provider="gil@example.org").status_code
        == 303
    )
    assert kept(house, row)["contribution"] == {"purposes": 3}
    assert giver.client.get("/contributions").status_code == 200
    page = giver.client.get("/contributions/people")
    assert (page.status_code, "Stored but unreadable" in page.text) == (200, True)
    denied = ask(owner)
    assert denied.status_code == 403
    assert "the data provider" in denied.json()["instead"]
    assert post(giver, "/contributions/people", purposes="research").status_code == 303
    assert ask(owner).status_code == 201


def test_what_is_due_is_destroyed_whatever_else_is_unreadable(house: House, owner: Visitor) -> None:
    from cloister.hub.platform.catalogue.retention import expire

    with house.hub.database.reading() as db:
        row = db.query(DataSet).one()
    other = house.sample_data_set("other", owner=owner)
    spoil(house, row, metadata_=[])
    spoil(house, other, metadata_={"policy": {"retention": "2026-01-31", "purposes": 3}, "columns": 3, "contribution": "none"})
    assert expire(house.hub) == ["other"]


def test_a_release_whose_policy_is_unreadable_is_closed_and_no_other(house: House, owner: Visitor) -> None:
    numbers = [ask(owner, sql).json()["id"] for sql in (COUNT, "SELECT COUNT(*) AS n FROM people WHERE age > 40")]
    spoil(house, StoredRelease(id=numbers[0]), policy={"retention": "for ever"})
    assert [owner.client.get(f"/releases/{each}").status_code for each in numbers] == [403, 200]
    listed = owner.client.get("/releases")
    assert (listed.status_code, numbers[0] in listed.text, numbers[1] in listed.text) == (200, False, True)


def test_an_unreadable_request_is_seen_and_answered(house: House, owner: Visitor, bob: Visitor) -> None:
    give(owner, {"actions": ["dataset.see"]})
    body = {"data_set": "people", "purpose": "a study", "wanted": ASKING}
    made = bob.client.post("/api/v1/access-requests", json=body, headers=bob.csrf())
    assert made.status_code == 201, made.text
    number = made.json()["id"]
    spoil(house, AccessRequest(id=number), wanted={**ASKING, "risk": "none"})
    assert first_pages(owner, bob) == [200] * 8
    path = f"/access/requests/{number}"
    assert "Unreadable" in owner.client.get(path).text
    assert post(owner, f"{path}/refuse", path, reason="what is it?").status_code == 303


def test_check_and_its_exit_code_tell_of_it(house: House, owner: Visitor, bob: Visitor) -> None:
    folder = str(house.settings.data)
    assert give(owner, {}).status_code == 201
    fine = CliRunner().invoke(command, ["check", "--data", folder, "--json"])
    assert (fine.exit_code, json.loads(fine.stdout)["unreadable"]) == (0, [])
    with house.hub.database.reading() as db:
        row = db.query(Grant).one()
    spoil(house, row, rules={"actions": ["question.ask"], "share": {"epsilon": "many"}})
    found = CliRunner().invoke(command, ["check", "--data", folder])
    assert found.exit_code == 1
    assert "A grant on people can't be read: rules.share.epsilon is invalid" in found.stdout
