"""A flood of reports from one network: held back for a while, without a trace of where reports came from."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from cloister.hub.services.surveys import counting as brakes
from cloister.hub.services.surveys.counting import RateLimit
from tests.hub.house import Clock, House
from tests.hub.surveys.conftest import COPIED, Field

NOON = datetime(2026, 1, 1, 12)
TYPE = {"Content-Type": "application/json"}


@pytest.fixture
def few(tmp_path: Path) -> Iterator[Field]:
    """A hub that takes three reports an hour from one network."""
    house = House(tmp_path, Clock(), survey_hourly=3)
    yield Field(house, house.person("analyst", email="ana@example.org"))
    house.close()


def send(field: Field, number: str, seed: int, *, address: str = "192.0.2.7", token: str | None = None) -> int:
    report = field.report(number, {}, seed=seed, token=token)
    answer = field.house.client(address).post(f"/api/v1/surveys/{number}/reports", content=report, headers=TYPE)
    if answer.status_code == 429:
        assert 0 < int(answer.headers["Retry-After"]) <= 1200
        assert "your network" in answer.json()["detail"]
    return answer.status_code


def test_one_network_sends_so_many_an_hour_and_others_are_not_held_back(few: Field) -> None:
    number = few.opened(questions=[COPIED])
    assert [send(few, number, seed) for seed in range(5)] == [201, 201, 201, 429, 429]
    assert send(few, number, 10, address="192.0.2.8") == 201
    assert send(few, few.opened(questions=[COPIED]), 11) == 201, "another survey"
    few.house.clock.move(minutes=20)
    assert [send(few, number, seed) for seed in (20, 21)] == [201, 429], "one third of an hour, one third of three"
    assert few.results(number)["n"] == 5


def test_who_has_an_invitation_is_never_held_back(few: Field) -> None:
    number = few.opened(questions=[COPIED], invited=True)
    tokens = few.ask("POST", f"/{number}/invitations", {"count": 6}).json()["tokens"]
    assert [send(few, number, seed, token=token) for seed, token in enumerate(tokens)] == [201] * 6


def test_a_clock_that_is_put_back_holds_nobody_back_for_longer() -> None:
    brake = RateLimit(3)
    assert [brake.wait("survey", "192.0.2.7", NOON) for _ in range(3)] == [0, 0, 0]
    yesterday = NOON - timedelta(days=1)
    assert brake.wait("survey", "192.0.2.7", yesterday) == 1200, "as if the clock had stood still"
    assert brake.wait("survey", "192.0.2.7", yesterday + timedelta(minutes=20)) == 0


def test_a_flood_of_garbage_is_held_back_as_well(few: Field) -> None:
    number = few.opened(questions=[COPIED])
    address = f"/api/v1/surveys/{number}/reports"
    found = [few.house.client("192.0.2.7").post(address, json={"vote": seed}, headers=TYPE).status_code for seed in range(5)]
    assert found[3:] == [429, 429]
    assert few.results(number)["refused"] == {"not a report": 3}


def test_what_is_counted_names_nobody_and_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    brake, other = RateLimit(10), RateLimit(10)
    for each in (brake, other):
        assert each.wait("survey", "192.0.2.7", NOON) == 0
    assert brake._used.keys() != other._used.keys(), "the same network has another name in every process"
    assert b"192" not in b"".join(brake._used)
    monkeypatch.setattr(brakes, "_MOST", 20)
    for place in range(100):
        brake.wait("survey", f"198.51.100.{place}", NOON + timedelta(hours=place // 50))
    assert len(brake._used) <= 20


def test_networks_are_told_apart_as_customers_have_them() -> None:
    brake = RateLimit(1)
    assert brake.wait("s", "2001:db8::1", NOON) == 0
    assert brake.wait("s", "2001:db8::ffff", NOON) == 3600
    assert brake.wait("s", "2001:db8:0:1::1", NOON) == 0
    assert brake.wait("s", "::ffff:192.0.2.7", NOON) == 0
    assert brake.wait("s", "192.0.2.7", NOON) == 3600


def test_many_threads_take_no_more_than_there_is() -> None:
    from concurrent.futures import ThreadPoolExecutor

    brake = RateLimit(50)
    with ThreadPoolExecutor(8) as threads:
        waits = list(threads.map(lambda _: brake.wait("s", "192.0.2.7", NOON), range(200)))
    assert waits.count(0) == 50
