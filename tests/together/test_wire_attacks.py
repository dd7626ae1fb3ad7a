"""Attacks on the wire: a hub, a site, a data user or a stranger that lies; a disk that is full, and folders from a backup."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import os
import resource
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner

import cloister as cl
from cloister.cli import cli
from cloister.errors import LedgerUnavailable
from cloister.ledger import Ledger
from cloister.noise import DiscreteLaplace
from cloister.tables import Aggregate, Aggregation, Column, Compare, Expression, Literal
from cloister.tables.engines.noised import Cells, Combination, Integers, NoisedRequest
from cloister.together import Asked, HubRound, Journal, MemoryJournal, SiteAgent, reading
from cloister.together.agent import _said
from cloister.together.coordinator import CALLS, refusal, refused
from cloister.together.messages import opened, pack
from cloister.together.owner import AuditLog, OwnersPolicy, Rule, words_of
from cloister.together.plan import Plan, round_about
from cloister.together.reading import request_from
from tests.together.parties import HUB_KEY
from tests.together.test_wire import call, from_hub, joined
from tests.together.wired import COLUMNS, coordinator_of, folder_of, key_of, roster_of, running, signed_by, site_of


def request(name: str = "people", where: Expression | None = None, scale: int = 10) -> NoisedRequest:
    rows = Integers("rows", Combination((("rows", 1),)), DiscreteLaplace(scale=scale))
    return NoisedRequest(table=name, aggregations=(Aggregation(None, where=where),), integers=(rows,), cells=Cells())


def asks(found: NoisedRequest, *, cost: str = "0.1", **other: Any) -> Asked:
    return Asked(table="a", cost=cl.PureDP(cost), request=found, **{"purpose": "a report", "who": "ada", **other})


def an_asking_owner() -> OwnersPolicy:
    return OwnersPolicy([Rule(answer="ask me")], journal=MemoryJournal())


# ── a hub that gets a yes for something else ─────────────────────────────────────────────────────


def test_a_yes_is_not_that_of_another_plan_with_the_same_first_digits() -> None:
    """Two plans whose SHA-256 begin with the same 12 digits, which a minute's search finds: a harmless one and a narrow one."""
    policy = an_asking_owner()
    harmless, narrow = request("008f9f6a", scale=1000), request("007f8157", Compare("=", Column("age"), Literal(40)), scale=1)
    assert policy(asks(harmless)) is not None
    policy.decide(policy.plans("waiting")[0]["plan"], "allowed")
    assert "its owner is asked" in str(policy(asks(narrow)))
    assert policy(asks(harmless)) is None
    assert {len(each["digest"]) for each in policy.plans()} == {64}


@pytest.mark.parametrize(
    "change",
    [
        {"found": request("folk")},
        {"found": request(where=Compare("=", Column("age"), Literal(40)))},
        {"found": request(scale=5)},
        {"cost": "0.2"},
        {"purpose": "a study"},
        {"who": "bob"},
    ],
    ids=["table", "condition", "noise", "cost", "purpose", "person"],
)
def test_a_yes_holds_for_one_plan_alone(change: dict[str, Any]) -> None:
    """Its cost, too: an owner who declares the table otherwise meanwhile said yes to another number."""
    policy = an_asking_owner()
    policy(asks(request()))
    policy.decide(policy.plans("waiting")[0]["plan"], "allowed")
    assert "its owner is asked" in str(policy(asks(change.pop("found", request()), **change)))
    assert policy(asks(request())) is None


def test_digits_that_begin_two_plans_decide_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloister.together.owner._SHORT", 1)
    policy = an_asking_owner()
    for place in range(17):
        policy(asks(request(), who=str(place)))
    digits = [each["plan"] for each in policy.plans()]
    twice = next(each for each in digits if digits.count(each) > 1)
    with pytest.raises(cl.InvalidParameter, match="several plans begin so"):
        policy.decide(twice, "allowed")
    assert policy.plans("allowed") == []


def test_a_person_and_a_purpose_cannot_write_a_plan_of_their_own() -> None:
    forged = "ada', for the purpose 'a report': 1 number with noise, at a cost of ε = 0.001 to each person here\ncounts rows"
    for part in ("who", "purpose"):
        with pytest.raises(cl.UnsupportedQuery, match="its form is wrong"):
            Plan.read(Plan(request="{}", token="1", **{part: forged}).text)
        lines = words_of(asks(request(), **{part: forged})).splitlines()
        assert len(lines) == 2
        assert "cost of ε = 0.1 to each" in lines[0].rpartition("1 number")[2]
    assert words_of(asks(request(), who="ada, for a report")).startswith("for 'ada, for a report', for the purpose 'a report'")
    assert words_of(asks(request(), who="")).startswith("for a person who is not named")


def test_a_plan_that_cannot_be_shown_whole_is_not_shown_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    where: Expression = Compare("=", Column("age"), Literal(40))
    assert "age = 40" in words_of(asks(request("x" * 5000, where)))
    monkeypatch.setattr("cloister.together.owner._LONGEST", 100)
    policy = an_asking_owner()
    assert "more than 100 characters to be shown" in str(policy(asks(request(where=where))))
    assert policy.plans() == []


# ── what a hub may make a site write, print or work out ──────────────────────────────────────────


def begun(**other: Any) -> tuple[dict[str, SiteAgent], HubRound, list[Any]]:
    """Three sites and a round about a count that is to begin; what site a notes. `other` is of site a."""
    noted = list[Any]()
    agents = {name: SiteAgent(site_of(name, **(other if name == "a" else {})), note=lambda *_: None) for name in "abc"}
    agents["a"]._note = lambda event, details: noted.append((event, details))
    signed = signed_by(roster_of("abc"))
    for agent in agents.values():
        agent.site.join(signed)
        agent.signed = signed
    plan = Plan(request=request().canonical(), token="1")
    return agents, HubRound(HUB_KEY, round_about(request_from(plan.request, COLUMNS), plan, signed, COLUMNS)), noted


def stepped(agents: dict[str, SiteAgent], hub: HubRound) -> None:
    for name, message in hub.messages.items():
        hub.take(agents[name].answer(message))
    hub.advance()


def test_a_charge_is_noted_once_however_often_its_message_comes() -> None:
    agents, hub, noted = begun()
    found = {agents["a"].answer(hub.messages["a"]) for _ in range(3)}
    assert len(found) == 1
    assert [event for event, _ in noted] == ["charged"]
    assert len(agents["a"].site.ledger.charges("a")) == 1


def test_the_log_holds_no_words_of_a_stranger() -> None:
    """The round of a message that nobody signed may be any text."""
    agent, noted = joined(), list[dict[str, str]]()
    agent._note = lambda event, details: noted.append(details)
    agent.answer(pack("begin", "\x1b[2J\nall is well " * 1000, "the hub", key_of("z")))
    assert len(noted[0]["about"]) < 1000
    assert all(cl.printable.is_printable(each) for each in noted[0].values())


def test_what_a_hub_says_of_a_refused_call_is_shown_on_one_line() -> None:
    assert "\x1b" not in _said(400, json.dumps({"what": "\x1b[2J\nno", "why": "x", "instead": "y"}).encode())
    assert len(_said(400, json.dumps({"what": "x" * 100_000, "why": "x", "instead": "y"}).encode())) < 5000
    assert "(500) is not a hub" in _said(500, b"[" * 100_000)


def test_an_answer_that_is_packed_is_not_unpacked() -> None:
    """32 kB that unpack to 32 MB: the limit on what is read would be looked at too late."""
    packed, calls, got = gzip.compress(bytes(1 << 25)), list[dict[bytes, bytes]](), list[bytes]()

    async def packing(scope: Any, receive: Any, send: Any) -> None:
        calls.append(dict(scope["headers"]))
        headers = [(b"content-encoding", b"gzip"), (b"content-length", str(len(packed)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": packed})

    agent = SiteAgent(site_of("a"))
    called = agent._called

    def kept(*given: Any) -> tuple[int, bytes]:
        status, found = called(*given)
        got.append(found)
        return status, found

    agent._called = kept  # type: ignore[method-assign]
    with coordinator_of("abc").serving(app=packing) as hub, running([agent], hub):
        while not got:
            pass
    assert got[0] == packed
    assert calls[0][b"accept-encoding"] == b"identity"


@pytest.mark.parametrize(
    "factors", [[["age", int("9" * 4000)]] * 600, [["age", 0]] * 200_000], ids=["long numbers", "many columns"]
)
def test_a_product_that_takes_a_minute_to_bound_is_refused_at_once(factors: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused by its length: no product was bounded, and no factor read."""
    told = json.loads(request().canonical())
    told["aggregations"][0]["aggregates"] = [["rows", "sum", factors]]
    work: list[Any] = []
    monkeypatch.setattr(Aggregate, "largest", lambda *_: work.append("bounded"))
    monkeypatch.setattr(reading, "whole_in", work.append)
    monkeypatch.setattr(reading, "text_in", work.append)
    with pytest.raises(cl.UnsupportedQuery, match="A request was not read: a product of more than 8 columns"):
        request_from(json.dumps(told, sort_keys=True, separators=(",", ":")), COLUMNS)
    assert work == []


# ── folders from a backup, a disk that is full ───────────────────────────────────────────────────


def test_a_journal_from_a_backup_gives_no_second_draw_under_one_charge(tmp_path: Path) -> None:
    """The owner brings back a copy of `rounds` from before the rows were read, and the hub sends its message again."""
    with Ledger(tmp_path / "ledger.db") as ledger:
        agents, hub, _ = begun(journal=Journal(tmp_path / "rounds"), ledger=ledger)
        stepped(agents, hub)
        stepped(agents, hub)
        shutil.copytree(tmp_path / "rounds", tmp_path / "backup")
        message = hub.messages["a"]
        assert opened(agents["a"].answer(message)).kind == "masked"
        other = SiteAgent(site_of("a", journal=Journal(tmp_path / "backup"), ledger=ledger))
        found = opened(other.answer(message))
        assert (found.kind, found.body) == ("refused", b"")
        assert "rows read in this round before" in found.fields["why"]
        assert [each.state for each in ledger.charges("a")] == ["settled"]


def test_a_ledger_from_a_backup_lets_no_row_be_read_that_it_has_no_charge_for(tmp_path: Path) -> None:
    agents, hub, _ = begun(journal=Journal(tmp_path / "rounds"))
    stepped(agents, hub)
    stepped(agents, hub)
    with Ledger(tmp_path / "older.db") as ledger:
        other = SiteAgent(site_of("a", journal=Journal(tmp_path / "rounds"), ledger=ledger))
        found = opened(other.answer(hub.messages["a"]))
        assert found.kind == "refused"
        assert "no charge for this round" in found.fields["why"]


def test_a_site_that_was_stopped_between_its_charge_and_its_rows_goes_on(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.db") as ledger:
        agents, hub, _ = begun(journal=Journal(tmp_path / "rounds"), ledger=ledger)
        stepped(agents, hub)
        agents["a"] = SiteAgent(site_of("a", journal=Journal(tmp_path / "rounds"), ledger=ledger))
        while hub.messages:
            stepped(agents, hub)
        assert hub.survivors == ["a", "b", "c"]
        assert [each.state for each in ledger.charges("a")] == ["settled"]


def test_a_site_that_was_stopped_right_after_its_charge_pays_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed before its journal has the secrets of the round, with a budget for one charge; then the hub asks again."""

    def killed(self: Journal, name: str, text: bytes, *, once: bool = False) -> None:
        assert name != "secrets"
        put(self, name, text, once=once)

    put = Journal.put
    with Ledger(tmp_path / "ledger.db") as ledger:
        one = {"journal": Journal(tmp_path / "rounds"), "ledger": ledger, "budget": cl.PureDP("0.1")}
        agents, hub, _ = begun(**one)
        with monkeypatch.context() as dying:
            dying.setattr(Journal, "put", killed)
            assert opened(agents["a"].answer(hub.messages["a"])).kind == "refused"
        assert [each.state for each in ledger.charges("a")] == ["reserved"]
        agents["a"] = SiteAgent(site_of("a", **one))
        while hub.messages:
            stepped(agents, hub)
        assert [(each.state, each.cost) for each in ledger.charges("a")] == [("settled", cl.PureDP("0.1"))]


@pytest.mark.parametrize("honest", [True, False])
def test_a_site_that_comes_back_with_other_bounds_drops_out_of_an_open_round(tmp_path: Path, honest: bool) -> None:
    """A hub says what the site agreed to; where it does not, no row is read for less than it costs now."""
    total = Integers("sum", Combination((("sum", 1),)), DiscreteLaplace(scale=900))
    aggregation = Aggregation(None, aggregates=(Aggregate("sum", "sum", (("age", 0),)),))
    text = NoisedRequest(table="people", aggregations=(aggregation,), integers=(total,), cells=Cells()).canonical()
    with Ledger(tmp_path / "ledger.db") as ledger:
        one = {"journal": Journal(tmp_path / "rounds"), "ledger": ledger}
        agents, _, _ = begun(**one)
        plan, signed = Plan(request=text, token="1"), signed_by(roster_of("abc"))
        told = {name: each.site.declared for name, each in agents.items()} if honest else {}
        hub = HubRound(HUB_KEY, round_about(request_from(text, COLUMNS), plan, signed, COLUMNS), told)
        stepped(agents, hub)
        stepped(agents, hub)
        wide = SiteAgent(site_of("a", columns={**COLUMNS, "age": cl.Integer(0, 10_000)}, **one))
        found = opened(wide.answer(hub.messages["a"]))
        assert found.kind == "refused"
        assert ("declares the table otherwise" if honest else "no charge for this round that is enough") in found.fields["why"]
        assert [each.state for each in ledger.charges("a")] == ["reserved"]


@contextmanager
def room_for(path: Path, more: int) -> Iterator[None]:
    """No file of this process grows beyond so many bytes more than this one has: as a disk that is full after them."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + more, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_disk_that_is_full_leaves_the_log_whole(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit-log.jsonl", bytes(32))
    log.add("joined", {"number": "1"})
    with room_for(log.path, 20), pytest.raises(OSError, match="o"):
        log.add("charged", {"about": "2"})
    log.add("charged", {"about": "3"})
    for each in (log, AuditLog(log.path, bytes(32))):
        assert [entry["event"] for entry in each.entries()] == ["joined", "charged"]
        assert each.broken() is None


def test_a_line_of_the_log_that_is_none_is_named_and_the_site_starts(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit-log.jsonl", bytes(32))
    for number in "123":
        log.add("charged", {"about": number})
    whole = log.path.read_bytes().splitlines(keepends=True)
    for line in (b"garbage\n", b"[]\n", b'{"at":"1","event":"x"}\n', b'{"at":1,"event":"x","seal":"00"}\n', b"\xff\n"):
        log.path.write_bytes(whole[0] + line + whole[2])
        again = AuditLog(log.path, bytes(32))
        assert again.broken() == 2
        assert len(list(again.entries())) == 2


def test_whoever_looks_at_the_log_does_not_change_it(tmp_path: Path) -> None:
    """The last line may be one that the site's process is writing."""
    folder = folder_of(tmp_path, "a")
    log = folder / "audit-log.jsonl"
    found = CliRunner().invoke(cli, ["site", "show", "--data", str(folder)])
    log.write_bytes(b'{"at":')
    found = CliRunner().invoke(cli, ["site", "show", "--data", str(folder)])
    assert (found.exit_code, log.read_bytes()) == (0, b'{"at":')


def test_a_site_whose_disk_is_full_refuses_and_goes_on(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    agents, hub, _ = begun()

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(agents["a"].site.journal, "of", full)
        patched.setattr(agents["a"], "_note", full)
        assert opened(agents["a"].answer(hub.messages["a"])).kind == "refused"
        assert opened(agents["a"].answer(b"garbage")).kind == "refused"
    assert "No space left on device" in caplog.text, "its owner can see why"
    assert opened(agents["a"].answer(hub.messages["a"])).kind == "keys"


def test_what_a_ledger_says_of_its_place_stays_at_the_site(monkeypatch: pytest.MonkeyPatch) -> None:
    agents, hub, noted = begun()

    def gone(*_: Any, **__: Any) -> None:
        raise LedgerUnavailable("Nothing was answered, because /srv/north/ledger.db is gone", why="x", instead="y")

    monkeypatch.setattr(agents["a"].site.ledger, "reserve", gone)
    found = opened(agents["a"].answer(hub.messages["a"]))
    assert found.kind == "refused"
    assert "srv" not in json.dumps(dict(found.fields))
    assert "srv" in noted[0][1]["what"]


def test_the_folder_of_a_round_is_on_the_disk_before_what_is_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed, fsync = list[int](), os.fsync

    def noted(file: int) -> None:
        flushed.append(os.fstat(file).st_ino)
        fsync(file)

    monkeypatch.setattr(os, "fsync", noted)
    journal = Journal(tmp_path).of("r")
    assert tmp_path.stat().st_ino in flushed
    journal.put("keys", b"text")
    assert (tmp_path / "r").stat().st_ino in flushed


# ── strangers and sites at the hub's door ────────────────────────────────────────────────────────


def test_who_has_no_key_changes_nothing_of_what_a_hub_says_of_a_site() -> None:
    coordinator = coordinator_of("abc", wait=0.01)
    with coordinator.serving() as hub:
        call(hub, apart=-86_400)
        problem = str(coordinator.presence["a"])
        assert "its clock was 24.0 hours behind" in problem
        for change in ({"version": "9"}, {"key": key_of("z")}, {"poll": b"x"}):
            assert call(hub, **change).status_code in (401, 426)
        assert str(coordinator.presence["a"]) == problem
        assert call(hub, "b", version="9").status_code == 426
        assert "a call in its name" in str(coordinator.presence["b"])


@pytest.mark.parametrize("at", ["nan", "inf", 1.5, True, None, 10**400, [1]], ids=str)
def test_a_time_that_is_none_is_refused(at: Any) -> None:
    """A call at "nan" would be one for all time: whoever kept it could use it again."""
    coordinator = coordinator_of("abc", wait=0.01)
    with coordinator.serving() as hub:
        fields = {"at": at, "roster": "", "answers": ""}
        found = call(hub, poll=pack("poll", "", "a", key_of("a"), **fields))
    assert found.status_code == 401
    assert str(coordinator.presence["a"]) == "it never called"


def test_a_site_that_calls_too_often_leaves_room_for_the_others() -> None:
    """Of many long polls of one site the last are refused; the others are served, and a poll that ends makes room."""
    coordinator = coordinator_of("abc", wait=60)

    async def calls() -> list[list[int]]:
        transport = httpx.ASGITransport(app=coordinator.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://hub", timeout=60) as client:

            async def called(name: str, roster: str = roster_of("abc").digest) -> int:
                poll = pack("poll", "", name, key_of(name), at=int(time.time()), roster=roster, answers="")
                headers = {"Authorization": "Cloister " + base64.b64encode(poll).decode(), "Cloister-Protocol": "1"}
                return (await client.post(f"/together/{name}", headers=headers)).status_code

            waiting = [asyncio.create_task(called("a")) for _ in range(CALLS)]
            while len(coordinator._boxes["a"].polls) < CALLS:
                await asyncio.sleep(0)
            more = [await asyncio.wait_for(called(name, ""), 10) for name in "aab"]
            coordinator._ends = True
            coordinator._notify(coordinator._boxes.values())
            return [more, list(await asyncio.gather(*waiting)), [await called("a", "")]]

    assert asyncio.run(calls()) == [[429, 429, 200], [204] * CALLS, [200]]
    assert "no room for calls" in _said(503, b"Service Unavailable")


def test_a_site_speaks_for_itself_alone() -> None:
    error = cl.AccessDenied("The site 'b' denied a request", why="x", instead="y")
    told = opened(refused(error, "r", "a", key_of("a")))
    assert str(refusal(told)).startswith("The site 'a' says: The site 'b' denied")
    own = cl.AccessDenied("The site 'a' denied a request", why="x", instead="y")
    assert str(refusal(opened(refused(own, "r", "a", key_of("a"))))).startswith("The site 'a' denied")


def test_two_who_ask_the_same_at_once_are_both_answered() -> None:
    coordinator = coordinator_of("abc", wait=0.01, deadline=240.0)
    message, answers = from_hub("declaration", b"{}"), list[str]()
    about = opened(message).round

    def ask() -> None:
        answers.extend(name for name, _, _ in coordinator.ask({"a": message}, about))

    with coordinator.serving() as hub:
        threads = [threading.Thread(target=ask) for _ in range(2)]
        for thread in threads:
            thread.start()
        while sum(map(len, coordinator._boxes["a"].waiting.values())) < 2:
            time.sleep(0.01)
        from hashlib import sha256

        call(hub, answers=sha256(message).hexdigest(), body=pack("agreed", about, "a", key_of("a")))
        for thread in threads:
            thread.join()
    assert answers == ["a", "a"]
