"""Anonymising in a real browser: from the columns to the certificate; accessible, narrow and wide, with and without scripts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from cloister.hub.services.accounts.sessions import cookie_name
from cloister.hub.services.jobs import Workers
from tests.hub.anonymizing.rows import varied
from tests.hub.house import Clock, House, Visitor
from tests.hub.web.browser import WIDTHS, accessible, browser, serve, visit
from tests.tiers import some_by_day

__all__ = ["browser", "serve", "visit"]


@dataclass(frozen=True, kw_only=True)
class Place:
    """A hub that is served, and its owner."""

    house: House
    owner: Visitor
    address: str

    def opened(self, visit: Any, path: str, **how: Any) -> Page:
        """A page, as Olga sees it."""
        guarded = visit(self.address, **how)
        name = cookie_name(self.house.hub.settings)
        guarded.context.add_cookies([{"name": name, "value": self.owner.client.cookies[name], "url": self.address}])
        page: Page = guarded.page(path)
        return page

    def work(self) -> None:
        """One job is done."""
        assert Workers(self.house.hub, 0).run_one()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, serve: Any) -> Iterator[Place]:
    house = House(tmp_path_factory.mktemp("browser") / "hub", Clock())
    owner = house.person("owner", email="olga@example.org", name="Olga Owner")
    house.sample_data_set("people", owner=owner, rows=varied(600))
    yield Place(house=house, owner=owner, address=serve(house.app))
    house.close()


@some_by_day("width", WIDTHS, lambda width: width == 360)
def test_from_the_columns_to_the_certificate(place: Place, visit: Any, width: int, tmp_path: Path) -> None:
    theme = "dark" if width < 500 else "light"
    page = place.opened(visit, "/anonymise?about=people", width=width, theme=theme, expected=("422",))
    accessible(page)
    page.get_by_label("Role of pay").select_option("others must not learn it (sensitive)")
    page.get_by_label("Purpose").fill("a course")
    expect(page.get_by_label("l counts")).to_be_hidden()
    page.get_by_text("More models, and other kinds of l and t").click()
    expect(page.get_by_label("l counts")).to_be_visible()
    accessible(page)
    page.get_by_label("β (optional)", exact=True).fill("9")
    shot(page, tmp_path, f"order-{width}")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_text("It waits for a free worker.")).to_be_visible()
    expect(page.get_by_role("button", name="Cancel")).to_be_visible()
    place.work()
    page.get_by_role("link", name="Open the result").click()
    expect(page.get_by_role("heading", name="Risk and information loss")).to_be_visible()
    expect(page.get_by_role("radio", name="k = 5", exact=True)).to_be_checked()
    page.get_by_text("sex", exact=False).last.click()
    accessible(page)
    shot(page, tmp_path, f"trial-{width}")
    _change_a_hierarchy(page)
    shot(page, tmp_path, f"hierarchy-{width}")
    page.get_by_role("link", name="Back to what was compared").click()
    page.get_by_role("radio", name="A", exact=True).focus()
    page.keyboard.press("Space")
    expect(page.get_by_role("radio", name="A", exact=True)).to_be_checked()
    page.get_by_label("Title").fill(f"People at {width}")
    page.get_by_label("Name in queries").fill(f"people_{width}")
    page.get_by_role("button", name="Release", exact=True).click()
    expect(
        page.get_by_text("spending reads “not covered by the budget”", exact=False).or_(page.get_by_role("alert")).first
    ).to_be_visible()
    expect(page.get_by_role("radio", name="A", exact=True)).to_be_checked()
    accessible(page)
    page.get_by_label("I understand this").check()
    page.get_by_role("button", name="Release", exact=True).click()
    expect(page.get_by_text("It waits for a free worker.")).to_be_visible()
    place.work()
    page.get_by_role("link", name="Open the result").click()
    expect(page.get_by_role("heading", name="Attack results")).to_be_visible()
    accessible(page)
    shot(page, tmp_path, f"table-{width}")
    for name in ("CSV", "Parquet", "Certificate"):
        with page.expect_download() as sent:
            page.get_by_role("link", name=name, exact=True).click()
        assert Path(sent.value.path()).stat().st_size > 100
    page.get_by_role("link", name="Published data set").click()
    expect(page.get_by_role("heading", name=f"People at {width}")).to_be_visible()


def _change_a_hierarchy(page: Page) -> None:
    """The hierarchy of a column: written out, changed wrongly, changed rightly, seen as a tree."""
    page.get_by_role("link", name="Change this hierarchy").last.click()
    text = page.get_by_label("Hierarchy of sex")
    expect(text).to_be_focused()
    text.fill("F;one\nF;other")
    page.get_by_role("button", name="Show the hierarchies as trees").click()
    expect(page.get_by_role("alert")).to_contain_text("stands there twice")
    text.fill("F;somebody;*\nM;somebody;*")
    page.get_by_role("button", name="Show the hierarchies as trees").click()
    expect(page.get_by_text("somebody", exact=False).first).to_be_visible()
    accessible(page)


def test_it_works_without_scripts(place: Place, visit: Any) -> None:
    page = place.opened(visit, "/anonymise?about=people", scripts=False, expected=("422",))
    page.get_by_label("Role of pay").select_option("identifies a person: drop it")
    page.get_by_text("More models, and other kinds of l and t").click()
    page.get_by_label("α (optional)", exact=True).fill("0.9")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("alert")).to_contain_text("no column is that")
    expect(page.get_by_label("α (optional)", exact=True)).to_be_visible()
    page.get_by_label("α (optional)", exact=True).fill("")
    page.get_by_role("button", name="Preview").click()
    place.work()
    page.get_by_role("link", name="Refresh").click()
    page.get_by_role("link", name="Open the result").click()
    page.get_by_text("age", exact=False).last.click()
    page.get_by_role("link", name="Change this hierarchy").first.click()
    assert page.get_by_label("Hierarchy of age").input_value().startswith("17;")


def test_one_who_owns_nothing_is_told_so(place: Place, visit: Any) -> None:
    other = place.house.person("owner", email="ona@example.org")
    page = Place(house=place.house, owner=other, address=place.address).opened(visit, "/anonymise", width=360)
    expect(page.get_by_role("heading", name="No data set of yours is open")).to_be_visible()
    accessible(page)
    page.goto(f"{place.address}/anonymised")
    expect(page.get_by_role("heading", name="No releases yet")).to_be_visible()
    accessible(page)


def shot(page: Page, folder: Path, name: str) -> None:
    """A picture for whoever looks at the pages."""
    kept = os.environ.get("CLOISTER_SHOTS")
    page.screenshot(path=Path(kept or folder) / f"{name}.png", full_page=True)
