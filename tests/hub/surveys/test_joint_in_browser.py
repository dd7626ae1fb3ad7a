"""A joint survey in a real browser: composed, helped, answered without an account, opened; and what leaves a respondent."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Request, expect

from cloister.crypto import fingerprint
from cloister.together.prio3.helper import Helper, HelperCalls
from tests.hub.house import Clock, House
from tests.hub.surveys.conftest import Field
from tests.hub.surveys.test_in_browser import as_ana, shot
from tests.hub.web.browser import WIDTHS, accessible, browser, serve, visit

__all__ = ["browser", "serve", "visit"]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, serve: Any) -> Iterator[tuple[Field, str]]:
    house = House(tmp_path_factory.mktemp("browser") / "hub", Clock(), survey_cap="100000")
    ana = house.person("analyst", email="ana@example.org", name="Ana Analyst")
    yield Field(house, ana), serve(house.app)
    house.close()


def test_from_a_draft_to_its_sums(served: tuple[Field, str], visit: Any, tmp_path: Path) -> None:
    page = composed(as_ana(served, visit, "/joint-surveys", width=min(WIDTHS), expected=("422",)))
    page.get_by_role("button", name="Ask a helper").click()
    line = page.locator("#helper-link").inner_text()
    number = page.url.split("/")[-2]
    accessible(page)
    shot(page, "joint-link")
    with HelperCalls(line.split('"')[1]) as calls:
        helper = Helper.made(tmp_path / "helper", calls.terms(), link=line.split('"')[1], name="Cancer Registry")
        calls.join(helper)
        page.goto(f"{served[1]}/joint-surveys/{number}")
        expect(page.get_by_text("Cancer Registry has joined")).to_be_visible()
        expect(page.get_by_text(fingerprint(helper.public))).to_be_visible()
        accessible(page)
        page.get_by_role("button", name="Open the survey").click()
        expect(page.get_by_text("The survey is open.")).to_be_visible()
        sent = answered(served[1], number, visit, helper)
        running = threading.Thread(target=calls.run, args=(helper,), kwargs={"told": list, "idle": 0.05}, daemon=True)
        running.start()
        expect(page.locator("dd").first).to_have_text("1")  # by itself: the page looks
        accessible(page)
        shot(page, "joint-open")
        page.get_by_role("button", name="Close the survey").click()
        expect(page.get_by_role("heading", name="How old are you?")).to_be_visible()
        running.join(timeout=60)
    accessible(page)
    shot(page, "joint-done")
    expect(page.locator("table", has_text="bus")).to_contain_text("bus1± 0")
    expect(page.get_by_text("Mean: 77")).to_be_visible()
    assert sorted(json.loads(sent)) == ["nonce", "public", "sealed", "shares"]
    chinese = as_ana(served, visit, f"/joint-surveys/{number}", locale="zh-CN")
    accessible(chinese)
    shot(chinese, "joint-done-chinese")
    helper.close()


def opened(served: tuple[Field, str], folder: Path, invited: bool = False) -> str:
    """The id of an open survey of one question, whose helper has joined."""
    field, address = served

    def ask(path: str, body: Any = None) -> Any:
        return field.house.client().post(f"/api/v1/joint-surveys{path}", json=body, headers=field.ana.bearer).json()

    asked = [{"text": "Do you smoke?", "kind": "yes-no", "epsilon": "300"}]
    number: str = ask("", {"title": "Ways", "invited": invited, "questions": asked})["id"]
    link = f"{address}/joint-surveys/{number}#{ask(f'/{number}/link')['secret']}"
    with HelperCalls(link) as calls:
        helper = Helper.made(folder / "helper", calls.terms(), link=link, name="Registry")
        calls.join(helper)
    helper.close()
    assert ask(f"/{number}/open")["state"] == "open"
    return number


def test_shares_are_made_once_however_often_a_page_is_loaded(served: tuple[Field, str], visit: Any, tmp_path: Path) -> None:
    """The hub has the report, and its answer is lost: another report of the same person would count beside it."""
    field, address = served
    number = opened(served, tmp_path)
    guarded = visit(address, expected=("net::ERR_FAILED",))
    sent: list[str] = []

    def lost(route: Any) -> None:
        sent.append(route.request.post_data)
        assert route.fetch().status == 201
        route.abort()

    guarded.context.route("**/reports", lost)
    page: Page = guarded.page(f"/j/{number}")
    page.get_by_label("yes", exact=True).check()
    for _ in range(2):
        page.get_by_role("button", name="Split and send").click()
        expect(page.locator("#failed")).to_be_visible()
        page.reload()
        expect(page.get_by_text("send the same shares once more")).to_be_visible()
        assert page.locator("#questions input").count() == 0
    guarded.context.unroute("**/reports")
    page.get_by_role("button", name="Split and send").click()
    expect(page.get_by_text("Your shares have arrived.")).to_be_visible()
    assert (len(sent), len(set(sent))) == (2, 1)
    told = field.house.client().get(f"/api/v1/joint-surveys/{number}", headers=field.ana.bearer).json()
    assert told["reports"] == {"new": 1, "counted": 0, "dropped": 0}
    assert not page.evaluate("Object.keys(localStorage).length + Object.keys(sessionStorage).length")


def test_the_invitation_of_a_page_is_the_one_in_its_address(served: tuple[Field, str], visit: Any, tmp_path: Path) -> None:
    """Also where the page stays, since only the end of the address is another; and after another language."""
    field, address = served
    number = opened(served, tmp_path, invited=True)
    posted = field.house.client().post(f"/api/v1/joint-surveys/{number}/invitations", json={"count": 2}, headers=field.ana.bearer)
    page: Page = visit(address).page(f"/j/{number}")
    expect(page.get_by_text("This survey needs an invitation")).to_be_visible()
    for token in posted.json()["tokens"]:
        page.goto(f"{address}/j/{number}#{token}")
        expect(page.locator("#questions input").first).to_be_visible()
        page.locator("button[name=language]").first.click()
        page.locator("#questions input").first.check()
        page.locator("#send").click()
        expect(page.locator("#step-thanks")).to_be_visible()
        assert token in (page.locator("#leaving").text_content() or "")
        assert not page.evaluate("Object.keys(sessionStorage).length")


def test_shares_for_a_survey_that_was_discarded_are_late_and_not_invalid(
    served: tuple[Field, str], visit: Any, tmp_path: Path
) -> None:
    field, address = served
    number = opened(served, tmp_path)
    page: Page = visit(address, expected=("404",)).page(f"/j/{number}")
    page.get_by_label("yes", exact=True).check()
    for act in ("/close", ""):
        asked = field.house.client().request(
            "POST" if act else "DELETE", f"/api/v1/joint-surveys/{number}{act}", headers=field.ana.bearer
        )
        assert asked.status_code < 300
    page.get_by_role("button", name="Split and send").click()
    expect(page.get_by_role("alert")).to_contain_text("the survey is closed")


def test_a_browser_without_https_is_told_what_it_lacks(served: tuple[Field, str], visit: Any, tmp_path: Path) -> None:
    """Over http from another machine a browser has no `crypto.subtle`: the survey is not at fault."""
    number = opened(served, tmp_path)
    guarded = visit(served[1])
    guarded.context.add_init_script("Object.defineProperty(crypto, 'subtle', { value: undefined })")
    page: Page = guarded.page(f"/j/{number}")
    expect(page.locator("#joint-survey").get_by_role("alert")).to_contain_text("This page needs https")


def composed(page: Page) -> Page:
    """A draft of three questions, as a researcher makes it."""
    accessible(page)
    shot(page, "joint-list")
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_label("Title").fill("Ways to work")
    page.get_by_role("button", name="Begin").click()
    page.get_by_label("Question text", exact=True).fill("Do you smoke?")
    page.get_by_label("ε of its sum").fill("much")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("it is not a finite number")
    assert page.get_by_label("Question text", exact=True).input_value() == "Do you smoke?", "what was typed is still there"
    page.get_by_label("ε of its sum").fill("300")
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_role("link", name="One of several").click()
    page.get_by_label("Question text", exact=True).fill("How do you come to work?")
    page.get_by_label("Options").fill("on foot\nbus\ncar")
    page.get_by_label("ε of its sum").fill("300")
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_role("link", name="A whole number").click()
    page.get_by_label("Question text", exact=True).fill("How old are you?")
    page.get_by_label("Lowest").fill("18")
    page.get_by_label("Highest").fill("100")
    page.get_by_label("ε of its sum").fill("30000")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_text("All sums together tell at most ε = 30600 of one respondent.")).to_be_visible()
    accessible(page)
    shot(page, "joint-draft")
    return page


def answered(address: str, number: str, visit: Any, helper: Helper) -> str:
    """One respondent's answers; what left the page for the hub."""
    guarded = visit(address, width=min(WIDTHS), expected=("409",))
    sent: list[Request] = []
    guarded.context.on("request", lambda each: sent.append(each))
    page: Page = guarded.page(f"/j/{number}")
    expect(page.locator("#fingerprint")).to_have_text(fingerprint(helper.public))
    accessible(page)
    shot(page, "joint-answers")
    page.get_by_role("button", name="Split and send").click()
    expect(page.get_by_role("alert")).to_contain_text("“Do you smoke?” has no answer yet")
    page.get_by_label("yes", exact=True).check()
    page.get_by_label("bus").check()
    page.get_by_label("How old are you?").press_sequentially("7,7")
    page.get_by_role("button", name="Split and send").click()
    expect(page.get_by_role("alert")).to_contain_text("“How old are you?” has no answer yet, or one that is not allowed")
    page.get_by_label("How old are you?").fill("77")
    page.get_by_role("button", name="Split and send").click()
    expect(page.get_by_text("Your shares have arrived.")).to_be_visible()
    page.get_by_text("Exact bytes").click()
    accessible(page)
    shot(page, "joint-thanks")
    (report,) = [each for each in sent if each.method == "POST"]
    assert "cookie" not in report.headers
    assert report.url == f"{address}/api/v1/joint-surveys/{number}/reports"
    return report.post_data or ""
