"""PostgreSQL that can be killed and comes back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from scripts import postgres


class Server:
    """A server that can be killed and comes back at the same address."""

    def __init__(self) -> None:
        # a killed process may leave half a page behind, which the log then mends
        self.now = postgres.start(full_page_writes="on", synchronous_commit="on")
        self.alive = True

    def kill(self) -> None:
        """kill -9, of all its processes."""
        self.alive = False
        postgres.kill(self.now)

    def start(self) -> None:
        """Come back."""
        self.now = postgres.again(self.now)
        self.alive = True


@pytest.fixture
def server() -> Iterator[Server]:
    """One of the test's own."""
    try:
        made = Server()
    except postgres.CannotStart as error:
        pytest.skip(str(error))
    yield made
    if not made.alive:
        made.start()
    postgres.stop(made.now.folder, made.now.pid)
