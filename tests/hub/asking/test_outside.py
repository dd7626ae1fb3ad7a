"""What somebody from outside found: a spend and a margin together, the confidence that was chosen, files, buttons, empty keys."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest

from cloister.hub.platform.jobs import Workers
from cloister.hub.services.asking import pages
from cloister.privacy import PureDP
from cloister.session import Release
from tests.hub.asking.conftest import BY_SEX, COUNT, READS, Stage
from tests.hub.asking.test_pages import FORM, hidden, send
from tests.hub.house import PEOPLE, people_rows
from tests.hub.web.browser import strict

BOTH = FORM | {"sql": COUNT, "spend": "0.1", "within": "5"}
COSTS = "0.538"
"""How the least spend for ± 5 of a count begins."""


def test_a_spend_and_a_margin_are_refused_where_none_of_them_is_chosen(stage: Stage):
    for path in ("/ask", "/ask/explain", "/ask/rehearse"):
        page = send(stage.ana, path, BOTH)
        assert page.status_code == 422
        strict(page.text)
        assert "not which of them decides" in page.text
    assert stage.charges == []


def test_the_spend_that_is_chosen_counts(stage: Stage):
    told = send(stage.ana, "/ask/explain", BOTH | {"by": "spend"})
    assert "The spend decides; the margin of error that you entered is ignored." in told.text
    assert 'name="by" value="spend" checked' in told.text
    assert send(stage.ana, "/ask", BOTH | {"by": "spend"}).status_code == 303
    assert stage.spent == "ε = 0.1"


def test_a_margin_that_is_chosen_costs_at_most_the_spend(stage: Stage):
    told = send(stage.ana, "/ask/explain", BOTH | {"by": "margin"})
    assert "The cost is above the spend" in told.text
    assert hidden(told.text, "shown").startswith(COSTS)
    refused = send(stage.ana, "/ask", BOTH | {"by": "margin"})
    assert refused.status_code == 422
    assert "may be spent on it" in refused.text
    assert stage.charges == []
    assert send(stage.ana, "/ask", BOTH | {"by": "margin", "spend": "0.6"}).status_code == 303
    assert stage.spent.startswith(f"ε = {COSTS}")


def test_a_margin_alone_costs_at_most_what_was_shown(stage: Stage):
    alone = BOTH | {"spend": ""}
    refused = send(stage.ana, "/ask", alone)
    assert (refused.status_code, "was not shown yet" in refused.text) == (422, True)
    shown = hidden(send(stage.ana, "/ask/explain", alone).text, "shown")
    assert send(stage.ana, "/ask", alone | {"within": "4", "shown": shown}).status_code == 422
    assert stage.charges == []
    assert send(stage.ana, "/ask", alone | {"shown": shown}).status_code == 303
    assert stage.spent == f"ε = {shown}"


def test_a_margin_that_decides_must_be_named(stage: Stage):
    assert "none is named" in send(stage.ana, "/ask", FORM | {"by": "margin"}).text
    assert stage.charges == []


def test_a_pilot_and_what_follows_cost_at_most_the_spend(stage: Stage):
    crowd = stage.house.sample_data_set(
        "crowd", owner=stage.owner, rows=people_rows(3000), declaration={"columns": PEOPLE["columns"]}
    )
    stage.house.grant(crowd, stage.ana, by=stage.owner)
    form = FORM | {"sql": "SELECT AVG(age) AS a FROM crowd", "by": "margin", "within": "1", "pilot": "0.05"}
    assert send(stage.ana, "/ask", form | {"spend": "0.04"}).status_code == 422
    assert list(stage.hub.ledger.charges("crowd")) == []
    assert send(stage.ana, "/ask", form | {"spend": "0.051"}).status_code == 422
    assert stage.hub.ledger.spent("crowd") == PureDP("0.05"), "the pilot was bought, and nothing after it"
    assert send(stage.ana, "/ask", form | {"spend": "1"}).status_code == 303
    assert stage.hub.ledger.spent("crowd").epsilon <= 1


@pytest.mark.parametrize("confidence", [0.8, 0.99])
def test_an_answer_has_the_confidence_that_was_asked_for(stage: Stage, confidence: float):
    body = {"sql": COUNT, "within": 40, "confidence": confidence}
    first = stage.post("/questions", body, **{"Idempotency-Key": "c"})
    told = first.json()
    assert (told["confidence"], told["margins"]["n"][0] <= 40) == (confidence, True)
    assert stage.post("/questions", body, **{"Idempotency-Key": "c"}).content == first.content
    assert stage.post("/questions/stored", {"sql": COUNT, "confidence": confidence}).json()["confidence"] == confidence
    plain = stage.get(f"/releases/{told['id']}").json()
    assert (plain["confidence"], plain["release"]) == (0.95, told["release"])
    assert stage.get(f"/releases/{told['id']}?confidence={confidence}").json() == told


def test_the_page_of_an_answer_opens_at_the_confidence_that_was_chosen(stage: Stage):
    form = FORM | {"sql": COUNT, "confidence": "0.99"}
    explained = send(stage.ana, "/ask/explain", form).text
    where = send(stage.ana, "/ask", form).headers["location"]
    assert where.endswith("?confidence=0.99")
    page = stage.ana.client.get(where).text
    margin = re.search(r"± ([\d,]+)", explained)[0]
    assert margin in page
    assert "margins of error at 99 % confidence" in page


def test_a_job_leads_to_the_answer_at_the_confidence_that_was_chosen(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pages, "LONG", 1.0)
    job = send(stage.ana, "/ask", FORM | {"sql": COUNT, "confidence": "0.9"}).headers["location"]
    assert Workers(stage.hub, 0).run_one()
    assert re.search(r'/releases/[\w-]+\?confidence=0\.9"', stage.ana.client.get(job).text)


def test_the_readable_file_says_where_the_answer_came_from(stage: Stage):
    told = stage.ask(BY_SEX, "0.5", purpose="a look")
    answer = stage.get(f"/releases/{told['id']}/download/readable?confidence=0.9")
    found = answer.json()
    margins = stage.get(f"/releases/{told['id']}/margins?confidence=0.9").json()["margins"]
    assert (found["columns"], found["margins"], found["confidence_of_margins"]) == (told["columns"], margins, 0.9)
    assert (found["question"], found["purpose"], found["policy"]) == (BY_SEX, "a look", told["policy"])
    assert (found["cost"], found["table"], found["release"]) == (told["cost"], "people", told["id"])
    assert "readable" in answer.headers["content-disposition"]
    wire = stage.get(f"/releases/{told['id']}/download/json").text
    assert Release.from_json(wire).to_json() == wire
    page = stage.ana.client.get(f"/releases/{told['id']}?confidence=0.9").text
    assert f"/releases/{told['id']}/download/readable?confidence=0.9" in page


def test_the_page_offers_no_file_that_it_would_not_give(stage: Stage):
    rea = stage.house.person("analyst")
    stage.house.grant(stage.people, rea, by=stage.owner, actions=READS)
    told = stage.ask(COUNT, who=rea)
    page = rea.client.get(f"/releases/{told['id']}")
    strict(page.text)
    assert rea.client.get(f"/releases/{told['id']}/download/json").status_code == 403
    assert "/download/" not in page.text
    assert "Share with" not in page.text
    assert f'action="/releases/{told["id"]}/share"' not in page.text
    own = stage.ask(COUNT)
    page = stage.ana.client.get(f"/releases/{own['id']}").text
    assert page.count("/download/") == 5
    assert f'action="/releases/{own["id"]}/share"' in page


def test_an_empty_key_is_refused(stage: Stage):
    for path, body in (
        ("/questions", {"sql": COUNT, "spend": "0.1", "fresh": True}),
        ("/questions/workload", {"questions": [COUNT], "spend": "0.1"}),
    ):
        answer = stage.post(path, body, **{"Idempotency-Key": ""})
        assert answer.status_code == 422
    assert stage.charges == []
    assert stage.post("/questions", {"sql": COUNT, "spend": "0.1"}).status_code == 201


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"spend": ""}, ["0.1 in the field “Spend”"]),
        ({"spend": "x"}, ["“x” in the field “Spend” is invalid", "0.1 in the field “Spend”"]),
        ({"spend": "", "within": "0.5"}, ["“0.5” in the field “Margin” is invalid", "1 in the field “Margin”"]),
        ({"sql": "SELECT AVG(age) AS a FROM people", "spend": "", "within": "1"}, ["0.01 in the field “Pilot”"]),
        ({"sql": "SELECT AVG(sex) AS a FROM people"}, ["COUNT(sex)"]),
        ({"purpose": "a\x07"}, ["a text in the field “Purpose”"]),
    ],
)
def test_the_page_names_its_fields_and_no_python(stage: Stage, given: dict[str, Any], said: list[str]):
    page = send(stage.ana, "/ask/explain", FORM | {"sql": COUNT} | given).text
    shown = page[page.index("refusal") :]
    assert all(each in html.unescape(shown) or each in shown for each in said)
    assert not re.search(r"spend=|within=|pilot=|purpose=|session\.|column=", html.unescape(shown[: shown.index("</dl>")]))


def test_too_little_budget_is_said_in_fields(stage: Stage):
    page = send(stage.ana, "/ask", FORM | {"spend": "3"}).text
    assert "a smaller “Spend”, or a budget that its owner raises" in page


def test_going_back_finds_the_question_again(stage: Stage):
    assert COUNT not in stage.ana.client.get("/ask").text
    send(stage.ana, "/ask", FORM | {"sql": f"{COUNT} WHERE age > 31"})
    page = html.unescape(stage.ana.client.get("/ask").text)
    assert f"{COUNT} WHERE age > 31</textarea>" in page
    assert 'value="a look"' in page
    assert f"{COUNT} WHERE age > 31</textarea>" not in html.unescape(stage.ana.client.get("/ask?about=people").text)
    stage.house.clock.move(minutes=11)
    stage.house.awake(stage.ana)
    assert f"{COUNT} WHERE age > 31</textarea>" not in html.unescape(stage.ana.client.get("/ask").text)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"sql": "SELECT * FROM people"}, "数据行从不对外提供"),
        ({"sql": "SELECT nope, COUNT(*) AS n FROM people GROUP BY nope"}, "声明的列有 age, sex, pay"),
        ({"spend": "x"}, "“花费”一栏中的“x”无效"),
        ({"spend": "x"}, "不是有限的数值"),
        ({"spend": "-1"}, "在“花费”一栏填写 0.1"),
        ({"within": "5"}, "没有选择由哪个决定"),
        ({"sql": "SELECT AVG(sex) AS a FROM people"}, "没有均值"),
    ],
)
def test_refusals_on_chinese_pages_are_chinese(stage: Stage, given: dict[str, Any], said: str):
    page = send(stage.ana, "/ask/explain", FORM | {"sql": COUNT} | given, **{"accept-language": "zh-CN"})
    assert said in html.unescape(page.text)
