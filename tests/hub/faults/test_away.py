"""PostgreSQL goes away and comes back; the clock jumps: the hub says what it can, and goes on by itself."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from cloister.hub.platform.trail import verify
from cloister.hub.records.trail import AuditLine
from cloister.privacy import PureDP
from tests.hub.faults.clients import question
from tests.hub.faults.databases import Server, server
from tests.hub.house import Clock, House, Visitor

__all__ = ["server"]
HOUR = 3600.0


@pytest.fixture
def away(tmp_path: Path, server: Server, clock: Clock) -> Iterator[House]:
    made = House(tmp_path / "hub", clock, database=server.now.url, ledger=server.now.url)
    yield made
    if not server.alive:
        server.start()
    made.close()


def ask(house: House, who: Visitor, number: int) -> Any:
    """A question that was not asked before."""
    body = {"sql": question(number), "spend": "0.01"}
    return house.client().post("/api/v1/questions", json=body, headers={**who.bearer, "Idempotency-Key": str(number)})


@pytest.mark.postgres
def test_postgres_is_away_and_comes_back(away: House, server: Server) -> None:
    analyst = away.person("analyst")
    away.sample_data_set(readers=[analyst])
    first = ask(away, analyst, 0)
    assert first.status_code == 201
    for _ in range(2):
        server.kill()
        for _ in range(3):
            refused = ask(away, analyst, 1)
            assert (refused.status_code, refused.json()["code"]) == (503, "database")
            assert "psycopg" not in refused.text
            assert "127.0.0.1" not in refused.text
        assert away.client().get("/healthz").status_code == 503
        server.start()
        assert ask(away, analyst, 0).content == first.content
        assert away.client().get("/healthz").status_code == 200
    assert ask(away, analyst, 1).status_code == 201
    assert away.hub.ledger.spent("people") == PureDP("0.02")
    assert away.hub.ledger.verify() is True
    assert verify(away.hub) is True


def test_a_clock_that_jumps(house: House) -> None:
    """A day on, two days back, and right again: the lines keep their order, and nothing waits for the clock to catch up."""
    analyst = house.person("analyst")
    house.sample_data_set(readers=[analyst], budget=PureDP(1))
    for number, hours in enumerate([0, 24, -48, 24, 0.001, -0.001]):
        house.clock.now += hours * HOUR
        answer = ask(house, analyst, number)
        assert answer.status_code == 201
        assert ask(house, analyst, number).content == answer.content
        assert house.client().get("/api/v1/releases", headers=analyst.bearer).status_code == 200
    assert house.hub.ledger.verify() is True
    assert verify(house.hub) is True
    with house.hub.database.reading() as db:
        lines = db.scalars(select(AuditLine).where(AuditLine.action == "question.ask").order_by(AuditLine.number)).all()
    whens = [line.when for line in lines]
    assert len(whens) == 6
    assert whens != sorted(whens)
    assert len(house.hub.ledger.charges("people")) == 6


def test_what_ends_by_the_clock_ends_in_every_jump(house: House, clock: Clock) -> None:
    analyst = house.person("analyst")
    house.sample_data_set(readers=[analyst])
    clock.move(days=29)
    assert ask(house, analyst, 0).status_code == 201
    clock.move(days=2)  # a token lasts thirty days
    assert ask(house, analyst, 1).status_code == 401
    assert house.hub.ledger.spent("people") == PureDP("0.01")


def test_a_key_that_was_left_is_taken_over_after_the_clock_was_put_back(house: House, clock: Clock) -> None:
    from cloister.hub.records.asking import Idempotency

    analyst = house.person("analyst")
    house.sample_data_set(readers=[analyst])
    clock.move(hours=5)
    answered = ask(house, analyst, 0)
    with house.hub.database.begin() as db:  # as if the process had died before it kept the answer
        row = db.get_one(Idempotency, "0")
        row.status, row.response = None, None
        row.created = house.hub.now() + timedelta(hours=5)
    again = ask(house, analyst, 0)
    assert again.status_code == 201
    assert again.json()["columns"] == answered.json()["columns"]
    assert house.hub.ledger.spent("people") == PureDP("0.01")
