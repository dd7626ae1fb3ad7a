"""What a process remembers of its own reservations, and the lines that it writes without a dictionary, are what the tables and
`canonical_json` would have said."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloister.crypto import canonical_json
from cloister.errors import LedgerError
from cloister.ledger import Ledger, book
from cloister.ledger.chain import reserved_text, settled_text
from cloister.ledger.operations import SettledMeanwhile
from cloister.privacy import PureDP

TENTH = PureDP("0.1")
NAMES = st.text(min_size=1, max_size=20)


@given(
    at=st.integers(0, 2**60), costs=st.dictionaries(NAMES, st.lists(NAMES, max_size=3)), purpose=st.text(), what=NAMES, who=NAMES
)
def test_a_reservations_text_is_canonical(at, costs, purpose, what, who):
    ordered = dict(sorted(costs.items()))
    text = reserved_text(at=at, costs=ordered, purpose=purpose, what=what, who=who)
    assert text == canonical_json({"kind": "reserved", "at": at, "costs": costs, "purpose": purpose, "what": what, "who": who})
    assert canonical_json(json.loads(text)) == text


@given(
    at=st.integers(0, 2**60), attempt=st.integers(1, 2), number=st.integers(1, 2**60), digest=st.binary(min_size=32, max_size=32)
)
def test_a_settlements_text_is_canonical(at, attempt, number, digest):
    text = settled_text(at=at, attempt=attempt, number=number, release=digest.hex())
    assert text == canonical_json({"kind": "settled", "at": at, "id": number, "attempt": attempt, "release": digest.hex()})


def reserve(ledger, what="plan"):
    return ledger.reserve({"people": TENTH}, who="ada", what=what)


def live(ledger):
    return ledger._opened.book.live


@pytest.fixture
def two(durable):
    """The same ledger, opened twice: each is to the other what another process is."""
    with durable.open() as here, durable.open() as there:
        here.open("people", PureDP(1), who="owner")
        yield here, there


class TestAnotherProcess:
    def test_settles_what_was_reserved_here(self, two):
        here, there = two
        reservation = reserve(here)
        assert live(here)
        there.settle(reservation, b"theirs")
        with pytest.raises(LedgerError, match="is settled"):
            here.settle(reservation, b"ours")
        assert [found.release for found in here.find("plan", ["people"])] == [b"theirs"]

    def test_settles_what_would_be_charged_here(self, two):
        here, there = two
        there.settle(reserve(there), b"theirs")
        with pytest.raises(SettledMeanwhile, match="another attempt at the same query was first"):
            here.reserve({"people": TENTH}, who="ada", what="plan", seen=())
        (found,) = here.find("plan", ["people"])
        assert here.waiting({"people": TENTH}, who="ada", what="plan") is None
        for others in ({"who": "bob"}, {"seen": {found.id}}, {"seen": None}, {"costs": {"people": PureDP("0.2")}}):
            how = {"costs": {"people": TENTH}, "who": "ada", "seen": (), **others}
            here.void(here.reserve(**how, what="plan"))

    def test_voids_what_was_reserved_here(self, two):
        here, there = two
        reservation = reserve(here)
        there.void(reservation)
        with pytest.raises(LedgerError, match="is voided"):
            here.settle(reservation, b"ours")
        assert here.spent("people") == PureDP(0)

    def test_takes_over_what_was_reserved_here(self, two):
        here, there = two
        reservation = reserve(here)
        assert reserve(there).attempt == 2
        with pytest.raises(LedgerError, match="was not voided"):
            here.void(reservation)
        here.settle(reservation, b"ours")
        assert here.verify() is True


def test_settling_voiding_and_taking_over_forget(ledger):
    ledger.open("people", PureDP(1), who="owner")
    first, second, third = (reserve(ledger, what) for what in ("one", "two", "three"))
    assert set(live(ledger)) == {first.id, second.id, third.id}
    ledger.settle(first, b"answer")
    ledger.void(second)
    assert reserve(ledger, "three").attempt == 2
    assert not live(ledger)
    for reservation, act in ((first, lambda it: ledger.settle(it, b"again")), (second, ledger.void), (third, ledger.void)):
        with pytest.raises(LedgerError):
            act(reservation)
    assert ledger.verify() is True


def test_a_batch_that_is_undone_is_forgotten(durable, monkeypatch):
    with durable.open() as ledger:
        ledger.open("people", PureDP(1), who="owner")
        with monkeypatch.context() as broken:
            broken.setattr(type(ledger._store), "commit", lambda store: 1 / 0)
            with contextlib.suppress(ZeroDivisionError):
                reserve(ledger)
        assert not live(ledger)
        assert ledger.spent("people") == PureDP(0)


def test_a_reservation_of_another_ledger_is_unknown(ledger):
    ledger.open("people", PureDP(1), who="owner")
    here = reserve(ledger, "here")
    with Ledger() as other:
        other.open("people", PureDP(1), who="owner")
        there = reserve(other, "there")
    assert here.id == there.id
    with pytest.raises(LedgerError, match="unknown"):
        ledger.settle(there, b"answer")


def test_what_nobody_settles_is_not_remembered_without_end(monkeypatch):
    monkeypatch.setattr(book, "_MOST_LIVE", 3)
    with Ledger() as ledger:
        ledger.open("people", PureDP(10), who="owner")
        reservations = [reserve(ledger, f"plan-{number}") for number in range(10)]
        assert len(live(ledger)) <= 3
        for reservation in reservations:
            ledger.settle(reservation, b"answer")
        assert ledger.verify() is True
