"""Methods that need rows: charged first, let out nothing but plain values, and never speak of a row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import cloister as cl
from cloister.noise import DiscreteLaplace, Random
from cloister.privacy import Guarantee
from cloister.session import Door


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
