"""Portions of a promise: they never sum to more, and what they pay for is what is drawn."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from cloister.errors import BudgetExceeded, InvalidParameter
from cloister.noise import Random
from cloister.noise.allowance import Allowance
from cloister.privacy import ZCDP, ApproxDP, PureDP, delta_of_gaussian, zcdp_within


def test_portions_sum_to_the_whole_exactly() -> None:
    allowance = Allowance(PureDP("0.1"))
    shares = [allowance.share(f"part {number}", "0.1") for number in range(9)]
    shares.append(allowance.rest("last"))
    assert sum(share.amount for share in shares) == Fraction(1, 10)
    assert allowance.left == 0
    with pytest.raises(BudgetExceeded, match="0 of the allowance is left"):
        allowance.share("more", "0.000001")


def test_each_promise_is_counted_in_its_currency() -> None:
    assert (Allowance(PureDP(1)).currency, Allowance(ApproxDP(1, "1e-5")).currency) == ("epsilon", "mu_squared")
    assert (Allowance(ZCDP("0.5")).currency, Allowance(ZCDP("0.5")).size) == ("rho", Fraction(1, 2))
    assert Allowance(ZCDP("0.5"), currency="mu_squared").size == 1
    assert Allowance(ApproxDP(1, 0)).currency == "epsilon"
    assert Allowance(ApproxDP(1, "1e-5"), currency="rho").size == zcdp_within(epsilon=1, delta="1e-5").rho
    square = Allowance(ApproxDP(1, "1e-5")).size
    assert delta_of_gaussian(square, Fraction(1)) <= Fraction("1e-5") < delta_of_gaussian(square * Fraction("1.001"), Fraction(1))


def test_wrong_currencies_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="needs a δ"):
        Allowance(PureDP(1), currency="mu_squared")
    with pytest.raises(InvalidParameter, match="without a δ"):
        Allowance(ZCDP(1, "1e-6"))
    with pytest.raises(InvalidParameter, match="Gaussian noise only"):
        _ = Allowance(ApproxDP(1, "1e-5")).rest("all").epsilon
    with pytest.raises(InvalidParameter, match="never pure"):
        _ = Allowance(PureDP(1)).rest("all").mu_squared


@pytest.mark.parametrize("rows", [1, 4])
def test_a_person_with_several_rows_gets_the_group_s_share(rows: int) -> None:
    assert Allowance(PureDP(1), rows=rows).size * rows == 1
    assert Allowance(ZCDP(1), rows=rows).size * rows**2 == 1
    assert Allowance(ApproxDP(1, "1e-5"), rows=rows).size * rows**2 == Allowance(ApproxDP(1, "1e-5")).size


def test_a_pure_choice_under_rho_costs_no_more_than_its_share() -> None:
    share = Allowance(ZCDP("0.02")).rest("choice")
    assert share.epsilon**2 / 2 <= share.amount < (share.epsilon * Fraction("1.000001")) ** 2 / 2


@pytest.mark.parametrize("promise", [PureDP("0.5"), ApproxDP("0.5", "1e-5"), ZCDP("0.1")])
def test_noise_has_the_scale_that_is_declared(promise: PureDP | ApproxDP | ZCDP) -> None:
    share = Allowance(promise).rest("sums")
    count = 40_000
    noise = share.add(np.zeros(count, dtype=np.int64), l1=3, l2_squared=5, random=Random.deterministic(3))
    assert (noise == np.rint(noise)).all()
    expected = share.variance(l1=3, l2_squared=5)
    assert noise.var() == pytest.approx(expected, rel=0.06)  # seeded; five standard errors for Laplace's heavy tails
    scale = share.scale(l1=3, l2_squared=5)
    if share.currency == "epsilon":
        assert scale == Fraction(3) / share.amount
    else:
        assert Fraction(5) / scale**2 <= share.mu_squared < Fraction(5) / scale**2 * Fraction("1.000001")


def test_large_sums_are_added_as_whole_numbers() -> None:
    """Above 2⁵³ a float would round the sum before it is noised, and neighbours would lie further apart than declared."""
    for promise in (PureDP(1), ApproxDP(1, "1e-5")):
        left, right = (
            Allowance(promise)
            .rest("sum")
            .add(np.array([2**60 + side]), l1=2**10, l2_squared=4**10, random=Random.deterministic(5))
            for side in (0, 2**10)
        )
        assert (right - left).tolist() == [2.0**10]
    small = Allowance(PureDP(1)).rest("sum").add(np.array([2**60]), l1=1, l2_squared=1, random=Random.deterministic(5))
    assert abs(small[0] - 2.0**60) <= 2**8 + 100


def test_only_whole_numbers_are_noised() -> None:
    with pytest.raises(InvalidParameter, match="whole numbers"):
        Allowance(PureDP(1)).rest("sums").add(np.array([0.5]), l1=1, l2_squared=1)


def test_shapes_are_kept() -> None:
    found = Allowance(PureDP(1)).rest("sums").add(np.zeros((2, 3), dtype=np.int64), l1=1, l2_squared=1)
    assert found.shape == (2, 3)
    assert math.isfinite(found.sum())
