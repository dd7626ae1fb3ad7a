"""Shuffled reports: the numbers of the theorem, its condition, the way back, and the shuffle itself."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from cloister.errors import InvalidParameter, NotConvertible
from cloister.local import DirectEncoding, UnaryEncoding, after_shuffling, largest_local_epsilon, local_epsilon_for, shuffle
from cloister.noise import Random


def formula(local: float, n: int, delta: float) -> float:
    """Feldman, McMillan & Talwar (2021), Theorem 3.1, in floating point."""
    odds = math.exp(local)
    return math.log(1 + (odds - 1) / (odds + 1) * (8 * math.sqrt(odds * math.log(4 / delta) / n) + 8 * odds / n))


def test_the_published_numbers() -> None:
    found = [float(after_shuffling(1, reports=n, delta="1e-6").epsilon) for n in (10**4, 10**5, 10**6)]
    assert found == [pytest.approx(each, rel=5e-3) for each in (0.214, 0.0726, 0.0235)]


@pytest.mark.parametrize(("local", "n", "delta"), [("0.1", 5_000, "1e-6"), ("2", 10**6, "1e-9"), ("4", 10**7, "1e-8")])
def test_it_is_the_formula_rounded_up(local: str, n: int, delta: str) -> None:
    found = after_shuffling(local, reports=n, delta=delta)
    assert float(found.epsilon) == pytest.approx(min(float(local), formula(float(local), n, float(delta))), rel=1e-9)
    assert found.delta == Fraction(delta)


def test_the_condition_is_the_theorems_and_beyond_it_nothing_is_said() -> None:
    most = largest_local_epsilon(reports=10_000, delta="1e-6")
    assert most is not None
    assert float(most) == pytest.approx(math.log(10_000 / (16 * math.log(2e6))), rel=1e-12)
    assert after_shuffling(most, reports=10_000, delta="1e-6").epsilon <= most
    with pytest.raises(NotConvertible, match=r"which is 3\.763 here"):
        after_shuffling(most + Fraction(1, 10**6), reports=10_000, delta="1e-6")
    with pytest.raises(NotConvertible, match="which no ε keeps here"):
        after_shuffling("0.01", reports=200, delta="1e-6")


def test_an_oracle_may_be_given_for_its_epsilon() -> None:
    oracle = DirectEncoding(range(10), 1)
    assert after_shuffling(oracle, reports=10**5, delta="1e-6") == after_shuffling(1, reports=10**5, delta="1e-6")


@pytest.mark.parametrize("target", ["0.01", "0.1", "1"])
def test_the_way_back_is_never_above_and_nearly_there(target: str) -> None:
    local = local_epsilon_for(target, reports=10**6, delta="1e-6")
    reached = after_shuffling(local, reports=10**6, delta="1e-6").epsilon
    assert reached <= Fraction(target)
    assert reached > Fraction(target) * Fraction(999_999, 10**6)


def test_a_target_that_the_condition_caps_gets_the_largest() -> None:
    assert local_epsilon_for(10, reports=10**4, delta="1e-6") == largest_local_epsilon(reports=10**4, delta="1e-6")
    with pytest.raises(NotConvertible, match="too few"):
        local_epsilon_for("0.1", reports=100, delta="1e-6")
    with pytest.raises(NotConvertible, match="too few"):
        local_epsilon_for("1e-9", reports=10**4, delta="1e-6")


def test_a_shuffle_keeps_the_reports_and_nothing_of_their_order() -> None:
    """All 6 orders of three reports in 6,000 shuffles, each within 5.5 deviations of 1,000: false alarm 2e-7."""
    random = Random.deterministic(1)
    orders = Counter(tuple(shuffle([0, 1, 2], random=random).tolist()) for _ in range(6_000))
    assert len(orders) == 6
    assert max(abs(count - 1_000) for count in orders.values()) < 5.5 * math.sqrt(6_000 * 5 / 36)


def test_rows_stay_whole_and_estimates_stay_the_same() -> None:
    oracle = UnaryEncoding(range(130), 1)
    reports = oracle.randomize(np.arange(130).repeat(3), random=Random.deterministic(1))
    mixed = shuffle(reports, random=Random.deterministic(2))
    assert not np.array_equal(mixed, reports)
    assert oracle.aggregate(mixed) == oracle.aggregate(reports)


def test_bad_input_is_refused_with_its_own_message() -> None:
    for reports in (0, -1, True, 1.5):
        with pytest.raises(InvalidParameter, match="reports is invalid"):
            after_shuffling(1, reports=reports, delta="1e-6")  # type: ignore[arg-type]
    with pytest.raises(NotConvertible, match="δ = 0"):
        after_shuffling(1, reports=100, delta=0)
    with pytest.raises(InvalidParameter, match="less than 1"):
        after_shuffling(1, reports=100, delta=1)
    with pytest.raises(InvalidParameter, match="greater than 0"):
        after_shuffling(0, reports=100, delta="1e-6")
    with pytest.raises(InvalidParameter, match="not a list"):
        shuffle(3)
