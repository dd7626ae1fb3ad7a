"""Many promises as one: the theorems against each other, and against what is known of them."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister import privacy
from cloister.errors import InvalidParameter, NotConvertible
from cloister.privacy import (
    ZCDP,
    ApproxDP,
    Guarantee,
    PureDP,
    advanced,
    best_of,
    heterogeneous,
    optimal,
    optimal_delta,
    parallel,
    poisson,
    sequential,
    shuffled,
    without_replacement,
)

epsilons = st.fractions(Fraction(1, 100), 3, max_denominator=100)


def binomial_delta(epsilon: Fraction, count: int, bound: Fraction) -> mpmath.mpf:
    """Σ over outputs of max(0, P − e^bound·Q) for that many randomised responses, in eighty digits."""
    mpmath.mp.dps = 80
    p = 1 / (1 + mpmath.exp(-mpmath.mpf(epsilon.numerator) / epsilon.denominator))
    factor = mpmath.exp(mpmath.mpf(bound.numerator) / bound.denominator)
    q = 1 - p
    return mpmath.fsum(
        math.comb(count, wrong) * max(0, p ** (count - wrong) * q**wrong - factor * q ** (count - wrong) * p**wrong)
        for wrong in range(count + 1)
    )


@settings(max_examples=60)
@given(epsilons, st.integers(1, 40), st.fractions(0, 1))
def test_the_optimal_theorem_is_the_binomial_sum(epsilon: Fraction, count: int, share: Fraction) -> None:
    bound = share * count * epsilon
    truth = binomial_delta(epsilon, count, bound)
    found = optimal_delta(PureDP(epsilon), count, bound)
    exactly = mpmath.mpf(found.numerator) / found.denominator
    tiny = mpmath.mpf(10) ** -60  # what eighty digits of the sum itself leave open
    assert truth * (1 - mpmath.mpf(10) ** -50) - tiny <= exactly <= truth * (1 + mpmath.mpf(10) ** -13) + tiny


@settings(max_examples=60)
@given(epsilons, st.integers(1, 40), st.integers(1, 60), st.sampled_from(["0", "1e-20", "1e-4"]))
def test_optimal_and_its_inverse(epsilon: Fraction, count: int, power: int, slack: str) -> None:
    delta = Fraction(1, 2**power)
    guarantee = ApproxDP(epsilon, slack)
    try:
        found = optimal(guarantee, count, delta)
    except NotConvertible:
        assert 1 - (1 - guarantee.delta) ** count > delta
        return
    assert optimal_delta(guarantee, count, found.epsilon) <= delta * (1 + Fraction(1, 10**12))
    assert found.epsilon <= count * epsilon


def test_the_sum_of_wrong_answers_is_known() -> None:
    found = optimal(PureDP(1), 500, "1e-5")
    assert Fraction("311.7") < found.epsilon < Fraction("311.9")


def test_when_the_advanced_theorem_wins() -> None:
    """At ε = 0.1 from some tens of queries on; at ε = 1 never."""

    def first_win(epsilon: str) -> int | None:
        each = Fraction(epsilon)
        return next((k for k in range(1, 400) if advanced(PureDP(each), k, "1e-6").epsilon < k * each), None)

    assert first_win("1") is None
    won = first_win("0.1")
    assert won is not None
    assert 30 <= won <= 50
    assert advanced(PureDP(1), 10_000, "1e-6").epsilon > 10_000
    for k in (won, 100, 300):
        assert optimal(PureDP("0.1"), k, "1e-6").epsilon < advanced(PureDP("0.1"), k, "1e-6").epsilon


def test_advanced_is_its_formula() -> None:
    found = advanced(ApproxDP("0.1", "1e-8"), 100, "1e-6")
    truth = 0.1 * math.sqrt(2 * 100 * math.log(1e6)) + 100 * 0.1 * math.expm1(0.1)
    assert float(found.epsilon) == pytest.approx(truth, rel=1e-13)
    assert found.delta == Fraction(2, 10**6)
    assert advanced(PureDP(0), 5, "1e-6") == ApproxDP(0, "1e-6")


@settings(max_examples=30)
@given(st.lists(epsilons, min_size=1, max_size=12), st.integers(5, 40))
def test_no_theorem_passes_the_sum_and_more_releases_cost_more(parts: list[Fraction], power: int) -> None:
    delta = Fraction(1, 2**power)
    batch = [PureDP(part) for part in parts]
    found = best_of(batch, delta)
    assert found.epsilon <= sum(parts)
    assert found.epsilon <= heterogeneous(batch, delta).epsilon
    assert best_of([*batch, PureDP("0.5")], delta).epsilon >= found.epsilon * Fraction(999, 1000)


def test_different_guarantees_alike_in_size_cost_what_equal_ones_do() -> None:
    mixed = [PureDP(Fraction(100 + i, 1000)) for i in range(-20, 21)]
    found = heterogeneous(mixed, "1e-6").epsilon
    assert optimal(PureDP("0.08"), 41, "1e-6").epsilon < found < optimal(PureDP("0.12"), 41, "1e-6").epsilon


def test_the_binomial_sum_and_the_transform_agree_where_they_meet() -> None:
    below, above = optimal(PureDP("0.01"), 20_000, "1e-6"), optimal(PureDP("0.01"), 20_001, "1e-6")
    assert 1 < above.epsilon / below.epsilon < Fraction(10005, 10000)
    assert optimal_delta(PureDP("0.01"), 20_001, above.epsilon) <= Fraction(1001, 10**9)


def test_tiny_and_huge_guarantees() -> None:
    assert optimal(PureDP("1e-300"), 100, "1e-6").epsilon <= Fraction(1, 10**298)
    assert optimal(PureDP("1e300"), 3, "1e-6").epsilon <= 3 * Fraction(10) ** 300
    assert advanced(PureDP("1e-300"), 3, "1e-6").epsilon > 0


def test_sums_and_maxima() -> None:
    assert sequential([]) == parallel([]) == PureDP(0)
    assert sequential([PureDP("0.1"), ApproxDP("0.2", "1e-6")]) == ApproxDP("0.3", "1e-6")
    assert sequential([PureDP(2), ZCDP("0.1")]) == ZCDP("2.1")
    assert parallel([PureDP("0.1"), PureDP("0.3"), PureDP("0.2")]) == PureDP("0.3")
    assert parallel([PureDP(2), ZCDP("0.1")]) == ZCDP(2)
    assert parallel([ZCDP("0.3", "1e-6"), ZCDP("0.1", "1e-5")]) == ZCDP("0.3", "1e-5")
    for compose in (sequential, parallel):
        with pytest.raises(NotConvertible):
            compose([ApproxDP(1, "1e-6"), ZCDP(1)])


@given(st.lists(st.builds(PureDP, epsilons) | st.builds(ApproxDP, epsilons, st.just("1e-9")), max_size=5))
def test_the_parts_lie_within_the_maximum_and_that_within_the_sum(parts: list[Guarantee]) -> None:
    top, total = parallel(parts), sequential(parts)
    assert all(part <= top for part in parts)
    assert top <= total


def test_best_of_takes_the_least() -> None:
    assert best_of([PureDP("0.1")] * 5, 0) == ApproxDP("0.5", 0)
    few, many = [PureDP("0.1")] * 5, [PureDP("0.1")] * 500
    assert best_of(few, "1e-9").epsilon <= Fraction("0.5")
    assert best_of(many, "1e-9").epsilon == optimal(PureDP("0.1"), 500, "1e-9").epsilon
    assert best_of([ZCDP("0.1"), PureDP("0.1")], "1e-6").epsilon > 2
    assert best_of([ApproxDP("0.1", "1e-8")] * 10, "1e-6").delta == Fraction(1, 10**6)
    for batch, delta in (([ZCDP("0.1")], 0), ([ApproxDP(1, "1e-3")], "1e-6")):
        with pytest.raises(NotConvertible):
            best_of(batch, delta)


@pytest.mark.parametrize("count", [0, -1, "1.5", math.nan, True, "", "１"])
def test_a_count_is_a_whole_number(count: int) -> None:
    for theorem in (optimal, advanced):
        with pytest.raises(InvalidParameter):
            theorem(PureDP(1), count, "1e-6")
    with pytest.raises(InvalidParameter):
        optimal_delta(PureDP(1), count, 1)


def test_what_promises_nothing_is_refused() -> None:
    with pytest.raises(NotConvertible):
        advanced(PureDP(1), 5, 0)
    with pytest.raises(NotConvertible):
        advanced(ApproxDP(1, "0.3"), 5, "1e-6")


@given(epsilons, st.fractions(0, 1))
def test_sampling_amplifies_and_is_rounded_up(epsilon: Fraction, rate: Fraction) -> None:
    mpmath.mp.dps = 60
    found = poisson(PureDP(epsilon), rate)
    assert isinstance(found, PureDP)
    truth = mpmath.log1p(
        (mpmath.mpf(rate.numerator) / rate.denominator) * mpmath.expm1(mpmath.mpf(epsilon.numerator) / epsilon.denominator)
    )
    exactly = mpmath.mpf(found.epsilon.numerator) / found.epsilon.denominator
    assert truth * (1 - mpmath.mpf(10) ** -50) <= exactly <= truth * (1 + mpmath.mpf(10) ** -13)
    assert found.epsilon <= epsilon


def test_sampling_without_replacement_and_at_extremes() -> None:
    assert without_replacement(PureDP(1), taken=1, of=100) == poisson(PureDP(1), "0.01")
    assert poisson(ApproxDP(1, "1e-6"), "0.5").delta == Fraction(1, 2 * 10**6)  # type: ignore[union-attr]
    assert poisson(PureDP(1), 1) == PureDP(1)
    assert poisson(PureDP(1), 0) == PureDP(0)
    far = poisson(PureDP("1e300"), "0.5")
    assert isinstance(far, PureDP)
    assert far.epsilon <= Fraction(10) ** 300
    for rate in (2, -1, "nan", True):
        with pytest.raises(InvalidParameter):
            poisson(PureDP(1), rate)
    for taken, of in ((0, 5), (6, 5), ("1.5", 5), (1, 0)):
        with pytest.raises(InvalidParameter):
            without_replacement(PureDP(1), taken=taken, of=of)  # type: ignore[arg-type]
    with pytest.raises(NotConvertible):
        poisson(ZCDP(1), "0.1")


def test_shuffling_is_its_formula_where_the_theorem_reaches() -> None:
    e0, n, delta = 1.0, 100_000, 1e-6
    truth = math.log(1 + math.tanh(e0 / 2) * (8 * math.sqrt(math.exp(e0) * math.log(4 / delta) / n) + 8 * math.exp(e0) / n))
    assert float(shuffled(PureDP(1), reports=n, delta="1e-6").epsilon) == pytest.approx(truth, rel=1e-12)
    assert shuffled(PureDP(8), reports=n, delta="1e-6").epsilon == 8  # ε₀ above ln(n/(16·ln(2/δ))): no amplification is proved
    assert shuffled(PureDP(1), reports=10, delta="1e-6").epsilon == 1
    assert shuffled(PureDP(0), reports=10**6, delta="1e-6").epsilon == 0
    for reports in (0, -5, "1.5"):
        with pytest.raises(InvalidParameter):
            shuffled(PureDP(1), reports=reports, delta="1e-6")  # type: ignore[arg-type]
    with pytest.raises(NotConvertible):
        shuffled(PureDP(1), reports=1000, delta=0)
    with pytest.raises(NotConvertible):
        shuffled(ZCDP(1), reports=1000, delta="1e-6")  # type: ignore[arg-type]


def test_a_number_stands_for_its_epsilon_wherever_a_guarantee_is_taken() -> None:
    """And for its ρ where a ρ is."""
    for number in (1, "1", Fraction(1), 1.0, Decimal(1)):
        pure = PureDP(1)
        assert privacy.optimal(number, 500, "1e-5") == privacy.optimal(pure, 500, "1e-5")
        assert privacy.optimal_delta(number, 3, 2) == privacy.optimal_delta(pure, 3, 2)
        assert privacy.advanced(number, 10, "1e-5") == privacy.advanced(pure, 10, "1e-5")
        assert privacy.for_groups(number, 3) == PureDP(3)
        assert privacy.to_bounded(number) == PureDP(2)
        assert privacy.between_neighbours(number, source="bounded", target="bounded") == pure
        assert privacy.sequential([number, pure]) == PureDP(2)
        assert privacy.parallel([number, "0.5"]) == pure
        assert privacy.best_of([number] * 5, 0) == ApproxDP(5, 0)
        assert privacy.heterogeneous([number, 2], "1e-6") == privacy.heterogeneous([pure, PureDP(2)], "1e-6")
        assert privacy.poisson(number, "0.1") == privacy.poisson(pure, "0.1")
        assert privacy.without_replacement(number, taken=1, of=10) == privacy.without_replacement(pure, taken=1, of=10)
        assert privacy.shuffled(number, reports=10**5, delta="1e-6") == privacy.shuffled(pure, reports=10**5, delta="1e-6")
        assert privacy.delta_of_pure(number, 0) == privacy.delta_of_approx(number, 0) == privacy.delta_of_pure(pure, 0)
        assert privacy.epsilon_of_pure(number, "0.1") == privacy.epsilon_of_pure(pure, "0.1")
        assert privacy.zcdp_of_pure(number) == privacy.zcdp_of_approx(number) == privacy.zcdp_of_pure(pure)
        assert privacy.epsilon_of_zcdp(number, "1e-6") == privacy.epsilon_of_zcdp(ZCDP(1), "1e-6")
        assert privacy.simple_epsilon_of_zcdp(number, "1e-6") == privacy.simple_epsilon_of_zcdp(ZCDP(1), "1e-6")
        assert privacy.delta_of_zcdp(number, 2) == privacy.delta_of_zcdp(ZCDP(1), 2)
        assert privacy.PrivacyLossDistribution.of_guarantee(number) == privacy.PrivacyLossDistribution.of_guarantee(pure)


@pytest.mark.parametrize("bad", [None, -1, "a lot", float("nan"), [1], True])
def test_what_is_neither_a_guarantee_nor_a_number_is_refused_in_our_own_words(bad: Any) -> None:
    for take in (
        lambda: privacy.optimal(bad, 2, "1e-5"),
        lambda: privacy.advanced(bad, 2, "1e-5"),
        lambda: privacy.for_groups(bad, 2),
        lambda: privacy.sequential([bad]),
        lambda: privacy.zcdp_of_pure(bad),
        lambda: privacy.epsilon_of_zcdp(bad, "1e-6"),
    ):
        with pytest.raises(InvalidParameter):
            take()


def test_a_promise_of_the_wrong_kind_is_refused_and_never_read_as_another() -> None:
    for take in (
        lambda: privacy.optimal(ZCDP(1), 2, "1e-5"),
        lambda: privacy.advanced(ZCDP(1), 2, "1e-5"),
        lambda: privacy.optimal_delta(ZCDP(1), 2, 1),
        lambda: privacy.epsilon_of_pure(ApproxDP(1, "0.5"), "0.6"),
        lambda: privacy.zcdp_of_pure(ApproxDP(1, "0.5")),
        lambda: privacy.epsilon_of_zcdp(ApproxDP(1, "1e-9"), "1e-6"),
        lambda: privacy.PureOdometer().after(ApproxDP(1, "0.5")),
        lambda: privacy.PureOdometer().after(ZCDP(1)),
        lambda: privacy.RenyiCurve.pure(ApproxDP(1, "0.5")),
        lambda: privacy.RenyiCurve.zcdp(ApproxDP(1, "0.5")),
    ):
        with pytest.raises(NotConvertible):
            take()
