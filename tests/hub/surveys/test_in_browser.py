"""Surveys in a real browser: composed, answered without an account, read; and what leaves a respondent's page."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, Request, expect

from cloister.hub.platform.accounts.sessions import cookie_name
from cloister.hub.platform.jobs import Workers
from tests.hub.house import Clock, House
from tests.hub.surveys.conftest import COPIED, Field
from tests.hub.web.browser import WIDTHS, accessible, browser, serve, visit
from tests.tiers import some_by_day

__all__ = ["browser", "serve", "visit"]

SECRET = "zebra-crossing"
EVERY_KIND = (
    {"kind": "yes-no", "name": "copied", "text": "Have you ever copied in an exam?"},
    {"kind": "choice", "name": "why", "text": "Why?", "options": ["not enough time", SECRET, "for the grade"]},
    {"kind": "several", "name": "used", "text": "What did you use?", "options": ["a phone", "notes", "a friend"], "most": 2},
    {"kind": "scale", "name": "often", "text": "How often?", "steps": ["never", "once", "often"], "no_answer": False},
    {"kind": "number", "name": "hours", "text": "How many hours did you study?", "low": "0", "high": "40"},
    {
        "kind": "place",
        "name": "home",
        "text": "Where do you live?",
        "south": 47.0,
        "west": 8.0,
        "north": 48.0,
        "east": 9.0,
        "rows": 4,
        "columns": 4,
    },
    {"kind": "word", "name": "town", "text": "Which town do you come from?"},
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, serve: Any) -> Iterator[tuple[Field, str]]:
    house = House(tmp_path_factory.mktemp("browser") / "hub", Clock())
    ana = house.person("analyst", email="ana@example.org", name="Ana Analyst")
    yield Field(house, ana), serve(house.app)
    house.close()


def as_ana(served: tuple[Field, str], visit: Any, path: str, **how: Any) -> Page:
    """A page, as the researcher sees it."""
    field, address = served
    guarded = visit(address, **how)
    name = cookie_name(field.hub.settings)
    guarded.context.add_cookies([{"name": name, "value": field.ana.client.cookies[name], "url": address}])
    page: Page = guarded.page(path)
    return page


@some_by_day("width", WIDTHS, lambda width: width == min(WIDTHS))
def test_composing_a_survey(served: tuple[Field, str], visit: Any, width: int) -> None:
    page = as_ana(served, visit, "/surveys", width=width)
    accessible(page)
    page.get_by_label("Title").fill("Sleep and screens")
    page.get_by_label("Purpose").fill("a study of sleep")
    page.get_by_role("button", name="Begin").click()
    page.get_by_label("Question text", exact=True).fill("Do you look at a screen in bed?")
    page.get_by_label("Short name").fill("screen")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_text("The question was added.")).to_be_visible()
    page.get_by_role("link", name="One of several").click()
    page.get_by_label("Question text", exact=True).fill("Which one?")
    page.get_by_label("Short name").fill("which")
    page.get_by_label("Options").fill("phone\ntablet\ntelevision")
    page.get_by_role("button", name="Add", exact=True).click()
    accessible(page)
    shot(page, f"survey-draft-{width}")
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Open the survey").click()
    expect(page.get_by_text("The survey is open.")).to_be_visible()
    expect(page.get_by_text("No one has answered yet.")).to_be_visible()
    accessible(page)


@some_by_day("width", WIDTHS, lambda width: width == min(WIDTHS))
def test_answering_every_kind_of_question(served: tuple[Field, str], visit: Any, width: int) -> None:
    """The answers are typed in; the network is watched; the report arrives."""
    field, address = served
    number = field.opened(questions=EVERY_KIND, levels=[{"name": "careful", "epsilon": "0.5"}], cap="4")
    guarded = visit(address, width=width)
    sent: list[Request] = []
    guarded.context.on("request", lambda each: sent.append(each))
    page: Page = guarded.page(f"/s/{number}")
    expect(page.get_by_role("heading", name="1. How much protection")).to_be_visible()
    assert not page.get_by_text("Have you ever copied").is_visible(), "the level is chosen before the questions are seen"
    page.get_by_label("careful").check()
    expect(page.locator("#demo-reports li")).to_have_count(20)
    accessible(page)
    shot(page, f"survey-level-{width}")
    page.get_by_role("button", name="To the questions").click()
    expect(page.locator("fieldset", has_text="What did you use?")).to_contain_text("at most 2 of them, or none")
    answer(page)
    page.locator("fieldset", has_text="Have you ever copied").get_by_role("button", name="Preview of sent data").click()
    expect(page.locator("fieldset", has_text="Have you ever copied").locator(".badges li")).to_have_count(12)
    accessible(page)
    shot(page, f"survey-questions-{width}")
    page.get_by_role("button", name="Change them by chance").click()
    leaving = page.locator("#leaving").text_content()
    assert stored(page) == {"careful"}, "the levels, until the report is sent; no answer"
    page.get_by_text("Exact bytes").click()
    accessible(page)
    shot(page, f"survey-leaving-{width}")
    before = len(sent)
    page.get_by_role("button", name="Send it").click()
    expect(page.get_by_text("Your randomised answers have arrived.")).to_be_visible()
    (report,) = sent[before:]
    assert (report.method, report.url) == ("POST", f"{address}/api/v1/surveys/{number}/reports")
    assert json.loads(report.post_data or "") == json.loads(leaving or ""), "what was shown is what left"
    assert sorted(json.loads(report.post_data or "")) == ["format", "levels", "survey", "token", "values", "version"]
    everything = " ".join(f"{each.url} {each.post_data or ''} {each.headers}" for each in sent)
    assert SECRET not in everything
    assert "basel" not in everything.lower()
    assert "cookie" not in report.headers
    assert field.results(number)["n"] == 1
    assert not page.evaluate("Object.keys(localStorage).length + Object.keys(sessionStorage).length")


LEVELS = ({"name": "careful", "epsilon": "0.5"}, {"name": "middle", "epsilon": "1/3"}, {"name": "open", "epsilon": "2"})


@some_by_day("width", WIDTHS, lambda width: width == min(WIDTHS))
def test_a_level_for_each_question(served: tuple[Field, str], visit: Any, width: int) -> None:
    """Chosen by the kinds of the questions alone; summed as one chooses; no more than the cap; sent as chosen."""
    field, address = served
    number = field.opened(questions=EVERY_KIND, levels=LEVELS, cap="6")
    guarded = visit(address, width=width)
    sent: list[Request] = []
    guarded.context.on("request", lambda each: sent.append(each))
    page: Page = guarded.page(f"/s/{number}")
    expect(page.get_by_label("open", exact=False).first).to_be_disabled()
    expect(page.locator("#levels")).to_contain_text("Too much for all 7 questions together (ε = 14")
    page.get_by_label("middle").check()
    expect(page.locator("#sum-text")).to_have_text("All your answers together: ε = 2.34 of at most 6.")
    page.get_by_text("Or choose for each question").click()
    before = page.locator("main").inner_text()
    assert "Question 6 of 7: A place on a map" in before
    assert not any(each["text"] in before for each in EVERY_KIND), "kinds are told, and no text of a question"
    page.get_by_label("Question 1 of 7: Yes or no").select_option("open")
    page.get_by_label("Question 2 of 7").select_option("open")
    assert page.locator("#levels input:checked").count() == 0
    expect(page.locator("#sum-text")).to_have_text("All your answers together: ε = 5.67 of at most 6.")
    accessible(page)
    shot(page, f"survey-each-{width}")
    page.get_by_label("Question 3 of 7").select_option("open")
    expect(page.locator("#over")).to_be_visible()
    expect(page.get_by_role("button", name="To the questions")).to_be_disabled()
    page.get_by_label("Question 3 of 7").select_option("careful")
    page.get_by_role("button", name="To the questions").click()
    expect(page.locator("#chosen-level")).to_contain_text("All your answers together: ε = 5.84 of at most 6.")
    home = page.locator("fieldset", has_text="Where do you live?")
    expect(home).to_contain_text("south (bottom, 47°) to the north (48°), its columns from the west (8°) to the east (9°)")
    assert home.locator("th").all_inner_texts()[:2] == ["47.75° – 48°", "47.5° – 47.75°"], "the north is above"
    expect(home.get_by_label("row 2, column 3: latitude 47.25° – 47.5°, longitude 8.5° – 8.75°")).to_be_visible()
    copied = page.locator("fieldset", has_text="Have you ever copied").locator(".promise")
    expect(copied).to_contain_text(
        "Your level here: “open”. Even if your answer is “yes”, anyone who sees what is sent can be at most 7.39"
    )
    answer(page)
    page.get_by_role("button", name="Change them by chance").click()
    expect(page.get_by_text("The levels that you chose, as they are.")).to_be_visible()
    before_sending = len(sent)
    page.get_by_role("button", name="Send it").click()
    expect(page.get_by_text("Your randomised answers have arrived.")).to_be_visible()
    (report,) = sent[before_sending:]
    said = json.loads(report.post_data or "")
    assert said["levels"] == dict.fromkeys(said["values"], "middle") | {"copied": "open", "why": "open", "used": "careful"}
    everything = " ".join(f"{each.url} {each.post_data or ''}" for each in sent)
    assert SECRET not in everything
    assert "basel" not in everything.lower()
    told = field.results(number)["questions"]
    assert [each["people"]["open"] for each in told[:3]] == [1, 1, 0]


def test_levels_stay_once_the_questions_were_seen(served: tuple[Field, str], visit: Any) -> None:
    """Loaded again, the page goes on with the levels that were chosen; with the report sent, nothing is left of them."""
    field, address = served
    number = field.opened(questions=EVERY_KIND[:2], levels=LEVELS, cap="4")
    guarded = visit(address)
    page: Page = guarded.page(f"/s/{number}")
    page.get_by_label("middle").check()
    page.reload()
    expect(page.get_by_label("middle")).to_be_enabled()
    assert not page.get_by_label("middle").is_checked(), "not chosen before the questions are asked for"
    page.get_by_label("middle").check()
    page.get_by_text("Or choose for each question").click()
    page.get_by_label("Question 2 of 2").select_option("careful")
    page.get_by_role("button", name="To the questions").click()
    page.get_by_label("yes", exact=True).check()
    assert stored(page) == {"middle", "careful"}
    page.reload()
    expect(page.get_by_text("so it stays as it is")).to_be_visible()
    expect(page.get_by_label("Question 2 of 2")).to_have_value("careful")
    expect(page.get_by_label("Question 2 of 2")).to_be_disabled()
    expect(page.get_by_label("open").first).to_be_disabled()
    assert not page.get_by_label("yes", exact=True).is_checked(), "answers are kept nowhere"
    page.get_by_label("yes", exact=True).check()
    page.get_by_label("for the grade").check()
    page.get_by_role("button", name="Change them by chance").click()
    assert json.loads(page.locator("#leaving").text_content() or "")["levels"] == {"copied": "middle", "why": "careful"}
    page.get_by_role("button", name="Send it").click()
    expect(page.get_by_text("Your randomised answers have arrived.")).to_be_visible()
    page.goto(f"{address}/s/{number}")
    expect(page.get_by_label("middle")).to_be_enabled()


@pytest.mark.parametrize("invited", [False, True])
def test_answers_are_drawn_once_however_often_a_page_is_loaded(served: tuple[Field, str], visit: Any, invited: bool) -> None:
    """Whoever watches the network sees one report, with one token: more would tell more than the sum that the page shows."""
    field, address = served
    number = field.opened(questions=EVERY_KIND, levels=LEVELS, cap="6", invited=invited)
    ticket = field.ask("POST", f"/{number}/invitations", {"count": 1}).json()["tokens"][0] if invited else ""
    guarded = visit(address, expected=("net::ERR_FAILED",))
    sent: list[str] = []

    def lost(route: Any) -> None:
        sent.append(route.request.post_data)
        route.abort()

    guarded.context.route("**/reports", lost)
    page: Page = guarded.page(f"/s/{number}#{ticket}")
    page.get_by_label("careful").first.check()
    page.get_by_role("button", name="To the questions").click()
    answer(page)
    page.get_by_role("button", name="Change them by chance").click()
    for _ in range(3):
        page.get_by_role("button", name="Send it").click()
        expect(page.locator("#failed")).to_be_visible()
        page.reload()
        expect(page.get_by_role("heading", name="3. Data to be sent")).to_be_visible()
        expect(page.get_by_role("button", name="Change them by chance")).to_be_hidden()
    guarded.context.unroute("**/reports")
    page.get_by_role("button", name="Send it").click()
    expect(page.get_by_text("Your randomised answers have arrived.")).to_be_visible()
    assert len(sent) == 3
    assert len(set(sent)) == 1
    assert field.results(number)["n"] == 1
    assert not page.evaluate("Object.keys(localStorage).length + Object.keys(sessionStorage).length")


def test_tabs_with_one_invitation_send_one_draw(served: tuple[Field, str], visit: Any) -> None:
    """Whichever tab sends, and one that is opened when the report has arrived: a second draw would tell more of the answers."""
    field, address = served
    number = field.opened(questions=EVERY_KIND, levels=LEVELS, cap="6", invited=True)
    (ticket,) = field.ask("POST", f"/{number}/invitations", {"count": 1}).json()["tokens"]
    guarded = visit(address, expected=("403",))
    sent: list[str | None] = []
    guarded.context.on("request", lambda each: sent.append(each.post_data) if each.method == "POST" else None)
    first, other, _ = tabs = [guarded.page(f"/s/{number}#{ticket}") for _ in range(3)]
    for page in (first, other):
        page.get_by_label("careful").first.check()
        page.get_by_role("button", name="To the questions").click()
        answer(page)
    first.get_by_role("button", name="Change them by chance").click()
    expect(first.locator("#failed")).to_be_hidden()
    first.get_by_role("button", name="Send it").click()
    expect(first.get_by_text("Your randomised answers have arrived.")).to_be_visible()
    tabs.append(guarded.page(f"/s/{number}#{ticket}"))
    for page in tabs[1:]:
        expect(page.get_by_text("in another tab")).to_be_visible()
        for name in ("Change them by chance", "To the questions"):
            expect(page.get_by_role("button", name=name)).to_be_hidden()
        assert not page.locator("#questions input").count(), "no true answer stays in the other tabs"
        page.get_by_role("button", name="Send it").click()
        expect(page.get_by_text("its invitation was used before")).to_be_visible()
    for page in (*tabs[:1], *tabs[2:]):
        page.close()
    other.reload()  # no other tab tells it any more
    expect(other.get_by_role("button", name="Send it")).to_be_visible()
    expect(other.get_by_role("button", name="To the questions")).to_be_hidden()
    assert len(sent) == 4
    assert len(set(sent)) == 1
    assert field.results(number)["n"] == 1


def test_a_model_is_trained_and_used(served: tuple[Field, str], visit: Any) -> None:
    """From the page of the survey to a prediction, by keyboard names alone; nothing was spent, and the page says so."""
    from tests.hub.surveys.test_models import filled

    field, _ = served
    number = filled(field, 800)
    page = as_ana(served, visit, f"/surveys/{number}")
    page.get_by_role("link", name="Train a model").click()
    page.get_by_label("Question to predict", exact=True).select_option("copied")
    page.get_by_label("Which year?").check()
    page.get_by_label("Name of the model").fill("Who copies")
    accessible(page)
    page.get_by_role("button", name="Train").click()
    expect(page.get_by_role("heading", name="Model of a survey")).to_be_visible()
    assert Workers(field.hub, 0).run_one()
    page.reload()
    page.locator("main a[href*='/survey-models/']").first.click()
    expect(page.get_by_text("no budget is charged")).to_be_visible()
    page.locator("select[name='q year']").select_option("<third>")
    page.get_by_role("button", name="Predict").click()
    expect(page.locator("#foretold")).to_have_text("yes")
    accessible(page)


def test_levels_that_the_survey_does_not_take_are_no_choice(served: tuple[Field, str], visit: Any) -> None:
    """Whatever stands in the browser's store: the page offers its levels, and nothing is chosen."""
    field, address = served
    number = field.opened(questions=EVERY_KIND[:2], levels=LEVELS, cap="3")
    survey = field.survey(number)
    page: Page = visit(address).page(f"/s/{number}")
    for kept in (
        "{",
        "null",
        "3",
        '"careful"',
        '{"copied": "open"}',
        '{"copied": "open", "why": "open"}',
        '{"copied": "x", "why": "y"}',
    ):
        page.evaluate("([place, kept]) => sessionStorage.setItem(place, kept)", [f"cloister {survey.id} {survey.version} ", kept])
        page.reload()
        expect(page.get_by_label("middle")).to_be_enabled()
        expect(page.locator("#step-questions")).to_be_hidden()


def stored(page: Page) -> set[str]:
    """The levels that the browser keeps; it keeps nothing else, but for what stands on the page as what leaves."""
    kept = page.evaluate("({...sessionStorage})")
    reports = [json.loads(kept.pop(name)) for name in [*kept] if name.endswith(" report")]
    assert reports in ([], [json.loads(page.locator("#leaving").text_content() or "null")])
    (levels,) = kept.values()
    assert not page.evaluate("Object.keys(localStorage).length")
    return set(json.loads(levels).values())


def test_a_promise_is_rounded_up_and_a_place_of_the_page_is_no_invitation(served: tuple[Field, str], visit: Any) -> None:
    field, address = served
    number = field.opened(levels=[{"name": "careful", "epsilon": "1/3"}], cap="4")
    page: Page = visit(address).page(f"/s/{number}#content")
    expect(page.locator("#levels")).to_contain_text("ε = 0.334")  # 0.333 would be less than what the integers keep
    page.get_by_label("careful").check()
    page.get_by_role("button", name="To the questions").click()
    page.locator("fieldset", has_text="Have you ever copied").get_by_label("yes").check()
    page.locator("fieldset", has_text="Why?").get_by_label("time").check()
    page.get_by_role("button", name="Change them by chance").click()
    page.get_by_role("button", name="Send it").click()
    expect(page.get_by_text("Your randomised answers have arrived.")).to_be_visible()


def test_the_same_answers_leave_as_the_same_kind_of_thing(served: tuple[Field, str], visit: Any) -> None:
    """No field comes or goes with an answer: a person who answers nothing sends what looks alike."""
    field, address = served
    questions = [{**each, "no_answer": True} for each in EVERY_KIND]
    number = field.opened(questions=questions, levels=[{"name": "careful", "epsilon": "0.5"}], cap="4")
    shapes = []
    for answers in (True, False):
        page: Page = visit(address).page(f"/s/{number}")
        page.get_by_label("careful").check()
        page.get_by_role("button", name="To the questions").click()
        if answers:
            answer(page)
        else:
            for box in page.get_by_label("I would rather not answer").all():
                box.check()
        page.get_by_role("button", name="Change them by chance").click()
        shapes.append(shape_of(json.loads(page.locator("#leaving").text_content() or "")))
    assert shapes[0] == shapes[1]


def test_what_is_missing_is_said_and_nothing_leaves(served: tuple[Field, str], visit: Any) -> None:
    field, address = served
    page: Page = visit(address).page(f"/s/{field.opened(questions=EVERY_KIND[:1])}")
    page.get_by_label("careful").check()
    page.get_by_role("button", name="To the questions").click()
    page.get_by_role("button", name="Change them by chance").click()
    expect(page.get_by_text("has no answer yet")).to_be_visible()
    expect(page.locator("#leaving")).to_be_hidden()
    blank: Page = visit(address).page(f"/s/{field.opened(questions=[{**EVERY_KIND[6], 'no_answer': False}])}")
    blank.get_by_label("careful").check()
    blank.get_by_role("button", name="To the questions").click()
    blank.get_by_label("Which town do you come from?", exact=True).fill("\u200b")
    blank.get_by_role("button", name="Change them by chance").click()
    expect(blank.get_by_text("has no answer yet")).to_be_visible()
    expect(blank.locator("#leaving")).to_be_hidden()


@pytest.mark.parametrize("typed", ["3,5", " ３，５ ", "−0,5"])
def test_a_number_is_read_as_people_type_it(served: tuple[Field, str], visit: Any, typed: str) -> None:
    """A browser's own field for numbers makes 35 of "3,5"; and the longest word of an answer fits on a narrow page."""
    field, address = served
    hours = {"kind": "number", "name": "hours", "text": "Hours?", "low": "-1", "high": "9999", "no_answer": False}
    number = field.opened(questions=[hours, {**COPIED, "kind": "choice", "options": ["no", "y" * 90]}])
    page: Page = visit(address, width=min(WIDTHS)).page(f"/s/{number}")
    page.get_by_label("careful").check()
    page.get_by_role("button", name="To the questions").click()
    page.get_by_label("no", exact=True).check()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_label("Hours?", exact=True).press_sequentially("1,000")
    page.get_by_role("button", name="Change them by chance").click()
    expect(page.locator("#missing")).to_contain_text("“Hours?” has no answer yet, or one that is not allowed")
    page.get_by_label("Hours?", exact=True).fill(typed)
    page.get_by_role("button", name="Change them by chance").click()
    expect(page.locator("#step-send")).to_be_visible()


def test_an_invitation_is_in_the_part_of_the_address_that_is_not_sent(served: tuple[Field, str], visit: Any) -> None:
    field, address = served
    number = field.opened(questions=EVERY_KIND[:1], invited=True)
    (token,) = field.ask("POST", f"/{number}/invitations", {"count": 1}).json()["tokens"]
    guarded = visit(address)
    sent: list[Request] = []
    guarded.context.on("request", lambda each: sent.append(each))
    page: Page = guarded.page(f"/s/{number}#{token}")
    page.get_by_label("careful").check()
    page.get_by_role("button", name="To the questions").click()
    page.get_by_label("yes", exact=True).check()
    page.get_by_role("button", name="Change them by chance").click()
    assert token not in " ".join(f"{each.url} {each.headers}" for each in sent)
    page.get_by_role("button", name="Send it").click()
    expect(page.get_by_text("Your randomised answers have arrived.")).to_be_visible()
    assert token not in page.url
    uninvited: Page = visit(address).page(f"/s/{number}")
    expect(uninvited.get_by_text("This survey needs an invitation")).to_be_visible()


def test_it_speaks_chinese(served: tuple[Field, str], visit: Any) -> None:
    field, address = served
    number = field.opened(questions=EVERY_KIND[:1])
    page: Page = visit(address, locale="zh-CN").page(f"/s/{number}")
    page.get_by_label("careful").check()
    assert page.locator("html").get_attribute("lang") == "zh-Hans"
    text = page.locator("main").inner_text()
    assert "真实" in text
    assert "surer" not in text


def test_the_results_with_pictures(served: tuple[Field, str], visit: Any) -> None:
    field, _ = served
    levels = [{"name": "careful", "epsilon": "0.5"}, {"name": "open", "epsilon": "1"}]
    number = field.opened(questions=EVERY_KIND, levels=levels, title=f"https://exams.example.org/{'exams' * 20}")  # no blank
    for seed in range(120):
        said = {
            "copied": seed % 3 == 0,
            "why": SECRET,
            "used": ["notes"],
            "often": "once",
            "hours": 20,
            "home": "1,2",
            "town": "basel",
        }
        field.send(number, field.report(number, said, "open" if seed % 2 else "careful", seed=seed))
    page = as_ana(served, visit, f"/surveys/{number}")
    expect(page.get_by_text("the south (47°) to the north (48°), columns from the west (8°) to the east (9°)")).to_be_visible()
    for told in ("looking", "results"):
        expect(page.get_by_role("heading", name="Have you ever copied in an exam?")).to_be_visible()
        if told == "looking":
            expect(page.get_by_role("progressbar", name="Looking for words")).to_be_visible()
        for width in WIDTHS:
            accessible(page, width)
            shot(page, f"survey-{told}-{width}")
        if told == "looking":
            assert Workers(field.hub, 0).run_one()
            expect(page.get_by_text("No word is common enough")).to_be_visible(timeout=60_000)  # it is loaded again by itself


def answer(page: Page) -> None:
    """Every question of `EVERY_KIND`."""
    page.get_by_label("yes", exact=True).check()
    page.get_by_label(SECRET).check()
    page.get_by_label("notes").check()
    page.get_by_label("a phone").check()
    page.get_by_label("once").check()
    page.get_by_label("How many hours did you study?", exact=True).fill("17.5")
    page.get_by_label("row 2, column 3").check()
    page.get_by_label("Which town do you come from?", exact=True).fill("Basel")


def shape_of(value: Any) -> Any:
    """Kinds and numbers of things, without the things."""
    if isinstance(value, dict):
        return {name: shape_of(each) for name, each in value.items()}
    if isinstance(value, list):
        return [shape_of(each) for each in value]
    return type(value).__name__


def shot(page: Page, name: str) -> None:
    """A picture, where somebody wants to look."""
    if folder := os.environ.get("CLOISTER_PICTURES"):
        page.screenshot(path=f"{folder}/{name}.png", full_page=True)
