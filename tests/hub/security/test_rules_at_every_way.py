"""What reads data asks the institution's rules with its money: an order of each action that spends, under each kind of rule.

A new action that reads data must say below how it is ordered, or where a rule above it is tried: the last test holds it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import delete, update

from cloister.hub.decisions.policy.actions import actions
from cloister.hub.generation import bump
from cloister.hub.ids import new_id
from cloister.hub.records.access import InstitutionRule
from cloister.hub.records.accounts import WebSession
from tests.hub.security.world import World


@contextmanager
def ruled(world: World, **said: Any) -> Iterator[None]:
    """While the institution has this rule besides."""
    number, hub = new_id(), world.house.hub
    with hub.database.begin() as db:
        made = {"id": number, "title": "Above all", "made_by": world.steward.id, "created": hub.now()}
        db.add(InstitutionRule(rule=said, **made))
        bump(db)
    try:
        yield
    finally:
        with hub.database.begin() as db:
            db.execute(delete(InstitutionRule).where(InstitutionRule.id == number))
            bump(db)


@contextmanager
def with_a_password_alone(world: World) -> Iterator[None]:
    """While nobody's browser came in with a second factor."""

    def come(second_factor: bool) -> None:
        with world.house.hub.database.begin() as db:
            db.execute(update(WebSession).values(second_factor=second_factor))

    come(False)
    try:
        yield
    finally:
        come(True)


TABLE = {"table": "secrets_zqx", "spend": "0.1", "purpose": "care"}
ASKED = {"sql": "SELECT SUM(pay) AS whole FROM secrets_zqx", "spend": "0.1", "purpose": "care"}
LINE = {**TABLE, "method": "LinearRegression", "features": ["born"], "target": "pay"}
ROWS = {**TABLE, "columns": ["code", "pay"], "spend": "0.3"}
SCATTER = {**TABLE, "columns": "code, pay", "method": "PCA", "dimensions": "1"}
STREAM = {
    "title": "Rooms",
    "sql": "SELECT COUNT(*) AS n FROM readings",
    "columns": {"room": {"kind": "category", "values": ["hall"]}},
    "every": "1 hour",
    "since": "2026-03-02T09:00:00Z",
    "until": "2026-03-02T12:00:00Z",
    "most": 5,
    "epsilon": "0.1",
    "purpose": "care",
}
ORDERS: Mapping[str, tuple[tuple[str, Mapping[str, Any]], ...]] = {
    "question.ask": (("/questions", ASKED),),
    "learn.run": (("/models", LINE),),
    "synthesise.run": (("/synthetic-tables/price", ROWS), ("/synthetic-tables", ROWS)),
    "compress.run": (("/projections/price", SCATTER), ("/projections", SCATTER)),
    "stream.open": (("/streams", STREAM),),
}
"""What spends, with an order by each way of the API that is carried out where no rule forbids it."""
BESIDE: Mapping[str, str] = {
    "joint.run": "as every order of one table; `joint_learning/test_joint_learning.py` has the rule",
    "algorithm.run": "as every order of one table; `guests/test_running.py`",
    "anonymize.run": "spends nothing that is counted; `projecting/test_projecting.py`, `anonymizing/`",
    "release.publish": "of a release: `releases/derived.py` asks the rules of what it came from",
    "release.share": "as above",
    "release.see": "as above",
    "release.download": "as above",
    "stream.see": "`streams/test_rules.py`, at each way to look",
}
"""What reads data and has no order here, with where a rule above it is tried."""
RULES: tuple[dict[str, Any], ...] = (
    {"deny": True},
    {"epsilon_of_population": "0.05"},
    {"epsilon_of_allotment": "0.05"},
    {"second_factor": True},
    {"purposes": ["research"]},
)


@pytest.mark.parametrize("action", ORDERS)
def test_what_spends_is_refused_by_each_kind_of_rule_and_charges_nothing(world: World, action: str) -> None:
    owner, ledger = world.owner, world.house.hub.ledger
    with with_a_password_alone(world):
        for path, body in ORDERS[action]:
            for said in RULES:
                before = {name: str(ledger.spent(name)) for name in ledger.populations()}
                with ruled(world, actions=[action], **said):
                    refused = owner.client.post(f"/api/v1{path}", json=body, headers=owner.csrf())
                assert (refused.status_code, refused.json()["code"]) == (403, "access-denied"), (path, said, refused.text)
                assert before == {name: str(ledger.spent(name)) for name in ledger.populations()}
            done = owner.client.post(f"/api/v1{path}", json=body, headers=owner.csrf())
            assert done.status_code in (200, 201, 202), (path, done.text)


def test_each_action_that_reads_data_says_how_it_is_asked(world: World) -> None:
    reads = {name for name, action in actions().items() if action.data}
    assert reads == {*ORDERS, *BESIDE}, "say in ORDERS how it is ordered, or in BESIDE where a rule above it is tried"
