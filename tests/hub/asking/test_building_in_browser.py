"""Somebody who knows no SQL asks a hub: from the welcome page through the form to an answer, with keys alone and without scripts.

Pictures for the docs and for whoever looks: `CLOISTER_PICTURES=folder`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from cloister.hub.platform.accounts.sessions import cookie_name
from tests.hub.asking.conftest import MAY, Stage
from tests.hub.house import PEOPLE, Clock, House
from tests.hub.stories.town import CHINESE, ENGLISH, WAYS, Way, walked
from tests.hub.web.browser import accessible, browser, serve, visit

__all__ = ["browser", "serve", "visit"]

WARD = {
    "columns": {
        **PEOPLE["columns"],
        "born": {"kind": "date", "low": "1930-01-01", "high": "2010-12-31"},
        "smoker": {"kind": "boolean", "nullable": True},
    }
}
ROWS = {
    "age": [(30, 40, 50)[each % 3] for each in range(3000)],
    "sex": ["FMF"[each % 3] for each in range(3000)],
    "pay": [(10.5, 20.0, 30.0)[each % 3] for each in range(3000)],
    "born": [f"{1950 + each % 40}-05-01" for each in range(3000)],
    "smoker": [each % 4 == 0 for each in range(3000)],
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, serve: Any) -> Iterator[tuple[Stage, str]]:
    house = House(tmp_path_factory.mktemp("browser") / "hub", Clock())
    owner, ana = house.person("owner"), house.person("analyst", name="Ana Analyst")
    ward = house.sample_data_set("ward", owner=owner, declaration=WARD, rows=ROWS)
    people = house.sample_data_set("people", owner=owner)
    for each in (ward, people):
        house.grant(each, ana, by=owner, actions=MAY)
    yield Stage(house, owner, ana, ward), serve(house.app)
    house.close()


def opened(served: tuple[Stage, str], visit: Any, path: str, **how: Any) -> Page:
    """A page, as Ana sees it."""
    stage, address = served
    guarded = visit(address, **how)
    name = cookie_name(stage.hub.settings)
    guarded.context.add_cookies([{"name": name, "value": stage.ana.client.cookies[name], "url": address}])
    page: Page = guarded.page(path)
    return page


def picture(page: Page, name: str) -> None:
    """Kept where somebody wants to look."""
    folder = os.environ.get("CLOISTER_PICTURES")
    if folder:
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


class Keys:
    """Somebody with a keyboard and no mouse: Tab goes on, Enter and the space bar press, arrows and letters choose and write."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def to(self, selector: str) -> Locator:
        """Tab until the focus is there."""
        found = self.page.locator(selector).first
        for _ in range(MOST_TABS):
            if found.evaluate("element => element === document.activeElement"):
                return found
            self.page.keyboard.press("Tab")
        raise AssertionError(f"the focus does not come to {selector}")

    def enter(self, selector: str) -> None:
        self.to(selector)
        self.page.keyboard.press("Enter")

    def tick(self, selector: str) -> None:
        self.to(selector)
        self.page.keyboard.press("Space")

    def choose(self, selector: str, value: str) -> None:
        found = self.to(selector)
        for _ in range(MOST_TABS):
            if found.input_value() == value:
                return
            self.page.keyboard.press("ArrowDown")
        raise AssertionError(f"{selector} has no {value}")

    def write(self, selector: str, text: str) -> None:
        self.to(selector)
        self.page.keyboard.type(text)


MOST_TABS = 120


def told(explained: Locator, text: str) -> None:
    """It is said, and nothing newer is on its way: meanwhile it is faint."""
    expect(explained).to_contain_text(text)
    expect(explained).not_to_have_attribute("data-live-busy", re.compile(""))


@walked(ENGLISH)
def test_a_query_is_built_priced_and_asked_without_sql_by_keys_alone(served: tuple[Stage, str], visit: Any, way: Way):
    width, language = way
    page = opened(served, visit, "/ask", width=width, locale=language, theme="light" if way == ENGLISH else "dark")
    keys, explained = Keys(page), page.locator("#explained")
    since = 1960 + WAYS.index(way)  # a question of its own: of one that was asked, the pilot is known
    keys.enter("main a[href='/ask/build']")
    keys.enter("main a[href='/ask/build?about=ward']")
    expect(page.locator("[name=count]")).to_be_checked()
    keys.choose("[name=what-0]", "mean")
    keys.choose("[name=of-0]", "pay")
    keys.choose("[name=by-0]", "sex")
    keys.write("input[type=date][name^=low-]", f"0101{since}")
    keys.enter("summary:has-text('sex')")
    keys.tick("input[name^=in-][value=F]")
    expect(explained).to_contain_text("SELECT sex, COUNT(*) AS count, AVG(pay) AS mean_pay")
    expect(explained).to_contain_text(f"born >= DATE '{since}-01-01'")
    expect(explained.locator("table:has(tbody th:text('10,000'))")).to_be_visible()
    told(explained, "IN ('F')")
    picture(page, f"ask-build-{width}-{language}")
    accessible(page)
    keys.enter("button[formaction='/ask/pilot']")
    expect(page.locator("#explained a[href^='/releases/']").first).to_be_visible()
    expect(page.locator("[name=what-0]")).to_have_value("mean")
    keys.enter("button[formaction='/ask/sql']")
    expect(page.locator("textarea[name=sql]")).to_have_value(built(since))
    keys.enter("button[formaction='/ask/build']")
    expect(page.locator("[name=by-0]")).to_have_value("sex")
    expect(page.locator("input[type=date][name^=low-]")).to_have_value(f"{since}-01-01")
    keys.enter("button[data-first]")
    page.wait_for_url("**/releases/*")
    expect(page.get_by_role("table").first).to_contain_text("±")
    page.goto(page.url.split("/releases/")[0] + "/dashboards")
    keys.write("main [name=title]", "The ward at a glance")
    page.keyboard.press("Enter")
    for number in (1, 2):
        keys.enter("form:has([name=release]) button")
        expect(page.get_by_role("table")).to_have_count(number)
    keys.enter("form[action$='/price'] button")
    expect(page.locator("form[action$='/refresh'] button")).to_be_visible()
    picture(page, f"dashboard-{width}-{language}")
    accessible(page)


def built(since: int) -> str:
    where = f"WHERE sex IN ('F') AND born >= DATE '{since}-01-01'"
    return f"SELECT sex, COUNT(*) AS count, AVG(pay) AS mean_pay\nFROM ward\n{where}\nGROUP BY sex"


@walked(CHINESE)
def test_it_is_built_in_steps_without_scripts(served: tuple[Stage, str], visit: Any, way: Way):
    width, language = way
    page = opened(served, visit, "/ask/build?about=ward", width=width, scripts=False, locale=language, expected=("422",))
    page.locator("[name=what-0]").select_option("mean")
    page.locator("[name=of-0]").select_option("pay")
    page.locator("[name=by-0]").select_option("age")
    page.locator("[name=width-0]").fill("0")
    page.locator("[formaction='/ask/explain']").last.click()
    expect(page.get_by_role("alert")).to_contain_text("age")
    page.locator("[name=width-0]").fill("10")
    page.locator("[formaction='/ask/explain']").last.click()
    expect(page.locator("#explained")).to_contain_text("FLOOR(age / 10) * 10 AS age_from")
    picture(page, f"ask-build-steps-{width}-{language}")
    page.locator("button[data-first]").click()
    assert "/releases/" in page.url
    with_scripts = opened(served, visit, "/ask/build?about=ward", width=width, locale=language)
    with_scripts.locator("[name=what-0]").select_option("mean")
    with_scripts.locator("[name=of-0]").select_option("pay")
    told(with_scripts.locator("#explained"), "AVG(pay)")
    accessible(with_scripts)  # axe is a script itself
