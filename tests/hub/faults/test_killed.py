"""kill -9 of hub, worker and PostgreSQL at random moments, under load: no answer without a charge, no job lost or doubled."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from cloister.hub.hub import Hub
from cloister.hub.platform.jobs import Timing, Workers
from cloister.hub.records.jobs import Job
from tests.hub.faults.clients import question
from tests.hub.faults.databases import Server, server
from tests.hub.faults.looking import Found, look
from tests.hub.faults.prepared import COST, Prepared, prepare
from tests.hub.faults.processes import free_port, hall
from tests.hub.house import application

__all__ = ["server"]
AWAY = {
    "503 database",
    "503 ledger",
    "409 conflict",
    "ConnectError",
    "ReadError",
    "RemoteProtocolError",
    "WriteError",
}
"""What a client may meet while something is away; anything else, such as a 500, is a fault."""

ENDS = {"lost", "budget-exceeded", "database", "ledger"}
"""How a job may fail: it was begun twice, and was killed or found the database away both times; or there was no budget."""


def disturb(place: Prepared, tmp: Path, times: int, *, seed: int, server: Server | None = None, pause: float = 0.0) -> None:
    """Ask without end, kill something so many times and the hub once more, and look at what is left. `pause`: what was
    begun again takes seconds to start, in which a few questions show what many do.
    """
    chance = random.Random(seed)
    stop = tmp / "stop"
    with hall(place, tmp) as processes:
        port = free_port()
        running = {"hub": processes.hub(port), "worker": processes.worker()}
        again: dict[str, Callable[[], Any]] = {"hub": lambda: processes.hub(port), "worker": processes.worker}
        clients = processes.clients(
            f"http://127.0.0.1:{port}", questions=10**6, seed=seed, patient=True, again=5, later=6, pause=pause, stop=str(stop)
        )
        victims = [*(["server"] if server else []), "worker", "hub"]
        for attempt in range(times):
            clients.wait_for_more(3)
            time.sleep(chance.random() * 0.5)
            victim = victims[attempt] if attempt < len(victims) else chance.choice(victims)
            if victim == "server":
                assert server is not None
                server.kill()
                server.start()
            else:
                running[victim].kill()
                running[victim] = again[victim]()
        clients.wait_for_more(3)
        running["hub"].kill()
        stop.touch()
        running["hub"] = again["hub"]()
        received = clients.ended()
        running["worker"].kill()
        assert running["hub"].end() == 0
    settle(place, received, seed)
    judge(place, received, look(place, received, seed=seed))


def settle(place: Prepared, received: list[dict[str, Any]], seed: int) -> None:
    """Let what was left behind come to its end: a minute later, so that whoever is silent counts as dead."""
    with place.opened(later=60) as hub:
        rest = Workers(hub, 0, Timing(lost=0))
        while rest.run_one():
            pass
        for each in received:
            if each["code"] == "conflict":
                each |= _asked_again(hub, place, each, seed)


def _asked_again(hub: Hub, place: Prepared, left: dict[str, Any], seed: int) -> dict[str, Any]:
    import hashlib

    client = TestClient(application(hub), base_url=hub.settings.origin)
    headers = {"Authorization": f"Bearer {place.tokens[left['person']]}", "Idempotency-Key": f"key-{seed}-{left['number']}"}
    if left["number"] % 6 == 0:
        headers["Prefer"] = "respond-async"
    answers = [
        client.post("/api/v1/questions", json={"sql": question(left["number"]), "spend": COST}, headers=headers) for _ in range(2)
    ]
    told = answers[0].json()
    assert answers[0].status_code in (201, 202) or told["code"] == "budget-exceeded", told
    assert answers[0].status_code >= 400 or answers[0].content == answers[1].content
    return {
        "status": answers[0].status_code,
        "code": told.get("code", ""),
        "release": told.get("id", ""),
        "job": told.get("job", ""),
        "digest": hashlib.sha256(answers[0].content).hexdigest(),
    }


def judge(place: Prepared, received: list[dict[str, Any]], found: Found) -> None:
    """Beside what always holds: everybody was told something in the end, and every job has one end."""
    assert {each["status"] for each in received} <= {201, 202, 409}
    assert {code for each in received for code in each["seen"]} <= AWAY
    refused = [each for each in received if each["status"] == 409]
    assert {each["code"] for each in refused} <= {"budget-exceeded"}
    assert not refused or found.spent == place.budget
    with place.opened() as hub, hub.database.reading() as db:
        jobs = {row.id: row for row in db.query(Job)}
    asked = [each["job"] for each in received if each["status"] == 202]
    assert len(set(asked)) == len(asked), "two requests were given the same job"
    assert set(asked) <= set(jobs), "a job was lost"
    for row in jobs.values():
        assert row.state in ("done", "failed")
        if row.state == "done":
            assert found.settled[found.releases[row.result["release"]]] == 1
        else:
            assert row.problem["code"] in ENDS, row.problem
    given = Counter(row.result["release"] for row in jobs.values() if row.state == "done")
    assert max(given.values(), default=1) == 1, "two jobs gave one answer"
    assert len(found.answers) > 0


def test_sqlite(tmp_path: Path) -> None:
    disturb(prepare(tmp_path / "hub", people=12, pays_for=600), tmp_path, 1, seed=1, pause=0.5)


@pytest.mark.postgres
def test_postgres(tmp_path: Path, server: Server) -> None:
    place = prepare(tmp_path / "hub", people=12, pays_for=600, database=server.now.url)
    disturb(place, tmp_path, 1, seed=2, server=server, pause=0.5)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_sqlite_fifty_times(tmp_path: Path) -> None:
    disturb(prepare(tmp_path / "hub", people=50, pays_for=4000), tmp_path, 49, seed=3)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.postgres
def test_postgres_fifty_times(tmp_path: Path, server: Server) -> None:
    place = prepare(tmp_path / "hub", people=50, pays_for=4000, database=server.now.url)
    disturb(place, tmp_path, 49, seed=4, server=server)
