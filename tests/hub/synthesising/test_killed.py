"""The worker of a synthetic table is killed (kill -9) at each stage: it is made once more by itself, and charged once."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cloister.hub.records.jobs import Job
from cloister.hub.records.releases import StoredRelease
from cloister.hub.records.trail import TrailLine
from cloister.hub.services.jobs import Timing, Workers
from cloister.hub.services.trail import verify
from cloister.privacy import PureDP
from tests.hub.house import House
from tests.hub.learning.dying import STAGES
from tests.hub.synthesising.conftest import MAY, ORDER


@pytest.fixture
def place(tmp_path: Path) -> Iterator[House]:
    """A hub by the real clock."""
    house = House(tmp_path / "hub", time.time)  # type: ignore[arg-type]
    yield house
    house.close()


@pytest.fixture(scope="module")
def workers() -> Iterator[subprocess.Popen[str]]:
    """What starts the workers that are killed: it reads the modules once."""
    words = [sys.executable, "-m", "tests.hub.learning.dying"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("stage", STAGES[:4])
def test_it_is_made_once_more_under_its_own_charge(workers: subprocess.Popen[str], place: House, stage: str) -> None:
    owner, ana = place.person("owner"), place.person("analyst", email="ana@example.org")
    people = place.sample_data_set("people", owner=owner, budget=PureDP("0.25"))
    place.grant(people, ana, by=owner, actions=MAY, share={"epsilon": "0.25"})
    job = place.client().post("/api/v1/synthetic-tables", json=ORDER, headers=ana.bearer).json()["job"]
    assert workers.stdin is not None
    assert workers.stdout is not None
    workers.stdin.write(json.dumps([str(place.settings.data), "", stage]) + "\n")
    workers.stdin.flush()
    assert workers.stdout.readline() == f"{-signal.SIGKILL}\n"

    hub = place.hub
    before = hub.ledger.charges("people")
    assert [each.state for each in before] == {"before the charge": [], "after the charge": ["reserved"]}.get(stage, ["settled"])
    assert Workers(hub, 0, Timing(lost=0)).run_one()
    with hub.database.reading() as db:
        row, [made] = db.get_one(Job, job), db.query(StoredRelease).all()
        [entry] = db.query(TrailLine).filter(TrailLine.action == "synthesise.run").all()
    assert (row.state, row.result["synthetic"], row.attempts) == ("done", made.id, 2)
    [charge] = hub.ledger.charges("people")
    assert (charge.state, hub.ledger.spent("people")) == ("settled", PureDP("0.25"))
    assert made.cost == entry.cost == {"people": "ε = 0.25"}
    assert entry.details.get("charged_by") == (None if stage == "before the charge" else "the first attempt")
    assert (hub.ledger.verify(), verify(hub)) == (True, True)
