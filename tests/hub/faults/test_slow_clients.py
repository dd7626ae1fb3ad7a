"""Clients that send slowly, stop in the middle, or never end: they are given up, and others are served meanwhile."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx
import pytest
from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session as Db

from cloister.hub import middleware
from cloister.hub.hub import Caller, Hub
from cloister.hub.platform.accounts import cookie_name, sessions
from cloister.hub.platform.catalogue.sources import table_store_of
from cloister.hub.records.accounts import Person, PersonRole
from cloister.hub.records.catalogue import Arrival
from cloister.hub.serving import Connection
from tests.hub.house import House, Visitor, served

QUESTION = {"sql": "SELECT COUNT(*) AS n FROM people", "spend": "0.01"}
BEGUN = b"POST /api/v1/questions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 400\r\n"


@pytest.fixture
def address(house: House) -> Iterator[str]:
    with served(house.hub) as found:
        yield found


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Connection, "head_seconds", 0.3)
    monkeypatch.setattr(Connection, "silent_seconds", 0.3)


@contextmanager
def connected(address: str, *sent: bytes) -> Iterator[socket.socket]:
    """A connection on which something was sent."""
    host, port = address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        for each in sent:
            connection.sendall(each)
        yield connection


def closed(connection: socket.socket) -> bool:
    """Whether the hub gave it up without an answer."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def asked(house: House, address: str) -> int:
    """What somebody is told who asks meanwhile."""
    analyst = house.person("analyst")
    house.sample_data_set(readers=[analyst])
    with httpx.Client(headers=analyst.bearer, trust_env=False, timeout=120) as client:
        return client.post(f"{address}/api/v1/questions", json=QUESTION).status_code


def test_others_are_served_while_many_are_slow(house: House, address: str) -> None:
    """More of them than there are threads, seats and connections to the database."""
    with ExitStack() as stack:
        for _ in range(100):
            stack.enter_context(connected(address, b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "))
            stack.enter_context(connected(address, BEGUN, b'\r\n{"sql": "SEL'))
        assert asked(house, address) == 201


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    "sent",
    [
        pytest.param([], id="nothing"),
        pytest.param([b"GET / HT"], id="half a line"),
        pytest.param([BEGUN], id="half a head"),
        pytest.param([BEGUN, b'\r\n{"sql": "SELECT'], id="half a body"),
    ],
)
def test_who_is_silent_is_given_up(address: str, sent: list[bytes]) -> None:
    with connected(address, *sent) as connection:
        assert closed(connection)


@pytest.mark.usefixtures("impatient")
def test_drops_of_a_head_do_not_keep_it_open(address: str) -> None:
    with connected(address, b"GET / HTTP/1.1\r\n") as connection, pytest.raises(OSError):  # noqa: PT012
        for number in range(1000):
            connection.sendall(b"X-%d: y\r\n" % number)
            time.sleep(0.02)


def test_a_head_without_end_is_cut(address: str) -> None:
    with connected(address, b"GET / HTTP/1.1\r\n") as connection, pytest.raises(OSError):  # noqa: PT012
        for number in range(100_000):
            connection.sendall(b"X-%d: %s\r\n" % (number, b"y" * 1000))


def test_a_connection_serves_many_requests_and_then_waits(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limits are on requests: a connection that is kept open between two of them is not given up."""
    monkeypatch.setattr(Connection, "head_seconds", 2)  # no busy machine needs as long for a request
    monkeypatch.setattr(Connection, "silent_seconds", 2)
    with httpx.Client(base_url=address, trust_env=False, timeout=120) as client:
        for _ in range(3):
            assert client.get("/healthz").status_code == 200
        time.sleep(2.5)
        assert client.get("/healthz").status_code == 200


@pytest.mark.parametrize("leaves", [True, False], ids=["goes away", "falls silent"])
def test_a_half_sent_upload_leaves_nothing(house: House, address: str, monkeypatch: pytest.MonkeyPatch, leaves: bool) -> None:
    monkeypatch.setattr(Connection, "silent_seconds", 60 if leaves else 5)
    owner = house.person("owner")
    head = (
        f"POST /api/v1/uploads HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {owner.token}\r\n"
        "Content-Type: text/csv\r\nContent-Length: 1000000\r\n\r\nage,sex\n"
    )
    with connected(address, head.encode(), b"30,F\n" * 60_000) as connection:
        until(lambda: files(house.hub) != [])
        if not leaves:
            assert closed(connection)
    until(lambda: files(house.hub) == [])
    with house.hub.database.reading() as db:
        assert db.scalar(select(func.count()).select_from(Arrival)) == 0
    assert asked(house, address) == 201


SHUT_OUT: dict[str, Callable[[House, Visitor], None]] = {
    "blocked": lambda house, who: _change(house, lambda db: setattr(db.get_one(Person, who.id), "blocked", True)),
    "signed out": lambda house, who: _change(house, lambda db: sessions.end_all(db, who.id)),
    "without roles": lambda house, who: _change(
        house, lambda db: db.execute(delete(PersonRole).where(PersonRole.person == who.id))
    ),
}


@pytest.mark.parametrize("how", SHUT_OUT)
@pytest.mark.parametrize(
    ("method", "path", "kind", "body"),
    [
        pytest.param("PUT", "/people/{person}/roles", "application/json", b'{"roles": ["administrator"]}', id="a whole body"),
        pytest.param("POST", "/uploads", "text/csv", b"age,sex\n30,F\n", id="as it comes"),
    ],
)
def test_who_was_shut_out_while_they_sent_does_nothing_more(
    house: House, address: str, monkeypatch: pytest.MonkeyPatch, how: str, method: str, path: str, kind: str, body: bytes
) -> None:
    """A drop now and then keeps a body open for days: it could be ended long after the account was blocked."""
    house.person("administrator")
    leaver, friend = house.person("administrator", "owner"), house.person("analyst")
    cookie, csrf = cookie_name(house.settings), leaver.csrf()["X-CSRF-Token"]
    lines = (
        f"{method} /api/v1{path.format(person=friend.id)} HTTP/1.1",
        "Host: 127.0.0.1",
        f"Cookie: {cookie}={leaver.client.cookies[cookie]}",
        f"X-CSRF-Token: {csrf}",
        f"Content-Type: {kind}",
        f"Content-Length: {len(body)}",
    )
    known: list[Caller] = []

    def identify(*given: Any) -> Caller:
        known.append(sessions.identify(*given))
        return known[-1]

    monkeypatch.setattr(middleware, "identify", identify)
    with connected(address, "\r\n".join(lines).encode() + b"\r\n\r\n", body[:5]) as connection:
        until(lambda: known and known[0].id == leaver.id)
        SHUT_OUT[how](house, leaver)
        connection.sendall(body[5:])
        assert connection.recv(12)[9:] in (b"401", b"403", b"409")
    with house.hub.database.reading() as db:
        assert db.scalar(select(PersonRole).where(PersonRole.person == friend.id, PersonRole.role == "administrator")) is None
        assert db.scalar(select(func.count()).select_from(Arrival)) == 0
    assert files(house.hub) == []


def roles_gone(db: Db, person: str) -> None:
    db.execute(delete(PersonRole).where(PersonRole.person == person))


def _change(house: House, act: Callable[[Db], object]) -> None:
    with house.hub.database.begin() as db:
        act(db)


def files(hub: Hub) -> list[str]:
    """What lies in the table store of what is being sent, or was; folders may vanish while this looks."""
    folder = table_store_of(hub).folder
    return [each for name in ("uploads", "working") for _, _, found in os.walk(folder / name) for each in found]


def until(holds: Any) -> None:
    """Wait until something holds."""
    end = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < end, "it never came to hold"
        time.sleep(0.02)
