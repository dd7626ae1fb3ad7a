"""The worker of a run is killed (kill -9) at each stage: the run is made once more by itself, and charged once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cloister.hub.platform.jobs import Timing, Workers
from cloister.hub.platform.trail import verify
from cloister.hub.records.jobs import Job
from cloister.hub.records.releases import StoredRelease
from cloister.hub.records.trail import AuditLine
from cloister.privacy import PureDP
from tests.hub.guests.test_running import ORDER, Play, play_in
from tests.hub.house import House
from tests.hub.learning.dying import STAGES, kill_one
from tests.tiers import some_by_day


@pytest.fixture
def play(tmp_path: Path) -> Iterator[Play]:
    """By the real clock."""
    house = House(tmp_path / "hub", time.time)  # type: ignore[arg-type]
    yield play_in(house)
    house.close()


@pytest.mark.timeout(600)
@some_by_day("stage", STAGES[:4], day=lambda stage: stage == STAGES[1])  # the frame is killed at any moment: jobs/test_killed.py
def test_a_run_is_made_once_more_under_its_own_charge(play: Play, stage: str) -> None:
    job = play.post("/algorithm-runs", ORDER).json()["job"]
    kill_one(play.house.settings, stage)
    hub = play.house.hub
    before = hub.ledger.charges("people")
    assert [each.state for each in before] == {"before the charge": [], "after the charge": ["reserved"]}.get(stage, ["settled"])
    assert Workers(hub, 0, Timing(lost=0)).run_one()
    with hub.database.reading() as db:
        row, [made] = db.get_one(Job, job), db.query(StoredRelease).all()
        [entry] = db.query(AuditLine).filter(AuditLine.action == "algorithm.run").all()
    assert (row.state, row.result["guest"], row.attempts) == ("done", made.id, 2)
    [charge] = hub.ledger.charges("people")
    assert (charge.state, hub.ledger.spent("people")) == ("settled", PureDP("0.25"))
    assert made.cost == entry.cost == {"people": "ε = 0.25"}
    assert (hub.ledger.verify(), verify(hub)) == (True, True)
