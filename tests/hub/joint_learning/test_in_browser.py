"""Joint learning in a real browser: from the form over its forecast and its job to the result, and what an owner takes away."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from cloister.hub.platform.accounts.sessions import cookie_name
from cloister.hub.platform.jobs import Workers
from tests.hub.house import Clock, House, Visitor
from tests.hub.joint_learning.test_exact import played as played_at_sites
from tests.hub.joint_learning.test_joint_learning import Play, grant, played
from tests.hub.web.browser import accessible, browser, serve, visit

__all__ = ["browser", "serve", "visit"]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, serve: Any) -> Iterator[tuple[Play, str]]:
    house = House(tmp_path_factory.mktemp("browser") / "hub", Clock())
    play = played(house)
    for name, owner in play.owners.items():
        grant(name, play.analyst, owner)
    yield play, serve(house.app)
    house.close()


def opened(served: tuple[Play, str], visit: Any, path: str, who: Visitor, **how: Any) -> Page:
    play, address = served
    guarded = visit(address, **how)
    name = cookie_name(play.house.settings)
    guarded.context.add_cookies([{"name": name, "value": who.client.cookies[name], "url": address}])
    page: Page = guarded.page(path)
    return page


def test_from_the_form_to_what_an_owner_takes_away(served: tuple[Play, str], visit: Any) -> None:
    import cloister.compress.from_tables  # noqa: F401  a first import takes longer than a page waits on a busy machine

    play = served[0]
    page = opened(served, visit, "/joint-learning", play.analyst, width=390)
    page.get_by_label("Principal components: what varies most").check()
    page.get_by_label("Spend").fill("2")
    page.get_by_role("button", name="Cost, time and what it tells").click()
    main = page.locator("main")
    for words in ("Before it starts", "north", "south", "Content of the output", "1 of 3 directions"):
        expect(main).to_contain_text(words, timeout=60_000)  # a first forecast on a busy machine
    accessible(page)
    page.get_by_role("button", name="Start").click()
    expect(main).to_contain_text("waits for a free worker")
    assert Workers(play.house.hub, 0).run_one()
    page.reload()
    told = [each.strip() for each in page.locator("main dt").all_text_contents()]
    assert told == ["Who", "Submitted", "Begun", "Ended"], "the link says where the result is: no stored name, and no id"
    page.get_by_role("link", name="Open the result").click()
    expect(main).to_contain_text("Handed to the owners of")
    expect(main).to_contain_text("2 parts")
    accessible(page)
    page.goto(served[1] + "/joint-results")
    accessible(page)
    costs = page.locator("td[data-label=Cost]").first.inner_text().splitlines()
    assert [each.split(" ", 3)[-1] for each in costs if each.startswith("ε")] == ["everybody", "north", "south"], "a line each"

    owner = opened(served, visit, "/joint-learning", play.owners["south"])
    expect(owner.locator("main")).to_contain_text("Handed to you")
    accessible(owner)
    with owner.expect_download() as coming:
        owner.get_by_role("link", name="JSON").click()
    told = json.loads(coming.value.path().read_text(encoding="utf-8"))
    assert told["parts"] == 2
    assert len(told["components"][0]) == 3


def test_what_exact_results_tell_is_said_before_they_start(
    tmp_path_factory: pytest.TempPathFactory, serve: Any, visit: Any
) -> None:
    with played_at_sites(tmp_path_factory.mktemp("exact")) as play:
        served = play, serve(play.house.app)
        page = opened(served, visit, "/joint-learning/exact", play.owner, width=390)  # type: ignore[arg-type]
        main = page.locator("main")
        expect(main).to_contain_text("Not differentially private")
        accessible(page)
        page.get_by_role("textbox", name="Components").fill("1")
        page.get_by_label("Purpose").fill("care")
        page.get_by_role("button", name="Time, bytes and what it tells").click()
        for words in ("1 of 3 principal components, exact", "north, south, west", "MB of garbled gates", "keys "):
            expect(main).to_contain_text(words, timeout=60_000)  # a first circuit on a busy machine
        accessible(page)
        page.goto(served[1] + "/exact-joint-results")
        expect(main).to_contain_text("Not differentially private")
        accessible(page)
