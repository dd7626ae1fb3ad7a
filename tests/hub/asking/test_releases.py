"""Releases: who sees them, their margins, their files, with whom they are shared, and the policy that they carry."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from datetime import timedelta
from typing import Any

import duckdb
import pytest

from cloister.hub.generation import bump
from cloister.hub.records.access import Grant, Project, ProjectMember
from cloister.hub.records.catalogue import DataSet
from cloister.session import Release
from tests.hub.asking.conftest import BY_SEX, COUNT, MAY, Stage
from tests.hub.house import Visitor


@pytest.fixture
def told(stage: Stage) -> dict[str, Any]:
    return stage.ask(BY_SEX, "0.5", purpose="a look")


@pytest.fixture
def bob(stage: Stage) -> Visitor:
    return stage.house.person("analyst", email="bob@example.org", name="Bob")


def project(stage: Stage, *members: Visitor) -> str:
    with stage.hub.database.begin() as db:
        db.add(Project(id="study", name="study", title="The study", lead=members[0].id, created=stage.hub.now()))
        db.flush()
        db.add_all([ProjectMember(project="study", person=each.id, joined=stage.hub.now()) for each in members])
        db.add(
            Grant(
                id="to-study",
                kind="data-set",
                object=stage.people.id,
                role="member",
                attributes={"projects": ["study"]},
                rules={"actions": ["question.ask"]},
                granted_by=stage.owner.id,
                created=stage.hub.now(),
            )
        )
        bump(db)
    return "study"


def test_others_see_nothing_of_it(stage: Stage, told: dict[str, Any], bob: Visitor):
    missing = stage.get("/releases/AAAAAAAAAAAAAAAAAAAAAA", bob)
    for path in ("", "/margins", "/download/json", "/shares"):
        answer = stage.get(f"/releases/{told['id']}{path}", bob)
        assert answer.status_code == 404
        assert answer.json() == missing.json()
    assert stage.get("/releases", bob).json()["releases"] == []
    assert stage.post(f"/releases/{told['id']}/shares", {"email": "bob@example.org"}, bob).status_code == 404


def test_margins_at_another_confidence_and_jointly(stage: Stage, told: dict[str, Any]):
    release = Release.from_json(json.dumps(told["release"]))
    wide = stage.get(f"/releases/{told['id']}/margins?confidence=0.99").json()
    assert wide["margins"]["n"] == release.margin(0.99)["n"].tolist()
    joint = stage.get(f"/releases/{told['id']}/margins?confidence=0.95&joint=true").json()
    assert joint["margins"]["n"] == release.margin(0.95, joint=True)["n"].tolist()
    assert joint["margins"]["n"] > told["margins"]["n"]
    assert wide["drowned"] == {"n": [False, False]}
    assert stage.get(f"/releases/{told['id']}/margins?confidence=1").status_code == 422


def test_json_is_the_release_byte_for_byte(stage: Stage, told: dict[str, Any]):
    answer = stage.get(f"/releases/{told['id']}/download/json")
    release = Release.from_json(answer.text)
    assert release.to_json() == answer.text
    assert release.to_pydict() == told["columns"]
    assert answer.headers["content-disposition"] == f'attachment; filename="release-{told["id"]}.json"'


def test_csv_has_margins_as_columns_and_its_provenance_beside_it(stage: Stage, told: dict[str, Any]):
    answer = stage.get(f"/releases/{told['id']}/download/csv?confidence=0.9")
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        rows = list(csv.DictReader(io.StringIO(archive.read("release.csv").decode())))
        provenance = json.loads(archive.read("provenance.json"))
    assert [row["sex"] for row in rows] == told["columns"]["sex"]
    assert [int(row["n"]) for row in rows] == told["columns"]["n"]
    assert all(float(row["n_margin"]) < margin for row, margin in zip(rows, told["margins"]["n"], strict=True))
    assert (provenance["question"], provenance["cost"]) == (BY_SEX, {"people": "ε = 0.5"})
    assert provenance["confidence_of_margins"] == 0.9
    assert answer.content == stage.get(f"/releases/{told['id']}/download/csv?confidence=0.9").content


def test_parquet_has_its_provenance_in_its_metadata(stage: Stage, told: dict[str, Any], tmp_path):
    path = tmp_path / "release.parquet"
    path.write_bytes(stage.get(f"/releases/{told['id']}/download/parquet").content)
    rows = duckdb.sql(f"SELECT sex, n, n_margin FROM '{path}'").fetchall()
    expected = zip(told["columns"]["sex"], told["columns"]["n"], told["margins"]["n"], strict=True)
    assert rows == list(expected)
    [(text,)] = duckdb.sql(f"SELECT decode(value) FROM parquet_kv_metadata('{path}') WHERE decode(key) = 'cloister'").fetchall()
    assert json.loads(text)["question"] == BY_SEX
    assert not list(stage.hub.settings.data.glob("tmp*"))


def test_no_cell_is_a_formula(stage: Stage):
    declaration = {"columns": {"=HYPERLINK(1)": {"kind": "category", "values": ["=1+1", "@SUM(A1)", "-2", "plain"]}}, "size": 40}
    rows = {"=HYPERLINK(1)": ["=1+1", "@SUM(A1)", "-2", "plain"] * 10}
    odd = stage.house.sample_data_set("odd", owner=stage.owner, rows=rows, declaration=declaration)
    stage.house.grant(odd, stage.ana, by=stage.owner, actions=MAY)
    told = stage.ask('SELECT "=HYPERLINK(1)", COUNT(*) AS n FROM odd GROUP BY "=HYPERLINK(1)"')
    content = stage.get(f"/releases/{told['id']}/download/csv").content
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        lines = list(csv.reader(io.StringIO(archive.read("release.csv").decode())))
    assert lines[0][0] == "'=HYPERLINK(1)"
    assert {line[0] for line in lines[1:]} == {"'=1+1", "'@SUM(A1)", "'-2", "plain"}
    assert [line[1] for line in lines[1:]] == [str(each) for each in told["columns"]["n"]]


def test_a_download_is_a_line_of_the_trail(stage: Stage, told: dict[str, Any]):
    stage.get(f"/releases/{told['id']}/download/csv")
    from sqlalchemy import select

    from cloister.hub.records.trail import AuditLine

    with stage.hub.database.reading() as db:
        line = db.scalars(select(AuditLine).order_by(AuditLine.number.desc()).limit(1)).one()
    assert (line.action, line.object, line.details["form"]) == ("release.download", told["id"], "csv")


def test_sharing_shows_it_and_withdrawing_does_no_longer(stage: Stage, told: dict[str, Any], bob: Visitor):
    path = f"/releases/{told['id']}"
    shared = stage.post(f"{path}/shares", {"email": "Bob@Example.org"})
    assert [each["email"] for each in shared.json()["shares"]] == ["bob@example.org"]
    assert bob.client.get(path).status_code == 200
    assert stage.get(path, bob).status_code == 403, "a program reads what others show as a download"
    stage.house.grant(stage.people, bob, by=stage.owner, actions=["release.download"])
    assert stage.get(path, bob).json() == told
    assert [each["id"] for each in stage.get("/releases?which=shown", bob).json()["releases"]] == [told["id"]]
    assert stage.post(f"{path}/shares", {"email": "eve@example.org"}, bob).status_code == 404
    assert stage.get(f"{path}/shares", bob).status_code == 404
    assert stage.post(f"{path}/shares/withdraw", {"email": "bob@example.org"}).json() == {"shares": []}
    assert stage.get(path, bob).status_code == 404


def test_an_address_that_nobody_has_is_answered_in_the_same_way(stage: Stage, told: dict[str, Any], bob: Visitor):
    answers = [stage.post(f"/releases/{told['id']}/shares", {"email": each}) for each in ("bob@example.org", "nil@example.org")]
    assert [each.status_code for each in answers] == [200, 200]
    last = answers[1].json()["shares"]
    assert {tuple(sorted(each)) for each in last} == {("asleep", "email", "project", "rule", "shared", "title")}
    assert [each["email"] for each in last] == ["bob@example.org", "nil@example.org"]


@pytest.mark.parametrize(
    "body", [{}, {"email": "a@b.org", "project": "study"}, {"email": "no address"}, {"email": "a@b.org", "person": "x"}]
)
def test_a_share_that_names_nobody_is_refused(stage: Stage, told: dict[str, Any], body: dict[str, str]):
    assert stage.post(f"/releases/{told['id']}/shares", body).status_code == 422


def test_a_project_is_shown_it(stage: Stage, told: dict[str, Any], bob: Visitor):
    study = project(stage, stage.ana, bob)
    assert stage.post(f"/releases/{told['id']}/shares", {"project": study}).status_code == 200
    assert bob.client.get(f"/releases/{told['id']}").status_code == 200
    assert len(stage.get("/releases?which=projects", bob).json()["releases"]) == 1
    other = stage.post(f"/releases/{told['id']}/shares/withdraw", {"project": "another"})
    assert (other.status_code, "not shared with it" in other.text) == (404, True), "nothing was withdrawn, and nothing says so"
    with stage.hub.database.begin() as db:
        row = db.get_one(Project, study)
        row.closed, name = stage.hub.now(), row.name
    assert stage.post(f"/releases/{told['id']}/shares/withdraw", {"project": name}).json() == {"shares": []}
    assert stage.get(f"/releases/{told['id']}", bob).status_code == 404


def test_a_project_of_others_is_not_shown_it(stage: Stage, told: dict[str, Any], bob: Visitor):
    study = project(stage, bob)
    assert stage.post(f"/releases/{told['id']}/shares", {"project": study}).status_code == 404


def test_what_is_asked_in_a_project_is_seen_by_its_members(stage: Stage, bob: Visitor):
    study = project(stage, stage.ana, bob)
    told = stage.ask(COUNT, project=study)
    assert stage.get(f"/releases/{told['id']}", bob).status_code == 200
    assert [each["mine"] for each in stage.get(f"/releases?project={study}", bob).json()["releases"]] == [False]


def test_pages_of_releases_and_search(stage: Stage):
    ids = [stage.ask(f"SELECT COUNT(*) AS n FROM people WHERE age > {each}", "0.01")["id"] for each in (20, 21, 22)]
    first = stage.get("/releases?limit=2").json()
    second = stage.get(f"/releases?limit=2&after={first['next']}").json()
    listed = [each["id"] for each in first["releases"] + second["releases"]]
    assert sorted(listed) == sorted(ids)
    assert second["next"] is None
    assert [each["id"] for each in stage.get("/releases?search=age > 21").json()["releases"]] == [ids[1]]
    assert stage.get("/releases?search=%25").json()["releases"] == []
    assert stage.get("/releases?after=nowhere").status_code == 422, "else a client that reads page by page goes round in a circle"


def test_a_name_is_for_its_asker_to_give(stage: Stage, told: dict[str, Any], bob: Visitor):
    stage.post(f"/releases/{told['id']}/shares", {"email": "bob@example.org"})
    assert stage.post(f"/releases/{told['id']}/title", {"title": " By   sex "}).json()["title"] == "By sex"
    assert stage.post(f"/releases/{told['id']}/title", {"title": "Mine"}, bob).status_code == 404
    assert stage.post(f"/releases/{told['id']}/title", {"title": "a\u0007b"}).status_code == 422


def test_the_policy_of_the_data_travels_and_is_asked_at_each_use(stage: Stage, bob: Visitor):
    ends = stage.hub.now() + timedelta(days=10)
    with stage.hub.database.begin() as db:
        row = db.get_one(DataSet, stage.people.id)
        row.metadata_ = {"policy": {"retention": ends.isoformat(), "labels": ["clinical"]}}
        bump(db)
    told = stage.ask(BY_SEX)
    assert told["policy"]["labels"] == ["clinical"]
    [source] = told["policy"]["sources"]
    assert (source["object"], source["columns"]) == (stage.people.id, ["sex"])
    assert source["version"]
    stage.post(f"/releases/{told['id']}/shares", {"email": "bob@example.org"})
    stage.house.clock.move(days=11)
    with stage.hub.database.begin() as db:  # the data set itself is freed of it: the release is not
        db.get_one(DataSet, stage.people.id).metadata_ = {}
        bump(db)
    for who in (stage.ana, bob):
        for path in ("", "/margins", "/download/csv"):
            answer = stage.get(f"/releases/{told['id']}{path}", who)
            assert (answer.status_code, answer.json()["rule"]) == (403, f"policy:{told['id']}")
    assert stage.post(f"/releases/{told['id']}/shares", {"email": "eve@example.org"}).status_code == 403
