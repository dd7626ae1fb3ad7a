"""The frame and its parts in a real browser: accessible, in both looks and two widths, by keyboard, with and without scripts."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product

import pytest
from fastapi import FastAPI
from playwright.sync_api import Page, expect
from starlette.responses import HTMLResponse

from tests.hub.web.browser import WIDTHS, Guarded, accessible, browser, findings, no_foreign_requests, serve, visit  # noqa: F401
from tests.hub.web.gallery import make_gallery
from tests.tiers import some_by_day

Visit = Callable[..., Guarded]


@pytest.fixture(scope="module")
def address(serve: Callable[[FastAPI], str]) -> str:  # noqa: F811
    return serve(make_gallery())


@pytest.fixture
def page(address: str, visit: Visit) -> Page:  # noqa: F811
    return visit(address).page("/gallery")


@some_by_day("width, theme", product(WIDTHS, ["light", "dark"]), lambda case: case in [(360, "dark"), (1280, "light")])
def test_nothing_serious_stands_in_the_way(address: str, visit: Visit, width: int, theme: str) -> None:  # noqa: F811
    guarded = visit(address, width=width, theme=theme, expected=("status of 409",))
    for path in ("/gallery", "/", "/?nobody", "/error/409"):
        page = guarded.page(path)
        accessible(page)
        page.close()


def test_an_open_menu_is_accessible_too(address: str, visit: Visit) -> None:  # noqa: F811
    page = visit(address, width=360, locale="zh-CN").page("/")
    page.locator(".narrow-only > summary").click()
    assert page.locator(".narrow-only nav").is_visible()
    accessible(page)
    page.keyboard.press("Escape")
    assert not page.locator(".narrow-only nav").is_visible()
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY"


def test_what_stands_in_the_way_is_found(serve: Callable[[FastAPI], str], visit: Visit) -> None:  # noqa: F811
    app = FastAPI()
    foreign = '<img src="http://127.0.0.1:1/a.png" alt="">'

    @app.get("/")
    def broken() -> HTMLResponse:
        return HTMLResponse(f"<html lang=en><title>t</title><main><h1>h</h1><input><img src=/x>{foreign}</main></html>")

    @app.get("/wide")
    def wide() -> HTMLResponse:
        return HTMLResponse("<html lang=en><title>t</title><main><h1>h</h1><p style='width: 5000px'>w</p></main></html>")

    guarded = visit(serve(app), expected=("",))
    page = guarded.page("/")
    assert any(found.startswith("label:") for found in findings(page))
    with pytest.raises(AssertionError, match="is not accessible"):
        accessible(page)
    with pytest.raises(AssertionError, match="wider than its window"):
        accessible(guarded.page("/wide"))
    with pytest.raises(AssertionError, match="other hosts"):
        no_foreign_requests(guarded)
    guarded.foreign.clear()


def test_the_icons_are_drawn_under_the_strict_policy(page: Page) -> None:
    box = page.locator(".mark use").first.evaluate("use => { const box = use.getBBox(); return box.width * box.height; }")
    assert box > 100


def test_by_keyboard_the_page_is_one_step_away(address: str, visit: Visit) -> None:  # noqa: F811
    page = visit(address).page("/")
    page.keyboard.press("Tab")
    skip = page.locator(".skip")
    expect(skip).to_be_focused()
    assert skip.bounding_box()["y"] >= 0  # type: ignore[index]
    outline = skip.evaluate("link => getComputedStyle(link).outlineStyle")
    assert outline == "solid"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "page"


def test_what_is_typed_is_explained_after_a_pause(page: Page) -> None:
    expect(page.locator("#length")).to_have_count(0)
    page.locator("#sql").fill("SELECT COUNT(*) FROM hospital")
    expect(page.locator("#length")).to_have_text("29")


def test_a_column_is_put_where_the_cursor_stands(page: Page) -> None:
    page.locator("#sql").fill("SELECT  FROM hospital")
    page.locator("#sql").evaluate("editor => editor.setSelectionRange(7, 7)")
    page.get_by_role("button", name="ward").click()
    expect(page.locator("#sql")).to_have_value("SELECT ward FROM hospital")
    expect(page.locator("#length")).to_have_text("25")


def test_code_is_copied(address: str, visit: Visit) -> None:  # noqa: F811
    guarded = visit(address)
    guarded.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = guarded.page("/gallery")
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    expect(page.locator("#spoken")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()").startswith("import cloister as cl\nsession")


def test_what_cannot_be_undone_is_asked_first(page: Page) -> None:
    asked: list[str] = []

    def refuse(dialog) -> None:  # type: ignore[no-untyped-def]
        asked.append(dialog.message)
        dialog.dismiss()

    page.once("dialog", refuse)
    page.get_by_role("button", name="Revoke").first.click()
    assert asked == ["Revoke the access of Lin Wei?"]
    assert page.url.endswith("/gallery")
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Revoke").first.click()
    expect(page.get_by_text("Saved for Lin Wei.")).to_be_visible()


def test_a_double_click_sends_a_form_once(page: Page) -> None:
    """Of one button; another button of the form, and a page that is shown again, send."""
    sends = """() => {
      const form = document.createElement("form");
      form.innerHTML = "<button>Make</button><button>Price</button>";
      document.body.append(form);
      const [make, price] = form.children, sent = [];
      addEventListener("submit", (event) => { sent.push(!event.defaultPrevented); event.preventDefault(); });
      make.click(); make.click(); price.click();
      dispatchEvent(new PageTransitionEvent("pageshow"));
      price.click();
      return sent;
    }"""
    assert page.evaluate(sends) == [True, False, True, True]


def test_a_page_that_the_browser_kept_sends_a_form_of_its_own(page: Page) -> None:
    """Gone back to after something else undid what it had done, it said "done" again and did nothing."""
    word = """(persisted) => {
      const form = document.createElement("form");
      form.innerHTML = '<input name="form_once" value="aZ_-9">';
      document.body.append(form);
      dispatchEvent(new PageTransitionEvent("pageshow", { persisted }));
      return form.elements.form_once.value;
    }"""
    assert page.evaluate(word, False) == "aZ_-9"
    assert re.fullmatch(r"aZ_-9[\w-]+", page.evaluate(word, True))


def test_progress_is_shown_until_the_work_is_done(page: Page) -> None:
    expect(page.locator("#job progress")).to_have_attribute("value", "1.0")


def test_the_look_changes_at_once_and_stays(address: str, visit: Visit) -> None:  # noqa: F811
    guarded = visit(address)
    page = guarded.page("/")
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_role("button", name="Dark").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before
    kept = "cloister-theme"
    for _ in range(100):
        if any(cookie["name"] == kept for cookie in guarded.context.cookies()):
            break
        page.wait_for_timeout(50)
    page.reload()
    assert page.locator("html").get_attribute("data-theme") == "dark"
    assert page.get_by_role("button", name="Dark").get_attribute("aria-pressed") == "true"


def test_everything_works_without_scripts(address: str, visit: Visit) -> None:  # noqa: F811
    page = visit(address, width=360, scripts=False).page("/")
    page.locator(".narrow-only > summary").click()
    page.locator(".narrow-only").get_by_role("link", name="Data sets").click()
    assert page.url.endswith("/gallery")
    page.get_by_role("button", name="Dark").click()
    assert page.locator("html").get_attribute("data-theme") == "dark"
    page.get_by_role("button", name="简体中文").click()
    assert page.locator("html").get_attribute("lang") == "zh-Hans"
    told = page.content()  # this browser reads on as with scripts: what it would show is text to it
    assert re.search("<noscript>.*Revoke the access of Lin Wei", told), "what a script would ask is read beside the button"
    page.get_by_role("button", name="Revoke").first.click()
    assert page.get_by_text("Saved for Lin Wei.").is_visible()
    assert page.get_by_role("button", name="Copy").count() == 0


def test_paper_shows_the_page_and_not_its_furniture(page: Page) -> None:
    page.emulate_media(media="print")
    assert not page.locator(".top").is_visible()
    assert not page.locator(".side").is_visible()
    assert page.locator("h1").is_visible()
