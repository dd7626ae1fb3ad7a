"""Budgets for adaptive spending: nothing passes them, exactly."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.errors import BudgetExceeded, InvalidParameter
from cloister.privacy import (
    ZCDP,
    AdvancedFilter,
    ApproxDP,
    ApproxFilter,
    PureDP,
    PureFilter,
    PureOdometer,
    RenyiCurve,
    RenyiFilter,
    RenyiOdometer,
    SlidingFilter,
    ZCDPFilter,
    optimal,
    zcdp_of_pure,
    zcdp_within,
)

costs = st.lists(st.fractions(0, 1, max_denominator=50), max_size=30)


def filled(filter_: Any, charges: list[Any]) -> tuple[Any, list[Any]]:
    """The filter after everything that it let through, and that."""
    through = []
    for charge in charges:
        fits = filter_.admits(charge)
        if fits:
            filter_ = filter_.after(charge)
            through.append(charge)
        else:
            with pytest.raises(BudgetExceeded):
                filter_.after(charge)
    return filter_, through


def test_ten_tenths_fill_a_budget_of_one_and_not_a_hair_more() -> None:
    full, through = filled(PureFilter(PureDP(1)), [PureDP("0.1")] * 11 + [PureDP("1e-300")])
    assert len(through) == 10
    assert full.remaining == PureDP(0)
    assert full.admits(PureDP(0))


@given(costs, st.integers(1, 7))
def test_no_window_passes_a_sliding_filter_and_what_left_it_is_free_again(parts: list[Fraction], window: int) -> None:
    filter_, spent = SlidingFilter(PureDP(1), window), [Fraction(0)] * (window - 1)
    for part in parts:
        left = 1 - sum(spent[len(spent) - window + 1 :], Fraction(0))
        assert filter_.remaining == PureDP(left)
        assert filter_.admits(PureDP(part)) == (part <= left)
        if part > left:
            with pytest.raises(BudgetExceeded):
                filter_.after(PureDP(part))
            part = Fraction(0)
        filter_ = filter_.after(PureDP(part))
        spent.append(part)
    assert all(sum(spent[first : first + window]) <= 1 for first in range(len(spent)))
    assert len(filter_.recent) <= window - 1


@pytest.mark.parametrize("window", [0, -1, 2.5, True])
def test_a_window_is_a_whole_number_of_steps(window: Any) -> None:
    with pytest.raises(InvalidParameter):
        SlidingFilter(PureDP(1), window)


@given(costs)
def test_nothing_passes_a_filter_and_what_fits_goes_through(parts: list[Fraction]) -> None:
    for filter_, charges, total in (
        (PureFilter(PureDP(2)), [PureDP(x) for x in parts], PureDP(0)),
        (ApproxFilter(ApproxDP(2, "0.5")), [ApproxDP(x, x / 10) for x in parts], ApproxDP(0, 0)),
        (ZCDPFilter(ZCDP(2, "0.5")), [ZCDP(x, x / 10) for x in parts], ZCDP(0)),
    ):
        after, through = filled(filter_, charges)
        for charge in through:
            total = total + charge  # type: ignore[operator]
        assert total == after.spent
        assert after.spent <= filter_.budget
        assert after.spent + after.remaining == filter_.budget
        assert all(
            after.spent.delta + c.delta > filter_.budget.delta or not c <= after.remaining for c in charges if not after.admits(c)
        )


@settings(max_examples=30)
@given(costs)
def test_the_advanced_filter_keeps_its_inequality(parts: list[Fraction]) -> None:
    import math

    filter_ = AdvancedFilter(ApproxDP(3, "1e-5"), slack="5e-6")
    after, through = filled(filter_, [ApproxDP(x, "1e-7") for x in parts])
    squares = sum((charge.epsilon**2 for charge in through), Fraction(0))
    assert math.sqrt(2 * math.log(1 / 5e-6) * squares) + squares / 2 <= 3 + 1e-12
    assert len(through) <= 50
    assert after.spent <= filter_.budget


def test_the_advanced_filter_lets_through_more_than_the_sum_but_not_more_than_the_optimum() -> None:
    _, through = filled(AdvancedFilter(ApproxDP(1, "1e-6"), slack="1e-6"), [PureDP("0.01")] * 1000)
    assert 100 < len(through) < 1000
    assert optimal(PureDP("0.01"), len(through), "1e-6").epsilon <= 1


def test_a_rho_filter_takes_pure_charges() -> None:
    filter_ = ZCDPFilter(ZCDP("0.01")).after(PureDP("0.1"))
    assert filter_.spent.rho == zcdp_of_pure(PureDP("0.1")).rho
    assert ZCDPFilter(zcdp_within(epsilon=1, delta="1e-6")).admits(PureDP("0.1"))


@pytest.mark.parametrize(
    ("filter_", "charge"),
    [
        (PureFilter(PureDP(1)), ApproxDP("0.1", "1e-9")),
        (PureFilter(PureDP(1)), ZCDP("0.001")),
        (ApproxFilter(ApproxDP(1, "1e-6")), ZCDP("0.001")),
        (ApproxFilter(ApproxDP(1, "1e-6")), ApproxDP("0.1", "2e-6")),
        (ZCDPFilter(ZCDP(1)), ApproxDP("0.1", "1e-9")),
        (ZCDPFilter(ZCDP(1)), ZCDP("0.1", "1e-9")),
        (AdvancedFilter(ApproxDP(1, "1e-6"), slack="1e-6"), ApproxDP("0.1", "1e-9")),
        (AdvancedFilter(ApproxDP(1, "1e-6"), slack="1e-6"), ZCDP("0.1")),
        (RenyiFilter(RenyiCurve([2, 4], [1, 1])), RenyiCurve([2], ["0.1"])),
        (RenyiFilter(RenyiCurve([2, 4], [1, 1])), RenyiCurve([2, 4], ["0.1", "1.1"])),
    ],
)
def test_what_a_filter_does_not_understand_does_not_pass(filter_: Any, charge: Any) -> None:
    assert not filter_.admits(charge)
    with pytest.raises(BudgetExceeded):
        filter_.after(charge)


def test_a_renyi_filter_watches_every_order() -> None:
    filter_ = RenyiFilter(RenyiCurve([2, 4], ["0.2", "0.4"]))
    filter_ = filter_.after(RenyiCurve([2, 3, 4], ["0.1", 9, "0.1"]))
    assert filter_.remaining == RenyiCurve([2, 4], ["0.1", "0.3"])
    assert not filter_.admits(RenyiCurve([2, 4], ["0.11", "0.1"]))
    assert filter_.admits(RenyiCurve([2, 4], ["0.1", "0.3"]))


def test_a_renyi_filter_for_an_epsilon_keeps_it() -> None:
    filter_ = RenyiFilter.for_approx(epsilon=2, delta="1e-6", order=16)
    assert filter_.budget.to_approx("1e-6").epsilon <= 2
    after, through = filled(filter_, [RenyiCurve.laplace("0.05", [16])] * 200)
    assert after.spent.to_approx("1e-6").epsilon <= 2
    assert len(through) * Fraction("0.05") > 2  # more than the plain sum would let through
    with pytest.raises(InvalidParameter):
        RenyiFilter.for_approx(epsilon="0.1", delta="1e-6", order=2)


def test_odometers_only_go_up() -> None:
    odometer, last = RenyiOdometer(delta="1e-6"), Fraction(0)
    assert odometer.reading == 0
    for charge in (PureDP("0.1"), ZCDP("0.01"), RenyiCurve.laplace("0.2", odometer.spent.orders), ZCDP(0)):
        odometer = odometer.after(charge)
        assert odometer.reading >= last
        last = odometer.reading
    assert PureOdometer().after(PureDP("0.1")).after(PureDP("0.2")).reading == PureDP("0.3")


def test_an_odometer_is_wider_than_a_fixed_budget() -> None:
    odometer = RenyiOdometer(delta="1e-6")
    for _ in range(20):
        odometer = odometer.after(ZCDP("0.005"))
    assert ZCDP("0.1").to_approx("1e-6").epsilon < odometer.reading < 2 * ZCDP("0.1").to_approx("1e-6").epsilon


@pytest.mark.parametrize(
    "make",
    [
        lambda: AdvancedFilter(ApproxDP(1, "1e-6"), slack=0),
        lambda: AdvancedFilter(ApproxDP(1, "1e-6"), slack="1e-5"),
        lambda: AdvancedFilter(ApproxDP(1, "1e-6"), slack="nan"),
        lambda: RenyiOdometer(delta=0),
        lambda: RenyiOdometer(delta="nan"),
        lambda: RenyiOdometer(delta="1e-6").after(ApproxDP(1, "1e-6")),
        lambda: RenyiOdometer(delta="1e-6").after(RenyiCurve([2], [1])),
    ],
)
def test_what_is_no_filter_is_refused(make: Any) -> None:
    with pytest.raises(InvalidParameter):
        make()
