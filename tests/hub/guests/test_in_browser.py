"""A provider's code from its form to a result, in a real browser: accessible, narrow and wide."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from cloister.hub.platform.accounts.sessions import cookie_name
from cloister.hub.platform.jobs import Workers
from tests.hub.guests.test_packages import ABOUT, packed
from tests.hub.guests.test_running import CODE, Play, play_in
from tests.hub.house import Clock, House, Visitor
from tests.hub.web.browser import accessible, browser, serve, visit
from tests.tiers import some_by_day

__all__ = ["browser", "serve", "visit"]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, serve: Any) -> Iterator[tuple[Play, str]]:
    house = House(tmp_path_factory.mktemp("browser") / "hub", Clock())
    yield play_in(house), serve(house.app)
    house.close()


def opened(served: tuple[Play, str], visit: Any, who: Visitor, path: str, **how: Any) -> Page:
    """A page, as somebody sees it."""
    play, address = served
    guarded = visit(address, **how)
    name = cookie_name(play.house.hub.settings)
    guarded.context.add_cookies([{"name": name, "value": who.client.cookies[name], "url": address}])
    page: Page = guarded.page(path)
    return page


def looked_at(page: Page, name: str) -> None:
    """Nothing wrong with it; a picture, where somebody wants to look."""
    accessible(page)
    if folder := os.environ.get("CLOISTER_PICTURES"):
        page.screenshot(path=f"{folder}/{name}.png", full_page=True)


@some_by_day("width", [390, 1200], lambda width: width == 390)
def test_from_the_form_of_the_code_to_its_result(served: tuple[Play, str], visit: Any, width: int) -> None:
    play = served[0]
    page = opened(served, visit, play.provider, "/algorithms", width=width)
    page.get_by_label("Name in URLs").fill(f"middle-{width}")
    page.get_by_label("Title").fill("The middle of the ages")
    page.get_by_label("Service").select_option("guests")
    page.get_by_label("Settings, as JSON").fill('{"inputs": ["age"], "low": [0], "high": [120], "blocks": 20, "seconds": 0.02}')
    page.get_by_label("Code that runs near rows").fill(CODE)
    looked_at(page, f"algorithms-{width}")
    page.get_by_role("button", name="Register").click()
    expect(page.locator("main")).to_contain_text("def middle(rows):")
    looked_at(page, f"algorithm-{width}")

    page = opened(served, visit, play.provider, "/algorithm-packages", width=width)
    page.get_by_label("Try it on made-up rows of").fill("people")
    archive = packed({**ABOUT, "name": f"half-{width}"})
    page.locator("input[type=file]").set_input_files({"name": "p.zip", "mimeType": "application/zip", "buffer": archive})
    looked_at(page, f"package-{width}")
    page.get_by_role("button", name="Upload").click()
    expect(page.locator("body")).to_contain_text("Tests passed: 2")

    page = opened(served, visit, play.u3, "/run-algorithm?about=people", width=width)
    page.get_by_label("Algorithm", exact=True).select_option("a1")
    page.get_by_label("Spend").fill("0.1")
    page.get_by_label("Purpose").fill("research")
    page.get_by_role("button", name="Cost").click()
    expect(page.locator("main")).to_contain_text("0.1")
    looked_at(page, f"order-{width}")
    page.get_by_role("button", name="Order").click()
    assert Workers(play.house.hub, 0).run_one()
    page.reload()
    looked_at(page, f"job-{width}")
    page = opened(served, visit, play.u3, "/algorithm-results", width=width)
    looked_at(page, f"results-{width}")
    page.locator("main tbody a").first.click()
    expect(page.locator("main")).to_contain_text("Blocks of people")
    looked_at(page, f"result-{width}")
