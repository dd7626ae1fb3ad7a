"""A hub with the catalogue, and its owner."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from scripts import postgres
from tests.hub.catalogue.world import Sender, World


@pytest.fixture
def kind_of_world() -> type[World]:
    return World


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest) -> Iterator[postgres.Server]:
    """A PostgreSQL server on which the statements of the module's `MADE` were run, with a role "reader", password "reader"."""
    import psycopg

    try:
        started = postgres.start()
    except postgres.CannotStart as error:
        pytest.skip(str(error))
    with psycopg.connect(started.url, autocommit=True) as connection:
        connection.execute("CREATE ROLE reader LOGIN PASSWORD 'reader'")
        connection.execute(request.module.MADE)
    yield started
    postgres.stop(started.folder, started.pid)


@pytest.fixture(scope="module")
def place(server: postgres.Server) -> str:
    """host:port/database of that server."""
    return server.url.rpartition("@")[2]


@pytest.fixture
def ada(world: World) -> Sender:
    """An owner."""
    return world.owner()


@pytest.fixture
def owner_beside(world: World, place: str) -> Iterator[Sender]:
    """An owner of a hub that may read that server, under either of its names."""
    world.owner()
    port = place.partition("/")[0].rpartition(":")[2]
    opened = world.again(sources=f"127.0.0.1:{port}, localhost:{port}")
    sender = Sender(opened)
    sender.log_in("ada@example.org")
    yield sender
    opened.close()
