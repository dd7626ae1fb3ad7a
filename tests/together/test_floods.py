"""A flood of garbage at a site and at the hub's address: each piece is refused for what it is, nothing is kept, and a question
that is asked meanwhile is answered."""

from __future__ import annotations

import base64
import threading
from pathlib import Path
from typing import Any

import httpx

import cloister as cl
from cloister.noise import Random
from cloister.together import Journal, SiteAgent
from cloister.together.messages import MAGIC, opened, pack
from cloister.together.owner import AuditLog
from cloister.together.rounds import HUB
from tests.together.parties import HUB_KEY
from tests.together.test_wire import COUNT, call
from tests.together.wired import asked, coordinator_of, key_of, roster_of, running, signed_by, site_of

PIECES = 400


def garbage(place: int, random: Random) -> bytes:
    """Bytes at random, pieces of messages, and whole messages that another signed."""
    drawn = random.bytes(1 + random.below_one(3000))
    whole = pack("request", "r", HUB, HUB_KEY, drawn)
    return [
        drawn,
        MAGIC + drawn,
        MAGIC + (len(drawn) + 7).to_bytes(4, "big") + drawn,
        whole[: random.below_one(len(whole))],
        pack("begin", drawn.hex()[:64], HUB, key_of("b"), drawn),
        pack(drawn.hex()[:8], "r", "a", key_of("a"), drawn),
    ][place % 6]


def test_a_flood_at_a_site_leaves_nothing_and_is_one_line_a_reason(tmp_path: Path) -> None:
    """Each message gets one refusal of bounded size; no round, no plan and no charge is kept of any."""
    site = site_of("a", journal=Journal(tmp_path / "journal"))
    log, random = AuditLog(tmp_path / "audit-log.jsonl", bytes(32)), Random.deterministic(3)
    agent = SiteAgent(site, note=log.add)
    agent.signed = signed_by(roster_of("abc"))
    site.join(agent.signed)
    before = sorted((tmp_path / "journal").rglob("*"))
    for place in range(PIECES):
        found = agent.answer(garbage(place, random))
        assert opened(found).kind == "refused"
        assert len(found) < 10_000
    assert sorted((tmp_path / "journal").rglob("*")) == before
    assert site.spent == cl.ZCDP(0)
    assert agent._rounds == {}
    assert log.broken() is None
    assert log.path.stat().st_size < 1000 * PIECES


def test_a_flood_at_the_hub_is_refused_while_a_question_is_answered() -> None:
    """Three who write what they like to all sites' addresses, signed by none of them; the question meanwhile has its answer."""
    coordinator, stop = coordinator_of("abc"), threading.Event()
    statuses: list[int] = []

    def flood(hub: str, seed: int) -> None:
        random = Random.deterministic(seed)
        with httpx.Client(trust_env=False, timeout=120) as client:
            place = 0
            while not stop.is_set():
                place += 1
                piece = garbage(place, random)
                poll = base64.b64encode(piece).decode()[:4000]
                headers: dict[str, Any] = {"Authorization": f"Cloister {poll}", "Cloister-Protocol": "1"}
                found = client.post(f"{hub}/together/{'abcd'[place % 4]}", content=piece * 20, headers=headers)
                statuses.append(found.status_code)

    agents = [SiteAgent(site_of(name)) for name in "abc"]
    with coordinator.serving() as hub, running(agents, hub), asked(coordinator) as session:
        floods = [threading.Thread(target=flood, args=(hub, seed)) for seed in range(3)]
        for each in floods:
            each.start()
        while len(statuses) < 30:
            stop.wait(0.01)
        try:
            assert all(abs(n - 60) <= 5 for n in session.sql(COUNT, spend=50).to_pydict()["n"])
        finally:
            stop.set()
            for each in floods:
                each.join()
        assert call(hub).status_code in (200, 204)
    assert set(statuses) == {401, 404}
    assert all(not box.waiting and box.calls == 0 for box in coordinator._boxes.values())
    assert not any("sent" in each.problem for each in coordinator.presence.values())
