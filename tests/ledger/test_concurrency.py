"""No interleaving of threads and processes overspends, and what several ask for at once shares a commit."""

from __future__ import annotations

import subprocess
import sys
import threading
from fractions import Fraction

import pytest

from cloister.errors import BudgetExceeded, LedgerError
from cloister.ledger import operations
from cloister.ledger.commit import Entry, GroupCommit
from cloister.ledger.request import Request
from cloister.ledger.writer import Act
from cloister.privacy import PureDP
from tests.tiers import by_day_and_night

CLIENT = """
import sys
from pathlib import Path
from cloister.errors import BudgetExceeded
from cloister.ledger import Ledger
from cloister.privacy import PureDP

where, head, name, charges = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
done = 0
with Ledger(where if "://" in where else Path(where), key=bytes(range(32)), head=head) as ledger:
    for number in range(charges):
        try:
            reservation = ledger.reserve({"people": PureDP("0.1")}, who=name, what=f"plan {name} {number}")
        except BudgetExceeded:
            continue
        ledger.settle(reservation, b"answer")
        done += 1
print(done)
"""


def race(durable, processes: int, charges: int) -> None:
    """So many processes, each so many charges, and a budget that fits exactly half of them."""
    half = processes * charges // 2
    with durable.open() as ledger:
        ledger.open("people", PureDP(f"{half}/10"), who="owner")
    clients = [
        subprocess.Popen(
            [sys.executable, "-c", CLIENT, str(durable.where), str(durable.head), f"client {number}", str(charges)],
            stdout=subprocess.PIPE,
        )
        for number in range(processes)
    ]
    done = [int(client.communicate()[0]) for client in clients]
    assert all(client.returncode == 0 for client in clients)
    with durable.open() as ledger:
        assert sum(done) == half
        assert ledger.remaining("people") == PureDP(0)
        assert [row.state for row in ledger.charges("people")] == ["settled"] * half
        assert ledger.frozen is None
        assert ledger.verify() is True


@by_day_and_night("processes", 4, 8)
def test_processes_share_a_budget_that_fits_half(durable, processes):
    race(durable, processes, 50)


@pytest.mark.slow
def test_eight_processes_of_a_thousand_charges(durable):
    race(durable, 8, 1000)


def together(count: int, work) -> None:
    """Run `work(number)` in so many threads; an error in one is an error here."""
    errors = []

    def run(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def test_threads_share_one_ledger(ledger):
    ledger.open("people", PureDP("20"), who="owner")
    ledger.open("places", PureDP("100"), who="owner")
    refused = []

    def client(number: int) -> None:
        for turn in range(50):
            try:
                costs = {"people": PureDP("0.1")} | ({"places": PureDP("0.1")} if turn % 2 else {})
                ledger.settle(ledger.reserve(costs, who=f"client {number}", what=f"plan {turn}"), b"answer")
            except BudgetExceeded:
                refused.append(number)

    together(8, client)
    assert len(refused) == 200
    assert ledger.spent("people") == PureDP(20)
    charged = ledger.charges("places")
    assert ledger.spent("places") == PureDP(f"{len(charged)}/10")
    assert ledger.verify() is True


def test_one_attempt_of_many_settles(ledger):
    ledger.open("people", PureDP(1), who="owner")
    attempts = [ledger.reserve({"people": PureDP("0.5")}, who="ada", what="plan") for _ in range(2)] * 4
    settled = []

    def client(number: int) -> None:
        try:
            ledger.settle(attempts[number], b"%d" % number)
            settled.append(number)
        except LedgerError:
            pass

    together(8, client)
    assert len(settled) == 1
    assert [found.release for found in ledger.find("plan", ["people"])] == [b"%d" % settled[0]]


def test_reading_beside_writing_sees_whole_charges(ledger):
    ledger.open("people", PureDP(100), who="owner")
    ledger.open("places", PureDP(100), who="owner")
    stop = threading.Event()

    def client(number: int) -> None:
        if number == 0:
            while not stop.is_set():
                assert ledger.verify() is True
                assert ledger.spent("people") <= ledger.budget("people")
            return
        try:
            for turn in range(20):
                ledger.reserve({"people": PureDP("0.1"), "places": PureDP("0.1")}, who=f"{number}", what=f"{turn}")
        finally:
            if number == 1:
                stop.set()

    together(4, client)
    assert ledger.spent("people") == ledger.spent("places") == PureDP(6)


class TestGroupCommit:
    def test_what_waits_is_done_in_one_batch(self):
        batches, first, go = [], threading.Event(), threading.Event()

        def run(batch: list[Entry[int]]) -> None:
            batches.append(sorted(entry.work for entry in batch))
            first.set()
            go.wait(60)
            for entry in batch:
                entry.result, entry.done = entry.work * 2, True

        group: GroupCommit[int] = GroupCommit(run)
        results: dict[int, int] = {}
        threads = [
            threading.Thread(target=lambda number=number: results.update({number: group.submit(number)})) for number in range(9)
        ]
        threads[0].start()
        first.wait(60)
        for thread in threads[1:]:
            thread.start()
        while len(group._waiting) < 8:
            pass
        go.set()
        for thread in threads:
            thread.join()
        assert batches == [[0], [1, 2, 3, 4, 5, 6, 7, 8]]
        assert results == {number: number * 2 for number in range(9)}

    def test_those_who_are_known_to_come_are_waited_for(self, monkeypatch):
        monkeypatch.setattr("cloister.ledger.commit._PATIENCE", 60.0)
        batches = []

        def run(batch: list[Entry[int]]) -> None:
            batches.append(sorted(entry.work for entry in batch))
            for entry in batch:
                entry.result, entry.done = entry.work, True

        group: GroupCommit[int] = GroupCommit(run)
        group.coming = lambda: 6
        first = threading.Thread(target=group.submit, args=(0,))
        first.start()
        for number in (1, 2):
            threading.Thread(target=group.submit, args=(number,)).start()
        first.join(0.1)
        assert first.is_alive()
        assert batches == []
        last = threading.Thread(target=group.submit, args=(3,))
        last.start()  # two thirds of six are here
        first.join(60)
        last.join(60)
        assert batches == [[0, 1, 2, 3]]

    def test_those_who_never_come_are_not_waited_for_long(self):
        batches = []

        def run(batch: list[Entry[int]]) -> None:
            batches.append([entry.work for entry in batch])
            for entry in batch:
                entry.error, entry.done = (ValueError("odd") if entry.work % 2 else None), True

        group: GroupCommit[int] = GroupCommit(run)
        group.coming = lambda: 100
        for number in (0, 2, 4):
            group.submit(number)
        with pytest.raises(ValueError, match="odd"):
            group.submit(5)
        assert group._bell is None
        assert batches == [[0], [2], [4], [5]]

    def test_an_interrupt_while_others_are_waited_for_leaves_nobody_behind(self, monkeypatch):
        done = []

        def run(batch: list[Entry[int]]) -> None:
            for entry in batch:
                done.append(entry.work)
                entry.done = True

        group: GroupCommit[int] = GroupCommit(run)
        group.coming = lambda: 3
        monkeypatch.setattr(group, "_gather", lambda: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            group.submit(0)
        monkeypatch.undo()
        assert group.submit(1) is None
        assert done == [0, 1]

    def test_each_gets_its_own_error(self):
        def run(batch: list[Entry[int]]) -> None:
            for entry in batch:
                entry.error = ValueError(entry.work) if entry.work % 2 else None
                entry.done = True

        group: GroupCommit[int] = GroupCommit(run)
        assert group.submit(0) is None
        with pytest.raises(ValueError, match="1"):
            group.submit(1)
        assert group.submit(2) is None

    def test_a_leader_that_is_interrupted_hands_over(self):
        calls = []

        def run(batch: list[Entry[int]]) -> None:
            calls.append(len(batch))
            for entry in batch:
                entry.done = True
            if len(calls) == 1:
                raise KeyboardInterrupt

        group: GroupCommit[int] = GroupCommit(run)
        with pytest.raises(KeyboardInterrupt):
            group.submit(0)
        assert group.submit(1) is None
        assert calls == [1, 1]


def test_a_refusal_in_a_batch_leaves_the_others_charged(ledger):
    ledger.open("people", PureDP(1), who="owner")
    requests = [
        Request.of({"people": PureDP(cost)}, "ada", f"plan {number}", "", rerun=True)
        for number, cost in enumerate(["0.4", "0.9", "0.6", "0.1"])
    ]
    batch = [Entry(Act(lambda book, request=request: operations.reserve(book, request))) for request in requests]
    ledger._writer.run(batch)
    assert [type(entry.error) for entry in batch] == [type(None), BudgetExceeded, type(None), BudgetExceeded]
    assert ledger.remaining("people") == PureDP(0)
    assert ledger.verify() is True


@pytest.mark.parametrize("before", [0, 1, 2])
def test_an_attempt_is_taken_over_in_the_batch_that_reserved_it(ledger, before):
    ledger.open("people", PureDP(1), who="owner")
    plans = [*(f"plan {number}" for number in range(before)), "twice", "after", "twice"]
    requests = [Request.of({"people": PureDP("0.1")}, "ada", what, "", rerun=True) for what in plans]
    batch = [Entry(Act(lambda book, request=request: operations.reserve(book, request))) for request in requests]
    ledger._writer.run(batch)
    first, again = batch[before].result, batch[-1].result
    assert (again.id, first.attempt, again.attempt) == (first.id, 1, 2)
    assert ledger.spent("people") == PureDP(Fraction(before + 2, 10))
    assert ledger.verify() is True


BOUNDED = """
import sys, threading
from pathlib import Path
from cloister.errors import BudgetExceeded
from cloister.ledger import Bound, Ledger
from cloister.privacy import PureDP

where, head, name = sys.argv[1], sys.argv[2], sys.argv[3]
ceiling = {"people": [Bound(most=PureDP(1), why="the ceiling is 1", rule="mandatory:m1")]}
done = []

def ask(number):
    try:
        ledger.reserve({"people": PureDP("0.3")}, who=f"{name} {number}", what=f"plan {name} {number}", at_most=ceiling)
    except BudgetExceeded as error:
        assert error.rule == "mandatory:m1", error
    else:
        done.append(number)

with Ledger(where if "://" in where else Path(where), key=bytes(range(32)), head=head) as ledger:
    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
print(len(done))
"""


def test_eight_threads_of_two_processes_keep_to_a_ceiling_below_the_budget(durable):
    with durable.open() as ledger:
        ledger.open("people", PureDP(50), who="owner")
    clients = [
        subprocess.Popen(
            [sys.executable, "-c", BOUNDED, str(durable.where), str(durable.head), f"client {number}"], stdout=subprocess.PIPE
        )
        for number in range(2)
    ]
    done = [int(client.communicate()[0]) for client in clients]
    with durable.open() as ledger:
        assert sum(done) == 3
        assert ledger.spent("people") == PureDP("0.9")
        assert ledger.verify() is True
