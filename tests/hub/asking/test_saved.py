"""Questions that are kept."""

from __future__ import annotations

from tests.hub.asking.conftest import BY_SEX, Stage
from tests.hub.asking.test_releases import project

BODY = {"title": "By sex", "sql": BY_SEX, "spend": "0.2", "purpose": "a look"}


def test_a_question_is_kept_found_and_removed(stage: Stage):
    kept = stage.post("/questions/saved", BODY)
    assert kept.status_code == 201, kept.text
    number = kept.json()["id"]
    assert stage.get(f"/questions/saved/{number}").json() == kept.json()
    assert [each["title"] for each in stage.get("/questions/saved").json()["questions"]] == ["By sex"]
    assert stage.post(f"/questions/saved/{number}/remove", None).status_code == 200
    assert stage.get(f"/questions/saved/{number}").status_code == 404


def test_it_is_for_its_asker_and_their_project(stage: Stage):
    bob = stage.house.person("analyst", email="bob@example.org")
    alone = stage.post("/questions/saved", BODY).json()["id"]
    study = project(stage, stage.ana, bob)
    shared = stage.post("/questions/saved", BODY | {"project": study}).json()["id"]
    assert stage.get(f"/questions/saved/{alone}", bob).status_code == 404
    assert stage.get(f"/questions/saved/{shared}", bob).json()["mine"] is False
    assert [each["id"] for each in stage.get("/questions/saved", bob).json()["questions"]] == [shared]
    assert stage.post(f"/questions/saved/{shared}/remove", None, bob).status_code == 404


def test_what_is_wrong_is_refused(stage: Stage):
    assert stage.post("/questions/saved", BODY | {"title": " "}).status_code == 422
    assert stage.post("/questions/saved", BODY | {"project": "none"}).status_code == 404
    assert stage.post("/questions/saved", BODY | {"person": stage.owner.id}).status_code == 422


def test_pages(stage: Stage):
    ids = [stage.post("/questions/saved", BODY | {"title": f"{each}"}).json()["id"] for each in range(3)]
    first = stage.get("/questions/saved?limit=2").json()
    rest = stage.get(f"/questions/saved?limit=2&after={first['next']}").json()
    assert "The next page is invalid" in stage.get("/questions/saved?limit=2&after=none").text
    assert sorted(each["id"] for each in first["questions"] + rest["questions"]) == sorted(ids)
    assert rest["next"] is None
