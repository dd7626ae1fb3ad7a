"""Models and anonymised tables are shared, named and taken away as answers are, by the rules of what they came from."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sqlalchemy import func, insert, select

from cloister.hub.generation import bump
from cloister.hub.migrations import bring_up_to_date
from cloister.hub.migrations.copying import AnonymizedTable, LearntModel
from cloister.hub.records.access import Grant
from cloister.hub.records.releases import StoredRelease
from cloister.hub.records.trail import AuditLine
from cloister.hub.services.learning import fitting
from tests.hub.anonymizing.ordering import RELEASE
from tests.hub.anonymizing.ordering import run as run_table
from tests.hub.house import House, Visitor
from tests.hub.learning.conftest import MAY, Stage

ROWS = {"csv": "age,pay\r\n30,10.5\r\n"}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """What made-up rows say of a model takes longest, and is tested elsewhere."""
    for name in ("attacked", "lost"):
        monkeypatch.setattr(fitting, name, lambda *_: None)


@pytest.fixture
def bob(house: House) -> Visitor:
    return house.person("analyst", email="bob@example.org", name="Bob Reader")


@pytest.fixture
def stage(house: House) -> Stage:
    owner = house.person("owner", email="olga@example.org", name="Olga Owner")
    ana = house.person("analyst", email="ana@example.org", name="Ana Analyst")
    people = house.sample_data_set("people", owner=owner)
    house.grant(people, ana, by=owner, actions=(*MAY, "question.ask", "release.share"))
    return Stage(house, owner, ana, people)


def project(stage: Stage, *members: Visitor) -> str:
    actions = ["dataset.see", "learn.run", "release.see", "release.share"]
    return stage.house.workspace(stage.people, *members, by=stage.owner, actions=actions, let_in=False)


def shared(stage: Stage, who: Visitor, number: str, **with_whom: str) -> Any:
    answer = stage.post(f"/releases/{number}/shares", with_whom, who)
    assert answer.status_code == 200, answer.text
    return answer.json()["shares"]


def statuses(stage: Stage, who: Visitor, number: str) -> dict[str, int]:
    """What somebody gets of a model: its page, what a program reads, its file, predictions."""
    return {
        "page": who.client.get(f"/models/{number}").status_code,
        "read": stage.get(f"/models/{number}", who).status_code,
        "file": stage.get(f"/models/{number}/download", who).status_code,
        "predict": stage.post(f"/models/{number}/predictions", ROWS, who).status_code,
    }


@pytest.mark.parametrize(
    ("role", "path", "way", "leads"),
    [
        ("owner", "/projected", "/project-data", True),
        ("analyst", "/projected", "/project-data", False),
        ("analyst", "/projections", "/fit-projection", True),
        ("analyst", "/projections?which=shown", "/fit-projection", False),
        ("analyst", "/joint-results", "/joint-learning", True),
        ("analyst", "/algorithm-results", "/run-algorithm", True),
        ("analyst", "/survey-models", "/surveys", True),
    ],
)
def test_an_empty_list_leads_those_who_may_to_where_one_is_made(house: House, role: str, path: str, way: str, *, leads: bool):
    main = house.person(role).client.get(path).text.partition('id="page"')[2]
    assert "Nothing yet" in main
    assert (f'<a class="button" href="{way}">' in main) == leads


def test_a_model_is_shown_to_somebody_and_no_longer(stage: Stage, bob: Visitor):
    number = stage.learnt()
    none = dict.fromkeys(("page", "read", "file", "predict"), 404)
    assert statuses(stage, bob, number) == none
    assert [each["email"] for each in shared(stage, stage.ana, number, email="bob@example.org")] == ["bob@example.org"]
    # shown is looked at; a program, a file and predictions without end take it further, as a download does
    assert statuses(stage, bob, number) == {"page": 200, "read": 403, "file": 403, "predict": 403}
    assert f"/releases/{number}/download" not in bob.client.get(f"/models/{number}").text
    assert f"/models/{number}" in bob.client.get("/models?which=shown").text
    assert [each["id"] for each in stage.get("/models?which=shown", bob).json()["models"]] == [number]
    assert stage.get("/models", bob).json()["models"] == stage.get("/releases", bob).json()["releases"] == []
    assert [each["kind"] for each in stage.get("/releases?kind=all", bob).json()["releases"]] == ["model"]
    assert stage.post(f"/releases/{number}/shares", {"email": "eve@example.org"}, bob).status_code == 404
    stage.house.grant(stage.people, bob, by=stage.owner, actions=("dataset.see", "release.see", "release.download"))
    assert statuses(stage, bob, number) == dict.fromkeys(none, 200)
    assert stage.post(f"/releases/{number}/shares/withdraw", {"email": "bob@example.org"}).json() == {"shares": []}
    assert statuses(stage, bob, number) == none
    with stage.hub.database.reading() as db:
        said = db.scalars(select(AuditLine.kind).where(AuditLine.action.in_(["release.share", "release.withdraw"]))).all()
    assert said == ["model", "model"]


def test_a_share_of_a_model_holds_while_its_giver_may_share(stage: Stage, bob: Visitor):
    number = stage.learnt()
    shared(stage, stage.ana, number, email="bob@example.org")
    with stage.hub.database.begin() as db:
        for grant in db.scalars(select(Grant)):
            grant.revoked = stage.hub.now()
        bump(db)
    assert bob.client.get(f"/models/{number}").status_code == 403
    assert statuses(stage, stage.ana, number)["page"] == 200
    assert stage.get(f"/releases/{number}/shares").json()["shares"][0]["asleep"]
    assert f"/models/{number}" not in bob.client.get("/models?which=shown").text


def test_members_of_a_project_see_a_model_of_it_when_it_is_shown_to_them(stage: Stage, bob: Visitor):
    study = project(stage, stage.ana, bob)
    number = stage.learnt(project=study)
    assert stage.get(f"/models/{number}").json()["project"] == study
    assert bob.client.get(f"/models/{number}").status_code == 404
    shared(stage, stage.ana, number, project=study)
    assert bob.client.get(f"/models/{number}").status_code == 200
    assert f"/models/{number}" in bob.client.get("/models?which=projects").text


def test_a_model_has_one_address_and_a_name(stage: Stage):
    number = stage.learnt()
    answer = stage.ana.client.get(f"/releases/{number}")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/models/{number}")
    assert stage.post(f"/releases/{number}/title", {"title": "Sex by age"}).json()["title"] == "Sex by age"
    assert "Sex by age" in stage.ana.client.get("/models?search=by age").text
    assert "None contains all of these words" in stage.ana.client.get("/models?search=income").text
    assert stage.get(f"/releases/{number}").json() == stage.get(f"/models/{number}").json()
    assert stage.get(f"/releases/{number}/download/json").content == stage.get(f"/models/{number}/download").content
    assert stage.get(f"/releases/{number}/download/card").text.startswith("#")
    assert stage.get(f"/releases/{number}/download/csv").status_code == 404
    assert stage.get(f"/releases/{number}/margins").status_code == stage.get(f"/anonymised/{number}").status_code == 404


def test_an_anonymised_table_is_shown_and_its_rows_take_a_grant(house: House, bob: Visitor):
    pytest.importorskip("polars")
    olga = house.person("owner", email="olga@example.org", name="Olga Owner")
    stage = Stage(house, olga, bob, house.sample_data_set("people", owner=olga))
    number = run_table(house, olga, "/anonymised", RELEASE)["result"]["href"].rpartition("/")[2]
    assert bob.client.get(f"/anonymised/{number}").status_code == 404
    shared(stage, olga, number, email="bob@example.org")
    page = bob.client.get(f"/anonymised/{number}")
    assert (page.status_code, "Not differentially private" in page.text) == (200, True)
    listed = bob.client.get("/anonymised").text
    assert f"/anonymised/{number}" in listed
    assert "Not differentially private" in listed
    for form in ("csv", "parquet", "report", "certificate"):
        assert stage.get(f"/releases/{number}/download/{form}", bob).status_code == 403
    assert stage.get(f"/anonymised/{number}", bob).status_code == 403
    assert stage.post(f"/releases/{number}/title", {"title": "Public people"}, olga).status_code == 200
    assert "Public people" in bob.client.get(f"/anonymised/{number}").text
    with house.hub.database.begin() as db:
        row = db.get_one(StoredRelease, number)
        assert (row.kind, row.cost, row.asked_in) == ("anonymised", {}, "")


def test_what_a_process_of_the_version_before_writes_is_found_at_the_next_opening(house: House):
    ana, now = house.person("analyst", email="ana@example.org"), house.hub.now()
    common = {"person": ana.id, "data_sets": [], "purpose": "care", "created": now, "policy": {}, "project": "", "title": "Old"}
    model = {
        **common,
        "id": "m1",
        "method": "GaussianNB",
        "table": "people",
        "columns": {"features": [], "target": "", "version": ""},
    }
    papers = {"report": {"models": [{"reached": "5-anonymity"}]}, "report_page": "r", "certificate": {}, "certificate_page": "c"}
    damaged = {**common, **papers, "id": "t0", "table": "people", "made": "d0", "version": "v0", "digest": "x", "order": {}}
    with house.hub.database.begin() as db:
        db.execute(insert(AnonymizedTable).values(**damaged))
        db.connection().exec_driver_sql("UPDATE anonymized_table SET report = '{\"models\": ['")
    with house.hub.database.begin() as db:
        db.execute(insert(LearntModel).values(**model, cost={"people": "ε = 0.1"}, card="{}", body="{}", algorithm=""))
        table = {
            **common,
            **papers,
            "id": "t1",
            "table": "people",
            "made": "d1",
            "version": "v1",
            "digest": "x",
            "order": {"k": 5},
        }
        db.execute(insert(AnonymizedTable).values(**table))
        columns = [each.name for each in StoredRelease.__table__.c if each.name not in ("details", "data_set")]
        row = {**common, "id": "a1", "kind": "sql", "sql": "SELECT 1", "cost": {}, "digest": "", "body": b"{}", "algorithm": ""}
        names, places = ", ".join(columns), ", ".join(f":{name}" for name in columns)
        told = {**row, "withdrawn": None, "data_sets": "[]", "cost": "{}", "policy": "{}"}
        db.connection().exec_driver_sql(f"INSERT INTO stored_release ({names}) VALUES ({places})", {**told, "created": str(now)})
    for _ in range(2):
        bring_up_to_date(house.hub.database)
        with house.hub.database.reading() as db:
            assert db.scalar(select(func.count()).select_from(StoredRelease)) == 3
            answer, found, made = (db.get_one(StoredRelease, number) for number in ("a1", "m1", "t1"))
        assert (answer.details, answer.data_set) == ({}, "")
        assert (found.kind, found.body, found.details["method"], found.cost) == (
            "model",
            b"{}",
            "GaussianNB",
            {"people": "ε = 0.1"},
        )
        assert (made.kind, made.data_set, made.digest, made.details["version"]) == ("anonymised", "d1", "x", "v1")
        assert (json.loads(made.body), made.details["models"], made.details["order"]) == (papers, ["5-anonymity"], {"k": 5})
        with house.hub.database.begin() as db:  # what happened to it since stays
            db.get_one(StoredRelease, "m1").title = "New"
    with house.hub.database.reading() as db:
        assert db.get_one(StoredRelease, "m1").title == "New"
