"""A hub that is started anew with jobs of every kind in its queue, waiting and running: each ends, and makes one thing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from cloister.hub.platform.jobs import Workers, submit
from cloister.hub.platform.jobs import workers as room
from cloister.hub.platform.jobs.queue import Claim, claim, give_back
from cloister.hub.platform.trail import verify
from cloister.hub.records.catalogue import DataSet
from cloister.hub.records.jobs import Job
from cloister.hub.records.owner_views import OwnerView
from cloister.hub.records.releases import StoredRelease
from cloister.hub.services.learning import fitting
from cloister.hub.work import orders
from cloister.ledger import Ledger
from cloister.privacy import PureDP
from tests.hub.anonymizing.ordering import ORDER as TABLE
from tests.hub.anonymizing.ordering import RELEASE
from tests.hub.house import READS, Clock, House, Visitor
from tests.hub.learning.conftest import MAY, ORDER
from tests.hub.surveys.conftest import Field
from tests.hub.surveys.test_words import filled

KINDS = {"question", "learning.fit", "anonymizing.try", "anonymizing.release", "survey.words", "catalogue.expire"}
MADE = (StoredRelease, OwnerView)


class Died(BaseException):
    """The process ends, as by kill -9."""


def dies(*_: Any, **__: Any) -> Any:
    raise Died


@pytest.fixture
def clock() -> Clock:
    """That of a house."""
    return Clock()


@pytest.fixture
def reopened(house: House, tmp_path: Path, clock: Clock) -> Iterator[Callable[[], House]]:
    """Close the hub, and open it once more over the same folder."""
    opened: list[House] = []

    def again() -> House:
        house.close()
        opened.append(House(tmp_path / "hub", clock))
        return opened[-1]

    yield again
    for each in opened:
        each.close()


def people(house: House) -> tuple[Visitor, Visitor]:
    """An owner and an analyst with a data set between them."""
    owner, ana = house.person("owner", "analyst"), house.person("analyst", email="ana@example.org")
    row = house.sample_data_set("people", owner=owner)
    house.grant(row, ana, by=owner, actions={*READS, *MAY})
    return owner, ana


def ordered(house: House, who: Visitor, path: str, body: Any, **headers: str) -> str:
    answer = house.client().post(f"/api/v1{path}", json=body, headers={**who.bearer, **headers})
    assert answer.status_code == 202, answer.text
    job: str = answer.json()["job"]
    return job


def one_of_each(house: House) -> None:
    """A job of every kind in the queue."""
    owner, ana = people(house)
    ordered(house, ana, "/questions", {"sql": "SELECT COUNT(*) AS n FROM people", "spend": "0.25"}, Prefer="respond-async")
    ordered(house, ana, "/models", ORDER)
    ordered(house, owner, "/anonymised/trials", TABLE)
    ordered(house, owner, "/anonymised", RELEASE)
    survey = filled(Field(house, ana))
    assert ana.client.get(f"/surveys/{survey}").status_code == 200
    with house.hub.database.begin() as db:
        submit(house.hub, db, owner.caller, "catalogue.expire", {})
    assert {row.kind for row in jobs(house)} == KINDS


def jobs(house: House) -> list[Job]:
    with house.hub.database.reading() as db:
        return list(db.query(Job).order_by(Job.created, Job.id))


def taken(house: House) -> list[Claim]:
    """A worker takes all of them."""
    found: list[Claim] = []
    while (one := claim(house.hub, "first", timedelta(seconds=60))) is not None:
        found.append(one)
    return found


def run_all(house: House) -> None:
    worker = Workers(house.hub, 0)
    while worker.run_one():
        pass


def check_all_ended(house: House, attempts: int) -> None:
    told = {row.kind: (row.state, row.attempts, row.problem) for row in jobs(house)}
    assert told == dict.fromkeys(KINDS, ("done", attempts, {}))
    with house.hub.database.reading() as db:
        assert [db.query(each).count() for each in MADE] == [3, 1]
    assert house.hub.ledger.spent("people") == PureDP("0.5")
    assert house.hub.ledger.verify() is True
    assert verify(house.hub) is True


def test_jobs_that_wait_are_run(house: House, reopened: Callable[[], House]) -> None:
    one_of_each(house)
    again = reopened()
    run_all(again)
    check_all_ended(again, 1)


def test_jobs_whose_process_was_killed_are_begun_once_more(house: House, clock: Clock, reopened: Callable[[], House]) -> None:
    one_of_each(house)
    taken(house)
    again = reopened()
    run_all(again)
    assert {row.state for row in jobs(again)} == {"running"}, "nobody is taken for dead at once"
    clock.move(seconds=61)
    run_all(again)
    check_all_ended(again, 2)


def test_jobs_that_an_ending_hub_gave_back_are_begun_once_more(house: House, reopened: Callable[[], House]) -> None:
    one_of_each(house)
    for each in taken(house):
        assert give_back(house.hub, each)
    again = reopened()
    run_all(again)
    check_all_ended(again, 2)


def test_jobs_that_died_before_their_end_was_written_make_nothing_twice(
    house: House, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_of_each(house)
    with monkeypatch.context() as here:
        here.setattr(room, "finish", dies)
        for _ in KINDS:
            with pytest.raises(Died):
                Workers(house.hub, 0).run_one()
    ended = {row.kind for row in jobs(house) if row.state == "done"}
    assert ended == {"learning.fit", "anonymizing.try", "anonymizing.release"}, "what they made was kept with their end"
    clock.move(seconds=61)
    run_all(house)
    assert {row.state for row in jobs(house)} == {"done"}
    with house.hub.database.reading() as db:
        assert [db.query(each).count() for each in MADE] == [3, 1]
    assert house.hub.ledger.spent("people") == PureDP("0.5")


def test_a_table_that_died_before_it_was_kept_is_made_once_more(
    house: House, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each attempt leaves its mark in the ledger: the first had read the rows."""
    owner, _ = people(house)
    job = ordered(house, owner, "/anonymised", RELEASE)
    with monkeypatch.context() as here:
        here.setattr(orders, "register", dies)
        with pytest.raises(Died):
            Workers(house.hub, 0).run_one()
    clock.move(seconds=61)
    run_all(house)
    told = house.client().get(f"/api/v1/jobs/{job}", headers=owner.bearer).json()
    assert (told["state"], told["attempts"]) == ("done", 2)
    assert [each.state for each in house.hub.ledger.charges("people")] == ["not private", "not private"]
    with house.hub.database.reading() as db:
        assert db.query(StoredRelease).filter_by(kind="anonymised").count() == 1


def test_a_table_of_a_worker_that_was_taken_for_dead_is_not_kept(
    house: House, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, _ = people(house)
    job = ordered(house, owner, "/anonymised", RELEASE)
    keep = orders.register

    def overtaken(*how: Any, **more: Any) -> Any:
        monkeypatch.setattr(orders, "register", keep)
        clock.move(seconds=61)
        run_all(house)
        more["name"] = "another_name"  # else that it is taken would be in the way
        return keep(*how, **more)

    monkeypatch.setattr(orders, "register", overtaken)
    assert Workers(house.hub, 0).run_one()
    told = house.client().get(f"/api/v1/jobs/{job}", headers=owner.bearer).json()
    assert (told["state"], told["attempts"]) == ("done", 2)
    with house.hub.database.reading() as db:
        [table] = db.query(StoredRelease).filter_by(kind="anonymised")
        assert told["result"]["href"] == f"/anonymised/{table.id}"
        assert sorted(row.name for row in db.query(DataSet)) == ["people", "people_public"]


@pytest.mark.parametrize("where", ["before its charge", "after its charge"])
def test_a_model_that_is_cancelled_while_it_runs(house: House, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    """Before the charge it stops and costs nothing; what was charged is learnt to its end, since it is paid."""
    _, ana = people(house)
    job = ordered(house, ana, "/models", ORDER)
    whose, name = (fitting, "attacked") if where == "before its charge" else (Ledger, "reserve")
    work = getattr(whose, name)

    def cancelled(*how: Any, **more: Any) -> Any:
        found = work(*how, **more)
        stopped = house.client().post(f"/api/v1/jobs/{job}/cancel", headers=ana.bearer).json()
        assert (stopped["state"], stopped["stopping"]) == ("running", True)
        room._Running.say(running[0])
        return found

    running: list[room._Running] = []
    begin = room._Running.__init__

    def begun(self: room._Running, *how: Any) -> None:
        begin(self, *how)
        running.append(self)

    monkeypatch.setattr(room._Running, "__init__", begun)
    monkeypatch.setattr(whose, name, cancelled)
    assert Workers(house.hub, 0).run_one()
    told = house.client().get(f"/api/v1/jobs/{job}", headers=ana.bearer).json()
    charges = [each.state for each in house.hub.ledger.charges("people")]
    assert (told["state"], charges) == (("cancelled", []) if where == "before its charge" else ("done", ["settled"]))
