"""Of more tables than may be prepared, those that nobody asked lately give back their rows, and never under a question."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import cloister as cl
from cloister.noise import Random

NAMES = [f"t{each}" for each in range(12)]
SPENDS = itertools.count(100)
"""Each dearer than the one before, so that the rows are read again."""


@pytest.fixture
def session() -> Iterator[cl.Session]:
    columns = {"age": cl.Integer(17, 90), "who": cl.Identifier()}
    rows = {"age": [20, 30, 40, 50], "who": ["a", "b", "c", "d"]}  # a copy for each: the same frame is the same table
    tables = {name: cl.PrivateTable({**rows}, columns=columns, unit="who", max_rows=1, population="p") for name in NAMES}
    with cl.Session(tables, budget=cl.PureDP(10**6), random=Random.deterministic(1), prepared_tables=9) as opened:
        yield opened


def ask(session: cl.Session, name: str) -> int:
    """Exact but for a chance of e⁻⁵⁰."""
    return int(session.sql(f"SELECT COUNT(*) AS n FROM {name} WHERE age > 25", spend=next(SPENDS))["n"][0])


def prepared(session: cl.Session) -> list[str]:
    return list(session.registry.snapshot._prepared)


def threads() -> int:
    return len(list(Path("/proc/self/task").iterdir()))


def test_the_last_asked_stay_and_the_others_answer_again(session: cl.Session) -> None:
    assert [ask(session, name) for name in NAMES] == [3] * 12
    assert prepared(session) == NAMES[3:]
    assert ask(session, "t3") == 3
    assert ask(session, "t0") == 3
    assert prepared(session) == [*NAMES[5:], "t3", "t0"]


def test_a_table_that_rests_has_no_threads_and_wakes(session: cl.Session) -> None:
    ask(session, "t0")
    one = threads()
    for name in NAMES[1:9]:
        ask(session, name)
    assert threads() <= 8 * one
    first = session.registry.snapshot._prepared["t0"]
    assert first._resting  # type: ignore[attr-defined]
    assert ask(session, "t0") == 3
    assert not first._resting  # type: ignore[attr-defined]


def test_a_join_whose_table_was_given_back_is_answered_again(session: cl.Session) -> None:
    joined = "SELECT COUNT(*) AS n FROM t0 JOIN t1 ON t0.who = t1.who"
    for _ in range(2):
        assert session.sql(joined, spend=next(SPENDS))["n"][0] == 4
        for name in NAMES[1:]:  # t0 goes, and its copy beside t1 or t1's beside it
            ask(session, name)
    assert "t0" not in prepared(session)


def test_none_is_taken_from_a_question_that_has_it_in_hand(session: cl.Session) -> None:
    here, may = threading.Event(), threading.Event()

    def stage(name: str) -> None:
        if name == "asking the engine":
            here.set()
            assert may.wait(60)

    slow = session.on_behalf("ana", progress=stage)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(ask, slow, "t0")
        assert here.wait(60)
        for name in NAMES[1:]:
            ask(session, name)
        assert "t0" in prepared(session)
        may.set()
        assert first.result(60) == 3
    assert len(prepared(session)) == 9


def test_a_number_of_none_is_refused() -> None:
    with pytest.raises(cl.CloisterError, match="prepared_tables=0 is invalid"):
        cl.Session({}, ledger="none.db", prepared_tables=0)


def test_a_closed_session_answers_nothing_and_charges_nothing() -> None:
    """Also where its ledger is another's, and for whoever asks through it; what was spent is still told."""
    count, people = "SELECT COUNT(*) AS n FROM t", cl.PrivateTable({"age": [30] * 9}, columns={"age": cl.Integer(17, 90)})
    with cl.Ledger() as book:
        with cl.Session({"t": people}, budget=cl.PureDP(1), ledger=book) as closed:
            closed.sql(count, spend="0.5")
            bob = closed.on_behalf("bob")
        for session in (closed, bob):
            for ask in (session.sql, session.explain):
                with pytest.raises(cl.LedgerError, match="the session is closed"):
                    ask(count, "0.6")
        with pytest.raises(cl.LedgerError, match="the session is closed"):
            closed.prepared("t")
        assert closed.registry.snapshot._prepared == {}
        assert closed.spent == book.spent("t") == cl.PureDP("0.5")
