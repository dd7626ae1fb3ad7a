"""What lists go on without is told to its owner and to an administrator, and to nobody else."""

from __future__ import annotations

import json

import pytest
from sqlalchemy import text

from cloister.local.survey import Survey, Tally
from tests.hub.house import Visitor
from tests.hub.surveys.conftest import Field

SAID = "Left out: rows that"


def damage(field: Field, number: str, column: str, value: str) -> str:
    with field.hub.database.begin() as db:
        db.execute(text(f"UPDATE survey SET {column} = :value WHERE id = :number"), {"value": value, "number": number})
    return f"survey.{column} of {number}"


def listed(field: Field, who: Visitor) -> tuple[list[str], str]:
    answer = field.ask("GET", "", who=who)
    return [each["id"] for each in answer.json()["surveys"]], answer.headers.get("cloister-left-out", "")


def test_pages_and_programs_name_it_to_its_owner_and_to_an_administrator(field: Field) -> None:
    good, bad = field.opened(), field.draft()
    name = damage(field, bad, "draft", '{"questions": []}')
    ina, admin = field.house.person("analyst", email="ina@x.org"), field.house.person("administrator", email="ada@x.org")
    assert listed(field, field.ana) == ([good], name)
    assert listed(field, ina) == ([], "")
    own = field.ana.client.get("/surveys")
    assert own.status_code == 200
    assert SAID in own.text
    assert name in own.text
    assert SAID not in field.ana.client.get("/").text  # where nothing is listed that lacks it
    assert SAID not in ina.client.get("/surveys").text
    settings = admin.client.get("/settings")
    assert settings.status_code == 200
    assert name in settings.text
    assert name not in admin.client.get("/jobs").text
    page = field.ana.client.get("/surveys", headers={"Accept-Language": "zh-CN"}).text
    assert "无法读取" in page
    assert name in page


@pytest.mark.parametrize(
    ("column", "value"), [("draft", "{}"), ("body", "{}"), ("body", '{"a": [1,'), ("body", "[]"), ("tally", "{"), ("words", "17")]
)
def test_the_pages_of_a_damaged_survey_refuse_and_say_why(field: Field, column: str, value: str) -> None:
    number = field.opened()
    damage(field, number, column, value)
    answers = [field.ana.client.get(f"/surveys/{number}{each}") for each in ("", "/results.csv", "/reports.json")]
    answers += [
        field.house.client().get(f"/s/{number}"),
        *(field.ask("GET", f"/{number}{each}") for each in ("", "/form", "/results")),
    ]
    assert {each.status_code for each in answers} <= {200, 400, 409, 422}, [each.status_code for each in answers]
    refused = [each for each in answers if each.status_code != 200]
    assert refused or column == "words"  # which are looked for where a question asks for words
    assert all("read" in each.text or "survey" in each.text for each in refused)


def test_a_damaged_report_is_counted_as_refused_by_the_hub_and_by_who_collects_the_file(field: Field) -> None:
    number = field.opened()
    for seed in range(5):
        assert field.send(number, field.report(number, {"copied": "yes", "why": "time"}, seed=seed)).status_code == 201
    with field.hub.database.begin() as db:
        one = db.execute(text("SELECT id FROM survey_report LIMIT 1")).scalar()
        db.execute(text("UPDATE survey_report SET body = '{' WHERE id = :one"), {"one": one})
    for _ in range(2):  # the second time nothing is new
        assert field.results(number)["n"] == 4
        assert sum(field.results(number)["refused"].values()) == 1
    told = field.ana.client.get(f"/surveys/{number}/reports.json").json()
    assert [each for each in told["reports"] if isinstance(each, str)] == ["{"]
    tally = Tally(Survey.from_json(json.dumps(told["survey"])))
    tally.add(told["reports"])
    assert (tally.n, sum(tally.refused.values())) == (4, 1)
