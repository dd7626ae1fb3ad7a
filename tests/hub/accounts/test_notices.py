"""Whoever makes a link to somebody's new password cannot do it in silence: they are told, and a second factor still counts."""

from __future__ import annotations

import pytest

from cloister.hub.hub import Caller
from cloister.hub.platform.accounts.links import password_link
from cloister.hub.platform.accounts.notices import notices
from cloister.hub.records.accounts import person_of_address
from tests.hub.accounts.test_links import path_of
from tests.hub.accounts.test_second_factor import code, set_up
from tests.hub.accounts.world import OTHER_PASSWORD, Browser, World

PASSWORD_CHANGED = "Your password was reset with a link created by Root Admin"


@pytest.fixture
def root(world: World) -> Browser:
    world.person("root@example.org", "administrator", name="Root Admin")
    browser = world.browser("192.0.2.66")
    browser.log_in("root@example.org")
    return browser


def linked(world: World, root: Browser, email: str = "ada@example.org") -> str:
    number = world.find(email).id
    return path_of(root.post(f"/people/{number}/password-link", f"/people/{number}").text)


def after(browser: Browser, answer: object) -> str:
    """The page that a log-in leads to."""
    return str(browser.client.get(answer.headers["location"], follow_redirects=True).text)  # type: ignore[attr-defined]


def test_who_made_a_link_when_and_from_where_it_was_used_is_told(world: World, root: Browser) -> None:
    ada = world.logged_in("ada@example.org", "owner")
    assert "Changes to your account by others" not in ada.get("/account").text
    path = linked(world, root)
    page = ada.get("/account").text
    assert "Password reset link created" in page
    assert "Root Admin" in page
    assert "192.0.2.66" in page
    thief = world.browser("198.51.100.9")
    entered = thief.post(path, password=OTHER_PASSWORD, again=OTHER_PASSWORD)
    told = "Your password was reset on 2026-"
    assert told in after(thief, entered)
    assert ada.who() == "", "all her log-ins ended"
    again = linked(world, root)
    ada = world.browser("192.0.2.7")
    entered = ada.post(again, password="three calm rivers north", again="three calm rivers north")
    assert told in after(ada, entered), "the first log-in after it, the thief's, has not used it up"
    page = ada.get("/account").text
    assert page.count(PASSWORD_CHANGED) == 2
    assert "198.51.100.9" in page
    with world.hub.database.reading() as db:
        told_of = [(each.action, each.by, each.address) for each in notices(db, world.find("ada@example.org").id)]
    link, used = ("people.password-link", "Root Admin", "192.0.2.66"), ("password.change", "Root Admin", "192.0.2.7")
    assert told_of == [used, link, ("password.change", "Root Admin", "198.51.100.9"), link]


def test_it_is_said_at_each_log_in_for_a_month_and_stands_on_the_page_for_good(world: World, root: Browser) -> None:
    world.person("ada@example.org", "owner")
    linked(world, root)
    for days, said in ((0, True), (20, True), (11, False)):
        world.clock.move(days=days)
        ada = world.browser()
        assert ("Root Admin created a password reset link for your account" in after(ada, ada.log_in("ada@example.org"))) is said
        assert "Password reset link created" in ada.get("/account").text


def test_a_link_of_the_command_line_is_told_too(world: World) -> None:
    ada = world.logged_in("ada@example.org", "owner")
    with world.hub.database.begin() as db:
        person = person_of_address(db, "ada@example.org")
        assert person is not None
        path = path_of(password_link(world.hub, db, Caller(name="command line", via="system"), person))
    assert "command line" in ada.get("/account").text
    ada = world.browser()
    entered = ada.post(path, password=OTHER_PASSWORD, again=OTHER_PASSWORD)
    assert "with a link created by an operator at the hub&#39;s command line" in after(ada, entered)


def test_a_link_passes_no_second_factor(world: World, root: Browser) -> None:
    key, _ = set_up(world.logged_in("ada@example.org", "owner"))
    path = linked(world, root)
    thief = world.browser("198.51.100.9")
    entered = thief.post(path, password=OTHER_PASSWORD, again=OTHER_PASSWORD)
    half = after(thief, entered)
    assert thief.who() == ""
    assert "Root Admin" not in half, "half a log-in is nobody, and is told nothing"
    assert thief.get("/account").headers["location"].startswith("/login?next=")
    world.clock.move(seconds=60)
    whole = thief.post("/login/second", code=code(world, key))
    assert "Your password was reset on" in after(thief, whole)


def test_to_take_the_second_factor_off_is_told_too(world: World, root: Browser) -> None:
    set_up(world.logged_in("ada@example.org", "owner"))
    number = world.find("ada@example.org").id
    root.post(f"/people/{number}/second-factor", f"/people/{number}")
    ada = world.browser()
    assert "Root Admin turned off two-step verification for your account" in after(ada, ada.log_in("ada@example.org"))
    assert "Root Admin" in ada.get("/account").text


def test_log_ins_and_tokens_end_with_the_password_and_the_trail_has_lines(world: World, root: Browser) -> None:
    ada = world.logged_in("ada@example.org", "owner")
    made = ada.api("POST", "/tokens", json={"name": "a notebook", "scopes": ["dataset.see"], "days": 3}).json()["token"]
    bearer = {"Authorization": f"Bearer {made}"}
    assert world.browser().client.get("/api/v1/me", headers=bearer).status_code == 200
    path = linked(world, root)
    world.browser().post(path, password=OTHER_PASSWORD, again=OTHER_PASSWORD)
    assert ada.who() == ""
    assert world.browser().client.get("/api/v1/me", headers=bearer).status_code == 401
    ada, steps = world.find("ada@example.org").id, world.trail()
    assert ("people.password-link", world.find("root@example.org").id, "done") in steps
    assert ("password.change", ada, "done") in steps


def test_what_one_does_oneself_and_what_is_done_to_others_is_no_notice(world: World, root: Browser) -> None:
    world.person("eve@example.org", "analyst")
    ada = world.logged_in("ada@example.org", "owner")
    linked(world, root, "eve@example.org")
    ada.post("/account", name="Ada L.", language="")
    with world.hub.database.reading() as db:
        assert notices(db, world.find("ada@example.org").id) == []
        assert len(notices(db, world.find("eve@example.org").id)) == 1
    number = world.find("ada@example.org").id
    root.post(f"/people/{number}/roles", f"/people/{number}", role=["owner", "analyst"])
    with world.hub.database.reading() as db:
        assert [(each.action, each.serious) for each in notices(db, number)] == [("roles.give", False)]


def test_nobody_who_has_a_password_makes_a_link_around_it(world: World, root: Browser) -> None:
    """Of one's own acts there is no notice: whoever found the browser open could have taken the account in silence."""
    number = world.find("root@example.org").id
    assert "password-link" not in root.get(f"/people/{number}").text
    told = root.post(f"/people/{number}/password-link", f"/people/{number}")
    assert told.status_code == 403
    assert "changed with the current one" in told.text.replace("&#39;", "'")
    assert "/link/" not in told.text
    world.person("sso@example.org", "administrator", password=None)
    with world.hub.database.begin() as db:
        person = person_of_address(db, "sso@example.org")
        assert person is not None
        assert password_link(world.hub, db, Caller(id=person.id, name="S", via="session"), person)
