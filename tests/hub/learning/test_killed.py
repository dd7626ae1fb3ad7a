"""A model's worker is killed (kill -9) at each stage: it is learnt once more by itself, and costs what one model costs."""

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
from cloister.hub.services.learning import fitting
from cloister.privacy import PureDP
from tests.hub.house import House
from tests.hub.learning.conftest import MAY, ORDER
from tests.hub.learning.dying import STAGES, kill_one
from tests.hub.trail.conftest import new_schema, postgres_server

__all__ = ["postgres_server"]

POSTGRES = pytest.param("postgres", marks=pytest.mark.postgres)
SUMS, ROWS = "GaussianNB", "LogisticRegression"


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    """A hub by the real clock, in a folder or on PostgreSQL."""
    for name in ("attacked", "lost"):
        monkeypatch.setattr(fitting, name, lambda *_: None)
    database = new_schema(request.getfixturevalue("postgres_server")) if request.param == "postgres" else ""
    house = House(tmp_path / "hub", time.time, database=database, ledger=database)  # type: ignore[arg-type]
    yield house
    house.close()


def order(house: House, method: str) -> str:
    """Somebody orders a model whose cost is the whole budget: the job."""
    owner, ana = house.person("owner"), house.person("analyst", email="ana@example.org")
    people = house.sample_data_set("people", owner=owner, budget=PureDP("0.25"))
    house.grant(people, ana, by=owner, actions=MAY, share={"epsilon": "0.25"})
    answer = house.client().post("/api/v1/models", json={**ORDER, "method": method}, headers=ana.bearer)
    assert answer.status_code == 202, answer.text
    job: str = answer.json()["job"]
    return job


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("place", "method", "stage"),
    [
        # by day one of each way: a second attempt is the frame's, which jobs/test_killed.py kills at any moment
        ("sqlite", SUMS, STAGES[1]),
        ("sqlite", ROWS, STAGES[4]),
        *(pytest.param("sqlite", SUMS, stage, marks=pytest.mark.slow) for stage in (STAGES[0], *STAGES[2:4])),
        *(pytest.param("sqlite", ROWS, stage, marks=pytest.mark.slow) for stage in STAGES[:4]),
        *(
            pytest.param("postgres", method, stage, marks=[pytest.mark.postgres, *marks])
            for method, stage, *marks in [
                (SUMS, STAGES[2]),
                (ROWS, STAGES[1], pytest.mark.slow),
                (SUMS, STAGES[1], pytest.mark.slow),
                (ROWS, STAGES[3], pytest.mark.slow),
            ]
        ),
    ],
    indirect=["place"],
)
def test_it_is_learnt_once_more_under_its_own_charge(place: House, method: str, stage: str) -> None:
    hub, job = place.hub, order(place, method)
    kill_one(place.settings, stage)
    before = hub.ledger.charges("people")
    assert [each.state for each in before] == {"before the charge": [], "after the charge": ["reserved"]}.get(stage, ["settled"])
    assert Workers(hub, 0, Timing(lost=0)).run_one() is (stage != STAGES[4])

    with hub.database.reading() as db:
        row, [model] = db.get_one(Job, job), db.query(StoredRelease).all()
        [line] = db.query(AuditLine).filter(AuditLine.action == "learn.run").all()
        ends = db.query(AuditLine).filter(AuditLine.action == "job.end").count()
    assert (row.state, row.result["model"], ends) == ("done", model.id, 1)
    assert row.attempts == (1 if stage == STAGES[4] else 2)

    [charge] = hub.ledger.charges("people")
    assert (charge.state, charge.attempt) == ("settled", 2 if stage == "after the charge" else 1)
    assert hub.ledger.spent("people") == hub.ledger.spent_by("people", "ana@example.org") == PureDP("0.25")
    assert model.cost == line.cost == {"people": "ε = 0.25"}
    told = {name: line.details.get(name) for name in ("attempt", "charged_by", "ledger_lines")}
    if stage in ("before the charge", STAGES[4]):
        again = {"attempt": None if stage == STAGES[4] else 2, "charged_by": None, "ledger_lines": None}
    else:
        again = {"attempt": 2, "charged_by": "the first attempt", "ledger_lines": [charge.id]}
    assert told == again
    assert hub.ledger.verify() is True
    assert verify(hub) is True


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("place", "method"), [("sqlite", SUMS), pytest.param("sqlite", ROWS, marks=pytest.mark.slow)], indirect=["place"]
)
def test_what_is_killed_twice_is_lost_and_its_charge_stands(place: House, method: str) -> None:
    hub, job = place.hub, order(place, method)
    kill_one(place.settings, "after the charge")
    with hub.database.begin() as db:
        db.get_one(Job, job).beat = None  # silent for long
    kill_one(place.settings, "after the charge")
    assert not Workers(hub, 0, Timing(lost=0)).run_one()
    with hub.database.reading() as db:
        row = db.get_one(Job, job)
        assert db.query(StoredRelease).count() == 0
    assert (row.state, row.problem["code"], row.attempts) == ("failed", "lost", 2)
    [charge] = hub.ledger.charges("people")
    assert (charge.state, charge.attempt) == ("reserved", 2)
    assert hub.ledger.spent("people") == PureDP("0.25")
    assert hub.ledger.verify() is True
    assert verify(hub) is True
