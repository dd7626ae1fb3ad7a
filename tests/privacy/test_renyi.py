"""Rényi curves: closed forms against integrals, and what they imply."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate

from cloister.errors import InvalidParameter, NotConvertible
from cloister.privacy import ZCDP, PrivacyLossDistribution, PureDP, RenyiCurve, epsilon_of_zcdp
from cloister.privacy.renyi import ORDERS

orders = st.fractions(Fraction(101, 100), 64, max_denominator=100)
epsilons = st.fractions(Fraction(1, 100), 5, max_denominator=100)


def divergence(log_p: object, log_q: object, order: float, *, edges: list[float]) -> float:
    def inside(x: float) -> float:
        return math.exp(order * log_p(x) + (1 - order) * log_q(x))  # type: ignore[operator]

    total = sum(integrate.quad(inside, a, b, epsabs=0, epsrel=1e-11, limit=500)[0] for a, b in pairwise(edges))
    return math.log(total) / (order - 1)


@pytest.mark.parametrize("order", [1.1, 2.0, 5.5, 20.0])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_laplace_against_the_integral(order: float, epsilon: float) -> None:
    truth = divergence(
        lambda x: -abs(x) - math.log(2), lambda x: -abs(x - epsilon) - math.log(2), order, edges=[-60, 0, epsilon, epsilon + 60]
    )
    found = float(RenyiCurve.laplace(str(epsilon), [str(order)]).divergences[0])
    assert found == pytest.approx(truth, rel=1e-8)


@pytest.mark.parametrize("order", [2, 3, 8])
@pytest.mark.parametrize(("sigma", "rate"), [(1.0, 0.01), (2.0, 0.2), (0.7, 0.5)])
def test_sampled_gaussian_against_the_integral(order: int, sigma: float, rate: float) -> None:
    def log_q(x: float) -> float:
        return -x * x / 2 / sigma**2 - math.log(sigma * math.sqrt(2 * math.pi))

    def log_p(x: float) -> float:
        return log_q(x) + math.log(1 - rate + rate * math.exp((2 * x - 1) / 2 / sigma**2))

    spread = 12 * sigma + order
    truth = max(
        divergence(log_p, log_q, order, edges=[-spread, 0, 1, spread]),
        divergence(log_q, log_p, order, edges=[-spread, 0, 1, spread]),
    )
    found = float(
        RenyiCurve.sampled_gaussian(mu_squared=1 / Fraction(str(sigma)) ** 2, rate=str(rate), orders=[order]).divergences[0]
    )
    assert found == pytest.approx(truth, rel=1e-7)


@pytest.mark.parametrize("order", ["1.3", "2.5", "6.25"])
def test_between_whole_orders_the_chord_is_above_the_integral(order: str) -> None:
    def log_p(x: float) -> float:
        return -x * x / 2 + math.log(0.9 + 0.1 * math.exp(x - 0.5))

    truth = divergence(log_p, lambda x: -x * x / 2, float(order), edges=[-20, 0, 1, 20])
    truth -= math.log(math.sqrt(2 * math.pi)) / (1 - float(order)) * -1  # both densities lack their constant
    found = float(RenyiCurve.sampled_gaussian(mu_squared=1, rate="0.1", orders=[order]).divergences[0])
    assert found >= truth * (1 - 1e-9)
    assert found <= truth * 2.5


@settings(max_examples=40)
@given(epsilons, orders)
def test_pure_is_above_laplace_and_below_its_bounds(epsilon: Fraction, order: Fraction) -> None:
    pure = RenyiCurve.pure(PureDP(epsilon), [order]).divergences[0]
    laplace = RenyiCurve.laplace(epsilon, [order]).divergences[0]
    assert 0 < laplace <= pure * (1 + Fraction(1, 10**13))
    assert pure <= min(epsilon, order * epsilon**2 / 2)
    p = 1 / (1 + math.exp(-float(epsilon)))
    a = float(order)
    if a * float(epsilon) < 600:
        truth = math.log(p**a * (1 - p) ** (1 - a) + (1 - p) ** a * p ** (1 - a)) / (a - 1)
        assert float(pure) == pytest.approx(truth, rel=1e-6)


def test_pure_meets_its_zcdp_line_at_one() -> None:
    near = RenyiCurve.pure(PureDP(2), ["1.0001"]).divergences[0]
    assert float(near) == pytest.approx(2 * math.tanh(1) * 1.0001, rel=1e-3)


@settings(max_examples=20)
@given(st.fractions(Fraction(1, 1000), 2, max_denominator=1000), st.integers(5, 60))
def test_a_curve_implies_no_more_than_rho_and_nearly_as_much(rho: Fraction, power: int) -> None:
    delta = Fraction(1, 2**power)
    found, best = RenyiCurve.zcdp(ZCDP(rho)).to_approx(delta).epsilon, epsilon_of_zcdp(ZCDP(rho), delta)
    assert best <= found * (1 + Fraction(1, 10**12))
    assert found <= best * Fraction(102, 100) + Fraction(1, 1000)


def test_a_curve_is_never_better_than_the_loss_distribution() -> None:
    curve = RenyiCurve.laplace("0.1") * 50 + RenyiCurve.gaussian(mu_squared="0.3")
    batch = PrivacyLossDistribution.laplace("0.1") * 50 + PrivacyLossDistribution.gaussian(mu_squared="0.3")
    assert batch.epsilon("1e-6") <= curve.to_approx("1e-6").epsilon <= batch.epsilon("1e-6") * Fraction(115, 100)


def test_arithmetic_of_curves() -> None:
    one = RenyiCurve([2, 4], ["0.1", "0.2"])
    assert (one + one).divergences == (one * 2).divergences == (Fraction(1, 5), Fraction(2, 5))
    assert (one + RenyiCurve([4, 8], [1, 1])).orders == (4,)
    assert one <= one * 2
    assert not one * 2 <= one
    assert not one <= RenyiCurve([2, 3], [1, 1])  # at order 3 nothing is known of it
    assert one.rounded(1).divergences == one.divergences
    with pytest.raises(NotConvertible):
        _ = one + RenyiCurve([3], [1])
    with pytest.raises(NotConvertible):
        RenyiCurve.zcdp(ZCDP(1, "1e-6"))
    with pytest.raises(NotConvertible):
        one.to_approx(0)
    assert RenyiCurve.zcdp(ZCDP(0)).to_approx(0).epsilon == 0


def test_the_orders_are_dense() -> None:
    assert ORDERS[0] < Fraction("1.01")
    assert ORDERS[-1] > 3000
    assert {2, 3, 8} <= set(ORDERS)


@pytest.mark.parametrize("size", ["1e-300", "1e-13", "1e30", "1e300"])
def test_extreme_parameters_stay_within_their_bounds(size: str) -> None:
    number = Fraction(size)
    for alpha in (Fraction(10**9 + 1, 10**9), Fraction(2), Fraction(100)):
        assert RenyiCurve.pure(PureDP(number), [alpha]).divergences[0] <= number
        found = RenyiCurve.laplace(number, [alpha]).divergences[0]
        assert 0 < found <= min(number, alpha * number**2 / 2)
        assert RenyiCurve.sampled_gaussian(mu_squared=number, rate="0.01", orders=[alpha]).divergences[0] <= alpha * number / 2


@pytest.mark.parametrize(
    "make",
    [
        lambda: RenyiCurve([], []),
        lambda: RenyiCurve([2], [1, 2]),
        lambda: RenyiCurve([1], [1]),
        lambda: RenyiCurve([3, 2], [1, 1]),
        lambda: RenyiCurve([2], [-1]),
        lambda: RenyiCurve([2], [math.nan]),
        lambda: RenyiCurve([True], [1]),
        lambda: RenyiCurve.sampled_gaussian(mu_squared=1, rate=2),
        lambda: RenyiCurve.laplace("-1"),
    ],
)
def test_what_is_no_curve_is_refused(make: object) -> None:
    with pytest.raises(InvalidParameter):
        make()  # type: ignore[operator]


def test_a_curve_is_repeated_whole_times() -> None:
    curve = RenyiCurve.gaussian(mu_squared=1, orders=[2])
    assert (curve * 3).divergences == (Fraction(3),)
    for times in (Fraction(1, 2), "0.5", -1):
        with pytest.raises(InvalidParameter):
            curve * times
