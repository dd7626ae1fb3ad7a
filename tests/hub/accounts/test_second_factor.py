"""The second factor: asked for, set up where it is due, never skipped, never twice with one code."""

from __future__ import annotations

import base64
import re

import pytest

from cloister.hub.keys import hub_keyring, rotate
from cloister.hub.platform.accounts import totp
from cloister.hub.records.accounts import Person, RecoveryCode
from tests.hub.accounts.world import OTHER_PASSWORD, PASSWORD, Browser, World


def key_of(world: World, email: str) -> bytes:
    person = world.find(email)
    assert person.totp is not None
    return world.hub.keys.unwrap(person.totp, f"second factor {person.id}")


def set_up(browser: Browser) -> tuple[bytes, list[str]]:
    """Set it up as a person does: the key from the page, the code from the key."""
    page = browser.get("/account/second-factor")
    shown = re.search(r'id="key">([A-Z2-7 ]+)<', page.text)
    assert shown is not None, page.text
    key = base64.b32decode(shown[1].replace(" ", ""))
    done = browser.post("/account/second-factor", code=totp.code_of(key, totp.step_at(browser.world.clock())))
    assert done.status_code == 200, done.text
    listed = re.search(r'id="codes">([a-z2-7\s-]+)<', done.text)
    assert listed is not None
    return key, listed[1].split()


def code(world: World, key: bytes) -> str:
    return totp.code_of(key, totp.step_at(world.clock()))


def test_it_is_set_up_and_asked_for(world: World) -> None:
    ada = world.logged_in("ada@example.org", "owner")
    before = ada.cookie
    assert ada.get("/account/second-factor/code.svg").status_code == 404
    key, codes = set_up(ada)
    assert key == key_of(world, "ada@example.org")
    assert len(set(codes)) == 10
    assert ada.cookie != before, "the secret changes with what it may do"
    assert ada.who() == "ada@example.org"
    world.clock.move(seconds=30)
    other = world.browser()
    other.log_in("ada@example.org")
    assert other.who() == ""
    assert other.get("/login").headers["location"] == "/login/second"
    half = other.cookie
    answer = other.post("/login/second", code=code(world, key), next="/account")
    assert answer.status_code == 303
    assert other.who() == "ada@example.org"
    assert other.cookie != half
    other.client.cookies.clear()
    other.client.cookies.set("cloister", half)
    assert other.who() == ""


def test_half_a_log_in_is_nobody_everywhere(world: World) -> None:
    set_up(world.logged_in("ada@example.org", "administrator"))
    half = world.browser()
    half.log_in("ada@example.org")
    for path in ("/people", "/account", "/account/tokens", "/account/sessions", "/trail"):
        assert half.get(path).headers["location"].startswith("/login?next=")
    for path in ("/me", "/people", "/tokens"):
        assert half.get(f"/api/v1{path}").status_code == 401
    assert half.get("/account/second-factor").headers["location"] == "/login/second"
    assert half.get("/account/second-factor/code.svg").status_code == 404
    answer = half.post("/account/second-factor", "/login/second", code="000000")
    assert answer.status_code in (404, 409), "who has one cannot set up another without it"
    for path in ("codes", "remove"):
        assert half.post(f"/account/second-factor/{path}", "/login/second", code="000000").status_code == 401


def test_a_code_counts_once(world: World) -> None:
    key, _ = set_up(world.logged_in("ada@example.org", "analyst"))
    first, second = world.browser(), world.browser()
    for browser in (first, second):
        browser.log_in("ada@example.org")
    assert first.post("/login/second", code=code(world, key)).status_code == 422, "setting up used this half minute"
    world.clock.move(seconds=30)
    used = code(world, key)
    assert first.post("/login/second", code=used).status_code == 303
    answer = second.post("/login/second", code=used)
    assert answer.status_code == 422
    assert "wrong, or was used before" in answer.text
    assert second.who() == ""


def test_codes_are_not_guessed(world: World) -> None:
    key, _ = set_up(world.logged_in("ada@example.org", "analyst"))
    world.clock.move(seconds=60)
    thief = world.browser("198.51.100.9")
    thief.log_in("ada@example.org")
    wrong = f"{(int(code(world, key)) + 1) % 10**6:06d}"
    assert [thief.post("/login/second", code=wrong).status_code for _ in range(8)] == [422] * 6 + [429] * 2
    assert thief.post("/login/second", code=code(world, key)).status_code == 429
    world.clock.move(seconds=3)
    assert thief.post("/login/second", code=code(world, key)).status_code == 303


def test_fall_back_codes_count_once_each(world: World) -> None:
    _, codes = set_up(world.logged_in("ada@example.org", "analyst"))
    browser = world.browser()
    browser.log_in("ada@example.org")
    assert browser.post("/login/second", code=codes[0].upper().replace("-", " ")).status_code == 303
    other = world.browser()
    other.log_in("ada@example.org")
    assert other.post("/login/second", code=codes[0]).status_code == 422
    assert other.post("/login/second", code=codes[1]).status_code == 303
    with world.hub.database.reading() as db:
        kept = [row.digest for row in db.query(RecoveryCode)]
    assert len(kept) == 10
    assert not {each for each in codes for digest in kept if each in digest}


def test_anothers_fall_back_codes_are_worth_nothing(world: World) -> None:
    _, codes = set_up(world.logged_in("eve@example.org", "analyst"))
    set_up(world.logged_in("ada@example.org", "analyst"))
    browser = world.browser()
    browser.log_in("ada@example.org")
    assert browser.post("/login/second", code=codes[0]).status_code == 422


def test_new_codes_replace_the_old(world: World) -> None:
    ada = world.logged_in("ada@example.org", "analyst")
    key, old = set_up(ada)
    world.clock.move(seconds=30)
    page = ada.post("/account/second-factor/codes", "/account/second-factor", code=code(world, key))
    assert page.status_code == 201
    browser = world.browser()
    browser.log_in("ada@example.org")
    assert browser.post("/login/second", code=old[0]).status_code == 422
    assert ada.post("/account/second-factor/codes", "/account/second-factor", code="000000").status_code == 422


def test_removing_it_takes_a_code_and_changes_the_secret(world: World) -> None:
    ada = world.logged_in("ada@example.org", "analyst")
    key, _ = set_up(ada)
    before = ada.cookie
    assert ada.post("/account/second-factor/remove", "/account/second-factor", code="").status_code == 422
    world.clock.move(seconds=30)
    assert ada.post("/account/second-factor/remove", "/account/second-factor", code=code(world, key)).status_code == 303
    assert ada.cookie != before
    assert world.find("ada@example.org").totp is None
    assert ada.who() == "ada@example.org"


@pytest.mark.parametrize(
    ("setting", "role", "due"), [("owners", "owner", True), ("owners", "analyst", False), ("everyone", "analyst", True)]
)
def test_who_must_have_one_is_led_there_before_anything_else(world: World, setting: str, role: str, due: bool) -> None:
    world = world.again(second_factor=setting)
    ada = world.logged_in("ada@example.org", role)
    assert (ada.who() == "") == due
    if not due:
        return
    assert ada.get("/account").headers["location"].startswith("/login?next=")
    assert ada.get("/login?next=/account").headers["location"] == "/login/second?next=/account"
    assert ada.get("/login/second?next=/account").headers["location"] == "/account/second-factor?next=/account"
    page = ada.get("/account/second-factor?next=/account")
    assert page.status_code == 200
    assert "before anything else" in page.text
    assert ada.get("/account/second-factor/code.svg").headers["content-type"] == "image/svg+xml"
    key, _ = set_up(ada)
    assert ada.who() == "ada@example.org"
    world.clock.move(seconds=30)
    answer = ada.post("/account/second-factor/remove", "/account/tokens", code=code(world, key))
    assert answer.status_code == 403
    assert world.find("ada@example.org").totp is not None


def test_a_stricter_setting_counts_for_log_ins_that_are_there(world: World) -> None:
    ada = world.logged_in("ada@example.org", "analyst")
    cookie = ada.cookie
    world = world.again(second_factor="everyone")
    browser = world.browser()
    browser.client.cookies.set("cloister", cookie)
    assert browser.who() == ""


def test_an_administrator_helps_who_lost_it(world: World) -> None:
    set_up(world.logged_in("ada@example.org", "owner"))
    root = world.logged_in("root@example.org", "administrator")
    ada = world.find("ada@example.org").id
    assert root.post(f"/people/{ada}/second-factor", f"/people/{ada}").status_code == 303
    browser = world.browser()
    browser.log_in("ada@example.org")
    assert browser.who() == "ada@example.org"


def test_an_administrator_turns_ones_own_off_with_a_code_alone(world: World) -> None:
    root = world.logged_in("root@example.org", "administrator")
    set_up(root)
    own = world.find("root@example.org").id
    assert f"/people/{own}/second-factor" not in root.get(f"/people/{own}").text
    assert root.post(f"/people/{own}/second-factor", f"/people/{own}").status_code == 403
    assert world.find("root@example.org").totp is not None
    assert root.who() == "root@example.org"


def test_a_new_password_does_not_go_round_it(world: World) -> None:
    set_up(world.logged_in("ada@example.org", "owner"))
    root = world.logged_in("root@example.org", "administrator")
    ada = world.find("ada@example.org").id
    page = root.post(f"/people/{ada}/password-link", f"/people/{ada}")
    link = re.search(r"/link/([\w-]{43})", page.text)
    assert link is not None
    thief = world.browser()
    assert thief.post(link[0], password=OTHER_PASSWORD, again=OTHER_PASSWORD).status_code == 303
    assert thief.who() == ""
    with world.hub.database.reading() as db:
        assert db.get_one(Person, ada).totp is not None
    assert PASSWORD not in page.text


def test_fall_back_codes_outlive_the_master_key(world: World) -> None:
    ada = world.logged_in("ada@example.org", "owner")
    _, codes = set_up(ada)
    fresh = hub_keyring(bytes(range(32)))
    rotate(world.hub, fresh)
    world.close()
    (world.settings.data / "master.key").write_text(base64.b64encode(bytes(range(32))).decode())
    world = World(world.folder, world.clock)
    other = world.browser()
    other.log_in("ada@example.org")
    assert other.post("/login/second", code=codes[0]).status_code == 303
    assert other.who() == "ada@example.org"
    world.close()
