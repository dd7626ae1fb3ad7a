"""A hub in which people have done things, and Mallory, who has every role but the two offices and nothing of anybody else's."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from cloister.hub.ids import new_id
from cloister.hub.records.access import AccessRequest, InstitutionRule
from cloister.hub.records.catalogue import DataSet
from cloister.hub.records.jobs import Job
from cloister.hub.records.releases import StoredRelease
from cloister.local.survey import Survey, respond
from cloister.noise import Random
from tests.hub.house import READS, House, Visitor

MAY = (*READS, "release.download", "release.share", "question.manage", "question.see", "dataset.version", "dataset.uses")
WORD = "CanaryOfARow"
"""In every text of every row."""
NUMBERS = [7_310_554_017 + 1_000_003 * each for each in range(40)]
PAYS = [61_803.25 + 104.5 * each for each in range(40)]
DAYS = [date(1931, 7, 3) + timedelta(days=137 * each) for each in range(40)]
ROWS = {
    "code": NUMBERS,
    "pay": PAYS,
    "born": [each.isoformat() for each in DAYS],
    "nick": [f"{WORD}-{each}" for each in range(40)],
}
DECLARATION = {
    "columns": {
        "code": {"kind": "integer", "low": 0, "high": 10_000_000_000},
        "pay": {"kind": "real", "low": 0, "high": 100_000, "step": 0.25},
        "born": {"kind": "date", "low": "1900-01-01", "high": "2026-12-31"},
        "nick": {"kind": "text"},
    },
    "unit": None,
    "max_rows": None,
    "size": 40,
}
CANARIES = (WORD, *map(str, NUMBERS), *(f"{each:.2f}" for each in PAYS), *(each.isoformat() for each in DAYS))
"""What a row holds, as it would show in a text."""


@dataclass(frozen=True, kw_only=True)
class World:
    """Who is there, and the ids of what is theirs, by what they are."""

    house: House
    administrator: Visitor
    steward: Visitor
    owner: Visitor
    analyst: Visitor
    mallory: Visitor
    data_set: DataSet
    ids: dict[str, str]


def populated(house: House) -> World:
    """A hub with one thing of each kind, none of it Mallory's."""
    administrator = house.person("administrator", email="ada@example.org", name="Ada Byron")
    steward = house.person("steward", email="sue@example.org", name="Sue Steward")
    owner = house.person("owner", "provider", email="olga@example.org", name="Olga Owner")
    analyst = house.person("analyst", email="ann@example.org", name="Ann Alyst")
    uma = house.person("analyst", "algorithm-provider", email="uma@example.org", name="Uma User")
    mallory = house.person(
        "owner", "provider", "analyst", "algorithm-provider", "csp", email="mallory@example.org", name="Mallory Smith"
    )
    data_set = house.sample_data_set("secrets_zqx", owner=owner, rows=ROWS, declaration=DECLARATION, population="patients_zqx")
    ids = {
        "data set": "secrets_zqx",
        "population": "patients_zqx",
        "grant": house.grant(data_set, analyst, by=owner, actions=MAY),
        "person": analyst.id,
    }
    ask = {"sql": "SELECT COUNT(*) AS n FROM secrets_zqx", "spend": "0.1", "purpose": "care"}
    ids["release"] = _made(analyst, "/questions", ask)["id"]
    ids["saved question"] = _made(analyst, "/questions/saved", {"title": "How many", "sql": ask["sql"]})["id"]
    more = _made(analyst, "/budgets/patients_zqx/requests", {"amount": "0.5", "reason": "another study"})
    ids["budget request"] = more["id"]
    ids["project"] = "study_zqx"
    project = _made(analyst, "/projects", {"name": "study_zqx", "title": "A study", "purpose": "care", "about": ""})
    ids["project's id"] = project.get("id", "study_zqx")
    _made(uma, "/algorithms", {"name": "method_zqx", "title": "A method", "service": "asking", "settings": {}, "about": ""})
    ids["algorithm"] = "method_zqx"
    ids["token"] = _listed(analyst, "/tokens")["items"][0]["id"]
    upload = house.client().post(
        "/api/v1/uploads", content=b"age,sex\n30,F\n", headers={**owner.bearer, "Content-Type": "text/csv"}
    )
    assert upload.status_code == 201, upload.text
    ids["upload"] = upload.json()["id"]
    ids |= _surveys(house, analyst)
    ids |= _rows(house, analyst, steward, data_set)
    return World(
        house=house,
        administrator=administrator,
        steward=steward,
        owner=owner,
        analyst=analyst,
        mallory=mallory,
        data_set=data_set,
        ids=ids,
    )


def _made(visitor: Visitor, path: str, body: Any) -> Any:
    answer = visitor.client.post(f"/api/v1{path}", json=body, headers=visitor.csrf())
    assert answer.status_code == 201, f"{path}: {answer.text}"
    return answer.json()


def _listed(visitor: Visitor, path: str) -> Any:
    answer = visitor.client.get(f"/api/v1{path}")
    assert answer.status_code == 200, f"{path}: {answer.text}"
    return answer.json()


def _surveys(house: House, analyst: Visitor) -> dict[str, str]:
    """A draft, and an open survey to which one person has answered."""
    question = {"kind": "yes-no", "name": "copied", "text": "Have you ever copied in an exam?"}
    wanted = {
        "title": "Exams zqx",
        "purpose": "care",
        "levels": [{"name": "half", "epsilon": "0.5"}, {"name": "whole", "epsilon": "1"}],
        "questions": [question],
    }
    draft, survey = (_made(analyst, "/surveys", wanted)["id"] for _ in range(2))
    opened = analyst.client.post(f"/api/v1/surveys/{survey}/open", headers=analyst.csrf())
    assert opened.status_code == 200, opened.text
    form = house.client().get(f"/api/v1/surveys/{survey}/form").json()
    report = respond(Survey.from_dict(form["survey"]), {"copied": True}, "half", random=Random.deterministic(1))
    sent = house.client().post(f"/api/v1/surveys/{survey}/reports", json=report.to_dict())
    assert sent.status_code == 201, sent.text
    return {"draft": draft, "survey": survey}


def _rows(house: House, analyst: Visitor, steward: Visitor, data_set: DataSet) -> dict[str, str]:
    """What no request makes at once."""
    job, rule, request, model = new_id(), new_id(), new_id(), new_id()
    with house.hub.database.begin() as db:
        now = house.hub.now()
        db.add(Job(id=job, kind="question", person=analyst.id, title="Long work", payload={}, created=now))
        db.add(
            InstitutionRule(
                id=rule, title="No one at night", rule={"epsilon_of_population": "3"}, made_by=steward.id, created=now
            )
        )
        db.add(
            StoredRelease(
                id=model,
                person=analyst.id,
                kind="model",
                data_sets=[data_set.id],
                cost={"patients_zqx": "ε = 0.1"},
                body=b"{}",
                policy={},
                created=now,
                details={
                    "method": "LinearRegression",
                    "table": "secrets_zqx",
                    "columns": {"features": [["code", DECLARATION["columns"]["code"]]], "target": "pay"},
                    "card": "{}",
                },
            )
        )
        wanted = {"actions": ["question.ask"]}
        db.add(AccessRequest(id=request, data_set=data_set.id, person=analyst.id, purpose="care", wanted=wanted, created=now))
    return {"job": job, "rule": rule, "request": request, "model": model}
