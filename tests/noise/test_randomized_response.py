"""Randomised response: published privacy, exact probabilities, unbiased estimates."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from cloister.errors import InvalidParameter
from cloister.noise.random import Random
from cloister.noise.randomized_response import BinaryResponse, KaryResponse
from cloister.privacy.guarantee import PureDP


class Counter(Random):
    """Hands out 0 … bound − 1 in turn, so that one round of it shows the exact law."""

    __slots__ = ()

    def below(self, bound: int, n: int) -> np.ndarray:
        return np.arange(n) % bound


@pytest.mark.parametrize(
    ("truth", "coin", "ratio"),
    [
        ("1/2", "1/2", 3),  # fair second coin: (1 + p)/(1 − p)
        ("0.8", "1/2", 9),
        ("0.8", "0.8", 21),  # one coin of bias p thrown twice: 1 + p/(1 − p)²
        ("0.8", "0.2", 21),
        ("1/2", "1/4", 5),  # 1 + p/((1 − p) q)
        (0, "1/3", 1),
    ],
)
def test_binary_epsilon_is_just_above_the_logarithm(truth: object, coin: object, ratio: int) -> None:
    epsilon = BinaryResponse(truth=truth, coin=coin).guarantee.epsilon
    assert float(epsilon) == pytest.approx(math.log(ratio), abs=1e-15)
    # e^ε ≥ ratio, shown with the exponential series from below: no rounding hides a shortfall
    series = sum((epsilon**k / math.factorial(k) for k in range(60)), Fraction(0))
    assert series >= ratio


def test_binary_probabilities_are_exact() -> None:
    mechanism = BinaryResponse(truth="2/5", coin="1/3")
    low, high = mechanism.yes
    assert (low, high) == (Fraction(1, 5), Fraction(3, 5))
    for truth, probability in ((False, low), (True, high)):
        reports = mechanism.release(np.full(500, truth), random=Counter())
        assert reports.sum() == 500 * probability


def test_kary_probabilities_are_exact_and_every_category_is_possible() -> None:
    mechanism = KaryResponse(categories=4, truth="2/5")
    for truth in range(4):
        counts = np.bincount(mechanism.release(np.full(1500, truth), random=Counter()), minlength=4)
        assert counts.tolist() == [600 if place == truth else 300 for place in range(4)]


@pytest.mark.parametrize(("categories", "truth", "ratio"), [(2, "3/4", 3), (10, "1/2", 9), (5, "1/100", 24.75), (3, "1/3", 1)])
def test_kary_epsilon(categories: int, truth: str, ratio: float) -> None:
    assert float(KaryResponse(categories=categories, truth=truth).guarantee.epsilon) == pytest.approx(math.log(ratio), abs=1e-15)


@pytest.mark.parametrize("epsilon", ["0.01", "1", "2.5", "27"])
def test_for_epsilon_never_costs_more_and_wastes_next_to_nothing(epsilon: str) -> None:
    for mechanism in (BinaryResponse.for_epsilon(epsilon), KaryResponse.for_epsilon(epsilon, categories=7)):
        assert mechanism.guarantee <= PureDP(epsilon)
        # one unit of the 2⁻⁴⁰ grid, felt at 1 − truth = e^(−27)
        assert float(epsilon) - float(mechanism.guarantee.epsilon) < (1 if epsilon == "27" else 1e-9)


def test_binary_response_is_the_case_of_two_categories() -> None:
    one, two = BinaryResponse(truth="1/2"), KaryResponse(categories=2, truth="3/4")
    assert one.guarantee == two.guarantee
    assert one.yes == (1 - two.truth, two.truth)
    assert one.variance == pytest.approx(two.variance)


def test_estimates_are_unbiased_and_within_their_margins() -> None:
    random = Random.deterministic(4)
    values = np.arange(20_000) % 10 < 3
    mechanism = BinaryResponse(truth="0.4", coin="0.7")
    estimate = mechanism.estimate(mechanism.release(values, random=random))
    assert abs(estimate - 0.3) < mechanism.margin(1 - 1e-9, reports=20_000)
    assert mechanism.margin(0.95, reports=20_000) >= 1.9 * math.sqrt(mechanism.variance / 20_000)
    categories = np.arange(20_000) % 5
    kary = KaryResponse(categories=5, truth="0.4")
    counts = kary.estimate(kary.release(categories, random=random))
    assert counts.sum() == pytest.approx(20_000)
    assert np.abs(counts - 4000).max() < kary.margin(1 - 1e-9, reports=20_000)


def test_large_denominators_and_many_categories() -> None:
    random = Random.deterministic(5)
    fine = KaryResponse(categories=1000, truth=Fraction(10**30, 10**30 + 1))
    assert fine.release([0, 999, 500], random=random).tolist() == [0, 999, 500]
    assert fine.release(7, random=random) == 7


@pytest.mark.parametrize("bad", [{"truth": 1}, {"truth": "1/2", "coin": 0}, {"truth": "1/2", "coin": 1}, {"truth": -1}])
def test_infinite_epsilon_is_refused(bad: dict[str, object]) -> None:
    with pytest.raises(InvalidParameter, match="infinite"):
        BinaryResponse(**bad)


def test_refusals_show_no_value() -> None:
    with pytest.raises(InvalidParameter) as caught:
        BinaryResponse(truth="1/2").release([1, 0])
    assert "[1, 0]" not in str(caught.value)
    for bad in (7, [-1], [0.5], "a"):
        with pytest.raises(InvalidParameter):
            KaryResponse(categories=3, truth="1/2").release(bad)
    for bad_kary in ({"categories": 1, "truth": "1/2"}, {"categories": 3, "truth": 1}, {"categories": 3, "truth": 0}):
        with pytest.raises(InvalidParameter):
            KaryResponse(**bad_kary)
    with pytest.raises(InvalidParameter):
        KaryResponse(categories=2, truth="1/2").estimate(np.array([0, 1]))
    with pytest.raises(InvalidParameter):
        BinaryResponse.for_epsilon(28)
