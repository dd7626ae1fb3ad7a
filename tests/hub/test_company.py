"""The company: guests take turns in one thread, share commits, and each has an end of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import pytest

from cloister.hub import company as module
from cloister.hub.company import Company
from cloister.ledger.commit import Entry, GroupCommit
from cloister.ledger.company import at_one_moment, in_company, own_thread

_MINE: ContextVar[int] = ContextVar("mine", default=0)


class Odd(BaseException):
    """Nobody's error."""


class Shop:
    """A group that notes its batches, and the guests of one company, let in when all of them are at the door."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.batches: list[int] = []
        self.group: GroupCommit[int] = GroupCommit(self._run)
        self._monkeypatch = monkeypatch

    def _run(self, batch: list[Entry[int]]) -> None:
        self.batches.append(len(batch))
        for entry in batch:
            entry.result, entry.done = entry.work + 1, True

    def commit(self, number: int) -> int:
        """As whoever holds no lock."""
        found: int = self.group.submit(number, held=False)
        return found

    def together(self, *works: Callable[[], Any]) -> list[Any]:
        """What each gives, or its error."""
        gate, welcome = threading.Event(), Company._welcome

        def late(company: Company) -> list[Any]:
            assert gate.wait(30)
            return welcome(company)

        self._monkeypatch.setattr(Company, "_welcome", late)

        async def main() -> list[Any]:
            company = Company()
            tasks = [asyncio.ensure_future(company.answer(work)) for work in works]
            while len(company._arrived) < len(works):
                await asyncio.sleep(0)
            gate.set()
            return await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 30)

        return asyncio.run(main())


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Shop:
    return Shop(monkeypatch)


def test_guests_share_each_commit_and_one_thread(shop: Shop) -> None:
    threads: set[int] = set()

    def work(number: int) -> int:
        for _ in range(3):
            threads.add(threading.get_ident())
            assert in_company()
            number = shop.commit(number)
        return number

    assert shop.together(*(lambda n=n: work(n) for n in range(0, 100, 10))) == list(range(3, 103, 10))
    assert shop.batches == [10, 10, 10]
    assert len(threads) == 1
    assert not in_company()


def test_errors_are_each_guests_own(shop: Shop) -> None:
    def fails(number: int) -> int:
        if number == 0:
            raise ValueError("at once")
        shop.commit(number)
        if number == 1:
            raise KeyError("later")
        if number == 2:
            raise Odd
        return number

    found = shop.together(*(lambda n=n: fails(n) for n in range(5)))
    assert [type(each) for each in found] == [ValueError, KeyError, Odd, int, int]
    assert shop.batches == [4]


def test_who_may_wait_is_told_to_go_elsewhere_and_undoes_what_it_holds(shop: Shop) -> None:
    closed: list[str] = []

    def waits() -> str:
        try:
            own_thread()
        finally:
            closed.append("closed")
        return "stayed"

    assert shop.together(waits, lambda: shop.commit(1)) == [None, 2]
    assert closed == ["closed"]


def test_each_has_a_context_of_its_own(shop: Shop) -> None:
    def work(number: int) -> tuple[int, int]:
        before = _MINE.get()
        _MINE.set(number)
        shop.commit(number)
        return before, _MINE.get()

    assert shop.together(*(lambda n=n: work(n) for n in (1, 2, 3))) == [(0, 1), (0, 2), (0, 3)]
    assert _MINE.get() == 0


def test_a_moment_is_shared_before_the_first_commit_alone(shop: Shop) -> None:
    reads: list[int] = []

    def read() -> int:
        reads.append(1)
        return len(reads)

    def work() -> tuple[int, int]:
        first = at_one_moment("n", read)
        shop.commit(0)
        return first, at_one_moment("n", read)

    assert shop.together(work, work, work) == [(1, 2), (1, 3), (1, 4)]


def test_a_failed_company_keeps_nobody_waiting_and_opens_again(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[int] = []

    def work() -> None:
        try:
            shop.commit(1)
        finally:
            closed.append(1)

    with monkeypatch.context() as broken:
        broken.setattr(shop.group, "run_together", lambda entries: 1 / 0)
        found = shop.together(work, work, lambda: "answered before")
    assert [type(each) for each in found] == [ZeroDivisionError, ZeroDivisionError, str]
    assert closed == [1, 1]  # what they held was let go
    assert shop.together(lambda: shop.commit(1)) == [2]


def test_a_waiter_who_is_gone_disturbs_nobody(shop: Shop) -> None:
    async def main() -> int | None:
        company = Company()
        may = threading.Event()
        first = asyncio.ensure_future(company.answer(lambda: may.wait(30)))
        gone = asyncio.ensure_future(company.answer(lambda: shop.commit(1)))
        await asyncio.sleep(0)
        gone.cancel()
        may.set()
        assert await first
        return await company.answer(lambda: shop.commit(2))

    assert asyncio.run(main()) == 3
    assert shop.batches in ([1, 1], [2])  # who was at the door when they went is answered to nobody


def test_a_loop_that_ended_disturbs_nobody(shop: Shop) -> None:
    company, may, begun = Company(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        may.wait(30)

    async def leaves() -> None:
        waiting = asyncio.ensure_future(company.answer(work))
        while not begun.is_set():
            assert not waiting.done()
            await asyncio.sleep(0)

    asyncio.run(leaves())
    may.set()
    assert asyncio.run(company.answer(lambda: shop.commit(1))) == 2


def test_the_thread_ends_when_nobody_comes_and_begins_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_IDLE", 0.01)
    company = Company()
    for number in range(3):
        assert asyncio.run(company.answer(lambda n=number: n)) == number
        while company._open:
            threading.Event().wait(0.001)
    assert not [each for each in threading.enumerate() if each.name == "cloister-company" and each.is_alive() and company._open]


def test_a_crowd_is_let_in_by_parts(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST", 4)
    assert shop.together(*(lambda n=n: shop.commit(n) for n in range(10))) == list(range(1, 11))
    assert shop.batches == [4, 4, 2]
