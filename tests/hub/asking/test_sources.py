"""Rules and grants of what a release came from: when it is made through a view, looked at, downloaded and shared."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import update

from cloister.hub.generation import bump
from cloister.hub.records.access import Grant, InstitutionRule
from cloister.hub.records.catalogue import DataSet
from tests.hub.asking.conftest import COUNT, Stage
from tests.hub.asking.test_policy import reader, rule
from tests.hub.house import READS, Visitor


def attach(stage: Stage, *, institution: str = "", **metadata: Any) -> None:
    with stage.hub.database.begin() as db:
        row = db.get_one(DataSet, stage.people.id)
        row.metadata_, row.institution = {"policy": {}, "columns": {}, "contribution": {}, **metadata}, institution
        bump(db)


def end_rules(stage: Stage) -> None:
    with stage.hub.database.begin() as db:
        db.execute(update(InstitutionRule).values(ended=stage.hub.now()))
        bump(db)


CLOSED = {
    "by the institution": {"columns": {"pay": {"labels": ["genetic"]}}},
    "by its policy": {"columns": {"pay": {"purposes": ["care"]}}},
}


@pytest.mark.parametrize("metadata", CLOSED.values(), ids=CLOSED)
def test_a_view_reads_no_closed_column(stage: Stage, metadata: dict[str, Any]):
    rea = reader(stage, rows="pay >= 25")
    attach(stage, **metadata)
    rule(stage, labels=["genetic"], deny=True)
    for path in ("/questions", "/questions/stored"):
        answer = stage.post(path, {"sql": COUNT, "spend": "0.1"}, rea)
        assert answer.status_code == 403, path
    assert stage.post("/questions/explain", {"sql": COUNT, "spend": "0.1"}, rea).json()["denied"] is not None
    assert stage.charges == []
    assert stage.ask(COUNT)["columns"], "who sees all rows reads no pay"


def test_a_view_takes_part_in_a_forbidden_combination(stage: Stage):
    rea = reader(stage, rows="pay >= 25")
    parts = [{"object": stage.people.id, "column": name} for name in ("age", "pay")]
    rule(stage, forbidden=[parts])
    assert stage.post("/questions", {"sql": "SELECT AVG(age) AS a FROM people", "spend": "0.1"}, rea).status_code == 403
    assert stage.ask(COUNT, who=rea)["columns"]


def test_a_combination_in_the_policy_of_a_column_counts_the_other_columns(stage: Stage):
    parts = [{"object": stage.people.id, "column": name} for name in ("age", "pay")]
    attach(stage, columns={"pay": {"forbidden": [parts]}})
    both = {"sql": "SELECT COUNT(*) AS n FROM people WHERE pay > 10 AND age > 30", "spend": "0.1"}
    assert stage.post("/questions", both).status_code == 403
    assert stage.ask("SELECT COUNT(*) AS n FROM people WHERE pay > 10")["columns"]


def test_a_release_carries_the_policy_of_the_columns_behind_its_view_and_does_not_name_them(stage: Stage):
    attach(stage, institution="north", columns={"pay": {"labels": ["money"]}})
    rea = reader(stage, columns=["age", "sex"], rows="pay >= 25")
    told = stage.ask(COUNT, who=rea)
    assert told["policy"]["labels"] == ["money"]
    assert "pay" not in str(told["policy"])
    with stage.hub.database.reading() as db:
        from cloister.hub.records.releases import StoredRelease

        [source] = db.get_one(StoredRelease, told["id"]).policy["sources"]
    assert (source["behind"], source["institution"], source["population"]) == (["pay"], "north", "people")
    assert stage.get(f"/releases/{told['id']}/download/json", rea).status_code == 200, "the grant's columns are those asked about"


def test_a_grant_whose_condition_reads_what_is_closed_is_refused(stage: Stage):
    attach(stage, columns={"pay": {"labels": ["genetic"], "purposes": ["care"]}})
    body: dict[str, Any] = {"data_set": "people", "role": "r", "members": {"people": ["bob@example.org"]}}

    def granted(**rules: Any) -> int:
        given = body | {"rules": {"actions": ["question.ask"], "rows": "pay >= 25", **rules}}
        return int(stage.owner.client.post("/api/v1/grants", json=given, headers=stage.owner.csrf()).status_code)

    assert granted(purposes=["sales"]) == 422, "the column's own purposes are others"
    assert granted(purposes=["care"]) == 201
    rule(stage, labels=["genetic"], deny=True)
    assert granted(purposes=["care"]) == 422


@pytest.mark.parametrize(
    "told",
    [
        {"institution": "north", "deny": True},
        {"populations": ["people"], "deny": True},
        {"institution": "north", "networks": ["10.0.0.0/8"]},
        {"populations": ["people"], "purposes": ["care"]},
        {"labels": ["clinical"], "deny": True},
    ],
    ids=["institution", "population", "network", "purpose", "label"],
)
def test_rules_reach_releases(stage: Stage, told: dict[str, Any]):
    attach(stage, institution="north", policy={"labels": ["clinical"]})
    number = stage.ask(COUNT)["id"]
    attach(stage, institution="south")  # what it was when the answer left still counts
    paths = [f"/releases/{number}", f"/releases/{number}/margins", f"/releases/{number}/download/json"]
    assert [stage.get(path).status_code for path in paths] == [200] * 3
    rule(stage, **told)
    assert [stage.get(path).status_code for path in paths] == [403] * 3
    assert stage.post(f"/releases/{number}/shares", {"email": "eve@example.org"}).status_code == 403
    end_rules(stage)
    assert [stage.get(path).status_code for path in paths] == [200] * 3


def test_lists_name_no_release_that_was_closed(stage: Stage):
    attach(stage, policy={"labels": ["clinical"]})
    closed = [stage.ask(f"{COUNT} WHERE age > {number}")["id"] for number in (31, 32, 33)]
    attach(stage)
    stayed = [stage.ask(f"{COUNT} WHERE age > {number}")["id"] for number in (34, 35)]
    attach(stage, policy={"labels": ["clinical"]})
    closed.append(stage.ask(f"{COUNT} WHERE age > 36")["id"])
    attach(stage)

    def listed() -> list[str]:
        first = stage.get("/releases?limit=2").json()
        told = [each["id"] for each in first["releases"]]
        while first["next"]:
            first = stage.get(f"/releases?limit=2&after={first['next']}").json()
            told += [each["id"] for each in first["releases"]]
        return told

    assert sorted(listed()) == sorted(closed + stayed)
    rule(stage, labels=["clinical"], deny=True)
    assert sorted(listed()) == sorted(stayed)
    pages = [stage.ana.client.get(path).text for path in ("/releases", "/releases?search=36", "/")]
    pages.append(stage.get("/releases?search=36").text)
    assert not any("age &gt; 36" in page or "age > 36" in page or closed[0] in page for page in pages)
    assert "age &gt; 35" in pages[0]
    end_rules(stage)
    assert sorted(listed()) == sorted(closed + stayed)


def test_a_rule_for_a_second_factor_reaches_releases(stage: Stage):
    number = stage.ask(COUNT)["id"]
    rule(stage, populations=["people"], second_factor=True)
    assert stage.get(f"/releases/{number}").status_code == 403


@pytest.fixture
def asker(stage: Stage) -> Visitor:
    """Somebody who may ask, and no more."""
    found = stage.house.person("analyst", email="rea@example.org")
    stage.house.grant(stage.people, found, by=stage.owner, actions=READS)
    return found


def test_a_grant_of_questions_alone_lets_nothing_go_further(stage: Stage, asker: Visitor):
    number = stage.ask(COUNT, who=asker)["id"]
    assert stage.get(f"/releases/{number}", asker).status_code == 200
    assert stage.get(f"/releases/{number}/download/json", asker).status_code == 403
    assert stage.post(f"/releases/{number}/shares", {"email": "eve@example.org"}, asker).status_code == 403
    assert stage.get(f"/releases/{number}/shares", asker).json() == {"shares": []}


def test_who_is_shown_a_release_may_look_and_neither_download_nor_have_a_program_read_it(stage: Stage):
    eve = stage.house.person("analyst", email="eve@example.org")
    number = stage.ask(COUNT)["id"]
    assert stage.post(f"/releases/{number}/shares", {"email": "eve@example.org"}).status_code == 200
    pages = [f"/releases/{number}", f"/releases/{number}/chart.svg"]
    for_programs = [f"/releases/{number}", f"/releases/{number}/margins", f"/releases/{number}/download/json"]
    assert eve.client.get(pages[0]).status_code == 200
    assert [eve.client.get(f"/releases/{number}/download/{form}").status_code for form in ("csv", "parquet")] == [403, 403]
    assert [stage.get(path, eve).status_code for path in for_programs] == [403] * 3
    refused = stage.get(f"/releases/{number}", eve).json()
    assert "a program reads what others show you as it downloads it" in refused["detail"]
    assert (refused["rule"], f"/releases/{number}" in refused["instead"]) == ("grants", True)
    assert [each["id"] for each in stage.get("/releases", eve).json()["releases"]] == [number], "a line without values"
    stage.house.grant(stage.people, eve, by=stage.owner, actions=["release.download"])
    assert [stage.get(path, eve).status_code for path in for_programs] == [200] * 3


def test_an_asker_without_downloads_reads_their_own_answers_in_a_program_and_gets_no_file(stage: Stage, asker: Visitor):
    number = stage.ask(COUNT, who=asker)["id"]
    assert stage.get(f"/releases/{number}", asker).json()["columns"]["n"]
    assert stage.get(f"/releases/{number}/margins", asker).status_code == 200
    assert stage.get(f"/releases/{number}/download/readable", asker).status_code == 403
    assert "requires the grant" in asker.client.get(f"/releases/{number}").text


def test_after_revocation_there_is_no_download_and_no_new_share(stage: Stage):
    number = stage.ask(COUNT)["id"]
    assert stage.post(f"/releases/{number}/shares", {"email": "bob@example.org"}).status_code == 200
    with stage.hub.database.begin() as db:
        db.execute(update(Grant).values(revoked=stage.hub.now()))
        bump(db)
    assert stage.get(f"/releases/{number}").status_code == 200, "what was read cannot be unread"
    assert stage.get(f"/releases/{number}/download/json").status_code == 403
    assert stage.post(f"/releases/{number}/shares", {"email": "eve@example.org"}).status_code == 403
    assert stage.post(f"/releases/{number}/shares/withdraw", {"email": "bob@example.org"}).json() == {"shares": []}
