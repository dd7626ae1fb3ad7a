"""SIGTERM while everything that was begun never ends: the process ends all the same, and loses nothing."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import psycopg
import pytest

from cloister.hub.records.jobs import Job
from cloister.hub.services.asking import QUESTION
from tests.hub.faults.busy import PARTS
from tests.hub.faults.prepared import Prepared, prepare
from tests.hub.faults.processes import Hall, Process, free_port, hall

SQL = "SELECT COUNT(*) AS n FROM people"
ENDS = 60.0
"""Seconds after which a process hangs. What it waits for never ends, so there is nothing between ten seconds and for ever."""


@pytest.fixture
def place(tmp_path: Path) -> Prepared:
    return prepare(tmp_path / "hub", people=2)


@pytest.fixture
def processes(place: Prepared, tmp_path: Path) -> Iterator[Hall]:
    with hall(place, tmp_path) as found:
        yield found


def ended(process: Process) -> int:
    """SIGTERM, and the status that it ended with."""
    process.popen.terminate()
    try:
        process.popen.wait(ENDS)
    except subprocess.TimeoutExpired:
        pytest.fail(f"{process.name} still runs {ENDS:.0f} seconds after SIGTERM")
    return process.wait()


def begun(place: Prepared, parts: set[str]) -> None:
    """Wait until all of them are held up."""
    file, until = place.folder / "busy", time.monotonic() + 120
    while not (file.exists() and parts <= set(file.read_text().split())):
        assert time.monotonic() < until, f"only these were reached: {file.read_text() if file.exists() else 'none'}"
        time.sleep(0.05)


def in_background(port: int, pg_port: int, token: str) -> None:
    """Those who wait for an answer that never comes, each in a thread."""
    address, headers = f"http://127.0.0.1:{port}/api/v1", {"Authorization": f"Bearer {token}"}

    def reads() -> None:
        with suppress(httpx.HTTPError):
            httpx.get(f"{address}/datasets", headers=headers, timeout=300, trust_env=False)

    def asks() -> None:
        with suppress(httpx.HTTPError):
            httpx.post(f"{address}/questions", json={"sql": SQL, "spend": "0.001"}, headers=headers, timeout=300, trust_env=False)

    def states() -> None:
        who = httpx.get(f"{address}/me", headers=headers, timeout=60, trust_env=False).json()["email"]
        with (
            suppress(psycopg.Error),
            psycopg.connect(
                host="127.0.0.1", port=pg_port, user=who, password=token, dbname="hub", autocommit=True
            ) as connection,
        ):
            connection.execute(SQL)

    for each in (reads, asks, states):
        threading.Thread(target=each, daemon=True).start()


def test_with_every_part_held_up_a_hub_ends_and_its_job_waits_for_the_next(place: Prepared, processes: Hall) -> None:
    port, pg_port = free_port(), free_port()
    words = [sys.executable, "-m", "tests.hub.faults.busy", str(place.folder), str(port), str(pg_port)]
    hub = processes.start("busy", words, ready=" is at ")
    half = b"POST /api/v1/uploads HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100000\r\n\r\nage,sex\n"
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(half)
        in_background(port, pg_port, place.tokens[0])
        begun(place, set(PARTS))
        assert ended(hub) == 0
    with place.opened() as opened:
        with opened.database.reading() as db:
            assert [(row.kind, row.state) for row in db.query(Job)] == [(QUESTION.kind, "waiting")]
        assert opened.ledger.verify() is True


def test_a_worker_ends_though_its_job_does_not(place: Prepared, processes: Hall) -> None:
    words = [sys.executable, "-m", "tests.hub.faults.busy", str(place.folder)]
    worker = processes.start("busy-worker", words, ready="ready")
    begun(place, {"job"})
    assert ended(worker) == 0
    with place.opened() as opened, opened.database.reading() as db:
        assert [(row.kind, row.state) for row in db.query(Job)] == [(QUESTION.kind, "waiting")]
