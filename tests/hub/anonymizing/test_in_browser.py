"""Anonymising in a real browser: from the columns to the certificate; in two languages and widths, with and without scripts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from cloister.hub.platform.accounts.sessions import cookie_name
from cloister.hub.platform.jobs import Workers
from tests.hub.anonymizing.rows import varied
from tests.hub.house import Clock, House
from tests.hub.house import Visitor as Person
from tests.hub.stories.town import CHINESE, Street, Visitor, Way, walked
from tests.hub.web.browser import accessible, browser, last, serve, visit

__all__ = ["browser", "serve", "visit"]


@dataclass(frozen=True, kw_only=True)
class Place:
    """A hub that is served, and its owner."""

    house: House
    owner: Person
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


@walked(CHINESE)
def test_from_the_columns_to_the_certificate(place: Place, visit: Any, way: Way) -> None:
    street = Street(house=place.house, address=place.address, visit=visit)
    olga = street.visitor(place.owner, way, path="/anonymise?about=people", expected=("422",))
    page, main, name = olga.page, olga.main, f"{way[0]}-{way[1]}"
    olga.fill(*olga.told("Role of %(name)s", name="pay"), "sensitive")
    olga.fill("Purpose", "a course")
    counts = main.get_by_label(olga.named("l counts"))
    expect(counts).to_be_hidden()
    olga.unfold("More models, and other kinds of l and t")
    expect(counts).to_be_visible()
    accessible(page)
    main.locator("[name=beta]").fill("9")
    shot(page, f"order-{name}")
    olga.press("Preview")
    olga.reads("It waits for a free worker.")
    expect(main.get_by_role("button", name=olga.named("Cancel"))).to_be_visible()
    place.work()
    olga.follow("Open the result")
    for part in ("Risk and information loss", "Rows before and after"):
        expect(main.get_by_role("heading", name=olga.named(part))).to_be_visible()
    expect(main.get_by_role("radio", name="k = 5", exact=True)).to_be_checked()
    _sees_twenty_rows_both_ways(olga)
    main.locator("details summary").filter(has_text="sex").last.click()
    accessible(page)
    shot(page, f"trial-{name}")
    _change_a_hierarchy(olga)
    shot(page, f"hierarchy-{name}")
    olga.follow("Back to what was compared")
    main.get_by_role("radio", name="A", exact=True).focus()
    page.keyboard.press("Space")
    expect(main.get_by_role("radio", name="A", exact=True)).to_be_checked()
    olga.fill("Title", f"People at {name}")
    olga.fill("Name in queries", f"people_{way[0]}_{way[1][:2]}")
    olga.press("Release")
    olga.reads("it is not differentially private; from then on the population's spending reads “not covered by the budget”")
    expect(main.get_by_role("radio", name="A", exact=True)).to_be_checked()
    olga.tick("I understand this and approve the release of the table.")
    olga.press("Release")
    olga.reads("It waits for a free worker.")
    place.work()
    olga.follow("Open the result")
    expect(main.get_by_role("heading", name=olga.named("Attack results"))).to_be_visible()
    shot(page, f"table-{name}")
    for link in ("CSV", "Parquet", "Certificate"):
        with page.expect_download() as sent:
            main.get_by_role("link", name=olga.named(link)).click()
        assert Path(sent.value.path()).stat().st_size > 100
    olga.follow("Published data set")
    expect(main.get_by_role("heading", name=f"People at {name}")).to_be_visible()


def _sees_twenty_rows_both_ways(olga: Visitor) -> None:
    """Of the choice that is open: each row as it is beside the row as it would leave."""
    shown = olga.main.locator("details[open] table", has=olga.page.get_by_role("columnheader", name=olga.named("After")))
    expect(shown.first.get_by_role("columnheader", name=olga.named("Before"))).to_be_visible()
    assert shown.first.locator("tbody tr").count() == 20


def _change_a_hierarchy(olga: Visitor) -> None:
    """The hierarchy of a column: written out, changed wrongly, changed rightly, seen as a tree."""
    olga.main.get_by_role("link", name=olga.named("Change this hierarchy")).last.click()
    olga.arrived()
    [label] = olga.told("Hierarchy of %(name)s: a line for each value, with its coarser names after semicolons", name="sex")
    text = olga.main.get_by_label(label)
    expect(text).to_be_focused()
    text.fill("F;one\nF;other")
    olga.press("Show the hierarchies as trees")
    expect(olga.main.get_by_role("alert")).to_contain_text("F")
    text.fill("F;somebody;*\nM;somebody;*")
    olga.press("Show the hierarchies as trees")
    expect(olga.main.get_by_role("alert")).to_have_count(0)
    expect(olga.page.get_by_text("somebody", exact=False).first).to_be_visible()


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
    last(page.locator("main summary").filter(has_text="age")).click()
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


def shot(page: Page, name: str) -> None:
    """A picture, where somebody wants to look."""
    if folder := os.environ.get("CLOISTER_PICTURES"):
        page.screenshot(path=f"{folder}/{name}.png", full_page=True)
