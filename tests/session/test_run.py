"""Methods that need rows: charged first, let out nothing but plain values, and never speak of a row."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import cloister as cl
from cloister.noise import DiscreteLaplace, Random
from cloister.privacy import Guarantee
from cloister.session import Count, Door, Question


class Largest:
    """How many rows lie at the upper bound: a method that looks at rows and noises one count."""

    columns = ("age",)

    def __init__(self, *, cost: Guarantee | None = None, breaks: str = "") -> None:
        self.cost = cost
        self.breaks = breaks

    def describe(self) -> dict[str, Any]:
        return {"name": "largest"}

    def guarantee(self, spend: Guarantee, declaration: cl.PrivateTable) -> Guarantee:
        return self.cost or spend

    def release(
        self, rows: Mapping[str, Any], declaration: cl.PrivateTable, guarantee: Guarantee, random: Random
    ) -> Mapping[str, Any]:
        if self.breaks == "raises":
            raise ValueError(f"the first age is {rows['age'][0]}")
        if self.breaks == "objects":
            return {"rows": object()}
        assert isinstance(guarantee, cl.PureDP)
        count = int((rows["age"] == declaration.columns["age"].high_code).sum())
        return {"at the top": DiscreteLaplace(scale=1 / guarantee.epsilon).release(count, random=random)}


def test_a_method_is_charged_and_releases_values(door: Door) -> None:
    outcome = door.run(Largest(), "people", spend=5)
    assert door.spent == outcome.cost == cl.PureDP(5)
    assert abs(outcome.values["at the top"] - 50) < 10
    assert door.ledger.charges("people")[0].state == "settled"


def test_explain_run_spends_nothing(door: Door) -> None:
    plan = door.explain_run(Largest(), "people", spend=5)
    assert plan.cost == cl.PureDP(5)
    assert "nothing was spent" in str(plan)
    assert door.spent == cl.PureDP(0)


def test_a_method_that_costs_more_than_its_spend_is_refused(door: Door) -> None:
    with pytest.raises(cl.InvalidParameter, match="costs"):
        door.run(Largest(cost=cl.PureDP(6)), "people", spend=5)
    assert door.spent == cl.PureDP(0)


@pytest.mark.parametrize("breaks", ["raises", "objects"])
def test_a_method_that_fails_is_charged_and_its_words_stay_inside(door: Door, breaks: str) -> None:
    with pytest.raises(cl.EngineError) as refusal:
        door.run(Largest(breaks=breaks), "people", spend=5)
    assert "20" not in str(refusal.value)
    assert refusal.value.__context__ is None
    assert door.spent == cl.PureDP(5)


def test_an_undeclared_column_is_refused(door: Door) -> None:
    method = Largest()
    method.columns = ("height",)
    with pytest.raises(cl.UnknownColumn, match="age"):
        door.run(method, "people", spend=1)
    assert door.spent == cl.PureDP(0)


class Killed(BaseException):
    """The process ends, as by kill -9."""


def and_dies(work):
    def done(*how: Any, **more: Any) -> None:
        work(*how, **more)
        raise Killed

    return done


def dies(*_: Any, **__: Any) -> None:
    raise Killed


def test_named_work_is_released_once_however_often_it_is_begun(door: Door) -> None:
    first, again = (door.run(Largest(), "people", spend=2, once="job 1") for _ in range(2))
    assert (again.values, again.charge, again.cost) == (first.values, first.charge, cl.PureDP(2))
    assert door.spent == cl.PureDP(2)
    other = door.run(Largest(), "people", spend=2, once="job 2")
    assert other.digest != first.digest
    door.run(Largest(), "people", spend=2)
    assert door.spent == cl.PureDP(6)


def test_named_work_begun_by_many_threads_at_once_is_released_once(door: Door) -> None:
    begin = threading.Barrier(8)

    class Slow(Largest):
        def release(self, *how: Any) -> Mapping[str, Any]:
            time.sleep(0.05)  # so that the others come while it works
            return super().release(*how)

    def run(_: int) -> Any:
        begin.wait()
        return door.run(Slow(), "people", spend=2, once="job 1")

    with ThreadPoolExecutor(8) as threads:
        outcomes = list(threads.map(run, range(8)))
    assert len({(each.charge, each.values["at the top"]) for each in outcomes}) == 1
    assert [(each.state, each.attempt) for each in door.ledger.charges("people")] == [("settled", 1)]
    assert door.spent == cl.PureDP(2)
    assert door.ledger.verify() is True


def test_what_helps_after_a_failure_says_whether_it_is_charged_again(door: Door) -> None:
    class Failing(Largest):
        def release(self, *_: Any) -> Mapping[str, Any]:
            raise RuntimeError

    for name, helps, charges in [("", "under the same charge", 1), ("job 1", "is charged again", 2), ("job 2", "", 3)]:
        for _ in range(2):  # the second time under the charge of the first
            with pytest.raises(cl.EngineError) as failed:
                door.run(Failing(), "people", spend=1, once=name)
            assert helps in failed.value.instead
            assert door.spent == cl.PureDP(charges)


def test_named_work_of_somebody_else_is_not_given(door: Door) -> None:
    door.run(Largest(), "people", spend=2, once="job 1")
    door.on_behalf("bob").run(Largest(), "people", spend=2, once="job 1")
    assert [each.who for each in door.ledger.charges("people")] == [door.who, "bob"]


@pytest.mark.parametrize("where", ["reserved", "settled"])
def test_named_work_that_died_goes_on_under_its_own_charge(door: Door, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    ledger = door.ledger
    with monkeypatch.context() as here:
        here.setattr(ledger, "settle", dies if where == "reserved" else and_dies(ledger.settle))
        with pytest.raises(Killed):
            door.run(Largest(), "people", spend=2, once="job 1")
    door.run(Largest(), "people", spend=2)  # the same by another name takes nothing over
    found = door.run(Largest(), "people", spend=2, once="job 1")
    assert [(each.state, each.attempt) for each in ledger.charges("people")] == [
        ("settled", 2 if where == "reserved" else 1),
        ("settled", 1),
    ]
    assert found.charge == ledger.charges("people")[0].id
    assert ledger.verify() is True


def test_of_two_attempts_at_named_work_the_first_that_settles_is_given_by_both(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, others = door.ledger, []
    settle = ledger.settle

    def overtaken(*how: Any, **more: Any) -> None:
        monkeypatch.setattr(ledger, "settle", settle)
        others.append(door.run(Largest(), "people", spend=2, once="job 1"))
        settle(*how, **more)

    monkeypatch.setattr(ledger, "settle", overtaken)
    mine = door.run(Largest(), "people", spend=2, once="job 1")
    assert mine.values == others[0].values
    assert door.spent == cl.PureDP(2)


def test_a_charge_is_told_before_it_is_made_and_only_then(door: Door) -> None:
    told: list[tuple[str, Mapping[str, Guarantee], cl.PureDP]] = []
    door.tell_charges(lambda what, costs: told.append((what, costs, door.spent)))
    question = Question(table="people", statistics=(Count(),))
    door.measure(question, spend=1)
    door.measure(question, spend=1)
    door.run(Largest(), "people", spend=2)
    assert [(costs, spent) for _, costs, spent in told] == [
        ({"people": cl.PureDP(1)}, cl.PureDP(0)),
        ({"people": cl.PureDP(2)}, cl.PureDP(1)),
    ]
    assert [what for what, *_ in told] == [each.what for each in door.ledger.charges("people")]


def test_where_that_fails_nothing_is_charged(door: Door) -> None:
    door.tell_charges(dies)
    for ask in (
        lambda: door.measure(Question(table="people", statistics=(Count(),)), spend=1),
        lambda: door.run(Largest(), "people", 1),
    ):
        with pytest.raises(Killed):
            ask()
    assert door.ledger.charges("people") == []
