"""Two hub processes on one PostgreSQL, three sites and a key holder: any process is called, and any asks, one that nobody calls
too."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import select

import cloister as cl
from cloister.hub import services
from cloister.hub.hub import Hub
from cloister.hub.platform.catalogue import key_of
from cloister.hub.platform.catalogue.remote import KeptRound, SharedPost
from cloister.hub.platform.jobs import Workers
from cloister.hub.records.catalogue import DataSet
from cloister.hub.records.sites import SiteMessage
from cloister.hub.services.learning import fitting
from cloister.together import KeyHolder, KeyHolderAgent, Site, SiteAgent
from cloister.together.agent import Caller
from cloister.together.coordinator import Letter, Presence
from scripts import postgres
from tests.hub.faults.prepared import Prepared
from tests.hub.faults.processes import Hall, Process, free_port, hall
from tests.hub.house import READS, House
from tests.hub.sites.test_joining import NAMES, Play, site
from tests.hub.vault.test_masked import SPEND as MUCH
from tests.hub.vault.test_masked import SQL as MASKED
from tests.hub.vault.test_masked import Story
from tests.together.wired import running

SPEND = "0.04"
COUNT = "SELECT sex, COUNT(*) AS n FROM hospitals GROUP BY sex"


class InTurns(Caller):
    """Who is behind a proxy: each of its calls comes to the next process."""

    turns: Iterator[str]

    def _called(self, client: object, url: str, answers: str, body: bytes) -> tuple[int, bytes]:
        return super()._called(client, f"{next(self.turns)}/together/{self.name}", answers, body)


class SiteInTurns(InTurns, SiteAgent):
    """A site there."""


class KeyHolderInTurns(InTurns, KeyHolderAgent):
    """A key holder there."""


@dataclass
class Shared:
    """Two processes of one hub, and who asks it."""

    place: Prepared
    hubs: list[Process]
    addresses: list[str]
    owner: str
    analyst: str
    holder: KeyHolder
    hub: bytes
    """The public key that its key holder knows."""
    sites: list[Site] = field(default_factory=lambda: [site(name, budget=cl.ZCDP(10**9)) for name in NAMES])

    @property
    def in_turns(self) -> list[InTurns]:
        agents: list[InTurns] = [*map(SiteInTurns, self.sites), KeyHolderInTurns(self.holder, self.hub)]
        for each in agents:
            each.turns = itertools.cycle(self.addresses)
        return agents

    @property
    def spent(self) -> list[Fraction]:
        return [each.spent.rho for each in self.sites]  # type: ignore[union-attr]

    def asked(self, number: int, sql: str = COUNT) -> list[int]:
        with cl.connect(self.addresses[number], token=self.analyst) as session:
            return session.sql(sql, spend=SPEND, purpose="quality report").to_pydict()["n"]


def near(found: list[int], truth: list[int]) -> bool:
    """Within eight standard deviations of the noise."""
    return len(found) == len(truth) and all(abs(one - other) < 30 for one, other in zip(found, truth, strict=True))


def once(before: list[Fraction], now: list[Fraction], times: int = 1) -> bool:
    """Whether each site has charged so many questions since."""
    most = times * Fraction(SPEND)
    return all(most * Fraction(9, 10) < new - old <= most for old, new in zip(before, now, strict=True))


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Hall, Shared]]:
    try:
        server = postgres.start()
    except postgres.CannotStart as error:
        pytest.skip(str(error))
    tmp = tmp_path_factory.mktemp("several")
    try:
        house = House(tmp / "hub", time.time, database=server.url, ledger=server.url)  # type: ignore[arg-type]
        play = Play(house, house.person("owner"), house.person("analyst", email="ana@example.org"))
        made = play.join(epsilon="", rho="1000000000")
        assert made.status_code == 201, made.text
        with house.hub.database.reading() as db:
            [row] = db.query(DataSet).filter(DataSet.name == "hospitals")
        house.grant(row, play.analyst, by=play.owner, actions=(*READS, "learn.run"))
        story = Story(house, tmp, (play.owner, play.analyst))
        story.opened(population="people of masked cells")
        hub = key_of(house.hub).public
        house.close()
        place = Prepared(folder=tmp / "hub", tokens=(play.analyst.token,), pays_for=0, database=server.url)
        with hall(place, tmp) as started:
            ports = [free_port(), free_port()]
            hubs = [started.hub(port) for port in ports]
            addresses = [f"http://127.0.0.1:{port}" for port in ports]
            people = {"owner": play.owner.token, "analyst": play.analyst.token}
            yield started, Shared(place, hubs, addresses, **people, holder=story.holder, hub=hub)
    finally:
        postgres.stop(server.folder, server.pid)


@pytest.fixture
def shared(processes: tuple[Hall, Shared]) -> Shared:
    return processes[1]


@pytest.mark.postgres
def test_sites_call_one_process_and_the_other_is_asked(shared: Shared) -> None:
    with running([SiteAgent(each) for each in shared.sites], shared.addresses[1]):
        assert near(shared.asked(0), [60, 60])
        headers = {"Authorization": f"Bearer {shared.owner}"}
        listed = [httpx.get(f"{each}/api/v1/joint-datasets", headers=headers, trust_env=False) for each in shared.addresses]
    present = [[each["present"] for each in found.json()["items"][0]["sites"]] for found in listed]
    assert all(each.startswith("it last called at") for seen in present for each in seen), present
    assert once([Fraction(0)] * 3, shared.spent)
    with shared.place.opened() as hub, hub.database.reading() as db:
        assert not db.scalars(select(SiteMessage.id).where(SiteMessage.parties != "")).all()


@pytest.mark.postgres
def test_calls_come_to_both_in_turns_and_both_are_asked(shared: Shared) -> None:
    before = shared.spent
    with running(shared.in_turns, shared.addresses[0]):
        for number in (0, 1):
            found = shared.asked(number, f"SELECT COUNT(*) AS n FROM hospitals WHERE age < {80 + number}")
            assert near(found, [120])
    assert once(before, shared.spent, 2)


@pytest.mark.postgres
def test_a_key_holder_calls_both_in_turns_and_both_ask_it(shared: Shared) -> None:
    counted = "SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex"
    first, second = shared.addresses
    with running(shared.in_turns, first):
        for charges, address, sql in ((1, first, MASKED), (2, second, counted), (2, first, counted)):
            with cl.connect(address, token=shared.analyst) as session:
                found = session.sql(sql, spend=MUCH + charges, purpose="quality report").to_pydict()
            assert found == {"sex": ["F", "M"], "n": [5, 5]} | ({"s": [20, 25]} if sql == MASKED else {})
            assert len(shared.holder.ledger.charges("patients")) == charges, "what one process has bought is another's, too"
    with shared.place.opened() as hub, hub.database.reading() as db:
        assert not db.scalars(select(SiteMessage.id).where(SiteMessage.parties != "")).all()


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.postgres
def test_a_job_about_sites_runs_in_a_process_that_none_calls(shared: Shared, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("attacked", "lost"):  # what its card would say
        monkeypatch.setattr(fitting, name, lambda *_: None)
    order = {"table": "hospitals", "method": "LogisticRegression", "features": ["age"], "target": "sex", "spend": "20"}
    headers = {"Authorization": f"Bearer {shared.analyst}"}
    with running(shared.in_turns, shared.addresses[0]), httpx.Client(headers=headers, trust_env=False, timeout=120) as client:
        answer = client.post(f"{shared.addresses[0]}/api/v1/models", json={**order, "purpose": "quality report"})
        assert answer.status_code == 202, answer.text
        with Hub(shared.place.settings, services.all_services()) as worker:
            assert Workers(worker, 0).run_one()
        told = client.get(f"{shared.addresses[1]}/api/v1/jobs/{answer.json()['job']}").json()
        assert told["state"] == "done", told


@pytest.mark.postgres
def test_a_process_that_is_killed_while_it_asks_leaves_nothing_that_hurts(shared: Shared) -> None:
    """What it left is answered or over, and who asks again at another process is answered."""
    before = shared.spent
    question = "SELECT COUNT(*) AS n FROM hospitals WHERE age < 70"
    failed: list[httpx.TransportError] = []

    def ask() -> None:
        body = {"sql": question, "spend": SPEND, "purpose": "quality report"}
        headers = {"Authorization": f"Bearer {shared.analyst}"}
        try:
            httpx.post(f"{shared.addresses[0]}/api/v1/questions", json=body, headers=headers, trust_env=False, timeout=120)
        except httpx.TransportError as error:
            failed.append(error)

    asks = threading.Thread(target=ask)
    asks.start()
    with shared.place.opened() as hub:
        left = 0
        while left < len(NAMES):  # no site calls: all of them wait there
            with hub.database.reading() as db:
                left = len(db.scalars(select(SiteMessage.id).where(SiteMessage.parties != "")).all())
        shared.hubs[0].kill()
        asks.join()
        assert failed
        with running([SiteAgent(each) for each in shared.sites], shared.addresses[1]):
            assert near(shared.asked(1, question), [120])
            with hub.database.reading() as db:
                left_over = db.scalars(select(SiteMessage).where(SiteMessage.parties != ""))
                assert all(row.answer is not None or row.ends < time.time() for row in left_over)
    assert once(before, shared.spent)


def letter(text: bytes = b"a canary", name: str = "north", **other: Any) -> Letter:
    return Letter(name=name, message=text, round="r", most=99, **{"ends": time.time() + 60, **other})


@pytest.fixture
def worker(house: House) -> Iterator[Hub]:
    """Another process of the house's hub: one that nobody calls."""
    with Hub(house.settings, services.all_services()) as hub:
        yield hub


def test_what_a_worker_leaves_is_found_and_answered_and_lies_nowhere_in_plain(house: House, worker: Hub) -> None:
    here, there, others = SharedPost(house.hub, "roster"), SharedPost(worker, "roster"), SharedPost(worker, "another")
    asked = letter()
    left, again = there.leave([asked, letter(b"x", "south")]), there.leave([letter()])
    others.leave([letter(name="west")])
    assert here.waiting()[0] == ("north", asked.digest, asked.since)
    assert {name for name, _, _ in here.waiting()} == {"north", "south"}
    found = here.letter("north", asked.digest)
    assert found is not None
    assert (found.message, found.round, found.most, found.ends) == (asked.message, "r", 99, asked.ends)
    assert here.letter("south", asked.digest) is None
    here.answer("north", asked.digest, b"its canary")
    here.answer("north", asked.digest, b"too late")
    assert there.answers([*left.values(), *again.values()]) == [("north", b"its canary")] * 2
    assert here.letter("north", asked.digest) is None
    stored = b"".join(Path(each).read_bytes() for each in house.settings.data.glob("hub.db*"))
    assert b"canary" not in stored
    there.remove([*left.values(), *again.values()])
    assert here.waiting() == []
    assert [name for name, _, _ in others.waiting()] == ["west"]


def test_with_files_the_process_that_serves_leaves_nothing(house: House) -> None:
    post = SharedPost(house.hub, "roster")
    assert post.leave([letter()]) == {}
    assert post.waiting() == []


def test_what_a_step_ended_with_is_found_by_another_process_and_swept_days_later(
    house: House, worker: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there, another = KeptRound(house.hub, "r"), KeptRound(worker, "r"), KeptRound(house.hub, "s")
    here.put("begin", b"a canary", once=True)
    there.put("begin", b"another canary", once=True)  # the first stands
    assert there.get("begin") == here.get("begin") == b"a canary"
    assert another.get("begin") is here.get("all keys") is None
    assert SharedPost(worker, "roster").waiting() == []
    stored = b"".join(Path(each).read_bytes() for each in house.settings.data.glob("hub.db*"))
    assert b"canary" not in stored
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 8 * 86_400)
    another.put("begin", b"much later")
    assert here.get("begin") is None


def test_what_is_over_is_swept_when_the_next_message_is_left(house: House, worker: Hub) -> None:
    there = SharedPost(worker, "roster")
    over = letter(ends=time.time() - 1)
    there.leave([over])
    assert there.waiting() == []
    assert there.letter("north", over.digest) is None
    there.leave([letter(b"another")])
    with house.hub.database.reading() as db:
        assert len(db.scalars(select(SiteMessage.id)).all()) == 1


def test_the_latest_call_to_any_process_counts(house: House, worker: Hub) -> None:
    here, there = SharedPost(house.hub, "roster"), SharedPost(worker, "roster")
    for post, seen, problem in ((here, 5.0, ""), (there, 9.0, "it sent garbage"), (here, 7.0, "")):
        post.tell("north", Presence(seen=seen, problem=problem))
    assert here.told() == there.told() == {"north": Presence(seen=9.0, problem="it sent garbage")}
    assert SharedPost(worker, "another").told() == {}
    now = time.time()
    for seen in (now + 7200, now):  # told before and after a clock was set back
        there.tell("north", Presence(seen=seen))
    assert here.told() == {"north": Presence(seen=now)}


def test_calls_of_long_ago_are_forgotten(house: House, worker: Hub) -> None:
    post, year = SharedPost(worker, "roster"), 366 * 86_400.0
    for name, seen in (("north", 5.0), ("south", year), ("west", 1.5 * year)):
        post.tell(name, Presence(seen=seen))
    assert set(post.told()) == {"south", "west"}
