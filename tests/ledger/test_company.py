"""What several pieces of work in one thread ask for comes to the commit as one, beside threads that come by themselves."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from cloister.errors import BudgetExceeded
from cloister.ledger import Ledger
from cloister.ledger.commit import Entry, GroupCommit
from cloister.ledger.company import CARRIER, OwnThread, at_one_moment, in_company, own_thread
from cloister.privacy import PureDP


class Carries:
    """A carrier of one piece of work, which commits at once whatever it is given."""

    def __init__(self) -> None:
        self.moment: dict[Any, Any] | None = {}
        self.carried: list[Entry[Any]] = []

    def until_done(self, group: GroupCommit[Any], entry: Entry[Any]) -> None:
        """As a company would, for one."""
        self.carried.append(entry)
        self.moment = None
        group.run_together([entry])


def carried(work: Callable[[], Any]) -> tuple[Any, Carries]:
    """What work gives that is carried, in a context of its own."""
    carrier = Carries()

    def inside() -> Any:
        CARRIER.set(carrier)
        return work()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(inside).result(timeout=30), carrier


class Noted:
    """A group whose batches are noted; it can be held while it runs."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.runs, self.may = threading.Event(), threading.Event()
        self.may.set()
        self.group: GroupCommit[int] = GroupCommit(self._run)

    def _run(self, batch: list[Entry[int]]) -> None:
        self.runs.set()
        assert self.may.wait(30)
        self.batches.append([entry.work for entry in batch])
        for entry in batch:
            if entry.work < 0:
                entry.error = ValueError(entry.work)
            entry.result, entry.done = 10 * entry.work, True


def test_what_comes_together_is_one_batch_each_with_its_own_end() -> None:
    noted = Noted()
    entries = [Entry(number) for number in (1, -2, 3)]
    noted.group.run_together(entries)
    assert noted.batches == [[1, -2, 3]]
    assert [entry.done for entry in entries] == [True] * 3
    assert [type(entry.error) for entry in entries] == [type(None), ValueError, type(None)]
    assert noted.group.submit(4) == 40


def test_a_company_waits_for_whoever_leads_and_leads_then() -> None:
    noted = Noted()
    noted.may.clear()
    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(noted.group.submit, 1)
        assert noted.runs.wait(30)
        entries = [Entry(number) for number in (2, 3)]
        together = pool.submit(noted.group.run_together, entries)
        while len(noted.group._waiting) < 2:
            assert not together.done()
        last = pool.submit(noted.group.submit, 4)
        while len(noted.group._waiting) < 3:
            assert not last.done()
        noted.may.set()
        assert (first.result(30), last.result(30)) == (10, 40)
        together.result(30)
    assert [entry.result for entry in entries] == [20, 30]
    assert noted.batches == [[1], [2, 3, 4]]
    assert noted.group.submit(5) == 50  # the lead was handed on, and back


def test_more_than_a_batch_holds_are_several_batches() -> None:
    noted = Noted()
    entries = [Entry(number) for number in range(600)]
    noted.group.run_together(entries)
    assert [entry.result for entry in entries] == [10 * number for number in range(600)]
    assert [len(batch) for batch in noted.batches] == [256, 256, 88]
    assert noted.group.submit(5) == 50


def test_companies_and_threads_at_once_are_all_done_once() -> None:
    noted = Noted()

    def company(base: int) -> list[int]:
        found = []
        for turn in range(20):
            entries = [Entry(base + 100 * turn + place) for place in range(7)]
            noted.group.run_together(entries)
            found += [entry.result // 10 for entry in entries if entry.done]
        return found

    def alone(base: int) -> list[int]:
        return [noted.group.submit(base + turn) // 10 for turn in range(100)]

    with ThreadPoolExecutor(8) as pool:
        works = [pool.submit(company, 10_000 * which) for which in range(1, 5)]
        works += [pool.submit(alone, 10_000 * which) for which in range(5, 9)]
        given = [number for work in works for number in work.result(timeout=60)]
    done = [number for batch in noted.batches for number in batch]
    assert sorted(done) == sorted(given)
    assert len(done) == len(set(done)) == 4 * 140 + 4 * 100


def test_reserve_and_settle_are_carried_and_what_may_hold_a_lock_is_not() -> None:
    ledger = Ledger()

    def work() -> None:
        ledger.open("people", PureDP(1), who="owner")
        reservation = ledger.reserve({"people": PureDP("0.6")}, who="ada", what="plan")
        ledger.settle(reservation, b"release")
        with pytest.raises(BudgetExceeded):
            ledger.reserve({"people": PureDP("0.6")}, who="ada", what="other plan")
        ledger.allot("people", "ada", PureDP("0.7"), who="owner")

    _, carrier = carried(work)
    assert len(carrier.carried) == 3  # two reservations, of which one was refused, and the settlement
    assert str(ledger.spent("people")) == "ε = 0.6"


def test_a_moment_is_read_once_by_who_came_together_and_never_after_a_commit() -> None:
    read: list[int] = []

    def reads() -> int:
        read.append(1)
        return len(read)

    noted = Noted()

    def work() -> list[int]:
        found = [at_one_moment("n", reads), at_one_moment("n", reads)]
        noted.group.submit(1, held=False)
        return [*found, at_one_moment("n", reads), at_one_moment("n", reads)]

    assert carried(work)[0] == [1, 1, 2, 3]
    assert [at_one_moment("n", reads), at_one_moment("n", reads)] == [4, 5]  # alone, each reads


def test_who_may_wait_leaves_a_company_past_every_handler_and_nothing_else() -> None:
    def work() -> str:
        try:
            own_thread()
        except Exception:
            return "held back"
        return "stayed"

    def later() -> str:
        Noted().group.submit(1, held=False)
        return work()

    own_thread()
    assert not in_company()
    with pytest.raises(OwnThread):
        carried(work)
    assert carried(later)[0] == "stayed"  # something is charged: it is brought to its end here
