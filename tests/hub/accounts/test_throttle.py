"""Guessing made slow, and nobody locked out for good."""

from __future__ import annotations

from sqlalchemy import func, select

from cloister.hub.platform.accounts import sessions, throttle
from cloister.hub.problems import TooMany
from cloister.hub.records.accounts import Attempts
from tests.hub.accounts.world import OTHER_PASSWORD, PASSWORD, Browser, World


def fail(browser: Browser, email: str = "ada@example.org", times: int = 1) -> list[int]:
    token = browser.token("/login")
    from cloister.hub.web.forms import TOKEN_FIELD

    form = {TOKEN_FIELD: token, "email": email, "password": OTHER_PASSWORD}
    return [browser.client.post("/login", data=form).status_code for _ in range(times)]


def test_an_account_waits_longer_with_each_failure_and_then_opens(world: World) -> None:
    world.person("ada@example.org", "analyst")
    stranger = world.browser("198.51.100.1")
    assert fail(stranger, times=8) == [403] * 6 + [429] * 2
    answer = stranger.post("/login", email="ada@example.org", password=PASSWORD)
    assert answer.status_code == 429, "a right password is not looked at during the wait"
    assert answer.headers["retry-after"] == "3"
    for wait in (2, 4, 8, 16):
        world.clock.move(seconds=wait + 0.5)
        assert fail(stranger, times=2) == [403, 429]
    world.clock.move(seconds=40)
    stranger.log_in("ada@example.org")
    assert fail(world.browser("198.51.100.1"), times=6) == [403] * 6


def test_hammering_does_not_lengthen_the_wait(world: World) -> None:
    world.person("ada@example.org", "analyst")
    assert fail(world.browser("198.51.100.1"), times=60)[6:] == [429] * 54
    world.clock.move(seconds=3)
    world.browser("198.51.100.2").log_in("ada@example.org")


def test_the_longest_wait_is_a_quarter_of_an_hour(world: World) -> None:
    world.person("ada@example.org", "analyst")
    browser = world.browser()
    with world.hub.database.begin() as db:
        subject = throttle.account(world.hub, "ada@example.org")
        db.add(Attempts(subject=subject.key, failures=5000, last=world.hub.now()))
    assert fail(browser) == [403]
    world.clock.move(seconds=901)
    browser.log_in("ada@example.org")


def test_an_account_that_is_not_there_waits_alike(world: World) -> None:
    world.person("ada@example.org", "analyst")
    known = [
        fail(world.browser("198.51.100.1"), "ada@example.org", times=8),
        fail(world.browser(), "nobody@example.org", times=8),
    ]
    assert known[0] == known[1]


def test_a_network_is_slowed_down_over_all_accounts(world: World) -> None:
    world.person("ada@example.org", "analyst")
    network = [throttle.network(world.hub, "198.51.100.1")]
    with world.hub.database.begin() as db:
        for number in range(51):
            throttle.take(world.hub, db, throttle.account(world.hub, f"p{number}@example.org"), *network)
    assert fail(world.browser("198.51.100.1"), "another@example.org") == [429]
    assert fail(world.browser("198.51.100.2"), "another@example.org") == [403]


def test_a_network_of_addresses_of_version_6_is_one(world: World) -> None:
    key = throttle.network(world.hub, "2001:db8::1").key
    assert key == throttle.network(world.hub, "2001:db8::ffff:2").key
    assert key != throttle.network(world.hub, "2001:db8:0:1::1").key
    assert throttle.network(world.hub, "unix").key == throttle.network(world.hub, "").key


def test_failures_are_forgotten_with_time(world: World) -> None:
    world.person("ada@example.org", "analyst")
    browser = world.browser()
    for _ in range(20):
        assert fail(browser) == [403]
        world.clock.move(minutes=11)


def test_a_strangers_guesses_do_not_keep_the_owner_out(world: World) -> None:
    world.person("ada@example.org", "analyst")
    ada = world.browser()
    ada.log_in("ada@example.org")
    ada.post("/logout", "/account")
    assert fail(world.browser("198.51.100.1"), times=9)[-1] == 429
    ada.log_in("ada@example.org")
    forged = world.browser("198.51.100.3")
    forged.client.cookies.set(throttle.KNOWN, "A" * 22 + "." + "0" * 64)
    assert fail(forged) == [429]
    other = ada.client.cookies[throttle.KNOWN]
    world.person("bob@example.org", "analyst")
    fail(world.browser("198.51.100.1"), "bob@example.org", times=9)
    stolen = world.browser("198.51.100.4")
    stolen.client.cookies.set(throttle.KNOWN, other)
    assert fail(stolen, "bob@example.org") == [429], "the cookie is good for one account"


def test_many_guesses_at_once_gain_nothing(world: World) -> None:
    """Each is counted before it is looked at."""
    taken = 0
    subject = throttle.account(world.hub, "ada@example.org")
    for _ in range(20):
        try:
            with world.hub.database.begin() as db:
                throttle.take(world.hub, db, subject)
            taken += 1
        except TooMany:
            continue
    assert taken == 6


def test_what_is_forgotten_is_swept_out(world: World) -> None:
    fail(world.browser(), times=3)
    world.clock.move(days=3)
    sessions.sweep(world.hub)
    with world.hub.database.reading() as db:
        assert db.scalar(select(func.count()).select_from(Attempts)) == 0


def test_an_address_of_ipv4_inside_ipv6_is_that_address(world: World) -> None:
    """A server that listens on both kinds sees 203.0.113.9 as ::ffff:203.0.113.9: not all of IPv4 as one network."""
    plain, mapped, other = (
        throttle.network(world.hub, each).key for each in ("203.0.113.9", "::ffff:203.0.113.9", "::ffff:203.0.113.10")
    )
    assert mapped == plain
    assert mapped != other
    near, far = (throttle.network(world.hub, each).key for each in ("2001:db8::1", "2001:db8::2"))
    assert near == far
