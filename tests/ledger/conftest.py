"""Where the tests keep a ledger: in memory, in an SQLite file, in PostgreSQL. The same tests run on all three."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cloister.ledger import Ledger
from scripts import postgres

KEY = bytes(range(32))
_NUMBERS = itertools.count()


@dataclass(frozen=True)
class Place:
    """One ledger's place: `open` it as often as you like."""

    where: str | Path | None
    head: Path | None
    folder: Path

    @property
    def durable(self) -> bool:
        return self.where is not None

    def open(self, **options: Any) -> Ledger:
        if self.where is None:
            return Ledger(**options)
        return Ledger(self.where, **{"key": KEY, "head": self.head} | options)


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

    name = f"ledger_{next(_NUMBERS)}"
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
    return f"{server.url}?options=-csearch_path%3D{name}"


def place_of(kind: str, request: pytest.FixtureRequest) -> Place:
    folder: Path = request.getfixturevalue("tmp_path")
    if kind == "memory":
        return Place(None, None, folder)
    if kind == "sqlite":
        return Place(folder / "ledger.db", folder / "ledger.db.head", folder)
    return Place(new_schema(request.getfixturevalue("postgres_server")), folder / "ledger.head", folder)


POSTGRES = pytest.param("postgres", marks=pytest.mark.postgres)


@pytest.fixture(params=["memory", "sqlite", POSTGRES])
def place(request: pytest.FixtureRequest) -> Place:
    """Anywhere."""
    return place_of(request.param, request)


@pytest.fixture(params=["sqlite", POSTGRES])
def durable(request: pytest.FixtureRequest) -> Place:
    """Where a ledger outlives its process."""
    return place_of(request.param, request)


@pytest.fixture
def ledger(place: Place) -> Iterator[Ledger]:
    with place.open() as opened:
        yield opened


@pytest.fixture
def sql(durable: Place) -> Callable[..., list[Any]]:
    """Write to the database behind the ledger's back."""

    def run(statement: str, *values: Any) -> list[Any]:
        if isinstance(durable.where, Path):
            import sqlite3

            connection = sqlite3.connect(durable.where)
            try:
                rows = connection.execute(statement, values).fetchall()
                connection.commit()
            finally:
                connection.close()
            return rows
        import psycopg

        with psycopg.connect(str(durable.where)) as server:
            cursor = server.execute(statement.replace("?", "%s"), values)
            return cursor.fetchall() if cursor.description else []

    return run
