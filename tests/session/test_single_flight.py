"""What the same person asks twice at once is bought once, and nobody waits for anybody else."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import cloister as cl
from cloister.session.state.table_registry import SingleFlight
from cloister.tables import PrivateTable

SQL = "SELECT COUNT(*) AS n FROM people WHERE age > 30"


def people() -> PrivateTable:
    return PrivateTable({"age": [20, 30, 40, 50] * 100}, columns={"age": cl.Integer(17, 90)})


@pytest.fixture
def two(tmp_path: Path) -> Iterator[tuple[cl.Session, cl.Session]]:
    """The sessions of two processes, of the same file and the same ledger."""
    file = tmp_path / "people.csv"
    file.write_text("age\n" + "20\n30\n40\n50\n" * 100)

    def opened() -> cl.Session:
        table = PrivateTable(file, columns={"age": cl.Integer(17, 90)})
        return cl.Session({"people": table}, budget=cl.PureDP(1), ledger=tmp_path / "ledger")

    with opened() as here, opened() as there:
        yield here, there


def test_one_person_who_asks_at_once_is_charged_once() -> None:
    with cl.Session({"people": people()}, budget=cl.PureDP(1)) as session:
        ana, come = session.on_behalf("ana"), threading.Barrier(8, timeout=30)

        def ask(_: int) -> object:
            come.wait()
            return ana.sql(SQL, spend="0.1").to_pydict()

        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(ask, range(8)))
        assert answers == [answers[0]] * 8
        assert str(session.spent) == "ε = 0.1"


@pytest.mark.parametrize("stage", ["preparing the tables", "reserving the cost", "asking the engine", "settling the charge"])
def test_what_another_process_answers_meanwhile_is_charged_once(stage: str, two: tuple[cl.Session, cl.Session]) -> None:
    """Two processes have the ledger; the second is asked the same while the first is at each of its steps."""
    (here, there), theirs = two, list[object]()

    def other(name: str) -> None:
        if name == stage and not theirs:
            theirs.append(there.on_behalf("ana").sql(SQL, spend="0.1").to_pydict())

    ours = here.on_behalf("ana", progress=other).sql(SQL, spend="0.1")
    assert [ours.to_pydict()] == theirs
    assert [charge.state for charge in here.ledger.charges("people")] == ["settled"]
    assert str(here.spent) == "ε = 0.1"
    assert here.on_behalf("ana").sql(SQL, spend="0.2").num_rows == 1  # the rest of it is another charge of as much
    assert str(there.spent) == "ε = 0.2"


def test_what_another_process_gave_meanwhile_counts_against_the_share(two: tuple[cl.Session, cl.Session]) -> None:
    """Bob paid for half of it. What that costs Ana's share is charged once, too."""
    (here, there), asked = two, list[object]()

    def other(name: str) -> None:
        if name == "preparing the tables" and not asked:
            asked.append(there.on_behalf("ana").sql(SQL, spend="0.2").to_pydict())

    here.on_behalf("bob").sql(SQL, spend="0.1")
    here.ledger.allot("people", "ana", cl.PureDP("0.2"), who="owner")
    ours = here.on_behalf("ana", progress=other).sql(SQL, spend="0.2")
    assert [ours.to_pydict()] == asked
    assert str(here.spent) == "ε = 0.2"
    assert here.ledger.allotment("people", "ana") == (cl.PureDP("0.2"), cl.PureDP(0))  # and what is left


def test_another_person_does_not_wait() -> None:
    """While one question is on its way, the same of somebody else comes to its end."""
    with cl.Session({"people": people()}, budget=cl.PureDP(1)) as session:
        here, may = threading.Event(), threading.Event()

        def stage(name: str) -> None:
            if name == "asking the engine":
                here.set()
                assert may.wait(30)

        ana, bob = session.on_behalf("ana", progress=stage), session.on_behalf("bob")
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(ana.sql, SQL, spend="0.1")
            assert here.wait(30)
            assert bob.sql(SQL, spend="0.1").num_rows == 1
            may.set()
            first.result(30)
        assert len(session.ledger.charges("people")) == 2


def test_who_has_waited_long_enough_goes_on() -> None:
    flights, begun, may = SingleFlight(), threading.Event(), threading.Event()

    def hold() -> None:
        with flights.one("key", limit=None):
            begun.set()
            assert may.wait(30)

    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(hold)
        assert begun.wait(30)
        with flights.one("key", limit=0.01), flights.one("other", limit=None):
            assert len(flights) == 2
        may.set()
        held.result(30)
    assert len(flights) == 0
