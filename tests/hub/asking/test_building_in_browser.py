"""Somebody who knows no SQL asks a hub: from the welcome page through the form to an answer, with keys alone and without scripts.

Pictures for the docs and for whoever looks: `CLOISTER_PICTURES=folder`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from cloister.hub.services.accounts.sessions import cookie_name
from tests.hub.asking.conftest import MAY, Stage
from tests.hub.house import PEOPLE, Clock, House
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


def test_a_query_is_built_priced_and_asked_without_sql(served: tuple[Stage, str], visit: Any):
    page = opened(served, visit, "/ask", width=1400)
    page.locator("main").get_by_role("link", name="Build a query").click()
    page.get_by_role("link", name="ward", exact=True).click()
    expect(page.get_by_label("Count of rows", exact=True)).to_be_checked()
    page.get_by_label("Measure 1").select_option("mean")
    page.get_by_label("of column").first.select_option("pay")
    page.get_by_label("Group 1").focus()
    page.keyboard.type("sex")  # a list is chosen from by its letters
    page.get_by_label("From").first.fill("1960-01-01")
    page.get_by_text("sex Category").click()
    page.get_by_label("F", exact=True).check()
    expect(page.locator("#explained")).to_contain_text("SELECT sex, COUNT(*) AS count, AVG(pay) AS mean_pay")
    expect(page.locator("#explained")).to_contain_text("born >= DATE '1960-01-01'")
    expect(page.get_by_role("table", name="Margins of error by the size of a group")).to_contain_text("10,000")
    picture(page, "ask-build")
    accessible(page)
    page.get_by_role("button", name="Count the groups").click()
    expect(page.get_by_text("See the pilot")).to_be_visible()
    expect(page.get_by_label("Measure 1")).to_have_value("mean")
    page.get_by_role("button", name="Edit as SQL").click()
    expect(page.get_by_label("Query", exact=True)).to_have_value(built())
    page.get_by_role("button", name="Open in the form").click()
    expect(page.get_by_label("Group 1")).to_have_value("sex")
    expect(page.get_by_label("From").first).to_have_value("1960-01-01")
    page.get_by_role("button", name="Run").click()
    page.wait_for_url("**/releases/*")
    expect(page.get_by_role("table").first).to_contain_text("±")
    page.goto(page.url.split("/releases/")[0] + "/dashboards")
    page.get_by_label("Name of a new dashboard").fill("The ward at a glance")
    page.get_by_role("button", name="Create").click()
    page.get_by_role("button", name="Add").click()
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_role("table")).to_have_count(2)
    page.get_by_role("button", name="Cost of a refresh").click()
    expect(page.get_by_text("A refresh costs nothing")).to_be_visible()
    picture(page, "dashboard")
    accessible(page)


def built() -> str:
    where = "WHERE sex IN ('F') AND born >= DATE '1960-01-01'"
    return f"SELECT sex, COUNT(*) AS count, AVG(pay) AS mean_pay\nFROM ward\n{where}\nGROUP BY sex"


def test_it_is_built_in_steps_without_scripts_on_a_phone_in_chinese(served: tuple[Stage, str], visit: Any):
    page = opened(served, visit, "/ask/build?about=ward", width=390, scripts=False, locale="zh-CN", expected=("422",))
    page.locator("[name=what-0]").select_option("mean")
    page.locator("[name=of-0]").select_option("pay")
    page.locator("[name=by-0]").select_option("age")
    page.locator("[name=width-0]").fill("0")
    page.locator("[formaction='/ask/explain']").click()
    expect(page.get_by_role("alert")).to_contain_text("age")
    page.locator("[name=width-0]").fill("10")
    page.locator("[formaction='/ask/explain']").click()
    expect(page.locator("#explained")).to_contain_text("FLOOR(age / 10) * 10 AS age_from")
    picture(page, "ask-build-zh")
    page.locator("button[data-first]").click()
    assert "/releases/" in page.url
