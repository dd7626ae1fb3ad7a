"""A hub that is killed in mid-round, at each step in turn, while its sites go on: every ledger errs upward and nothing hangs."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import cloister as cl
from cloister.ledger import Ledger
from cloister.together import Coordinator, HubRound, MemoryJournal, SiteAgent
from cloister.together.messages import Message, opened, unpack
from cloister.together.owner import OwnersPolicy, Rule
from cloister.together.rounds import STEPS
from cloister.together.site import SitePart
from tests.together.parties import HUB_KEY
from tests.together.test_wire import COUNT
from tests.together.wired import COLUMNS, roster_of, running, signed_by, site_of

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


class Direct(Coordinator):
    """Sites that are called without a wire, but for those who are away from a step on."""

    agents: Mapping[str, SiteAgent]
    away: Mapping[str, str]

    def ask(self, messages: Mapping[str, bytes], round_id: str, *_: Any, **__: Any) -> Iterator[tuple[str, Message, bytes]]:  # type: ignore[override]
        steps = ["declaration", "request", *STEPS]
        for name, message in messages.items():
            if steps.index(opened(message).kind) < steps.index(self.away.get(name, "signatures")) or name not in self.away:
                data = self.agents[name].answer(message)
                yield name, unpack(data, None, round_id, {name: self._boxes[name].key}), data


@pytest.mark.parametrize(
    ("first", "killed", "then", "counted"),
    [
        ({}, "all keys", {}, 4),
        ({"a": "begin"}, "all keys", {}, 3),  # was silent, and is back
        ({"a": "all keys"}, "all shares", {}, 3),
        ({}, "all shares", {"a": "declaration"}, 3),  # died while it read
        ({"a": "all shares"}, "survivors", {"a": "declaration"}, 3),
        ({}, "survivors", {"a": "declaration"}, 4),  # died when its numbers were sent
        ({"a": "survivors"}, "signatures", {}, 4),
        ({}, "signatures", {"a": "declaration"}, 4),
    ],
)
def test_a_round_goes_on_with_the_sites_that_it_had_under_the_charges_that_stand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: dict[str, str], killed: str, then: dict[str, str], counted: int
) -> None:
    """Whoever is back or gone since; no site has budget for another charge, and each owner said yes to one."""
    policies = {name: OwnersPolicy([Rule(answer="ask me")], journal=MemoryJournal()) for name in "abcd"}
    sites = {name: site_of(name, budget=cl.ZCDP(1250), policy=policy) for name, policy in policies.items()}
    signed = signed_by(roster_of("abcd", dropouts=1))
    for each in sites.values():
        each.join(signed)
    coordinator, advance = Direct(HUB_KEY, signed), HubRound.advance
    coordinator.journal = MemoryJournal().of
    coordinator.agents = {name: SiteAgent(each) for name, each in sites.items()}
    dies = True

    def advanced(self: HubRound) -> bool:
        if dies and self.step == killed:
            raise KeyboardInterrupt
        return advance(self)

    def ask(away: dict[str, str]) -> Any:
        coordinator.away = away
        joint = cl.JointTable(coordinator.sites, COLUMNS, overlap="none", population="patients")
        table = cl.PrivateTable.declared(joint.source, COLUMNS, like=joint, version="1")
        with cl.Session({"people": table}, budget=cl.PureDP(50), ledger=str(tmp_path / "hub.db")) as session:
            return session.sql(COUNT, spend=50)

    monkeypatch.setattr(HubRound, "advance", advanced)
    for policy in policies.values():
        with pytest.raises(cl.AccessDenied, match="its owner is asked"):
            ask({})
        policy.decide(policy.plans("waiting")[0]["digest"], "allowed")
    with pytest.raises(KeyboardInterrupt):
        ask(first)
    dies = False
    found = ask(then).to_pydict()["n"]
    assert all(abs(n - 20 * counted) <= 5 for n in found), found
    assert all(
        len(each.ledger.charges(each.name)) == (name not in first or first[name] != "begin") for name, each in sites.items()
    )
