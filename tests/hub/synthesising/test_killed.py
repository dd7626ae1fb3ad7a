"""The worker of a synthetic table is killed (kill -9) at each stage: it is made once more by itself, and charged once."""

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
from tests.hub.house import House
from tests.hub.learning.dying import STAGES, kill_one
from tests.hub.synthesising.conftest import MAY, ORDER
from tests.tiers import some_by_day


@pytest.fixture
def place(tmp_path: Path) -> Iterator[House]:
    """A hub by the real clock."""
    house = House(tmp_path / "hub", time.time)  # type: ignore[arg-type]
    yield house
    house.close()


@pytest.mark.timeout(600)
@some_by_day("stage", STAGES[:4], day=lambda stage: stage == STAGES[1])  # the frame is killed at any moment: jobs/test_killed.py
def test_it_is_made_once_more_under_its_own_charge(place: House, stage: str) -> None:
    owner, ana = place.person("owner"), place.person("analyst", email="ana@example.org")
    people = place.sample_data_set("people", owner=owner, budget=PureDP("0.25"))
    place.grant(people, ana, by=owner, actions=MAY, share={"epsilon": "0.25"})
    job = place.client().post("/api/v1/synthetic-tables", json=ORDER, headers=ana.bearer).json()["job"]
    kill_one(place.settings, stage)

    hub = place.hub
    before = hub.ledger.charges("people")
    assert [each.state for each in before] == {"before the charge": [], "after the charge": ["reserved"]}.get(stage, ["settled"])
    assert Workers(hub, 0, Timing(lost=0)).run_one()
    with hub.database.reading() as db:
        row, [made] = db.get_one(Job, job), db.query(StoredRelease).all()
        [entry] = db.query(AuditLine).filter(AuditLine.action == "synthesise.run").all()
    assert (row.state, row.result["synthetic"], row.attempts) == ("done", made.id, 2)
    [charge] = hub.ledger.charges("people")
    assert (charge.state, hub.ledger.spent("people")) == ("settled", PureDP("0.25"))
    assert made.cost == entry.cost == {"people": "ε = 0.25"}
    assert entry.details.get("charged_by") == (None if stage == "before the charge" else "the first attempt")
    assert (hub.ledger.verify(), verify(hub)) == (True, True)
