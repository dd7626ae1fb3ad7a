"""The pages of accounts in Chromium: accessible, in two widths and without scripts; and single sign-on as a browser lives it."""

from __future__ import annotations

import base64
import re
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import Page

from cloister.hub.decisions.callers import caller_for
from cloister.hub.platform.accounts import invite, totp
from tests.hub.accounts.identity_provider import CLIENT, SECRET, IdentityProvider
from tests.hub.accounts.world import PASSWORD, World
from tests.hub.house import Clock
from tests.hub.web.browser import WIDTHS, Guarded, accessible, browser, last, log_in, served, visit  # noqa: F401
from tests.tiers import some_by_day


class Now(Clock):
    """The real time: a browser looks at it too."""

    def __call__(self) -> float:
        return time.time()


@pytest.fixture(scope="module")
def provider() -> Iterator[IdentityProvider]:
    made = IdentityProvider()
    yield made
    made.close()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, empty_hub: Path, provider: IdentityProvider) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("browser")
    shutil.copytree(empty_hub, folder / "hub")
    made = World(folder, Now(), oidc_issuer=provider.issuer, oidc_client=CLIENT, oidc_secret=SECRET)
    made.person("root@example.org", "administrator", "steward", name="Grace Hopper")
    made.person("bob@example.org", "analyst", name="Bob Noether")
    with served(made.app) as address:
        made.hub.settings = replace(made.hub.settings, address=address)
        yield made
    made.close()


@some_by_day("width", WIDTHS, lambda width: width == 360)
def test_every_page_is_accessible(world: World, visit: Callable[..., Guarded], width: int) -> None:  # noqa: F811
    with world.hub.database.begin() as db:
        root = caller_for(world.hub, db, world.find("root@example.org").id)
        assert root is not None
        link = invite(world.hub, db, root, email="new@example.org", roles=["owner"])
    guarded = visit(world.hub.settings.origin, width=width, expected=("status of 403",))
    page = guarded.page(link.removeprefix(world.hub.settings.origin))
    accessible(page)
    log_in(page, "root@example.org", "wrong")
    accessible(page)
    assert page.get_by_role("alert").is_visible()
    log_in(page, "root@example.org", PASSWORD)
    someone = f"/people/{world.find('bob@example.org').id}"
    own = ("/account", "/account/password", "/account/second-factor", "/account/sessions", "/account/tokens")
    for path in (*own, "/people", "/people/invite", someone):
        page.goto(guarded.address + path)
        accessible(page)


def test_a_second_factor_without_scripts(world: World, visit: Callable[..., Guarded]) -> None:  # noqa: F811
    email = "emmy@example.org"
    world.person(email, "owner", name="Emmy Lamarr")
    page = visit(world.hub.settings.origin, scripts=False).page("/login")
    log_in(page, email, PASSWORD)
    page.goto(world.hub.settings.origin + "/account/second-factor")
    drawn = page.locator("img")
    assert drawn.evaluate("image => image.complete && image.naturalWidth") > 100
    key = base64.b32decode(re.sub(r"\s", "", page.locator("#key").inner_text()))
    page.get_by_label("Code", exact=True).fill(totp.code_of(key, totp.step_at(time.time())))
    page.get_by_role("button", name="Set up").click()
    codes = page.locator("#codes").inner_text().split()
    assert len(codes) == 10
    page.get_by_role("link", name="I have stored them").click()
    _log_out(page)
    log_in(page, email, PASSWORD)
    assert "/login/second" in page.url
    page.get_by_label("Code", exact=True).fill(codes[0])
    page.get_by_role("button", name="Go on").click()
    page.goto(world.hub.settings.origin + "/account")
    assert page.get_by_role("heading", name="Your account").is_visible()


@pytest.mark.parametrize("scripts", [True, False])
def test_single_sign_on_there_and_back(world: World, browser: Chromium, provider: IdentityProvider, scripts: bool) -> None:  # noqa: F811
    """A content policy that lets no form end elsewhere, cookies of the same site, a provider on another origin."""
    context = browser.new_context(java_script_enabled=scripts)
    complaints: list[str] = []
    context.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page = context.new_page()
    page.goto(world.hub.settings.origin + "/login?next=/account")
    page.get_by_role("button", name="Single sign-on").click()
    page.wait_for_url(world.hub.settings.origin + "/account")
    assert page.get_by_role("heading", name="Your account").is_visible()
    assert page.locator("main").get_by_text("ada@example.org").first.is_visible()
    assert complaints == []
    context.close()


def _log_out(page: Page) -> None:
    last(page.locator("header details.menu summary")).click()
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/login")
