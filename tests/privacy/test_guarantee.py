"""The three kinds of promise: their arithmetic and their order."""

from __future__ import annotations

import copy
import pickle
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cloister.errors import CloisterError, InvalidParameter, NotConvertible
from cloister.privacy import ZCDP, ApproxDP, Guarantee, PureDP, zero_of

sizes = st.fractions(0, 20, max_denominator=1000)
slacks = st.fractions(0, Fraction(1, 4), max_denominator=10**6)
pure = st.builds(PureDP, sizes)
approx = st.builds(ApproxDP, sizes, slacks | st.just(Fraction(0)))
zcdp = st.builds(ZCDP, sizes | st.just(Fraction(0)), slacks | st.just(Fraction(0)))
guarantees = pure | approx | zcdp


def test_sums_are_exact() -> None:
    assert sum([PureDP("0.1")] * 9, PureDP("0.1")) == PureDP(1) == PureDP("0.1") * 10
    assert ApproxDP("0.1", "1e-7") * 10 == ApproxDP(1, "1e-6")
    assert ZCDP("0.1") * 0 == ZCDP(0)


@pytest.mark.parametrize("flip", [False, True])
def test_delta_and_rho_do_not_add_up_and_the_refusal_shows_the_line(flip: bool) -> None:
    left, right = ApproxDP(1, "1e-6"), ZCDP("0.1")
    with pytest.raises(NotConvertible) as refusal:
        _ = right + left if flip else left + right
    total = eval(refusal.value.instead, {"ZCDP": ZCDP, "ApproxDP": ApproxDP})
    assert total.delta == Fraction(2, 10**6)
    assert total.epsilon > 1


def test_a_sum_with_something_else_is_a_type_error() -> None:
    for guarantee in (PureDP(1), ApproxDP(1, "1e-6"), ZCDP(1)):
        with pytest.raises(TypeError):
            _ = guarantee + 1  # type: ignore[operator]
        with pytest.raises(TypeError):
            _ = guarantee <= 1  # type: ignore[operator]


@pytest.mark.parametrize("times", [-1, "0.5", True, float("nan")])
def test_a_guarantee_is_repeated_a_whole_number_of_times(times: int) -> None:
    with pytest.raises(InvalidParameter):
        _ = PureDP(1) * times


def test_a_sum_whose_delta_reaches_one_promises_nothing_and_says_so() -> None:
    total = ApproxDP(1, "0.6") + ApproxDP(1, "0.6")
    assert total.delta == 1
    assert not total <= ApproxDP(5, "0.99")
    assert (ZCDP(1, "0.6") * 2).delta == 1


@given(guarantees, guarantees, guarantees)
def test_less_or_equal_is_a_preorder(first: Guarantee, second: Guarantee, third: Guarantee) -> None:
    assert first <= first
    if first <= second and second <= third:
        assert first <= third


@given(guarantees, guarantees)
def test_what_implies_one_another_has_the_same_parameters(first: Guarantee, second: Guarantee) -> None:
    if type(first) is type(second) and first <= second and second <= first:
        assert first == second


def test_transitivity_through_each_pair_of_kinds() -> None:
    one = PureDP(1)
    assert ApproxDP(1, 0) <= one <= ZCDP("0.5")
    assert ApproxDP(1, 0) <= ZCDP("0.5")
    assert not ApproxDP(1, "1e-9") <= ZCDP("0.5")
    assert ZCDP(0, "1e-6") <= ApproxDP(0, "1e-6")
    assert not ZCDP(0, "1e-6") <= PureDP(5)


@given(guarantees, guarantees)
def test_composition_is_monotone_and_commutes(left: Guarantee, right: Guarantee) -> None:
    try:
        total = left + right
    except CloisterError:
        assume(False)
    assert left <= total
    assert right <= total
    assert total == right + left


@given(guarantees)
def test_nothing_costs_nothing(guarantee: Guarantee) -> None:
    assert guarantee + zero_of(guarantee) == guarantee
    assert zero_of(guarantee) <= guarantee


@given(guarantees)
def test_text_copy_and_pickle_keep_a_guarantee(guarantee: Guarantee) -> None:
    names = {"PureDP": PureDP, "ApproxDP": ApproxDP, "ZCDP": ZCDP}
    assert eval(repr(guarantee), names) == guarantee == copy.deepcopy(guarantee) == pickle.loads(pickle.dumps(guarantee))
    assert hash(guarantee) == hash(copy.copy(guarantee))


def test_a_smaller_delta_cannot_be_had() -> None:
    with pytest.raises(NotConvertible):
        ApproxDP(1, "1e-6").to_approx("1e-7")
    with pytest.raises(NotConvertible):
        ZCDP("0.1", "1e-6").to_approx("1e-7")


def test_guarantees_cannot_be_changed() -> None:
    with pytest.raises((AttributeError, TypeError)):
        PureDP(1).epsilon = Fraction(0)  # type: ignore[misc]
