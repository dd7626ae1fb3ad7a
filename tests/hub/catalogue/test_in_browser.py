"""The pages in Chromium: accessible at two widths, in two languages; and the whole way to a data set without scripts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cloister.hub.records.catalogue import DataSet
from tests.hub.accounts.world import PASSWORD
from tests.hub.catalogue.growing import EDGES, opened, rows, window
from tests.hub.catalogue.world import FORM, PEOPLE, Sender, World
from tests.hub.stories.town import CHINESE, ENGLISH, WAYS, WIDE, Way, walked
from tests.hub.web.browser import accessible, browser, last, log_in, served, strict, visit  # noqa: F401  (fixtures)
from tests.tiers import by_day_and_night


@pytest.fixture
def paths(world: World, ada: Sender) -> list[str]:
    """Every kind of page, with something on it."""
    policy = {"labels": ["clinical"], "purposes": ["research"], "sensitivity": "special", "retention": "2030-12-31"}
    world.register(listed=True, metadata={"policy": policy})
    windows = {"every": "quarter", "of": "visits", "title": "Visits", "population": "patients"}
    for label, name in (("2026-Q4", "visits_2026_q4"), ("2027-Q1", "visits_2027_q1")):
        world.register(name=name, population=f"patients {label}", window=windows | {"window": label})
    opened(ada, rows(*EDGES, "2026-05-05", each=3) + b"p1,,5\n", name="stays", population="homes", members="household")
    window(ada, "stays_2026_q1")
    ada.send(PEOPLE, path="/uploads/versions/people", page="/datasets/people/version")
    wrong, right = ada.arrival(), ada.arrival()
    ada.declare(wrong, **{**FORM, "c0_reason": ""})
    ada.declare(right, **{**FORM, "name": "more", "population_new": "others"})
    shown = ["/datasets", "/datasets/people", "/datasets/people/manage", "/datasets/visits_2026_q4"]
    ada.post(f"/register/{right}/trial", f"/register/{right}/review")
    shown += ["/datasets/visits_2026_q4/version", "/register", f"/register/{wrong}"]
    shown += [f"/register/{right}/{page}" for page in ("review", "trial")]
    shown += [f"/datasets/stays_2026_q2{page}" for page in ("", "/manage", "/version", "/reading")]
    return [*shown, "/populations/homes%202026-Q2", "/populations", "/populations/people", "/"]


@by_day_and_night("looks", 1, 4)
def test_every_page_is_for_everybody(world: World, ada: Sender, paths: list[str], visit: Callable[..., Any], looks: int) -> None:  # noqa: F811
    """By day each page once, in English at 1400 px and in Chinese at 390 px in turn; at night each in all four ways."""
    for path in paths:
        strict(ada.get(path).text)
    with served(world.app) as address:
        for part, (width, language) in enumerate((ENGLISH, CHINESE, *(way for way in WAYS if way not in (ENGLISH, CHINESE)))):
            guest = visit(address, width=width, locale=language, theme="light" if width == WIDE else "dark")
            guest.context.add_cookies([{"name": "cloister", "value": ada.cookie, "url": address}])
            page = guest.context.new_page()
            for path in paths if looks == len(WAYS) else paths[part::2] if part < 2 else ():
                page.goto(address + path)
                accessible(page)


@walked(CHINESE)
def test_what_does_not_fit_is_mended_before_the_table_opens(
    world: World,
    ada: Sender,
    visit: Callable[..., Any],  # noqa: F811
    way: Way,
) -> None:
    """An upload that does not fit: the owner reads it for a trial, goes to the column, mends it, opens it."""
    number = ada.arrival(PEOPLE + b"17,D,Ghent,120\n17,D,Ghent,70000\n" + "\U0001f984,n/a,<b>,9\n".encode() * 3)
    ada.declare(number, **FORM)
    with served(world.app) as address:
        guest = visit(address, width=way[0], locale=way[1])
        guest.context.add_cookies([{"name": "cloister", "value": ada.cookie, "url": address}])
        page = guest.page(f"/register/{number}/review")
        accessible(page)
        page.locator(f"form[action$='/{number}/trial'] button").first.click()
        assert page.url == f"{address}/register/{number}/trial"
        accessible(page)
        sex = page.locator("main tbody tr").filter(has_text="sex")
        assert "n/a × 3" in sex.inner_text()
        assert "D × 2" in sex.inner_text()
        sex.get_by_role("link").click()
        assert page.url == f"{address}/register/{number}#f-c1_kind"
        page.locator("[name=c1_values]").fill("F\nM\nD")
        last(page.locator(f"main form[action$='{number}'] button:not([formaction])")).click()
        assert page.url == f"{address}/register/{number}/review"
        page.locator(f"form[action$='/{number}/open'] button").click()
        page.wait_for_url(f"{address}/datasets/people/manage", wait_until="networkidle")
    assert world.rows(DataSet)[0].declaration["columns"]["sex"]["values"] == ["F", "M", "D"]


def test_a_data_set_is_registered_without_scripts(world: World, visit: Callable[..., Any]) -> None:  # noqa: F811
    world.person("ada@example.org", "owner")
    with served(world.app) as address:
        page = visit(address, scripts=False, expected=("422",)).page("/login")
        log_in(page, "ada@example.org", PASSWORD)
        page.goto(address + "/register")
        page.locator("input[type=file]").set_input_files({"name": "people.csv", "mimeType": "text/csv", "buffer": PEOPLE})
        page.get_by_role("button", name="Upload", exact=True).click()
        page.get_by_label("Title").fill("People of the town")
        page.get_by_label("Name of the new population").fill("townspeople")
        age = page.locator("tr", has_text="age").first
        age.get_by_label("From").fill("17")
        age.get_by_label("To", exact=True).fill("90")
        age.get_by_label("Public reason").fill("")
        for each in ("sex", "pay", "town"):  # their names are known, too
            page.locator("tr", has_text=each).first.get_by_label("Kind", exact=True).select_option("")
        page.get_by_label("the only row of one person").check()
        page.get_by_label("No bound, category or size above").check()
        page.get_by_role("button", name="Review").click()
        assert "their public reason is missing" in page.locator("main").inner_text()
        age.get_by_label("Public reason").fill("the register takes adults")
        page.get_by_role("button", name="Review").click()
        page.get_by_role("button", name="Open it").click()
        assert page.url == f"{address}/datasets/people/manage"
        assert page.locator("main .callout").first.inner_text() == "people is open."
    assert world.rows(DataSet)[0].declaration["columns"] == {"age": {"kind": "integer", "low": 17, "high": 90, "nullable": False}}


def test_bounds_can_be_read_on_a_narrow_page(world: World, ada: Sender, visit: Callable[..., Any]) -> None:  # noqa: F811
    number = ada.arrival(b"age,sex,income\n30,F,100\n40,M,200\n")
    with served(world.app) as address:
        guest = visit(address)
        guest.context.add_cookies([{"name": "cloister", "value": ada.cookie, "url": address}])
        page = guest.page(f"/register/{number}")
        page.locator("[name=c2_high]").fill("500000")
        for width in (700, 900, 1400):
            accessible(page, width)
            for name in ("c0_low", "c0_high", "c2_low", "c2_high", "c2_step"):
                field = page.locator(f"[name={name}]")
                assert field.is_visible()
                assert field.evaluate("each => each.scrollWidth <= each.clientWidth"), (width, name)
        page.set_viewport_size({"width": 1280, "height": 900})
        beyond = page.locator("main .scroll").evaluate_all("all => all.map((each) => each.scrollWidth - each.clientWidth)")
        assert beyond == [0, 0], "the columns and the usual budgets stand whole on a common screen"
