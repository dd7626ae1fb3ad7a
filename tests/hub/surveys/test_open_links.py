"""A link to an open survey that somebody else has sent before, in real browsers; and what a page keeps once it is done."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from cloister.printable import is_printable, shown
from tests.hub.house import Clock, House
from tests.hub.surveys.conftest import ODD, Field, stored
from tests.hub.surveys.test_in_browser import EVERY_KIND, SECRET, answer
from tests.hub.web.browser import browser, serve, visit

__all__ = ["browser", "serve", "visit"]

TRUE = ("basel", "17.5")
VALUES = """() => [...document.querySelectorAll("input, select")]
  .map((each) => ["radio", "checkbox"].includes(each.type) ? (each.checked ? each.name : "") : each.value).join(" ")"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, serve: Any) -> Iterator[tuple[Field, str]]:
    house = House(tmp_path_factory.mktemp("links") / "hub", Clock())
    yield Field(house, house.person("analyst", email="ana@example.org", name="Ana Analyst")), serve(house.app)
    house.close()


def answered(page: Page, *, send: bool = True) -> None:
    page.get_by_label("careful").first.check()
    page.get_by_role("button", name="To the questions").click()
    answer(page)
    page.locator("fieldset", has_text="Have you ever copied").get_by_role("button", name="Preview of sent data").click()
    page.get_by_role("button", name="Change them by chance").click()
    if send:
        page.get_by_role("button", name="Send it").click()
        expect(page.get_by_text("Your randomised answers have arrived.")).to_be_visible()


def test_a_link_that_was_sent_on_silences_nobody(served: tuple[Field, str], visit: Any) -> None:
    """Everybody who comes through a link with a token in it is counted, under a token that their own browser drew."""
    field, address = served
    number = field.opened(questions=EVERY_KIND[:2], levels=[{"name": "careful", "epsilon": "1"}])
    tokens = set()
    for _ in range(2):
        guarded = visit(address)
        sent: list[str] = []
        guarded.context.on("request", lambda each, sent=sent: sent.append(each.post_data) if each.method == "POST" else None)
        page: Page = guarded.page(f"/s/{number}#{'ab' * 16}")
        page.get_by_label("careful").check()
        page.get_by_role("button", name="To the questions").click()
        page.get_by_label("yes", exact=True).check()
        page.get_by_label(SECRET).check()
        page.get_by_role("button", name="Change them by chance").click()
        page.get_by_role("button", name="Send it").click()
        expect(page.get_by_text("Your randomised answers have arrived.")).to_be_visible()
        tokens.add(json.loads(sent[-1])["token"])
    assert len(tokens - {"ab" * 16}) == 2
    assert field.results(number)["n"] == 2


def test_nothing_true_stays_in_a_page_that_is_done(served: tuple[Field, str], visit: Any) -> None:
    """Not after "Thank you", not on the way back to it, and not in a page that was left before its report was sent."""
    field, address = served
    number = field.opened(questions=EVERY_KIND, levels=[{"name": "careful", "epsilon": "0.5"}], cap="4")
    page: Page = visit(address).page(f"/s/{number}")
    answered(page)
    assert not page.locator("#questions").locator("*").count()
    for _ in range(2):
        assert not any(each in page.content().lower() or each in page.evaluate(VALUES).lower() for each in TRUE)
        page.goto(f"{address}/static/logo.svg")
        page.go_back()
    page.goto(f"{address}/s/{number}")
    answered(page, send=False)
    page.evaluate("dispatchEvent(new PageTransitionEvent('pagehide', { persisted: true }))")  # as a browser that keeps it does
    assert not any(each in page.evaluate(VALUES).lower() for each in TRUE)
    assert not page.locator("#questions").locator("*").count()
    page.get_by_role("button", name="Send it").click()
    expect(page.get_by_text("Your randomised answers have arrived.")).to_be_visible()


def test_answers_that_are_left_before_they_are_changed_are_gone_too(served: tuple[Field, str], visit: Any) -> None:
    field, address = served
    number = field.opened(questions=EVERY_KIND, levels=[{"name": "careful", "epsilon": "0.5"}], cap="4")
    page: Page = visit(address).page(f"/s/{number}")
    page.get_by_label("careful").first.check()
    page.get_by_role("button", name="To the questions").click()
    answer(page)
    page.locator("fieldset", has_text="Have you ever copied").get_by_role("button", name="Preview of sent data").click()
    page.evaluate("dispatchEvent(new PageTransitionEvent('pagehide', { persisted: true }))")
    assert page.locator("#questions input:checked").count() == 0
    assert page.locator("#questions .badges li").count() == 0
    assert not any(each in page.evaluate(VALUES).lower() for each in TRUE)
    answer(page)
    page.get_by_role("button", name="Change them by chance").click()
    expect(page.get_by_role("button", name="Send it")).to_be_visible()


def test_an_invitation_stays_with_its_page_and_another_one_begins_anew(served: tuple[Field, str], visit: Any) -> None:
    """A link whose end was lost, then the whole one in the same tab; a link within the page; another language; who comes next."""
    field, address = served
    number = field.opened(questions=EVERY_KIND[:1], invited=True)
    tokens = field.ask("POST", f"/{number}/invitations", {"count": 2}).json()["tokens"]
    page: Page = visit(address).page(f"/s/{number}")
    expect(page.get_by_text("This survey needs an invitation")).to_be_visible()
    for token in tokens:
        page.goto(f"{address}/s/{number}#{token}")
        expect(page.locator("#levels input").first).to_be_visible()
        page.locator(".skip").focus()
        page.locator(".skip").press("Enter")
        page.reload()
        page.locator("button[name=language]").first.click()
        page.locator("#levels input").first.check()
        page.locator("#begin").click()
        page.locator("#questions input").first.check()
        page.locator("#randomise").click()
        page.locator("#send").click()
        expect(page.locator("#step-thanks")).to_be_visible()
        assert not page.evaluate("Object.keys(localStorage).length + Object.keys(sessionStorage).length")
    assert field.results(number)["n"] == 2


def test_a_refused_report_says_so(served: tuple[Field, str], visit: Any) -> None:
    field, address = served
    number = field.opened(questions=EVERY_KIND[:1], invited=True)
    (token,) = field.ask("POST", f"/{number}/invitations", {"count": 1}).json()["tokens"]
    assert field.send(number, field.report(number, {}, seed=1, token=token)).status_code == 201
    page: Page = visit(address, expected=("403",)).page(f"/s/{number}#{token}")
    page.get_by_label("careful").check()
    page.get_by_role("button", name="To the questions").click()
    page.get_by_label("yes", exact=True).check()
    page.get_by_role("button", name="Change them by chance").click()
    page.get_by_role("button", name="Send it").click()
    expect(page.locator("#failed")).to_contain_text("The report was not accepted: its invitation was used before")
    expect(page.get_by_text("Your randomised answers have arrived.")).to_be_hidden()


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (200, "同一份答卷只计一次"),  # a page of somebody on the way, such as a notice of maintenance
        (409, "问卷已经结束"),
        (422, "无效"),
        (429, "稍后"),
        (503, "同一份答卷只计一次"),
        (0, "同一份答卷只计一次"),
    ],
)
def test_what_the_hub_says_of_a_report_is_told_in_the_words_of_the_page(
    served: tuple[Field, str], visit: Any, status: int, said: str
) -> None:
    """In its language, and without a word of what was counted where the page cannot know it."""
    field, address = served
    number = field.opened(questions=EVERY_KIND[:1])
    guarded = visit(address, locale="zh-CN", expected=(str(status or "net::ERR_FAILED"),))
    problem = {"title": "Refused", "detail": "an English reason"}
    guarded.context.route("**/reports", lambda route: route.fulfill(status=status, json=problem) if status else route.abort())
    page: Page = guarded.page(f"/s/{number}")
    page.get_by_label("careful").check()
    page.locator("#begin").click()
    page.locator("#questions input").first.check()
    page.locator("#randomise").click()
    page.locator("#send").click()
    expect(page.locator("#failed")).to_contain_text(said)
    assert "English" not in page.locator("#failed").inner_text()
    assert page.locator("#send").is_enabled()


@pytest.mark.parametrize("odd", ODD)
def test_a_stored_survey_with_any_texts_opens_in_the_page(served: tuple[Field, str], visit: Any, odd: str) -> None:
    """What an older version took stands on the page by its numbers, from the title to what leaves; and the report arrives."""
    field, address = served
    number = stored(field, odd)
    page: Page = visit(address).page(f"/s/{number}")
    page.locator("#levels input").first.check()
    page.get_by_role("button", name="To the questions").click()
    page.locator("#questions input").first.check()
    page.get_by_role("button", name="Change them by chance").click()
    texts = page.evaluate("document.documentElement.textContent")
    assert shown(odd, lines=True) in texts.replace("\r", "")
    assert is_printable(texts, lines=True)
    page.get_by_role("button", name="Send it").click()
    expect(page.get_by_text("Your randomised answers have arrived.")).to_be_visible()
    assert field.results(number)["n"] == 1


@pytest.mark.parametrize(
    ("where", "said"), [("epsilon", "-5/-1"), ("epsilon", "0"), ("cap", "1e9"), ("cap", "-8/-1"), ("cap", 8)]
)
def test_a_survey_with_other_numbers_is_not_asked(served: tuple[Field, str], visit: Any, where: str, said: Any) -> None:
    """A hub that was broken into could say anything; the page believes no number that is not written as the library writes it."""
    field, address = served
    number = field.opened(questions=EVERY_KIND[:2])
    guarded = visit(address)

    def changed(route: Any) -> None:
        told = route.fetch().json()
        (told["survey"] if where == "cap" else told["survey"]["levels"][0])[where] = said
        route.fulfill(json=told)

    guarded.context.route("**/form", changed)
    page: Page = guarded.page(f"/s/{number}")
    expect(page.get_by_text("This survey cannot be answered")).to_be_visible()
    expect(page.get_by_role("button", name="To the questions")).to_be_hidden()


@pytest.mark.parametrize("status", [503, 0])
def test_a_survey_that_could_not_be_fetched_is_not_called_inconsistent(
    served: tuple[Field, str], visit: Any, status: int
) -> None:
    field, address = served
    number = field.opened(questions=EVERY_KIND[:1])
    guarded = visit(address, expected=(str(status or "net::ERR_FAILED"),))
    guarded.context.route("**/form", lambda route: route.fulfill(status=status) if status else route.abort())
    expect(guarded.page(f"/s/{number}").get_by_text("Load this page again.")).to_be_visible()


def test_arabic_is_written_from_the_right(served: tuple[Field, str], visit: Any) -> None:
    field, address = served
    choice = {"kind": "choice", "name": "meal", "text": "ماذا أكلت (اليوم)؟", "options": ["خبز (أبيض)", "rice"]}
    page: Page = visit(address).page(f"/s/{field.opened(questions=[choice])}")
    page.locator("#levels input").first.check()
    page.get_by_role("button", name="To the questions").click()
    reads = "each => getComputedStyle(each).direction"
    assert [page.get_by_text(text).first.evaluate(reads) for text in ("ماذا", "خبز", "rice")] == ["rtl", "rtl", "ltr"]
