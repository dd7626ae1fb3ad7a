"""What can be known and tried before anything is paid: margins of many spends, pilots, rehearsals, limits of time."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest

import cloister as cl
from cloister.noise import Random
from cloister.session import Count, Door, Mean, Question
from cloister.session.execution import buying
from cloister.session.planning.plan import Plan
from cloister.session.questions.limits import limit_of, stopped_after

ROWS = {"age": [20, 30, 40, 50] * 500, "sex": ["F", "M", "F", "M"] * 500}
COLUMNS = {"age": cl.Integer(17, 90), "sex": cl.Category(["F", "M"])}
MEAN = Question(table="people", by=("sex",), statistics=(Mean(column="age"),))


def door(**how: Any) -> Door:
    table = cl.PrivateTable(ROWS, columns=COLUMNS)
    return Door({"people": table}, budget=cl.PureDP(100), random=Random.deterministic(4), **how)


def test_affordable_margins_are_those_of_the_plans() -> None:
    question = Question(table="people", by=("sex",), statistics=(Count(),))
    with door() as opened:
        found = opened.afford(question, ["0.1", 1])
        plans = [opened.explain(question, spend).margin()["count"][0] for spend in ("0.1", 1)]
        assert str(opened.spent) == "ε = 0"
    assert found.to_pydict() == {"spend": [0.1, 1.0], "count": plans}
    assert found.plot().to_dict()["encoding"]["x"]["scale"] == {"type": "log"}


def test_affordable_spends_reach_up_to_what_remains() -> None:
    with door() as opened:
        spends = opened.afford(Question(table="people", statistics=(Count(),))).to_pydict()["spend"]
    assert spends[0] == 0.1
    assert spends[-1] == 100


def test_an_empty_budget_still_says_what_spends_would_buy() -> None:
    table = cl.PrivateTable(ROWS, columns=COLUMNS)
    with Door({"people": table}, budget=cl.PureDP(0)) as opened:
        assert opened.afford(Question(table="people", statistics=(Count(),))).to_pydict()["spend"][-1] == 1


@pytest.mark.parametrize("within", [0.5, 2.0, 5.0])
def test_a_pilot_finds_the_spend_for_a_mean(within: float) -> None:
    with door() as opened:
        spend = opened.spend_after_pilot(MEAN, within, "0.5")
        assert str(opened.spent) == "ε = 0.5", "the pilot is bought"
        answer = opened.measure(MEAN, spend)
        assert opened.spent == spend, "and counts towards the spend"
    assert max(answer.margin()["mean_age"]) <= within * 1.1


def test_within_for_a_mean_needs_a_pilot() -> None:
    with door() as opened, pytest.raises(cl.UnsupportedQuery, match="depends on how many rows its group has"):
        opened.spend_within(MEAN, 1)


def test_a_margin_that_no_spend_buys_is_refused_by_the_pilot_s_own_numbers() -> None:
    empty = cl.PrivateTable({name: values[:0] for name, values in ROWS.items()}, columns=COLUMNS)
    with Door({"people": empty}, budget=cl.PureDP(100), random=Random.deterministic(4)) as opened:
        with pytest.raises(cl.UnsupportedQuery, match="some groups have too few rows"):
            opened.spend_after_pilot(MEAN, 1, "0.1")
        assert str(opened.spent) == "ε = 0.1"


QUESTIONS = [
    "SELECT sex, COUNT(*) AS n, AVG(age) AS a FROM people GROUP BY sex",
    "SELECT FLOOR(age / 10) * 10 AS decade, MEDIAN(age) AS m FROM people WHERE age < 60 GROUP BY 1",
    "SELECT ward, SUM(cost) AS c, COUNT(DISTINCT who) AS p FROM visits GROUP BY ROLLUP(ward)",
    "SELECT AVG(total) AS t FROM (SELECT who, SUM(cost) AS total FROM visits GROUP BY who) x",
]


@pytest.mark.parametrize("text", QUESTIONS)
def test_a_rehearsal_has_the_shape_of_the_answer_and_touches_nothing(text: str) -> None:
    people = cl.PrivateTable(ROWS, columns=COLUMNS)
    visits = cl.PrivateTable(
        {"who": ["a", "a", "b"], "ward": ["x", "y", "x"], "cost": [1, 2, 3]},
        columns={"ward": cl.Category(["x", "y"]), "cost": cl.Integer(0, 9)},
        unit="who",
        max_rows=3,
    )
    with cl.Session({"people": people, "visits": visits}, budget=cl.PureDP(10)) as session:
        rehearsed = session.sql(text, spend=1, rehearse=True)
        assert set(session.spent_by.values()) == {cl.PureDP(0)}
        assert session.registry.snapshot._prepared == {}, "no private row was prepared"
        answer = session.sql(text, spend=1)
    assert rehearsed.column_names == answer.column_names
    assert rehearsed.num_rows == answer.num_rows
    kinds = [(series.kind, series.values.dtype.kind) for series in rehearsed.table.columns.values()]
    assert kinds == [(series.kind, series.values.dtype.kind) for series in answer.table.columns.values()]
    assert any("REHEARSAL" in note for note in rehearsed.notes)


def test_a_rehearsal_says_the_same_each_time() -> None:
    people = cl.PrivateTable(ROWS, columns=COLUMNS)
    with cl.Session({"people": people}, budget=cl.PureDP(10)) as session:
        one, other = (session.sql(QUESTIONS[0], spend=1, rehearse=True).to_pydict() for _ in range(2))
    assert one == other


class Engine:
    """Something that can be stopped."""

    def __init__(self) -> None:
        self.stopped = threading.Event()

    def cancel(self, thread: int | None = None) -> None:
        assert thread == threading.main_thread().ident, "what others ask goes on"
        self.stopped.set()


def test_the_clock_stops_the_engine_and_says_so() -> None:
    engine = Engine()
    with stopped_after(0.01, [engine]) as clock:
        assert engine.stopped.wait(30)
        with pytest.raises(cl.EngineError, match="longer than its limit of 0 seconds; what was reserved stays charged"):
            clock.check()


def test_a_clock_that_was_not_over_says_nothing() -> None:
    engine = Engine()
    with stopped_after(600, [engine]) as clock:
        clock.check()
    assert not engine.stopped.is_set()


def test_a_question_that_is_stopped_costs_in_full_and_goes_on_under_its_charge(monkeypatch: pytest.MonkeyPatch) -> None:
    question = Question(table="people", statistics=(Count(),))
    with door() as opened:
        prepared = opened.prepared("people")
        stopped = threading.Event()

        def slow(*_: object) -> object:
            assert stopped.wait(30)
            raise RuntimeError("a row: 44")

        with monkeypatch.context() as patched:
            patched.setattr(Plan, "time_limit", 0.05)
            patched.setattr(type(prepared), "cancel", lambda self, thread=None: stopped.set())
            patched.setattr(type(prepared), "aggregate", slow)
            with pytest.raises(cl.EngineError, match="longer than its limit") as found:
                opened.measure(question, spend=1)
        assert "44" not in str(found.value)
        assert str(opened.spent) == "ε = 1"
        attempts: list[int] = []

        def noted(*limit: Any, attempt: int, **how: Any) -> Any:
            attempts.append(attempt)
            return stopped_after(*limit, attempt=attempt, **how)

        with monkeypatch.context() as patched:
            patched.setattr(buying, "stopped_after", noted)
            assert opened.measure(question, spend=1).num_rows == 1
        assert attempts == [2]  # which may take longer
        assert str(opened.spent) == "ε = 1"


def test_the_limit_follows_from_public_facts() -> None:
    assert limit_of(1, None) == 200
    assert limit_of(3, 10**8) == 6000
    question = Question(table="people", statistics=(Count(),))
    with door() as opened:
        assert opened.explain(question, spend=1).time_limit == limit_of(1, None)


@pytest.mark.parametrize("wrong", [0, -1, True, "10", float("nan"), float("inf")])
def test_a_wrong_limit_is_refused(wrong: Any) -> None:
    with pytest.raises(cl.InvalidParameter, match="time_limit"):
        door(time_limit=wrong)


def test_progress_names_stages_and_nothing_else() -> None:
    stages: list[str] = []
    with door(progress=stages.append) as opened:
        opened.measure(MEAN, spend=1)
    assert stages == ["preparing the tables", "reserving the cost", "asking the engine", "settling the charge"]


def test_values_that_noise_may_exceed_are_marked() -> None:
    with door() as opened:
        answer = opened.measure(Question(table="people", by=("age",), statistics=(Count(),)), spend="0.1")
    flags = np.asarray(answer.drowned()["count"])
    expected = np.abs(np.asarray(answer["count"])) <= np.asarray(answer.margin()["count"])
    expected |= np.asarray(answer["count"]) < 0
    assert (flags == expected).all()
    assert flags.any()
    assert not flags.all()
    assert "~ the noise may be larger than the value" in repr(answer)
    assert time.time() >= answer.provenance.when
