"""Pages of synthetic tables in a real browser: accessible, narrow and wide; from the page of a table to the answer of a query."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from cloister.hub.platform.accounts.sessions import cookie_name
from cloister.hub.platform.jobs import Workers
from tests.hub.house import Clock, House, Visitor
from tests.hub.synthesising.conftest import MAY, Stage
from tests.hub.synthesising.test_comparing import compared
from tests.hub.web.browser import accessible, browser, serve, visit

__all__ = ["browser", "serve", "visit"]
WIDTHS = (390, 1400)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, serve: Any) -> Iterator[tuple[Stage, str, str]]:
    house = House(tmp_path_factory.mktemp("browser") / "hub", Clock())
    owner = house.person("owner", email="olga@example.org")
    ana = house.person("analyst", email="ana@example.org", name="Ana Analyst")
    people = house.sample_data_set("people", owner=owner)
    stage = Stage(house, owner, ana, people, house.grant(people, ana, by=owner, actions=MAY))
    yield stage, serve(house.app), stage.made(spend="0.5", title="Teaching table")
    house.close()


def opened(served: tuple[Stage, str, str], visit: Any, path: str, *, who: Visitor | None = None, **how: Any) -> Page:
    """A page, as Ana sees it, or somebody else."""
    stage, address, _ = served
    guarded = visit(address, **how)
    name = cookie_name(stage.hub.settings)
    guarded.context.add_cookies([{"name": name, "value": (who or stage.ana).client.cookies[name], "url": address}])
    page: Page = guarded.page(path)
    return page


def test_a_query_from_the_table_to_its_answer(served: tuple[Stage, str, str], visit: Any) -> None:
    page = opened(served, visit, f"/synthetic/{served[2]}")
    page.get_by_role("link", name="Query it").click()
    expect(page.get_by_label("Query", exact=True)).to_have_value(re.compile("FROM people_synthetic_[0-9a-f]{8} GROUP BY sex"))
    page.get_by_role("button", name="Explain").click()
    expect(page.locator("#explained")).to_contain_text("a query costs nothing")
    page.get_by_role("button", name="Run").click()
    expect(page.locator("#explained table")).to_contain_text("measured")
    accessible(page)


def test_pages_are_accessible(served: tuple[Stage, str, str], visit: Any) -> None:
    page = opened(served, visit, "/ask")
    for path in (f"/synthetic/{served[2]}", "/synthetic", "/synthesise?about=people", "/datasets", "/ask"):
        page.goto(served[1] + path)
        accessible(page, *WIDTHS)


def test_a_model_and_a_pool_for_nothing(served: tuple[Stage, str, str], visit: Any) -> None:
    """From what a table is for, over its expected error, to a model of it and to one table of two populations."""
    stage = served[0]
    import cloister.learn.frame.from_tables  # noqa: F401  a first import takes longer than a page waits on a busy machine

    clinic = stage.house.sample_data_set("clinic", owner=stage.owner)
    stage.house.grant(clinic, stage.ana, by=stage.owner, actions=(*MAY, "learn.run"))
    page = opened(served, visit, "/synthesise?about=clinic", width=WIDTHS[0])
    page.get_by_label("A model that predicts one column").check()
    page.get_by_label("Column to predict").select_option("sex")
    page.get_by_role("button", name="Cost and expected error").click()
    expect(page.locator("img[src^='data:image/svg']")).to_be_visible()
    accessible(page)
    pictured(page, "synthesise")
    other = stage.made(table="clinic", columns=["age", "sex"], spend="0.5", purpose="teaching")

    page = opened(served, visit, f"/synthetic/{other}", width=WIDTHS[1])
    pictured(page, "table")
    page.get_by_role("link", name="Train a model on it").click()
    page.locator("input[name=features][value=age]").check()
    page.get_by_label("Target").select_option("sex")
    accessible(page)
    pictured(page, "train")
    page.get_by_role("button", name="Train").click()
    expect(page.locator("main")).to_contain_text("Model of a released table")
    assert Workers(stage.hub, 0).run_one()
    [model] = [each for each in stage.get("/releases?kind=model").json()["releases"] if each["mine"]]
    accessible(opened(served, visit, f"/models/{model['id']}", width=WIDTHS[0]))

    page = opened(served, visit, "/synthetic")
    page.get_by_role("link", name="Pool").click()
    for box in page.get_by_role("checkbox").all():
        box.check()
    page.get_by_label("Table name").fill("patients")
    accessible(page, *WIDTHS)
    pictured(page, "pool")
    page.get_by_role("button", name="Pool").click()
    expect(page.locator("main")).to_contain_text("has the sum of their costs")
    accessible(page, *WIDTHS)
    pictured(page, "pooled")
    assert (stage.spent, str(stage.hub.ledger.spent("clinic"))) == ("ε = 0.5", "ε = 0.5")


def pictured(page: Page, name: str) -> None:
    """A picture of the page, where a folder for them is named."""
    folder = os.environ.get("CLOISTER_PICTURES")
    if folder:
        page.screenshot(path=f"{folder}/{name}.png", full_page=True)


def test_the_owner_compares_on_any_width(served: tuple[Stage, str, str], visit: Any) -> None:
    stage = served[0]
    number = stage.made(stage.owner, spend="0.25")
    where = compared(stage, number)
    page = opened(served, visit, f"/synthetic/{number}", who=stage.owner)
    expect(page.get_by_role("button", name="Compare")).to_be_visible()
    accessible(page, *WIDTHS)
    page.goto(served[1] + where)
    accessible(page, *WIDTHS)
