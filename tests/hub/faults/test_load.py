"""Fifty people who ask at once, of one data set whose budget pays for exactly half of what they ask."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.hub.faults.clients import counted
from tests.hub.faults.databases import Server, server
from tests.hub.faults.looking import look
from tests.hub.faults.prepared import Prepared, prepare
from tests.hub.faults.processes import free_port, hall

__all__ = ["server"]


def ask_for_twice_the_budget(place: Prepared, tmp: Path) -> None:
    """Everybody asks; the budget ends exactly full, and everything that was answered was charged, once."""
    with hall(place, tmp) as processes:
        port = free_port()
        hub = processes.hub(port)
        received = processes.clients(f"http://127.0.0.1:{port}", questions=2 * place.pays_for, again=7).ended()
        assert hub.end() == 0
    assert counted(received) == Counter({"201": place.pays_for, "409 budget-exceeded": place.pays_for})
    assert not any(each["seen"] for each in received)
    found = look(place, received)
    assert found.spent == place.budget
    assert len(found.charges) == sum(found.settled.values()) == place.pays_for
    assert len(found.releases) == place.pays_for
    refused = [row for row in found.asked if row.outcome == "failed"]
    assert len(refused) == place.pays_for


def test_a_tenth_of_a_minute(tmp_path: Path) -> None:
    ask_for_twice_the_budget(prepare(tmp_path / "hub", pays_for=60), tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_minute(tmp_path: Path) -> None:
    ask_for_twice_the_budget(prepare(tmp_path / "hub", pays_for=1500), tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.postgres
def test_a_minute_on_postgres(tmp_path: Path, server: Server) -> None:
    ask_for_twice_the_budget(prepare(tmp_path / "hub", pays_for=1500, database=server.now.url), tmp_path)
