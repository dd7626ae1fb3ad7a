"""A hub with kinds of jobs that a test can hold, let go, break and count."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from cloister.errors import UnsupportedQuery
from cloister.hub.hub import Hub
from cloister.hub.platform.jobs import SERVICE, Stopped, submit
from cloister.hub.platform.trail import SERVICE as TRAIL
from cloister.hub.records.jobs import Job
from cloister.hub.service import JobType, Progress, Service
from tests.hub.trail.conftest import Clock, add_person, clock, opens, postgres_server, settings

__all__ = ["Clock", "add_person", "clock", "opens", "postgres_server", "settings"]


class Bench:
    """What the jobs of a test do, and what they did."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.begun = threading.Event()
        self.go = threading.Event()

    def types(self) -> tuple[JobType, ...]:
        return (
            JobType(kind="note", title="Note", run=self.note),
            JobType(kind="held", title="Held", run=self.held),
            JobType(kind="once", title="Once", run=self.held, again=False),
            JobType(kind="refuse", title="Refuse", run=self.refuse),
            JobType(kind="break", title="Break", run=self.crash),
            JobType(kind="odd", title="Odd", run=lambda *_: {"value": object()}),
        )

    def note(self, hub: Hub, payload: Mapping[str, Any], progress: Progress) -> Mapping[str, Any]:
        self.ran.append(str(payload["name"]))
        progress.tell("writing", 0.5)
        return {"name": payload["name"], "who": progress.who}

    def held(self, hub: Hub, payload: Mapping[str, Any], progress: Progress) -> Mapping[str, Any]:
        progress.tell("holding", None)
        self.ran.append("held")
        self.begun.set()
        while not self.go.wait(0.02):
            if progress.stopped():
                raise Stopped
        return {"held": "yes"}

    def refuse(self, *_: Any) -> Mapping[str, Any]:
        raise UnsupportedQuery("The query is not supported", why="it cannot be proved safe", instead="SELECT COUNT(*)")

    def crash(self, *_: Any) -> Mapping[str, Any]:
        raise ValueError("row 17: Ada Lovelace")


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture
def services(bench: Bench) -> tuple[Service, ...]:
    return (TRAIL, SERVICE, Service(name="bench", title="Bench", jobs=bench.types()))


@pytest.fixture
def hub(opens: Callable[..., Hub], services: tuple[Service, ...]) -> Hub:
    return opens(services)


def ask(hub: Hub, person: Any, kind: str, **payload: Any) -> str:
    """Put a job into the queue."""
    with hub.database.begin() as db:
        return submit(hub, db, person, kind, payload, purpose="a study")


def look(hub: Hub, job: str) -> Job:
    """A job as it stands."""
    with hub.database.reading() as db:
        row = db.get(Job, job)
        db.expunge_all()
    assert row is not None
    return row
