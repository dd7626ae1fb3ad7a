"""Composing, opening, closing: what is refused, what stays as it is, and whose a survey is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from cloister.hub.records.surveys import HeldSurvey
from cloister.hub.web.render import LANGUAGE_COOKIE
from cloister.local.survey import Survey
from tests.hub.house import Clock, House
from tests.hub.surveys.conftest import COPIED, LEVELS, WHY, Field

FORM = {
    "title": "Exams",
    "purpose": "a study",
    "introduction": "Hello",
    "level": ["careful", "open"],
    "epsilon": ["1", "3"],
    "cap": "8",
    "hoped": "500",
}


def test_a_draft_is_written_question_by_question_on_the_page(field: Field) -> None:
    made = field.post("/surveys", {"title": "Exams", "purpose": "a study"})
    assert made.status_code == 303
    path = made.headers["location"]
    assert field.post(f"{path}/questions", {**COPIED, "no_answer": "yes"}).status_code == 303
    options = {**WHY, "options": "time\ngrade\n"}
    assert field.post(f"{path}/questions", options).status_code == 303
    assert field.post(path, FORM).status_code == 303
    page = field.ana.client.get(path).text
    assert "Have you ever copied" in page
    assert "For 500 respondents" in page
    assert field.post(f"{path}/questions/remove", {"name": "why"}).status_code == 303
    told = field.ask("GET", f"/{path.rpartition('/')[2]}").json()
    assert [each["name"] for each in told["draft"]["questions"]] == ["copied"]
    assert told["draft"]["questions"][0]["no_answer"] is True
    assert (told["draft"]["levels"], told["hoped"], told["survey"]) == (LEVELS, 500, None)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"kind": "yes-no", "name": "A b", "text": "x"}, "small letters"),
        ({"kind": "yes-no", "name": "copied", "text": "Another one?"}, "two questions have the same name"),
        ({"kind": "yes-no", "name": "again", "text": COPIED["text"]}, "the same question is asked twice"),
        ({"kind": "choice", "name": "one", "text": "One?", "options": ["a"]}, "fewer than 2"),
        ({"kind": "choice", "name": "one", "text": "One?", "options": ["a", "a"]}, "listed twice"),
        ({"kind": "number", "name": "one", "text": "One?", "low": "5", "high": "1"}, "low is not below high"),
        ({"kind": "number", "name": "one", "text": "One?", "low": "0", "high": "1e399"}, "far apart"),
        ({"kind": "number", "name": "one", "text": "One?", "low": "1e16", "high": "10000000000000001"}, "no room between"),
        ({"kind": "poem", "name": "one", "text": "One?"}, "its kind is unknown"),
    ],
)
def test_a_question_that_could_not_be_asked_is_refused_at_once(field: Field, said: Any, why: str) -> None:
    number = field.draft(questions=[COPIED])
    answer = field.ask("PATCH", f"/{number}", {"questions": [COPIED, said]})
    assert answer.status_code in (400, 422)
    assert why in answer.json()["detail"]
    assert len(field.ask("GET", f"/{number}").json()["draft"]["questions"]) == 1
    page = field.post(f"/surveys/{number}/questions", {**said, "options": "\n".join(said.get("options", []))})
    assert page.status_code in (400, 422)
    assert 'class="callout bad refusal"' in page.text


def test_too_many_questions_for_the_cap_are_refused(field: Field) -> None:
    number = field.draft(questions=[COPIED, WHY])
    assert field.ask("PATCH", f"/{number}", {"cap": "2"}).status_code == 200, "both at the careful level"
    page = field.ana.client.get(f"/surveys/{number}").text
    assert "only for some: open." in page
    assert "at most ε = 2; the survey allows 2" in page
    answer = field.ask("PATCH", f"/{number}", {"cap": "1.9"})
    assert answer.status_code in (400, 422)
    assert "too many questions for its cap" in answer.json()["title"]


def test_what_is_changed_together_is_looked_at_together(field: Field) -> None:
    """A smaller cap with fewer questions: those that are replaced count no more."""
    ten = [{**COPIED, "name": f"q{place}", "text": f"Question {place}?"} for place in range(10)]
    number = field.draft(questions=ten, cap="10")
    assert field.ask("PATCH", f"/{number}", {"cap": "3"}).status_code in (400, 422)
    answer = field.ask("PATCH", f"/{number}", {"cap": "3", "questions": ten[:3]})
    assert answer.status_code == 200, answer.text
    draft = answer.json()["draft"]
    assert (draft["cap"], len(draft["questions"])) == ("3", 3)
    refused = field.ask("PATCH", f"/{number}", {"title": "Other", "cap": "1", "questions": ten[:2]})
    assert refused.status_code in (400, 422)
    assert field.ask("GET", f"/{number}").json()["title"] == "Exams"


@pytest.mark.parametrize(
    ("levels", "why"),
    [
        ([("low", "abc")], ""),
        ([("low", "0,5")], ""),
        ([("low", "12")], "lies outside"),
        ([("low", "1"), ("high", "1")], "two levels have the same ε"),
        ([("low", "1"), ("low", "2")], "two have the same name"),
        ([("l" * 41, "1")], "40"),
    ],
)
def test_levels_are_looked_at_before_there_is_a_question(field: Field, levels: list[tuple[str, str]], why: str) -> None:
    """Else each question that is added later is refused, for what stands in another form."""
    number = field.draft(questions=[])
    said = {"title": "Exams", "levels": [{"name": name, "epsilon": epsilon} for name, epsilon in levels]}
    for answer in (field.ask("PATCH", f"/{number}", said), field.ask("POST", "", said)):
        assert answer.status_code in (400, 422), answer.text
        assert why in answer.text
    form = {**FORM, "level": [name for name, _ in levels], "epsilon": [epsilon for _, epsilon in levels]}
    page = field.post(f"/surveys/{number}", form)
    assert (page.status_code in (400, 422), 'class="callout bad refusal"' in page.text) == (True, True)
    assert field.ask("GET", f"/{number}").json()["draft"]["levels"] == LEVELS


def test_no_survey_takes_more_than_the_institution_allows(tmp_path: Path) -> None:
    """The setting bounds what an author may write, what a new survey begins with, and what is opened."""
    house = House(tmp_path, Clock(), survey_cap="5.5")
    field = Field(house, house.person("analyst", email="ana@example.org"))
    begun = field.ask("POST", "", {"title": "Exams"}).json()
    assert begun["draft"]["cap"] == "5.5"
    number = field.draft(questions=[COPIED], cap="5.5")
    for cap, why in (("5.51", "no survey take more than an ε of 5.5"), ("0", "greater than 0"), ("much", "")):
        answer = field.ask("PATCH", f"/{number}", {"cap": cap})
        assert answer.status_code in (400, 422)
        assert why in answer.json()["detail"]
    assert "5.5 at most" in field.ana.client.get(f"/surveys/{number}").text
    house.close()
    smaller = House(tmp_path, Clock(), survey_cap="5")
    later = Field(smaller, smaller.person("analyst", email="bo@example.org"))
    with smaller.hub.database.begin() as db:
        row = db.get(HeldSurvey, number)
        assert row is not None
        row.person = later.ana.id
    refused = later.ask("POST", f"/{number}/open")
    assert refused.status_code in (400, 422)
    assert "no survey take more than an ε of 5 " in refused.json()["detail"]
    smaller.close()


def test_nothing_changes_once_it_is_open(field: Field) -> None:
    number = field.opened()
    before = field.ask("GET", f"/{number}").json()
    for method, path, body in (
        ("PATCH", f"/{number}", {"title": "Other"}),
        ("PATCH", f"/{number}", {"questions": [COPIED]}),
        ("DELETE", f"/{number}", None),
        ("POST", f"/{number}/open", None),
    ):
        refused = field.ask(method, path, body)
        assert refused.status_code == 409
        assert refused.json()["detail"].startswith("it is open, and nothing of it changes")
    field.ana.client.cookies.set(LANGUAGE_COOKIE, "zh_CN")
    page = field.post(f"/surveys/{number}/open", {}).text
    field.ana.client.cookies.delete(LANGUAGE_COOKIE)
    assert "nothing of it changes" not in page
    assert field.post(f"/surveys/{number}/questions", COPIED).status_code == 409
    after = field.ask("GET", f"/{number}").json()
    assert after == before
    assert Survey.from_dict(after["survey"]) == field.survey(number)


def test_an_empty_survey_is_not_opened(field: Field) -> None:
    number = field.draft(questions=[])
    answer = field.ask("POST", f"/{number}/open")
    assert answer.status_code in (400, 422)
    assert "asks nothing" in answer.json()["detail"]


def test_a_survey_of_somebody_else_is_not_there(field: Field) -> None:
    eve = field.house.person("analyst", email="eve@example.org")
    number = field.opened(invited=True)
    missing = field.ask("GET", "/nothing-of-that-name", who=eve)
    for method, path, body in (
        ("GET", f"/{number}", None),
        ("PATCH", f"/{number}", {"title": "Mine"}),
        ("DELETE", f"/{number}", None),
        ("POST", f"/{number}/close", None),
        ("POST", f"/{number}/invitations", {"count": 1}),
        ("GET", f"/{number}/results", None),
        ("GET", f"/{number}/reports", None),
    ):
        answer = field.ask(method, path, body, who=eve)
        assert answer.status_code == 404, (method, path)
        assert answer.json()["title"] == missing.json()["title"]
    assert eve.client.get(f"/surveys/{number}").status_code == 404
    assert eve.client.get(f"/surveys/{number}/results.csv").status_code == 404
    assert number not in eve.client.get("/surveys").text


def test_the_integers_of_the_file_are_the_promise(field: Field) -> None:
    """What a respondent gets is checked by the library itself: a file that says other integers is refused."""
    number = field.opened()
    told = field.house.client().get(f"/api/v1/surveys/{number}/form").json()["survey"]
    assert Survey.from_dict(told).levels[0].name == "careful"
    told["channels"]["copied"]["careful"]["heads"] = hex(2**64 - 1)
    with pytest.raises(ValueError, match="changed"):
        Survey.from_dict(told)


def test_invitations_are_for_surveys_that_want_them(field: Field) -> None:
    number = field.opened()
    assert field.ask("POST", f"/{number}/invitations", {"count": 3}).status_code == 409
    invited = field.opened(invited=True)
    shown = field.post(f"/surveys/{invited}/invitations", {"count": "3"})
    assert shown.status_code == 201
    assert shown.text.count(f"/s/{invited}#") == 3
    assert "3 invitations are unused" in field.ana.client.get(f"/surveys/{invited}").text
    assert field.ask("POST", f"/{invited}/invitations", {"count": 0}).status_code == 422
    assert field.post(f"/surveys/{invited}/invitations", {"count": "many"}).status_code in (400, 422)


def test_the_first_levels_have_names_in_the_language_of_whoever_begins(field: Field) -> None:
    field.ana.client.cookies.set(LANGUAGE_COOKIE, "zh_CN")
    path = field.post("/surveys", {"title": "考试", "purpose": ""}).headers["location"]
    levels = field.ask("GET", f"/{path.rpartition('/')[2]}").json()["draft"]["levels"]
    assert [each["epsilon"] for each in levels] == ["0.5", "1", "2"]
    assert all("一" <= each["name"][0] <= "鿿" for each in levels)
    plain = field.draft(questions=[], title="Exams", levels=None)
    assert field.ask("GET", f"/{plain}").json()["draft"]["levels"][0]["name"] == "more private"


def test_a_text_that_is_none_is_refused_and_not_kept(field: Field) -> None:
    """Half a surrogate pair is valid JSON, and no text that a database keeps."""
    headers = {**field.ana.bearer, "Content-Type": "application/json"}
    for name in ("title", "purpose", "introduction"):
        body = '{"title": "Exams", "' + name + '": "a\\ud800"}'
        answer = field.house.client().post("/api/v1/surveys", content=body, headers=headers)
        assert answer.status_code in (400, 422), (name, answer.text)


def test_words_are_few(field: Field) -> None:
    words = [{"kind": "word", "name": f"w{i}", "text": f"Which word is number {i}?"} for i in range(4)]
    answer = field.ask("PATCH", f"/{field.draft(questions=words[:3], cap='20')}", {"questions": words})
    assert answer.status_code in (400, 422)
    assert "at most 3 words" in answer.json()["detail"]


def test_a_refused_form_keeps_what_was_typed(field: Field) -> None:
    number = field.draft(questions=())
    about = {"title": "Sleep", "purpose": "nights", "introduction": "Read me", "hoped": "77", "invited": "yes", "cap": "1000"}
    said = field.post(f"/surveys/{number}", about | {"level": ["low", "high"], "epsilon": ["0.25", "4"]})
    assert said.status_code == 422, said.text
    values = dict(re.findall(r'<input id="f-([\w-]+)"[^>]* value="([^"]*)"', said.text))
    kept = {"title": "Sleep", "purpose": "nights", "hoped": "77", "cap": "1000", "level-1": "high", "epsilon-1": "4"}
    assert kept.items() <= values.items()
    assert "Read me</textarea>" in said.text
    assert 'name="invited" value="yes" checked' in said.text
    asked = field.post(f"/surveys/{number}/questions", {"kind": "choice", "text": "Which?", "name": "x", "options": "one"})
    assert (asked.status_code, "The question is invalid" in field.post(f"/surveys/{number}/questions", {"kind": "x"}).text) == (
        422,
        True,
    )
    assert 'name="no_answer" value="yes">' in asked.text, "what was not ticked stays so"
    assert 'name="no_answer" value="yes" checked' in field.ana.client.get(f"/surveys/{number}").text
    made = field.opened(invited=True)
    assert 'name="count" type="text" value="6000"' in field.post(f"/surveys/{made}/invitations", {"count": "6000"}).text
    joint = field.post("/joint-surveys", {"title": "", "invited": "yes"})
    assert 'name="invited" value="yes" checked' in joint.text


def test_what_a_refusal_of_options_says_to_type_is_taken(field: Field) -> None:
    """It says "cat, dog in the field": in one line, which was one option, and refused again."""
    page = f"/surveys/{field.draft(questions=())}/questions"
    pet = {"kind": "several", "text": "Which?", "name": "pet", "options": "cat"}
    assert "cat, dog in the field" in field.post(page, pet).text
    assert "8 in the field" in field.post(page, pet | {"most": "two"}).text
    made = field.post(page, pet | {"options": "cat, dog"})
    assert made.status_code == 303, made.text
    assert 'name="kind" value="several"' in field.ana.client.get(made.headers["location"]).text, (
        "the next one may be of that kind"
    )
    assert "cat · dog" in field.ana.client.get(page.removesuffix("/questions")).text


def test_a_margin_in_thousands_is_written_out(field: Field) -> None:
    number = field.draft(questions=[{"kind": "number", "name": "pay", "text": "Pay?", "low": "0", "high": "100000"}])
    page = field.ana.client.get(f"/surveys/{number}").text
    assert re.findall(r"± ([^<]*)", page) == ["21,864", "5,942"], "and not 2.19e+04"


def test_a_refused_question_is_told_in_chinese(field: Field) -> None:
    number, joint = field.draft(questions=()), field.post("/joint-surveys", {"title": "睡眠"}).headers["location"]
    field.ana.client.cookies.set(LANGUAGE_COOKIE, "zh_CN")
    one = {"kind": "choice", "text": "哪个？", "name": "x", "options": "一"}
    assert "选项少于 2 个或多于 4,096 个" in field.post(f"/surveys/{number}/questions", one).text
    assert "须有 2 至 200 个不同的选项" in field.post(f"{joint}/questions", one | {"epsilon": "1"}).text
