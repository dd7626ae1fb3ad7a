"""A hub for the trail's tests: in a folder, or on PostgreSQL; a clock that the test sets; and people."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cloister.hub.hub import Caller, Hub
from cloister.hub.platform.trail import SERVICE
from cloister.hub.records.accounts import Person
from cloister.hub.service import Service
from cloister.hub.settings import Settings
from scripts import postgres

NUMBERS = itertools.count()
START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
"""A Monday."""


class Clock:
    """The time, as the test says."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        return self.now.timestamp()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[postgres.Server]:
    try:
        server = postgres.start()
    except postgres.CannotStart as error:
        pytest.skip(str(error))
    yield server
    postgres.stop(server.folder, server.pid)


def new_schema(server: postgres.Server) -> str:
    """The address of an empty schema."""
    import psycopg

    name = f"hub_{next(NUMBERS)}"
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
    return f"{server.url}?options=-csearch_path%3D{name}"


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    """Where the hub is: its own database in the folder, or on PostgreSQL."""
    database = new_schema(request.getfixturevalue("postgres_server")) if request.param == "postgres" else ""
    return Settings(data=tmp_path / "hub", database=database, workers=0)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def opens(settings: Settings, clock: Clock) -> Iterator[Callable[..., Hub]]:
    """Open the hub, as often as you like."""
    opened: list[Hub] = []

    def open_hub(services: tuple[Service, ...] = (SERVICE,)) -> Hub:
        hub = Hub(settings, services, clock=clock)
        opened.append(hub)
        return hub

    yield open_hub
    for hub in opened:
        hub.close()


@pytest.fixture
def hub(opens: Callable[..., Hub]) -> Hub:
    return opens()


def add_person(hub: Hub, name: str, *roles: str) -> Caller:
    """Somebody with an account."""
    with hub.database.begin() as db:
        db.add(Person(id=name, email=f"{name}@example.org", name=name.title(), created=hub.now()))
    return Caller(id=name, email=f"{name}@example.org", name=name.title(), roles=frozenset(roles), via="session")
