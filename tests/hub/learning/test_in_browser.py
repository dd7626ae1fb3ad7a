"""The pages of models in a real browser: chosen, expected, trained, read; accessible, narrow and wide."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from cloister.hub.services.accounts.sessions import cookie_name
from cloister.hub.services.jobs import Workers
from tests.hub.house import Clock, House
from tests.hub.learning.conftest import MAY, Stage
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


@some_by_day("width", WIDTHS, lambda width: width == 360)
def test_from_the_choice_to_the_card(served: tuple[Stage, str], visit: Any, width: int, tmp_path: Path):
    stage = served[0]
    page = opened(served, visit, "/learn", width=width)
    accessible(page)
    page.get_by_label("age").check()
    page.get_by_label("pay").check()
    page.get_by_label("Target").select_option("sex")
    page.get_by_label("Spend").fill("0.2")
    page.get_by_role("button", name="Expected quality").click()
    expect(page.get_by_text("These rows are made up")).to_be_visible()
    accessible(page)
    shot(page, tmp_path, f"learn-{width}")
    page.get_by_role("button", name="Train", exact=True).click()
    expect(page.get_by_text("It waits for a free worker.")).to_be_visible()
    assert Workers(stage.hub, 0).run_one()
    page.get_by_role("link", name="Open the result").click()
    expect(page.get_by_role("heading", name="Model card")).to_be_visible()
    accessible(page)
    shot(page, tmp_path, f"model-{width}")


def shot(page: Page, folder: Path, name: str) -> None:
    """A picture for whoever looks at the pages."""
    kept = os.environ.get("CLOISTER_SHOTS")
    page.screenshot(path=Path(kept or folder) / f"{name}.png", full_page=True)
