"""A front on a port of its own, in a loop of its own, before a session with a few people in it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest

import cloister as cl
from cloister.pgwire import Backend, Limits, LocalBackend, PostgresFront

TOKEN = "a-long-token"


@dataclass
class Running:
    """A front that runs, and what stands behind it."""

    front: PostgresFront
    session: cl.Session
    loop: asyncio.AbstractEventLoop

    @property
    def port(self) -> int:
        """Where it listens."""
        return self.front.port

    @property
    def url(self) -> str:
        """As libpq and SQLAlchemy write it."""
        return f"ada:{TOKEN}@127.0.0.1:{self.port}/hub"

    def connect(self, **how: Any) -> psycopg.Connection[Any]:
        """A connection that commits by itself."""
        return psycopg.connect(f"postgresql://{self.url}", autocommit=how.pop("autocommit", True), **how)

    @property
    def charges(self) -> int:
        """How many charges the ledger holds."""
        return len(list(self.session.ledger.charges("people")))

    def environment(self) -> dict[str, str]:
        """For psql."""
        return {
            "PGHOST": "127.0.0.1",
            "PGPORT": str(self.port),
            "PGUSER": "ada",
            "PGPASSWORD": TOKEN,
            "PGDATABASE": "hub",
            "PATH": "/usr/bin:/bin",
            "LC_ALL": "C.UTF-8",
        }


def people() -> cl.PrivateTable:
    """Three hundred people; the values are canaries for logs."""
    columns = {
        "age": cl.Integer(17, 90),
        "sex": cl.Category(["F", "M"]),
        "pay": cl.Real(0, 10, nullable=True),
        "born": cl.Date("1900-01-01", "2026-12-31"),
        "town": cl.Text(),
        "smoker": cl.Boolean(),
    }
    rows = {
        "age": [30, 40, 50] * 100,
        "sex": ["F", "M", "F"] * 100,
        "pay": [1.5, 2.0, 3.0] * 100,
        "born": ["1980-01-01", "1990-01-01", "2000-01-01"] * 100,
        "town": ["canary-town"] * 300,
        "smoker": [True, False, True] * 100,
    }
    return cl.PrivateTable(rows, columns=columns)


Start = Callable[..., Running]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts fronts, and ends them after the test."""
    ends: list[Callable[[], None]] = []

    def started(
        limits: Limits | None = None, wrap: Callable[[Backend], Backend] = lambda backend: backend, **how: Any
    ) -> Running:
        tables = {"people": people(), "towns": cl.PublicTable({"town": ["Delft"], "size": [3]})}
        session = cl.Session(tables, budget=cl.PureDP(100))
        backend = wrap(LocalBackend(session, {"ada": TOKEN, "eve": "another-token"}))
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever)
        thread.start()
        front = PostgresFront(backend, limits=limits, **how)
        asyncio.run_coroutine_threadsafe(front.start(), loop).result(30)

        def end() -> None:
            asyncio.run_coroutine_threadsafe(front.close(), loop).result(30)
            loop.call_soon_threadsafe(loop.stop)
            thread.join(30)
            loop.close()
            session.close()

        ends.append(end)
        return Running(front, session, loop)

    yield started
    for end in ends:
        end()


@pytest.fixture
def running(start: Start) -> Running:
    """A front as it comes."""
    return start()
