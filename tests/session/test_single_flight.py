"""What the same person asks twice at once is bought once, and nobody waits for anybody else."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import cloister as cl
from cloister.session.state.table_registry import SingleFlight
from cloister.tables import PrivateTable

SQL = "SELECT COUNT(*) AS n FROM people WHERE age > 30"


def people() -> PrivateTable:
    return PrivateTable({"age": [20, 30, 40, 50] * 100}, columns={"age": cl.Integer(17, 90)})


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
