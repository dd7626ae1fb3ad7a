"""A hub that is killed in mid-round, at each step in turn, while its sites go on: every ledger errs upward and nothing hangs."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import cloister as cl
from cloister.ledger import Ledger
from cloister.together import SiteAgent
from cloister.together.rounds import STEPS
from cloister.together.site import SitePart
from tests.together.wired import running, site_of

ROOT = Path(__file__).resolve().parents[2]


def test_a_hub_that_is_killed_at_any_step_asks_again_and_nothing_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five lives end when all answers of a step are there; the sixth has the answer. Each second life asks under the charge of
    the one before, and in the same words: its round is that one's, is charged once at each site, and goes on where that one was.
    Rows are read once in each round that came so far."""
    read: list[tuple[str, str]] = []
    numbers = SitePart._numbers

    def numbered(self: SitePart, round_: Any, *other: Any) -> Any:
        read.append((self.site.name, round_.id))
        return numbers(self, round_, *other)

    monkeypatch.setattr(SitePart, "_numbers", numbered)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    agents = [SiteAgent(site_of(name)) for name in "abc"]
    driver = str(Path(__file__).with_name("hub_process.py"))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    command = [sys.executable, driver, str(tmp_path), str(port), *STEPS]
    with running(agents, f"http://127.0.0.1:{port}"):
        subprocess.run(command, env=environment, check=True, timeout=600)
    counts = json.loads((tmp_path / "answer.json").read_text(encoding="utf-8"))["n"]
    assert all(abs(n - 60) <= 5 for n in counts)
    assert {path.name for path in tmp_path.glob("done *")} == {f"done {step}" for step in STEPS}
    charges = (len(STEPS) + 1) // 2
    for agent in agents:
        charged = Counter(each.what for each in agent.site.ledger.charges(agent.name))
        assert len(charged) == charges
        assert set(charged.values()) == {1}
        mine = Counter(round_ for name, round_ in read if name == agent.name)
        assert set(mine.values()) == {1}
        assert set(mine) <= set(charged)
        assert len(mine) == charges - 1  # two lives ended before any row was read
        assert agent.site.spent == cl.ZCDP(charges * 50**2 // 2)
    with Ledger(tmp_path / "hub.db") as ledger:
        assert ledger.spent("patients") == cl.PureDP(50 * charges)
        assert ledger.verify() is True
