"""The workbench and a release in a real browser: live explanations, one click each, accessible, narrow and wide."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from sqlalchemy import select

from cloister.hub.platform.accounts.sessions import cookie_name
from cloister.hub.records.access import Algorithm
from tests.hub.asking.conftest import BY_SEX, MAY, Stage
from tests.hub.house import Clock, House
from tests.hub.web.browser import WIDTHS, accessible, browser, serve, visit
from tests.tiers import some_by_day

__all__ = ["browser", "serve", "visit"]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, serve: Any) -> Iterator[tuple[Stage, str]]:
    house = House(tmp_path_factory.mktemp("browser") / "hub", Clock())
    owner = house.person("owner", email="olga@example.org")
    ana = house.person("analyst", email="ana@example.org", name="Ana Analyst")
    people = house.sample_data_set("people", owner=owner)
    house.grant(people, ana, by=owner, actions=MAY)
    yield Stage(house, owner, ana, people), serve(house.app)
    house.close()


def opened(served: tuple[Stage, str], visit: Any, path: str, **how: Any) -> Page:
    """A page, as Ana sees it."""
    stage, address = served
    guarded = visit(address, **how)
    name = cookie_name(stage.hub.settings)
    guarded.context.add_cookies([{"name": name, "value": stage.ana.client.cookies[name], "url": address}])
    page: Page = guarded.page(path)
    return page


def test_a_question_from_the_first_letter_to_its_release(served: tuple[Stage, str], visit: Any):
    page = opened(served, visit, "/ask")
    page.get_by_label("Query", exact=True).fill(BY_SEX)
    expect(page.locator("#explained")).to_contain_text("Expected answer")
    page.get_by_label("Query", exact=True).fill(BY_SEX.replace("sex", "sexes"))
    expect(page.locator("#explained mark").first).to_have_text("sexes")
    page.get_by_label("Query", exact=True).fill("SELECT ")
    page.get_by_role("button", name="sex", exact=True).click()
    expect(page.get_by_label("Query", exact=True)).to_have_value("SELECT sex")
    page.get_by_label("Query", exact=True).fill(BY_SEX)
    page.get_by_label("Query", exact=True).press("Control+Enter")
    page.wait_for_url("**/releases/*")
    expect(page.get_by_role("table")).to_contain_text("±")
    chart = page.locator("figure img")
    chart.scroll_into_view_if_needed()
    assert chart.evaluate("image => image.decode().then(() => image.naturalWidth)") > 0
    page.get_by_label("Confidence").select_option("0.99")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_text("margins of error at 99 % confidence", exact=True)).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV").click()
    assert Path(download.value.suggested_filename).suffix == ".zip"
    with page.expect_download() as download:
        page.get_by_role("link", name="Excel").click()
    assert Path(download.value.suggested_filename).suffix == ".xlsx"
    expect(page.get_by_text("Digest of the plan")).to_be_hidden()
    page.get_by_role("link", name="Print view").click()
    expect(page.get_by_text("Digest of the plan")).to_be_visible()
    expect(page.get_by_role("button", name="Print", exact=True)).to_be_visible()
    accessible(page)


def test_everything_works_without_scripts(served: tuple[Stage, str], visit: Any):
    page = opened(served, visit, "/ask", scripts=False)
    page.get_by_label("Query", exact=True).fill(BY_SEX)
    page.get_by_role("button", name="Explain").click()
    expect(page.locator("#explained")).to_contain_text("Expected answer")
    page.get_by_role("button", name="Rehearse").click()
    expect(page.get_by_text("These rows are made up")).to_be_visible()
    page.get_by_role("button", name="Run").click()
    assert "/releases/" in page.url


@some_by_day("width, theme", product(WIDTHS, ["light", "dark"]), lambda case: case in [(360, "dark"), (1280, "light")])
def test_pages_are_accessible(served: tuple[Stage, str], visit: Any, width: int, theme: str):
    stage, _ = served
    told = stage.ask(BY_SEX, "0.1")
    page = opened(served, visit, "/ask", width=width, theme=theme)
    page.get_by_label("Query", exact=True).fill(BY_SEX)
    expect(page.locator("#explained")).to_contain_text("Expected answer")
    page.locator("#explained summary").click()
    accessible(page)
    address = page.url.removesuffix("/ask")
    for path in (f"/releases/{told['id']}", "/releases", "/questions"):
        page.goto(address + path)
        accessible(page)


@pytest.fixture
def under(tmp_path: Path, serve: Any) -> Iterator[tuple[Stage, str]]:
    """Ana may ask under one algorithm, which brings its question, and nothing else."""
    house = House(tmp_path / "hub", Clock())
    owner, ana = house.person("owner"), house.person("analyst", name="Ana Analyst")
    provider = house.person("algorithm-provider")
    people = house.sample_data_set("people", owner=owner)
    house.grant(people, provider, by=owner, actions=("dataset.see",))
    body = {"name": "by-sex", "title": "Counts by sex, for the yearly report of the town", "service": "asking"}
    made = provider.client.post("/api/v1/algorithms", json={**body, "settings": {"sql": BY_SEX}}, headers=provider.bearer)
    assert made.status_code == 201, made.text
    for who, rules in ((ana, {"actions": ["algorithm.run"], "only_with": ["people"]}), (owner, {"actions": ["algorithm.see"]})):
        given = {"role": "runner", "members": {"people": [who.id]}, "rules": rules}
        provider.client.post("/api/v1/algorithms/by-sex/grants", json=given, headers=provider.bearer)
    with house.hub.database.reading() as db:
        number = db.scalars(select(Algorithm.id)).one()
    house.grant(people, ana, by=owner, actions=["algorithm.run", "release.see"], algorithms=[number])
    yield Stage(house, owner, ana, people), serve(house.app)
    house.close()


@some_by_day("theme", ["light", "dark"], lambda theme: theme == "dark")
def test_a_question_under_an_algorithm(under: tuple[Stage, str], visit: Any, theme: str):
    page = opened(under, visit, "/ask", width=390, theme=theme)
    expect(page.get_by_label("Algorithm")).to_have_value("by-sex")
    page.locator("#sql").fill("")
    page.get_by_label("Purpose").fill("a look")
    expect(page.locator("#explained")).to_contain_text("Expected answer")
    accessible(page)
    page.get_by_role("button", name="Run").click()
    page.wait_for_url("**/releases/*")
    expect(page.get_by_text("Asked under the algorithm")).to_be_visible()
    accessible(page)
