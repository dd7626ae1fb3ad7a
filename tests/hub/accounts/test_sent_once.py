"""A page's form that is sent twice, without scripts, does its work once, and what is shown once is not lost."""

from __future__ import annotations

import re

from sqlalchemy import func, select

from cloister.hub.records.accounts import ApiToken
from cloister.hub.records.asking import Idempotency
from tests.hub.accounts.world import Browser, World


def _form(browser: Browser, page: str) -> dict[str, str]:
    """The hidden fields of the last form of a page, as a browser without scripts sends them."""
    return dict(re.findall(r'type="hidden" name="(form_\w+)" value="([^"]+)"', browser.get(page).text))


def _tokens(world: World) -> int:
    with world.hub.database.reading() as db:
        return db.scalar(select(func.count()).select_from(ApiToken)) or 0


def test_a_token_that_was_sent_for_twice_is_one_and_is_shown_again(world: World) -> None:
    ada = world.logged_in("ada@example.org", "analyst")
    form = {**_form(ada, "/account/tokens"), "name": "notebook", "days": "30", "scope": "trail.own"}
    first, second = (ada.client.post("/account/tokens", data=form) for _ in range(2))
    assert (first.status_code, second.status_code, second.content) == (201, 201, first.content)
    assert _tokens(world) == 1
    [secret] = set(re.findall(r"clo_[\w-]{43}", second.text))
    ada.client.post("/account/tokens", data=form | {"name": "other"})
    assert _tokens(world) == 2, "the same page sent something else"
    ada.client.post("/account/tokens", data=form | _form(ada, "/account/tokens"))
    assert _tokens(world) == 3, "the page was loaded again"
    bea = world.logged_in("bea@example.org", "analyst")
    assert secret not in bea.client.post("/account/tokens", data=form).text
    world.clock.move(hours=2)
    ada.log_in("ada@example.org")
    ada.client.post("/account/tokens", data=form | _form(ada, "/account/tokens"))
    with world.hub.database.reading() as db:
        assert db.scalar(select(func.count()).select_from(Idempotency)) == 1, "nothing is kept for longer than an hour"
    world.hub.close()
    assert all(secret.encode() not in each.read_bytes() for each in world.settings.data.glob("*.db*"))


def test_a_form_that_leads_on_says_the_same_again_and_a_refused_one_is_looked_at_again(world: World) -> None:
    root = world.logged_in("root@example.org", "administrator")
    form = {**_form(root, "/people/invite"), "email": "eve@example.org", "role": "owner"}
    assert root.client.post("/people/invite", data=form | {"email": "eve"}).status_code == 422
    pages = {root.client.post("/people/invite", data=form).text for _ in range(3)}
    assert len(pages) == 1
    assert [line[0] for line in world.trail()].count("people.invite") == 1
    saved = {**_form(root, "/account"), "name": "Root", "language": "", "zone": "UTC"}
    answers = [root.client.post("/account", data=saved) for _ in range(2)]
    assert {(each.status_code, each.headers["location"], each.headers["set-cookie"]) for each in answers} == {
        (303, "/account", answers[0].headers["set-cookie"])
    }
    assert [line[0] for line in world.trail()].count("profile.change") == 1


def test_a_form_of_an_earlier_sign_in_finds_nothing_that_was_kept(world: World) -> None:
    ada = world.logged_in("ada@example.org", "analyst")
    form = {**_form(ada, "/account/tokens"), "name": "notebook", "days": "30", "scope": "trail.own"}
    secret = re.findall(r"clo_[\w-]{43}", ada.client.post("/account/tokens", data=form).text)[0]
    ada.client.cookies.clear()
    ada.log_in("ada@example.org")
    again = ada.client.post("/account/tokens", data=form)
    assert (again.status_code, secret in again.text, _tokens(world)) == (403, False, 1)
