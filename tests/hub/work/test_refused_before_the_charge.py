"""What can be known before a charge is refused before it: a wrong order or a library that is not installed charges nothing.

A service that charges is in the walk by its job; one that says here of no wrong order fails the last test.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest

from cloister import compress
from cloister.errors import InvalidParameter, MissingDependency
from cloister.hub.platform.jobs import Workers
from cloister.hub.services.joint_learning.order import JointLearning
from cloister.hub.services.projecting import jobs
from cloister.hub.services.projecting.orders import Attack, Fit
from cloister.hub.work import orders
from tests.hub.house import House, Visitor
from tests.hub.joint_learning.test_joint_learning import grant, played

FEW = {"table": "people", "spend": "0.1", "purpose": "care"}
LEARN = {**FEW, "method": "GaussianNB", "features": ["age", "pay"], "target": "sex"}
SYNTH = {**FEW, "columns": ["age", "sex"]}
PROJECT = {**FEW, "columns": "age, pay", "method": "DCA", "utility": "sex", "dimensions": "1"}
JOURNEY = {**FEW, "moment": "age", "x": "age", "y": "pay"}
ASK = {"sql": "SELECT COUNT(*) AS n FROM people", "spend": "0.1", "purpose": "care"}
STREAM = {
    "title": "Rooms",
    "sql": "SELECT COUNT(*) AS n FROM readings",
    "columns": {"room": {"kind": "category", "values": ["hall"]}},
    "every": "1 hour",
    "since": "2026-03-02T09:00:00Z",
    "until": "2026-03-02T12:00:00Z",
    "most": 5,
    "epsilon": "0.1",
}
WRONG: Mapping[str, tuple[tuple[str, Mapping[str, Any]], ...]] = {
    "learning.fit": (
        ("/models", {**LEARN, "parameters": {"nothing": 1}}),
        ("/models", {**LEARN, "held_out": "1.5"}),
        ("/models", {**LEARN, "method": "KMeans", "target": "", "parameters": {"n_clusters": 0}}),
        ("/models", {**LEARN, "method": "PCA", "target": "", "parameters": {"n_components": 3}}),
        ("/models", {**LEARN, "method": "LogisticRegression", "parameters": {"max_iter": "many"}}),
        ("/models", {**LEARN, "kind": "approx", "delta": "2"}),
    ),
    "synthesising.make": (
        ("/synthetic-tables", {**SYNTH, "rules": "age > 200"}),
        ("/synthetic-tables", {**SYNTH, "workload": "nose"}),
        ("/synthetic-tables", {**SYNTH, "method": "magic"}),
        ("/synthetic-tables", {**SYNTH, "earlier": "SELECT nothing"}),
    ),
    "projecting.fit": (
        ("/projections", {**PROJECT, "dimensions": "00019"}),
        ("/projections", {**PROJECT, "dimensions": "3"}),
        ("/projections", {**PROJECT, "utility": "pay", "columns": "age"}),
    ),
    "journeys.fit": (("/journeys", {**JOURNEY, "cells": "99"}), ("/journeys", JOURNEY)),
    "question": (
        ("/questions", {**ASK, "sql": "SELECT nose FROM people"}),
        ("/questions", {**ASK, "sql": "SELECT AVG(LN(pay - 200)) AS x FROM people GROUP BY nose"}),
        ("/questions", {**ASK, "spend": "5"}),
        ("/questions", {**ASK, "dialect": "klingon"}),
    ),
    "stream": (
        ("/streams", {**STREAM, "sql": "SELECT nose FROM readings"}),
        ("/streams", {**STREAM, "until": "2026-03-02T09:30:00Z"}),
        ("/streams", {**STREAM, "columns": {"room": {"kind": "magic"}}}),
        ("/streams", {**STREAM, "epsilon": "-1"}),
    ),
}
"""Of each work that charges orders that nobody can carry out, as is known beforehand."""
BESIDE: Mapping[str, str] = {
    "joint_learning.learn": "below, with its two owners",
    "guests.run": "the sandbox is opened before the session that charges is asked for: `guests/test_bad_inputs.py`",
}


@pytest.fixture
def owner(house: House) -> Visitor:
    found = house.person("owner", "analyst", email="olga@example.org")
    house.sample_data_set(owner=found)
    return found


def done(house: House, who: Visitor, path: str, body: Mapping[str, Any]) -> str:
    """Order it, and let a worker do it where it is accepted: how that ended."""
    answer = house.client().post(f"/api/v1{path}", json=dict(body), headers=who.bearer)
    if answer.status_code != 202:
        return f"refused {answer.status_code}"
    assert Workers(house.hub, 0).run_one()
    return str(house.client().get(f"/api/v1/jobs/{answer.json()['job']}", headers=who.bearer).json()["state"])


def spent(house: House) -> dict[str, str]:
    return {name: str(house.hub.ledger.spent(name)) for name in house.hub.ledger.populations()}


def absent(*_: Any, **__: Any) -> Any:
    raise MissingDependency("It was not done", why="a library is not installed", instead="pip install it")


@pytest.mark.parametrize("work", WRONG)
def test_a_wrong_order_charges_nothing(house: House, owner: Visitor, work: str) -> None:
    before = spent(house)
    for path, body in WRONG[work]:
        assert done(house, owner, path, body) in ("refused 422", "refused 400", "refused 402", "refused 409", "failed"), body
        assert spent(house) == before, f"{path} {body} was charged"


def test_what_is_not_installed_is_found_before_the_charge(house: House, owner: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "made", absent)
    assert done(house, owner, "/projections", PROJECT) == "failed"
    assert spent(house) == {"people": "ε = 0"}


@pytest.mark.parametrize("missing", [False, True])
def test_a_joint_order_that_nobody_can_carry_out_charges_none_of_its_owners(
    house: House, monkeypatch: pytest.MonkeyPatch, missing: bool
) -> None:
    play = played(house)
    for name, each in play.owners.items():
        grant(name, play.analyst, each)
    before = spent(house)
    if missing:
        monkeypatch.setattr(compress, "DCA", absent, raising=False)
    answer = play.post(play.analyst, **({} if missing else {"components": "00019"}))
    if answer.status_code == 202:
        Workers(house.hub, 0).run_one()
    assert answer.status_code == (202 if missing else 422), answer.text
    assert spent(house) == before


@pytest.mark.parametrize("text", ["00019", "0001", "²", "-1", "1" * 5000, ""])
@pytest.mark.parametrize(
    "order",
    [
        lambda text: Fit(**{**PROJECT, "dimensions": text}),
        lambda text: Attack(
            table="people", columns="age, pay", utility="sex", secret="ill", methods="PCA", approval="yes", dimensions=text
        ),
        lambda text: JointLearning(table="all", columns=("age", "pay"), method="PCA", components=text, spend="1"),
    ],
    ids=["fit", "attack", "joint"],
)
def test_a_number_is_the_one_that_was_looked_at(order: Callable[[str], Any], text: str) -> None:
    if text == "0001":
        order(text)
    else:
        with pytest.raises(InvalidParameter, match=r"whole number|handed out"):
            order(text)


def test_each_work_that_charges_says_what_is_wrong_with_it(house: House) -> None:
    runs = [job.run for service in house.hub.services for job in service.jobs if isinstance(job.run, partial)]
    works = [run.args[0] for run in runs if run.func is orders._run]
    charging = {work.job for work in works if not work.marked}
    assert charging <= {*WRONG, *BESIDE}, "say in WRONG which of its orders cannot be carried out"
