"""Amounts in units: sums are exact, charges round up, budgets down."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloister.errors import InvalidParameter, NotConvertible
from cloister.ledger.measure import GRID, decode, encode, guarantee_of, in_measure, is_whole, kind_of, units_down, units_up
from cloister.privacy import ZCDP, ApproxDP, PureDP

rationals = st.fractions(min_value=0, max_value=1000)
small = st.fractions(min_value=0, max_value=Fraction(999, 1000))
guarantees = st.one_of(st.builds(PureDP, rationals), st.builds(ApproxDP, rationals, small), st.builds(ZCDP, rationals, small))


@given(guarantees)
def test_a_charge_rounds_up_by_less_than_a_unit_and_a_budget_down(guarantee):
    up, down = units_up(guarantee), units_down(guarantee)
    first = guarantee.rho if isinstance(guarantee, ZCDP) else guarantee.epsilon
    for low, high, amount in zip(down, up, (first, guarantee.delta), strict=True):
        assert 0 <= amount * GRID - low < 1
        assert 0 <= high - amount * GRID < 1
    assert is_whole(guarantee) == (up == down)


@given(guarantees)
def test_what_is_written_is_read_again(guarantee):
    assert decode(encode(guarantee)) == guarantee
    assert kind_of(decode(encode(guarantee))) == kind_of(guarantee)


@pytest.mark.parametrize("text", ["0.1", "1e-60", "1/3", "1/97", "0.123456789", "7/100", "1/64"])
def test_decimals_and_shares_are_whole_numbers_of_units(text):
    guarantee = PureDP(text)
    assert guarantee_of("pure", units_up(guarantee)) == guarantee
    assert units_up(guarantee) == units_down(guarantee)


def test_the_exact_implications():
    assert in_measure(PureDP("0.2"), "zcdp") == ZCDP("0.02")
    assert in_measure(PureDP("0.2"), "approx") == ApproxDP("0.2", 0)
    assert in_measure(ApproxDP("0.2", 0), "pure") == PureDP("0.2")
    assert in_measure(ApproxDP("0.2", 0), "zcdp") == ZCDP("0.02")


@pytest.mark.parametrize(
    ("cost", "kind"),
    [
        (ApproxDP(1, "1e-6"), "pure"),
        (ApproxDP(1, "1e-6"), "zcdp"),
        (ZCDP("0.1"), "pure"),
        (ZCDP("0.1"), "approx"),
        (ZCDP("0.1", "1e-6"), "pure"),
    ],
)
def test_what_would_lose_something_is_refused(cost, kind):
    with pytest.raises(NotConvertible, match="was not charged"):
        in_measure(cost, kind)


@pytest.mark.parametrize("wrong", [0.1, "0.1", None, Fraction(1)])
def test_a_number_is_no_guarantee(wrong):
    with pytest.raises(InvalidParameter, match="PureDP") as refusal:
        kind_of(wrong)
    assert refusal.value.instead == 'PureDP("0.1")'


def test_a_number_is_shown_as_the_guarantee_that_it_may_have_been_meant_to_be():
    with pytest.raises(InvalidParameter, match="of type int") as refusal:
        kind_of(2)
    assert refusal.value.instead == 'PureDP("2")'


def test_a_number_too_long_to_write_is_refused():
    with pytest.raises(InvalidParameter, match="too long"):
        encode(PureDP(Fraction(1, 3**4000)))
