"""One answer to one message, whatever comes at once and whatever is started twice."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import cloister as cl
from cloister.crypto import SigningKey
from cloister.ledger import Ledger
from cloister.together import HubRound, Journal, MemoryJournal, Roster, RoundRefused, SignedRoster, Site
from cloister.together.journal import READING
from cloister.together.messages import pack, unpack
from cloister.together.rounds import HUB
from tests.together.parties import HUB_KEY, Parties

NUMBERS = {name: [place, 10 * place] for place, name in enumerate("abcde", 1)}
AT_ONCE = 4


class SlowMemory(MemoryJournal):
    """Between a look and what follows from it there is time for others."""

    def of(self, name: str) -> MemoryJournal:
        found = super().of(name)
        found.__class__ = SlowMemory
        return found

    def get(self, name: str) -> bytes | None:
        found = super().get(name)
        time.sleep(0.01)
        return found


class SlowDisk(Journal):
    """The same on disk."""

    def get(self, name: str) -> bytes | None:
        found = super().get(name)
        time.sleep(0.01)
        return found


def slow(kind: type[Journal], folder: Path) -> Journal:
    return SlowMemory() if kind is SlowMemory else SlowDisk(folder)


def at_once(*work: Any) -> list[Any]:
    """What each gives, or the words of its refusal, when all begin at the same time."""
    found: list[Any] = []
    together = threading.Barrier(len(work))

    def one(each: Any) -> None:
        together.wait()
        try:
            found.append(each())
        except RoundRefused as error:
            found.append(str(error))

    threads = [threading.Thread(target=one, args=(each,)) for each in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


@pytest.mark.parametrize("kind", [SlowMemory, SlowDisk])
def test_one_message_at_once_gets_one_answer(kind: type[Journal], tmp_path: Path) -> None:
    """Each thread has an object of its own, as processes have: rows are read once, and all get the same bytes."""
    parties = Parties(NUMBERS, missing=1, journals={name: slow(kind, tmp_path / name) for name in NUMBERS})
    going = True
    while going:
        for name, message in parties.hub.messages.items():
            if name == "a":
                sites = [parties.site("a") for _ in range(AT_ONCE)]
                answers = at_once(*(partial(site.answer, message) for site in sites))
                assert len(set(answers)) == 1
                parties.hub.take(answers[0])
            else:
                parties.hub.take(parties.ask(name, message))
        going = parties.hub.advance()
    assert sorted(parties.read) == list("abcde")
    assert parties.hub.total().tolist() == [15, 150]


@pytest.mark.parametrize("kind", [SlowMemory, SlowDisk])
def test_of_two_sets_of_survivors_at_once_one_is_signed(kind: type[Journal], tmp_path: Path) -> None:
    parties = Parties(NUMBERS, missing=1, journals={name: slow(kind, tmp_path / name) for name in NUMBERS})
    for _ in range(3):
        parties.step()
    messages = [pack("survivors", parties.round.id, HUB, HUB_KEY, survivors=list(each)) for each in ("abcde", "abcd")]
    sites = [parties.site("a") for _ in messages]
    found = at_once(*(partial(site.answer, each) for site, each in zip(sites, messages, strict=True)))
    signed = [each for each in found if isinstance(each, bytes)]
    assert len(signed) == 1
    assert any("another message 'survivors' was answered before" in each for each in found if isinstance(each, str))


class Lockless(Journal):
    """On a disk whose locks don't hold, and where a look comes too early."""

    blind = ""

    @contextmanager
    def locked(self) -> Iterator[None]:
        yield

    def get(self, name: str) -> bytes | None:
        return None if name == Lockless.blind else super().get(name)


@pytest.mark.parametrize(("kind", "blind"), [("all shares", READING), ("all shares", "all shares"), ("survivors", "survivors")])
def test_where_locks_do_not_hold_the_second_is_refused(
    kind: str, blind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What counts is linked to its name, which fails where the name is taken."""
    parties = Parties(NUMBERS, missing=1, journals={name: Lockless(tmp_path / name) for name in NUMBERS})
    while parties.hub.step != kind:
        parties.step()
    message = parties.hub.messages["a"]
    if blind == READING:
        parties.sites["a"]._journal.put(READING, b"")
    else:
        parties.sites["a"].answer(message)
    before = list(parties.read)
    monkeypatch.setattr(Lockless, "blind", blind)
    with pytest.raises(RoundRefused):
        parties.site("a").answer(message)
    assert parties.read == before


def test_a_text_is_kept_once(tmp_path: Path) -> None:
    for journal in (MemoryJournal(), Journal(tmp_path).of("round")):
        journal.put("text", b"1", once=True)
        with pytest.raises(FileExistsError):
            journal.put("text", b"2", once=True)
        assert journal.get("text") == b"1"
        journal.put("text", b"3")
        assert journal.get("text") == b"3"
    assert [path.name for path in (tmp_path / "round").iterdir()] == ["text"]


def test_drafts_of_a_process_that_was_stopped_are_wiped(tmp_path: Path) -> None:
    journal = Journal(tmp_path).of("round")
    (tmp_path / "round" / "tmpabc.draft").write_bytes(b"a secret")
    with journal.locked():
        assert [path.name for path in (tmp_path / "round").iterdir()] == ["lock"]


def test_a_round_that_memory_forgot_is_not_begun_again() -> None:
    parties = Parties(NUMBERS, missing=1)
    message = parties.hub.messages["a"]
    assert parties.journals is not None
    parties.ask("a", message)
    for place in range(300):
        parties.journals["a"].of(f"round {place}")
    with pytest.raises(RoundRefused, match="read its rows in this round before"):
        parties.site("a").answer(message)


def test_memory_keeps_a_round_that_goes_on() -> None:
    """Sixty-four rounds that ended are forgotten before one that did not."""
    parties = Parties(NUMBERS, missing=1)
    message = parties.hub.messages["a"]
    assert parties.journals is not None
    first = parties.ask("a", message)
    for place in range(100):
        parties.journals["a"].of(f"round {place}").put("signatures", b"answered")
    assert parties.site("a").answer(message) == first
    assert parties.journals["a"].of("round 1").get("signatures") is None
    assert parties.journals["a"].of("round 99").get("signatures") == b"answered"


def test_after_a_restart_no_roster_is_joined_that_another_took_the_place_of(tmp_path: Path) -> None:
    keys, hub = {name: SigningKey(name.encode() * 32) for name in "abcd"}, HUB_KEY
    table = cl.PrivateTable({"age": [39]}, columns={"age": cl.Integer(17, 90)})

    def signed(names: str, **other: Any) -> SignedRoster:
        roster = Roster(sites={name: keys[name].public for name in names}, hub=hub.public, missing=1, **other)
        return SignedRoster.by(keys, roster)

    def started() -> Site:
        return Site("a", table, budget=cl.PureDP(1), key=keys["a"], journal=Journal(tmp_path))

    first, second, rival = signed("abcd"), signed("abc", epoch=2), signed("abd", epoch=2)
    site = started()
    site.join(first)
    site.join(second)
    for refused in (first, rival):
        site = started()
        with pytest.raises(cl.InvalidDeclaration, match="joined number 2 of this hub before"):
            site.join(refused)
        with pytest.raises(cl.InvalidDeclaration, match="did not join"):
            site.check(refused.roster)
    site.join(second)
    site.check(second.roster)


def test_after_a_restart_the_next_roster_has_to_follow_on_the_last(tmp_path: Path) -> None:
    """The journal keeps the roster itself: a key that changed without its old key is refused after a restart, too."""
    keys, fresh = {name: SigningKey(name.encode() * 32) for name in "abcd"}, SigningKey(b"new" + bytes(29))
    table = cl.PrivateTable({"age": [39]}, columns={"age": cl.Integer(17, 90)})
    public = {name: key.public for name, key in keys.items()}
    first = SignedRoster.by(keys, Roster(sites=public, hub=HUB_KEY.public, missing=1))
    second = Roster(sites={**public, "b": fresh.public}, hub=HUB_KEY.public, missing=1, epoch=2)
    by = {name: key.sign(second.text) for name, key in {**keys, "b": fresh}.items()}

    def started() -> Site:
        return Site("a", table, budget=cl.PureDP(1), key=keys["a"], journal=Journal(tmp_path))

    started().join(first)
    with pytest.raises(cl.InvalidDeclaration, match="old key did not sign"):
        started().join(SignedRoster(second, by))
    rotated = SignedRoster(second, by, {"b": keys["b"].sign(second.text)})
    started().join(rotated)
    again = started()
    assert again.joined() == [rotated]
    again.check(second)


def test_a_journal_that_has_a_digest_alone_is_read(tmp_path: Path) -> None:
    keys = {name: SigningKey(name.encode() * 32) for name in "abc"}
    table = cl.PrivateTable({"age": [39]}, columns={"age": cl.Integer(17, 90)})
    first, second = (
        SignedRoster.by(
            keys, Roster(sites={name: key.public for name, key in keys.items()}, hub=HUB_KEY.public, missing=0, epoch=epoch)
        )
        for epoch in (1, 2)
    )
    Journal(tmp_path).of("rosters").put(HUB_KEY.public.hex(), f"2 {second.roster.digest}".encode())
    site = Site("a", table, budget=cl.PureDP(1), key=keys["a"], journal=Journal(tmp_path))
    assert site.joined() == []
    with pytest.raises(cl.InvalidDeclaration, match="joined number 2 of this hub before"):
        site.join(first)
    site.join(second)
    assert site.joined() == [second]


def test_a_site_that_outlasts_its_process_has_a_journal(tmp_path: Path) -> None:
    table = cl.PrivateTable({"age": [39]}, columns={"age": cl.Integer(17, 90)})
    with Ledger(tmp_path / "site.db") as ledger:
        for lasting in ({"ledger": ledger}, {"key": SigningKey(bytes(32))}):
            with pytest.raises(cl.InvalidDeclaration, match="has no journal"):
                Site("north", table, budget=cl.PureDP(1), **lasting)  # type: ignore[arg-type]
            assert Site("north", table, budget=cl.PureDP(1), journal=Journal(tmp_path / "rounds"), **lasting)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="journal"):
        Parties(NUMBERS).sites["a"].__class__("a", HUB_KEY, Parties(NUMBERS).round, lambda: [1])  # type: ignore[call-arg]


def test_a_site_that_was_started_again_with_its_journal_gives_the_same_bytes(tmp_path: Path) -> None:
    parties = Parties(NUMBERS, missing=1, journals={name: Journal(tmp_path / name) for name in NUMBERS})
    for _ in range(2):
        parties.step()
    message = parties.hub.messages["a"]
    first = parties.ask("a", message)
    parties.journals = {name: Journal(tmp_path / name) for name in NUMBERS}
    assert parties.site("a").answer(message) == first
    assert parties.read == ["a"]
    again = HubRound(HUB_KEY, parties.round)
    assert unpack(again.messages["a"], "begin", parties.round.id, {HUB: HUB_KEY.public}).body == parties.plan
