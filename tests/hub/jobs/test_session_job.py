"""A job that asks a real private question and is begun again after its answer was settled: one draw, one charge, one answer."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

import cloister as cl
from cloister.hub.hub import Hub
from cloister.hub.platform.jobs import SERVICE, Workers
from cloister.hub.platform.jobs.queue import claim
from cloister.hub.platform.trail import SERVICE as TRAIL
from cloister.hub.service import JobType, Service
from cloister.hub.settings import Settings
from tests.hub.jobs.conftest import ask, look
from tests.hub.trail.conftest import Clock, add_person

QUESTION = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"


def people(folder: Path) -> cl.PrivateTable:
    path = folder / "people.csv"
    path.write_text("id,sex\n" + "".join(f"{number},{'FMF'[number % 3]}\n" for number in range(300)), encoding="utf-8")
    columns = {"id": cl.Integer(0, 299), "sex": cl.Category(["F", "M"])}
    return cl.PrivateTable(path, columns=columns, population="people")


class Died(BaseException):
    """The process ends, as by kill -9: nothing of ours runs any more."""


@pytest.fixture
def world(tmp_path):
    clock, answers, table = Clock(), [], people(tmp_path)
    deaths = {"after settling": False, "before": False}

    def run(hub: Hub, payload, progress):
        if deaths["before"]:
            raise Died
        with cl.Session({"people": table}, budget=cl.PureDP(1), ledger=hub.ledger, who=progress.who) as session:
            answer = session.sql(payload["sql"], spend="0.5", purpose="a study")
        answers.append(answer)
        if deaths["after settling"]:
            raise Died
        return {"n": [int(each) for each in answer.to_pydict()["n"]]}

    services = (TRAIL, SERVICE, Service(name="s", title="S", jobs=(JobType(kind="ask", title="Ask", run=run),)))
    with Hub(Settings(data=tmp_path / "hub", workers=0), services, clock=clock) as hub:
        yield hub, clock, answers, deaths


def test_begun_again_after_the_charge_was_settled(world):
    hub, clock, answers, deaths = world
    job = ask(hub, add_person(hub, "ada", "analyst"), "ask", sql=QUESTION)
    deaths["after settling"] = True
    with pytest.raises(Died):
        Workers(hub, 0).run_one()
    assert look(hub, job).state == "running"
    clock.now += timedelta(seconds=61)
    deaths["after settling"] = False
    assert Workers(hub, 0).run_one()
    row = look(hub, job)
    assert (row.state, row.attempts) == ("done", 2)
    first, second = (answer.to_pydict() for answer in answers)
    assert first == second
    assert row.result["n"] == [int(each) for each in first["n"]]
    assert answers[1].provenance.repeated
    assert len(hub.ledger.charges("people")) == 1
    assert hub.ledger.spent("people") == cl.PureDP("0.5")


def test_begun_again_before_anything_was_charged(world):
    hub, clock, answers, deaths = world
    job = ask(hub, add_person(hub, "ada", "analyst"), "ask", sql=QUESTION)
    deaths["before"] = True
    with pytest.raises(Died):
        Workers(hub, 0).run_one()
    clock.now += timedelta(seconds=61)
    deaths["before"] = False
    assert Workers(hub, 0).run_one()
    assert look(hub, job).state == "done"
    assert len(answers) == len(hub.ledger.charges("people")) == 1


def test_over_budget_is_a_problem_of_the_job(world):
    hub, _, _, _ = world
    ada = add_person(hub, "ada", "analyst")
    for sql in (QUESTION, "SELECT COUNT(*) AS n FROM people"):
        ask(hub, ada, "ask", sql=sql)
        Workers(hub, 0).run_one()
    job = ask(hub, ada, "ask", sql="SELECT COUNT(*) AS n FROM people WHERE sex = 'F' AND id < 7")
    Workers(hub, 0).run_one()
    assert look(hub, job).problem["code"] == "budget-exceeded"
    assert claim(hub, "w", timedelta(seconds=60)) is None
