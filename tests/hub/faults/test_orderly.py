"""SIGTERM under load: what runs is answered and charged, what comes later waits for the next process, and nothing is lost."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from tests.hub.faults.looking import look
from tests.hub.faults.prepared import prepare
from tests.hub.faults.processes import free_port, hall

AWAY = {"ConnectError", "ReadError", "RemoteProtocolError", "WriteError"}
"""What a client may meet between two processes."""


def restart_under_load(tmp_path: Path, times: int, *, people: int, seed: int) -> None:
    """End the hub by SIGTERM and start it anew, over and over; everybody gets every answer."""
    chance = random.Random(seed)
    place = prepare(tmp_path / "hub", people=people, pays_for=100_000)
    stop = tmp_path / "stop"
    with hall(place, tmp_path) as processes:
        port = free_port()
        hub = processes.hub(port)
        clients = processes.clients(f"http://127.0.0.1:{port}", questions=10**6, seed=seed, patient=True, again=3, stop=str(stop))
        for _ in range(times):
            clients.wait_for_more(10)
            time.sleep(chance.random() * 0.3)
            assert hub.end() == 0, "it did not end in order"
            hub = processes.hub(port)
        clients.wait_for_more(10)
        stop.touch()
        received = clients.ended()
        assert hub.end() == 0
    assert {each["status"] for each in received} == {201}
    assert {code for each in received for code in each["seen"]} <= AWAY
    found = look(place, received, seed=seed)
    assert found.open == [], "a question was charged and not ended"
    assert sum(found.settled.values()) == len(received), "an answer was charged and given to nobody"


def test_restarted_under_load(tmp_path: Path) -> None:
    restart_under_load(tmp_path, 1, people=16, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_restarted_under_load_over_and_over(tmp_path: Path) -> None:
    restart_under_load(tmp_path, 10, people=50, seed=2)
