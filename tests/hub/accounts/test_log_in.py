"""Logging in: one answer for every failure, a log-in that cannot be planted or forged, and an end that is one."""

from __future__ import annotations

from http.cookies import SimpleCookie
from typing import Any

import argon2
import pytest

from cloister.hub.platform.accounts.hashing import Hasher
from cloister.hub.platform.accounts.parts import parts_of
from cloister.hub.records.accounts import Person
from cloister.hub.web.forms import TOKEN_FIELD
from tests.hub.accounts.world import OTHER_PASSWORD, PASSWORD, World


@pytest.fixture
def counted(world: World, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every run of the hash function from here on."""
    parts_of(world.hub)
    runs: list[str] = []
    for name in ("hash", "verify"):
        real = getattr(argon2.PasswordHasher, name)

        def counting(self: Any, *args: Any, real: Any = real, name: str = name, **more: Any) -> Any:
            runs.append(name)
            return real(self, *args, **more)

        monkeypatch.setattr(argon2.PasswordHasher, name, counting)
    return runs


def test_a_person_logs_in_and_out(world: World) -> None:
    identity = world.person("ada@example.org", "analyst")
    browser = world.browser()
    assert browser.who() == ""
    answer = browser.post("/login", email=" ADA@example.org", password=PASSWORD, next="/people?after=x")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/login/second?next=/people%3Fafter%3Dx"
    assert browser.get("/login/second?next=/people%3Fafter%3Dx").headers["location"] == "/people?after=x"
    assert browser.who() == "ada@example.org"
    cookie = browser.cookie
    assert browser.post("/logout", "/account").headers["location"] == "/login"
    browser.client.cookies.set("cloister", cookie)
    assert browser.who() == ""
    assert [line[0] for line in world.trail()] == ["session.begin", "session.end"]
    assert world.trail()[0][1] == identity


@pytest.mark.parametrize("case", ["unknown", "no address", "wrong", "blocked", "no password", "too long"])
def test_every_failure_is_told_and_worked_alike(world: World, counted: list[str], case: str) -> None:
    world.person("ada@example.org", "analyst")
    world.person("bob@example.org", "analyst", password=None)
    if case == "blocked":
        with world.hub.database.begin() as db:
            db.get_one(Person, world.find("ada@example.org").id).blocked = True
    counted.clear()
    email = {"unknown": "eve@example.org", "no address": "eve", "no password": "bob@example.org"}.get(case, "ada@example.org")
    password = {"blocked": PASSWORD, "too long": PASSWORD + "x" * 1000}.get(case, OTHER_PASSWORD)
    answer = world.browser().post("/login", email=email, password=password)
    assert counted == ["verify"]
    assert answer.status_code == 403
    assert "address and password do not belong together, or the account is closed" in answer.text
    assert answer.text.count("callout bad") == 1
    assert world.trail()[-1][0::2] == ("session.fail", "failed")


def test_a_right_password_is_hashed_once_too(world: World, counted: list[str]) -> None:
    world.person("ada@example.org", "analyst")
    counted.clear()
    world.browser().log_in("ada@example.org")
    assert counted == ["verify"]


def test_a_weaker_hash_is_made_anew(world: World) -> None:
    parts_of(world.hub).hasher = Hasher()  # with the work of a real hub, not the least
    weak = argon2.PasswordHasher(time_cost=1, memory_cost=64, parallelism=1).hash(PASSWORD)
    world.person("ada@example.org", "analyst")
    with world.hub.database.begin() as db:
        db.get_one(Person, world.find("ada@example.org").id).password = weak
    world.browser().log_in("ada@example.org")
    kept = world.find("ada@example.org").password
    assert kept is not None
    assert "m=19456,t=2,p=1" in kept
    world.browser().log_in("ada@example.org")


@pytest.mark.parametrize("secure", [False, True])
def test_the_cookie_is_out_of_reach(world: World, secure: bool) -> None:
    world = world.again(address="https://hub.example.org") if secure else world
    world.person("ada@example.org", "analyst")
    answer = world.browser().log_in("ada@example.org")
    cookies: SimpleCookie = SimpleCookie()
    for line in answer.headers.get_list("set-cookie"):
        cookies.load(line)
    morsel = cookies["__Host-cloister" if secure else "cloister"]
    assert morsel["httponly"]
    assert morsel["samesite"].lower() == "lax"
    assert morsel["path"] == "/"
    assert morsel["domain"] == ""
    assert bool(morsel["secure"]) == secure
    assert len(morsel.value) == 43


def test_a_planted_session_is_not_taken_over(world: World) -> None:
    """Session fixation: what stood in the cookie before the log-in is worth nothing after it."""
    mallory = world.logged_in("mallory@example.org", "analyst")
    planted = mallory.cookie
    world.person("ada@example.org", "analyst")
    ada = world.browser()
    for value in (planted, "A" * 43):
        ada.client.cookies.clear()
        ada.client.cookies.set("cloister", value)
        token = ada.token("/account" if value == planted else "/login")
        ada.client.post("/login", data={TOKEN_FIELD: token, "email": "ada@example.org", "password": PASSWORD})
        fresh = [each.value for each in ada.client.cookies.jar if each.name == "cloister" and each.value != value]
        assert len(fresh) == 1
        mallory.client.cookies.clear()
        mallory.client.cookies.set("cloister", value)
        assert mallory.who() == ""


def test_a_form_without_the_token_of_this_log_in_is_denied(world: World) -> None:
    ada = world.logged_in("ada@example.org", "analyst")
    stale = ada.token("/account")
    other = world.logged_in("bob@example.org", "analyst")
    for token in ("", "x" * 64, other.token("/account")):
        assert ada.client.post("/account", data={TOKEN_FIELD: token, "name": "Eve"}).status_code == 403
    assert ada.client.post("/account", data={"name": "Eve"}).status_code == 403
    ada.post("/logout", "/account")
    ada.log_in("ada@example.org")
    assert ada.client.post("/account", data={TOKEN_FIELD: stale, "name": "Eve"}).status_code == 403
    assert world.find("ada@example.org").name == "Ada Byron"
    assert ada.post("/account", name="Countess").status_code == 303
    assert world.find("ada@example.org").name == "Countess"


def test_the_log_in_form_itself_has_a_token(world: World) -> None:
    world.person("ada@example.org", "analyst")
    browser = world.browser()
    values = {"email": "ada@example.org", "password": PASSWORD}
    assert browser.client.post("/login", data=values).status_code == 403
    foreign = world.browser().token("/login")
    browser.get("/login")
    assert browser.client.post("/login", data={TOKEN_FIELD: foreign, **values}).status_code == 403
    assert browser.who() == ""


def test_what_another_site_sends_is_denied(world: World) -> None:
    ada = world.logged_in("ada@example.org", "analyst")
    token = ada.token("/account")
    for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        assert ada.client.post("/account", data={TOKEN_FIELD: token, "name": "Eve"}, headers=headers).status_code == 403
    assert world.find("ada@example.org").name == "Ada Byron"


@pytest.mark.parametrize(
    "where", ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)", "/\n/evil"]
)
def test_a_log_in_leads_to_this_hub_alone(world: World, where: str) -> None:
    world.person("ada@example.org", "analyst")
    browser = world.browser()
    answer = browser.post("/login", email="ada@example.org", password=PASSWORD, next=where)
    assert answer.headers["location"] == "/login/second"
    assert browser.get("/login", params={"next": where}).headers["location"] == "/"


def test_a_log_in_ends_by_itself(world: World) -> None:
    ada = world.logged_in("ada@example.org", "analyst")
    for _ in range(13):
        world.clock.move(minutes=50)
        assert ada.who() == "ada@example.org"
    world.clock.move(minutes=61)
    assert ada.who() == ""
    ada.log_in("ada@example.org")
    for _ in range(14):
        world.clock.move(minutes=50)
        ada.who()
    world.clock.move(minutes=30)
    assert ada.who() == "", "twelve hours are over, however busy it was"


def test_the_use_of_a_log_in_is_written_once_a_minute(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    ada = world.logged_in("ada@example.org", "analyst")
    writes: list[None] = []
    real = world.hub.database.begin
    monkeypatch.setattr(world.hub.database, "begin", lambda: (writes.append(None), real())[1])
    for _ in range(5):
        ada.who()
    assert writes == []
    world.clock.move(seconds=61)
    for _ in range(5):
        ada.who()
    assert len(writes) == 1


def test_pages_lead_to_the_log_in_and_the_api_says_401(world: World) -> None:
    browser = world.browser()
    assert browser.get("/account/tokens?after=x").headers["location"] == "/login?next=%2Faccount%2Ftokens%3Fafter%3Dx"
    answer = browser.get("/api/v1/me")
    assert answer.status_code == 401
    assert answer.json()["code"] == "not-logged-in"
    assert answer.headers["www-authenticate"] == "Bearer"
    late = browser.client.post("/account/password", data={"form_token": "of a session that has ended"})
    assert late.status_code == 401
    assert "what you typed is not kept" in late.text
