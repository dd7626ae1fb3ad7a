"""The same on PostgreSQL, where several processes share a hub: what must happen once happens once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from cloister.errors import CloisterError
from cloister.hub.hub import Caller
from cloister.hub.platform.accounts import links, people, second_factor, throttle, totp
from cloister.hub.records.accounts import Person, PersonRole
from scripts import postgres
from tests.hub.accounts.world import PASSWORD, World
from tests.hub.house import Clock

pytestmark = pytest.mark.postgres


@pytest.fixture(scope="module")
def server() -> Iterator[postgres.Server]:
    try:
        found = postgres.start()
    except postgres.CannotStart as error:
        pytest.skip(str(error))
    yield found
    postgres.stop(found.folder, found.pid)


@pytest.fixture
def shared(server: postgres.Server, tmp_path: Path, clock: Clock, request: pytest.FixtureRequest) -> Iterator[World]:
    schema = f"accounts_{abs(hash(request.node.name))}"
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
    made = World(tmp_path, clock, database=f"{server.url}?options=-csearch_path%3D{schema}")
    yield made
    made.close()


def at_once(times: int, act: Callable[[int], object]) -> list[object]:
    """What each of so many threads got, or the error that it met."""
    found: list[object] = [None] * times
    ready = threading.Barrier(times)

    def run(number: int) -> None:
        ready.wait(timeout=30)
        try:
            found[number] = act(number)
        except CloisterError as error:
            found[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(times)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    return found


def test_a_person_logs_in(shared: World) -> None:
    root = shared.logged_in("root@example.org", "administrator")
    assert root.who() == "root@example.org"
    assert root.api("GET", "/people?search=ROOT").json()["items"][0]["email"] == "root@example.org"
    assert root.api("POST", "/tokens", json={"name": "n", "scopes": ["trail.own"]}).status_code == 201
    assert root.get("/account/sessions").status_code == 200


def test_many_guesses_at_once_are_all_counted(shared: World) -> None:
    subject = throttle.account(shared.hub, "ada@example.org")

    def guess(_: int) -> str:
        with shared.hub.database.begin() as db:
            throttle.take(shared.hub, db, subject)
        return "looked at"

    assert at_once(12, guess).count("looked at") == 6


def test_a_code_counts_once_at_once(shared: World) -> None:
    identity = shared.person("ada@example.org", "analyst")
    key = totp.new_key()
    with shared.hub.database.begin() as db:
        db.get_one(Person, identity).totp = shared.hub.keys.wrap(key, f"second factor {identity}")
    code = totp.code_of(key, totp.step_at(shared.clock()))

    def use(_: int) -> str:
        with shared.hub.database.begin() as db:
            return second_factor.accept_code(shared.hub, db, identity, code)

    assert sorted(map(str, at_once(8, use))) == [""] * 7 + ["code"]


def test_a_link_works_once_at_once(shared: World) -> None:
    shared.person("ada@example.org", "analyst", password=None)
    secret = links.login_link(shared.hub, "ada@example.org").rpartition("/")[2]

    def use(_: int) -> str:
        with shared.hub.database.begin() as db:
            return links.use(shared.hub, db, secret).kind

    assert at_once(8, use).count("login") == 1


def test_two_administrators_do_not_both_go(shared: World) -> None:
    both = [shared.person(f"{name}@example.org", "administrator", password=None) for name in "ab"]

    def resign(number: int) -> bool:
        with shared.hub.database.begin() as db:
            me = db.get_one(Person, both[number])
            return people.set_roles(shared.hub, db, Caller(id=me.id, roles=frozenset({"administrator"})), me, [])

    assert at_once(2, resign).count(True) == 1
    with shared.hub.database.reading() as db:
        assert db.query(PersonRole).count() == 1


def test_one_address_is_one_person_at_once(shared: World) -> None:
    def add(_: int) -> str:
        return shared.person("ada@example.org", "analyst", password=PASSWORD)

    found = at_once(6, add)
    assert sum(isinstance(each, str) for each in found) == 1


def test_a_recovery_code_counts_once_at_once_and_new_codes_replace_new_codes(shared: World) -> None:
    identity = shared.person("ada@example.org", "analyst")

    def renew(_: int) -> list[str]:
        with shared.hub.database.begin() as db:
            return second_factor.new_codes(shared.hub, db, second_factor.locked(db, identity))

    with shared.hub.database.begin() as db:
        key = shared.hub.keys.wrap(totp.new_key(), f"second factor {identity}")
        db.get_one(Person, identity).totp = key
    made = at_once(6, renew)
    with shared.hub.database.reading() as db:
        assert second_factor.codes_left(db, identity) == 10
    codes = [code for each in made if isinstance(each, list) for code in each]
    assert len(codes) == 60

    def use(number: int) -> str:
        with shared.hub.database.begin() as db:
            return second_factor.accept_code(shared.hub, db, identity, codes[number // 2])

    assert at_once(120, use).count("recovery") == 10


def test_an_invitation_is_taken_up_once_and_replaced_by_the_next_at_once(shared: World) -> None:
    root = Caller(id=shared.person("root@example.org", "administrator"), roles=frozenset({"administrator"}))

    def invite(_: int) -> str:
        with shared.hub.database.begin() as db:
            return links.invite(shared.hub, db, root, email="ada@example.org", roles=["analyst"]).rpartition("/")[2]

    secrets = at_once(6, invite)
    with shared.hub.database.reading() as db:
        assert len(links.open_invitations(shared.hub, db)) == 1

    def take(number: int) -> str:
        with shared.hub.database.begin() as db:
            row = links.use(shared.hub, db, str(secrets[number // 4]))
            return people.add_person(shared.hub, db, email=row.email, name="Ada", roles=row.roles).email

    assert at_once(24, take).count("ada@example.org") == 1
