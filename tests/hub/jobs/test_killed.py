"""Workers killed at any moment: no job is lost, none is charged twice, and both chains verify."""

from __future__ import annotations

import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from cloister.hub.hub import Hub
from cloister.hub.platform.jobs import Timing, Workers
from cloister.hub.platform.trail import verify
from cloister.hub.records.jobs import Job
from cloister.privacy import PureDP
from tests.hub import forked
from tests.hub.jobs.charging import COST, open_hub
from tests.hub.jobs.conftest import ask
from tests.hub.trail.conftest import add_person, new_schema


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def place(request, tmp_path) -> tuple[Path, str, str]:
    """The folder, and the addresses of database and ledger."""
    if request.param == "sqlite":
        return tmp_path / "hub", "", ""
    server = request.getfixturevalue("postgres_server")
    return tmp_path / "hub", new_schema(server), new_schema(server)


def kill_workers(place: tuple[Path, str, str], times: int, *, seed: int) -> None:
    """Give the queue work, start a worker process, kill it at some moment; over and over. Then let everything end."""
    folder, database, ledger = place
    with open_hub(folder, database, ledger) as hub:
        hub.ledger.open("people", PureDP(1000), who="owner")
        ada = add_person(hub, "ada", "analyst")
        asked = 0
        for attempt in range(times):
            waiting = sum(job.state == "waiting" for job in jobs_of(hub))
            for _ in range(min(20, 80 - waiting)):  # a slow worker leaves many, and a person may have a hundred
                ask(hub, ada, "charge", what=f"plan {asked}")
                asked += 1
            process = forked.python("-m", "tests.hub.jobs.charging", str(folder), database, ledger, stdout=subprocess.PIPE)
            try:
                if attempt % 5 != 4 and attempt < times - 1:  # every fifth time and the last, while it starts
                    assert process.stdout.read(5) == "ready"
                if attempt % 5 == 0:  # once in the middle of its work, however slow the machine is
                    while process.poll() is None and not any(job.state == "done" for job in jobs_of(hub)):
                        time.sleep(0.01)
                time.sleep((seed * 7919 + attempt * 104729) % 997 / 997 * 0.3)
            finally:
                process.send_signal(signal.SIGKILL)
                process.wait()
                process.stdout.close()
        killed = Counter(job.state for job in jobs_of(hub))
        rest = Workers(hub, 0, Timing(lost=0))  # whoever is silent now is dead
        while rest.run_one():
            pass
        look_at(hub, asked)
        assert killed["done"] > 0, "no worker did anything before it was killed"
        assert verify(hub) is True
        assert hub.ledger.verify() is True


def look_at(hub: Hub, asked: int) -> None:
    rows = jobs_of(hub)
    assert len(rows) == asked
    charges = hub.ledger.charges("people")
    assert max(Counter(charge.what for charge in charges).values()) == 1, "a job was charged twice"
    settled = {charge.what for charge in charges if charge.state == "settled"}
    for row in rows:
        what = row.payload["what"]
        assert row.state in ("done", "failed")
        if row.state == "done":
            assert row.result == {"release": f"answer to {what}"}
            assert what in settled
        else:
            assert (row.problem["code"], row.attempts) == ("lost", 2)
    assert sum(row.state == "done" for row in rows) >= asked * 0.9
    assert hub.ledger.spent("people") == PureDP(COST.epsilon * len(charges))


def jobs_of(hub: Hub) -> list[Job]:
    with hub.database.reading() as db:
        rows = list(db.query(Job))
        db.expunge_all()
    return rows


def test_killed_at_any_moment(place):
    kill_workers(place, 3, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_killed_at_any_moment_fifty_times(place):
    kill_workers(place, 50, seed=2)
