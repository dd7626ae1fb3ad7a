"""The pages of models in a real browser: chosen, expected, trained, read; in two languages, accessible, narrow and wide."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from cloister.hub.platform.jobs import Workers
from tests.hub.house import Clock, House
from tests.hub.learning.conftest import MAY, Stage
from tests.hub.stories.town import ENGLISH, Street, Way, walked
from tests.hub.web.browser import Guarded, accessible, browser, serve, visit

__all__ = ["browser", "serve", "visit"]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, serve: Any) -> Iterator[tuple[Stage, str]]:
    house = House(tmp_path_factory.mktemp("browser") / "hub", Clock())
    owner = house.person("owner", email="olga@example.org")
    ana = house.person("analyst", email="ana@example.org", name="Ana Analyst")
    people = house.sample_data_set("people", owner=owner)
    house.grant(people, ana, by=owner, actions=MAY)
    yield Stage(house, owner, ana, people), serve(house.app)
    house.close()


@walked(ENGLISH)
def test_from_the_choice_to_the_card(shared: tuple[Stage, str], visit: Callable[..., Guarded], way: Way) -> None:
    stage, address = shared
    ana = Street(house=stage.house, address=address, visit=visit).visitor(stage.ana, way, path="/learn")
    name = f"{way[0]}-{way[1]}"
    ana.tick("age", "pay")
    ana.fill("Target", "sex")
    ana.fill("Spend", "0.2")
    ana.tick("Measure its quality")
    ana.press("Expected quality")
    ana.reads("These rows are made up")
    accessible(ana.page)
    shot(ana.page, f"learn-{name}")
    ana.press("Train")
    ana.reads("It waits for a free worker.")
    assert Workers(stage.hub, 0).run_one()
    ana.follow("Open the result")
    for part in ("Quality", "Influence of each column", "Mean in each class", "Declared bounds", "Model card"):
        expect(ana.main.get_by_role("heading", name=ana.named(part))).to_be_visible()
    shot(ana.page, f"model-{name}")


def shot(page: Page, name: str) -> None:
    """A picture, where somebody wants to look."""
    if folder := os.environ.get("CLOISTER_PICTURES"):
        page.screenshot(path=f"{folder}/{name}.png", full_page=True)
