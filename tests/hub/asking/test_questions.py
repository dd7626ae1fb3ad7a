"""Questions through the API: asked, explained, rehearsed, repeated, together; what they cost, and what is refused."""

from __future__ import annotations

import json

import pytest
from sqlalchemy import select

from cloister.hub.records.catalogue import DataSet
from cloister.hub.records.trail import AuditLine
from cloister.hub.services.asking import answering
from cloister.privacy import PureDP
from cloister.session import Release
from tests.hub.asking.conftest import BY_SEX, COUNT, Stage
from tests.hub.house import PEOPLE, people_rows


def test_an_answer_is_charged_once_and_kept(stage: Stage):
    told = stage.ask(BY_SEX, "0.5", purpose="a look")
    assert told["columns"]["sex"] == ["F", "M"]
    assert told["cost"] == {"people": "ε = 0.5"}
    assert stage.spent == "ε = 0.5"
    again = stage.get(f"/releases/{told['id']}")
    assert again.json() == told
    assert Release.from_json(json.dumps(told["release"])).to_pydict() == told["columns"]


def test_what_nobody_foresaw_after_a_charge_stands_in_the_trail(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    def broken(*_: object) -> list[int]:
        raise RuntimeError("nobody foresaw this")

    monkeypatch.setattr(answering, "keep", broken)
    assert stage.post("/questions", {"sql": COUNT, "spend": "0.5"}).status_code == 500
    with stage.hub.database.reading() as db:
        line = db.scalars(select(AuditLine).order_by(AuditLine.number.desc()).limit(1)).one()
    assert (line.action, line.outcome, line.cost) == ("question.ask", "failed", {"people": "ε = 0.5"})
    assert "nobody foresaw" not in str(line.details)


def test_the_same_question_again_costs_nothing(stage: Stage):
    first, second = stage.ask(BY_SEX), stage.ask(BY_SEX)
    assert second["repeated"]
    assert second["columns"] == first["columns"]
    assert len(stage.charges) == 1


def test_what_a_declaration_answers_was_not_answered_before(stage: Stage):
    """It costs nothing, beside others too, whose cost is written down whichever comes first."""
    none = f"{COUNT} WHERE age > 900"
    free, paid = stage.post("/questions/workload", {"questions": [none, COUNT], "spend": "0.5"}).json()["releases"]
    assert (free["cost"], paid["cost"], len(stage.charges)) == ({}, {"people": "ε = 0.5"}, 1)
    with stage.hub.database.reading() as db:
        costs = [each.cost for each in db.scalars(select(AuditLine).where(AuditLine.action == "question.ask"))]
    assert {"people": "ε = 0.5"} in costs
    assert "answered before" not in stage.ana.client.get(f"/releases/{free['id']}").text
    assert stage.post("/questions/explain", {"sql": none, "spend": "0.5"}).json()["costs"] == {}


def test_explaining_spends_nothing_and_says_what_would_be_left(stage: Stage):
    told = stage.post("/questions/explain", {"sql": COUNT, "spend": "0.25"}).json()
    assert told["costs"]["people"]["epsilon"] == "0.25"
    assert told["left"] == [{"population": "people", "of_share": False, "before": "ε = 1", "after": "ε = 0.75"}]
    assert told["denied"] is None
    assert stage.charges == []


def test_explaining_says_when_too_little_is_left(stage: Stage):
    told = stage.post("/questions/explain", {"sql": COUNT, "spend": "1.5"}).json()
    assert told["left"][0]["after"] is None


def test_rehearsing_spends_nothing(stage: Stage):
    told = stage.post("/questions/rehearse", {"sql": BY_SEX, "spend": "0.1"}).json()
    assert Release.from_json(told["release"]).column_names == ["sex", "n"]
    assert stage.charges == []


def test_a_margin_is_turned_into_its_spend(stage: Stage):
    explained = stage.post("/questions/explain", {"sql": COUNT, "within": 50}).json()
    told = stage.ask(COUNT, "", within=50)
    assert told["cost"] == {"people": explained["costs"]["people"]["text"]}
    assert max(told["margins"]["n"]) <= 50


def test_a_pilot_is_bought_first_and_counts(stage: Stage):
    many = {"columns": PEOPLE["columns"]}
    crowd = stage.house.sample_data_set("crowd", owner=stage.owner, rows=people_rows(3000), declaration=many)
    stage.house.grant(crowd, stage.ana, by=stage.owner)
    told = stage.ask("SELECT AVG(age) AS a FROM crowd", "", within=1, pilot="0.05")
    charges = list(stage.hub.ledger.charges("crowd"))
    assert charges[0].cost == PureDP("0.05")
    assert stage.hub.ledger.spent("crowd") == charges[0].cost + charges[1].cost
    assert told["margins"]["a"][0] < 2


def test_several_questions_under_one_charge(stage: Stage):
    body = {"questions": [BY_SEX, COUNT], "spend": "0.5"}
    told = stage.post("/questions/workload", body, **{"Idempotency-Key": "w"})
    assert told.status_code == 201, told.text
    by_sex, total = told.json()["releases"]
    assert (by_sex["sql"], total["sql"]) == (BY_SEX, COUNT)
    assert len(by_sex["columns"]["n"]) == 2
    assert stage.spent == "ε = 0.5"
    assert len(stage.charges) == 1
    assert stage.post("/questions/workload", body, **{"Idempotency-Key": "w"}).content == told.content
    assert {each["id"] for each in stage.get("/releases").json()["releases"]} == {by_sex["id"], total["id"]}


def test_what_was_paid_for_is_given_and_never_bought(stage: Stage):
    missing = stage.post("/questions/stored", {"sql": COUNT})
    assert (missing.status_code, missing.json()["code"]) == (404, "missing")
    first = stage.ask(COUNT, "0.25")
    again = stage.post("/questions/stored", {"sql": COUNT, "spend": "0.25"})
    assert again.status_code == 201
    assert again.json()["columns"] == first["columns"]
    assert stage.post("/questions/stored", {"sql": COUNT, "spend": "0.3"}).status_code == 404
    assert stage.spent == "ε = 0.25"


def test_what_spends_would_buy(stage: Stage):
    told = stage.post("/questions/afford", {"sql": COUNT}).json()
    margins = told["margins"]["n"]
    assert len(margins) == len(told["spends"]) > 3
    assert margins == sorted(margins, reverse=True)
    assert stage.charges == []


def test_over_the_budget_is_a_conflict_and_no_charge(stage: Stage):
    answer = stage.post("/questions", {"sql": COUNT, "spend": "2"})
    assert (answer.status_code, answer.json()["code"]) == (409, "budget-exceeded")
    assert stage.charges == []


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"sql": "SELECT COUNT(*) AS n FROM nobody", "spend": "0.1"}, 404),
        ({"sql": "SELECT MAX(secret) FROM people", "spend": "0.1"}, 422),
        ({"sql": COUNT}, 422),
        ({"sql": COUNT, "spend": "0.1", "within": 5}, 422),
        ({"sql": COUNT, "spend": "0.1", "pilot": "0.1"}, 422),
        ({"sql": COUNT, "spend": "ten"}, 422),
        ({"sql": COUNT, "spend": "0.1", "person": "somebody"}, 422),
        ({"sql": COUNT, "spend": "0.1", "project": "none"}, 403),
    ],
)
def test_what_is_refused_costs_nothing(stage: Stage, body: dict, status: int):
    answer = stage.post("/questions", body)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert stage.charges == []


@pytest.mark.parametrize("sql", [f"{COUNT} WHERE sex = 'F\0'", f"{COUNT} -- \0"])
@pytest.mark.parametrize("path", ["", "/workload", "/stored", "/explain", "/afford", "/rehearse"])
def test_what_no_database_of_ours_could_keep_is_not_asked(stage: Stage, path: str, sql: str):
    """PostgreSQL keeps no character of code 0: what was asked with one would be charged, and not answered."""
    asked = {"questions": [sql]} if path == "/workload" else {"sql": sql}
    assert stage.post(f"/questions{path}", {**asked, "spend": "0.1"}).status_code == 422
    assert stage.charges == []


def test_a_spend_that_is_no_text_is_told_how_it_is_written(stage: Stage) -> None:
    told = stage.post("/questions", {"sql": COUNT, "spend": 0.1})
    assert (told.status_code, told.json()["instead"]) == (422, '"spend": "0.1"')
    assert stage.post("/questions", {"sql": 7, "spend": "0.1"}).json()["instead"] == '"sql": "…"'


@pytest.mark.parametrize(
    "path", ["/releases?search=a%00b", "/releases?project=%00", "/datasets?search=%00", "/releases/%00", "/datasets/%00"]
)
def test_nothing_is_looked_for_that_no_database_of_ours_could_keep(stage: Stage, path: str):
    answer = stage.get(path)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
    assert stage.ana.client.get(path).status_code == 422


def test_somebody_without_a_grant_does_not_learn_that_the_data_set_exists(stage: Stage):
    stranger = stage.house.person("analyst")
    known = stage.post("/questions", {"sql": COUNT, "spend": "0.1"}, stranger)
    unknown = stage.post("/questions", {"sql": COUNT.replace("people", "nobody"), "spend": "0.1"}, stranger)
    assert known.status_code == unknown.status_code == 404
    assert known.json() | {"title": ""} == unknown.json() | {"title": ""}
    assert known.json()["title"].replace("people", "nobody") == unknown.json()["title"]


def test_questions_over_two_populations_are_charged_to_each(stage: Stage):
    stage.house.sample_data_set("staff", owner=stage.house.person("owner"), readers=[stage.ana])
    body = {"questions": [COUNT, "SELECT COUNT(*) AS n FROM staff"], "spend": "0.1"}
    told = stage.post("/questions/workload", body)
    assert told.status_code == 201, told.text
    assert [set(each["cost"]) for each in told.json()["releases"]] == [{"people", "staff"}] * 2
    assert str(stage.hub.ledger.spent("staff")) == stage.spent == "ε = 0.1"


def test_one_question_joins_data_sets_of_one_population(stage: Stage):
    columns = {
        "columns": {"person": {"kind": "integer", "low": 0, "high": 299}, "stay": {"kind": "integer", "low": 0, "high": 9}}
    }
    rows = {"person": list(range(300)), "stay": [each % 10 for each in range(300)]}
    units = {**columns, "unit": "person", "max_rows": 1}
    for name in ("visits", "bills"):
        made = stage.house.sample_data_set(name, owner=stage.owner, rows=rows, declaration=units, population="patients")
        stage.house.grant(made, stage.ana, by=stage.owner)
    sql = "SELECT COUNT(*) AS n FROM visits JOIN bills ON visits.person = bills.person WHERE visits.stay > 5"
    told = stage.ask(sql, "0.5")
    assert told["cost"] == {"patients": "ε = 0.5"}
    assert {each["object"] for each in told["policy"]["sources"]} == {each.id for each in _data_sets(stage, "visits", "bills")}


def _data_sets(stage: Stage, *names: str) -> list[DataSet]:
    with stage.hub.database.reading() as db:
        return list(db.scalars(select(DataSet).where(DataSet.name.in_(names))))
