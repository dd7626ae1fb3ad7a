"""From the keys of three sites to an open data set, in a real browser: accessible, narrow and wide."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from cloister.together import Roster
from tests.hub.guests.test_in_browser import looked_at
from tests.hub.house import Clock, House, Visitor
from tests.hub.sites.test_joining import NAMES, TABLE, key_of
from tests.hub.web.browser import browser, serve, visit
from tests.tiers import some_by_day

__all__ = ["browser", "serve", "visit"]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, serve: Any) -> Iterator[tuple[House, Visitor, str]]:
    house = House(tmp_path_factory.mktemp("browser") / "hub", Clock())
    yield house, house.person("owner"), serve(house.app)
    house.close()


@some_by_day("width", [390, 1200], lambda width: width == 390)
def test_from_keys_to_an_open_data_set(served: tuple[House, Visitor, str], visit: Any, width: int) -> None:
    from cloister.hub.platform.accounts.sessions import cookie_name

    house, owner, address = served
    guarded, name = visit(address, width=width), cookie_name(house.hub.settings)
    guarded.context.add_cookies([{"name": name, "value": owner.client.cookies[name], "url": address}])
    page = guarded.page("/sites")
    looked_at(page, f"sites-{width}")
    sites = {f"{each}-{width}": key_of(f"{each}{width}") for each in NAMES}
    page.get_by_label("Public keys").fill("\n".join(json.dumps({each: key.public.hex()}) for each, key in sites.items()))
    page.get_by_label("Sites that may collude").fill("1")
    page.get_by_label("Sites that may drop out").fill("0")
    page.get_by_role("button", name="Make the roster").click()
    looked_at(page, f"roster-{width}")
    roster = Roster.from_plain(json.loads(page.get_by_label("Roster", exact=True).input_value()))
    assert (roster.missing, roster.dropouts, roster.honest) == (1, 0, 2)
    expect(page.locator("main")).to_contain_text("1 may collude and 0 may drop out. Answers have 1.50 times the variance")
    page.get_by_label("Signatures", exact=True).fill(
        "\n".join(json.dumps({each: key.sign(roster.text).hex()}) for each, key in sites.items())
    )
    page.get_by_label("Table").fill(TABLE.replace("hospitals", f"hospitals_{width}"))
    page.get_by_label("Public reason").fill("The hospitals take adults up to 90.")
    page.get_by_label("Title").fill("Three hospitals")
    page.get_by_label("Sites at which one person may have rows").fill("none")
    page.get_by_label("Name of the new population").fill(f"patients {width}")
    page.get_by_label("ε").fill("2")
    page.get_by_role("button", name="Open the data set").click()
    expect(page.locator("main")).to_contain_text("This hub sees nothing but their sums with noise.")
    looked_at(page, f"joint-{width}")
    page.goto(f"{address}/sites")
    expect(page.locator("main")).to_contain_text("it never called")
    looked_at(page, f"standing-{width}")
