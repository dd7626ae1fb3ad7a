"""From one promise to another: against independent formulas, always rounded towards more spending."""

from __future__ import annotations

import math
import threading
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from cloister.errors import InvalidParameter, NotConvertible
from cloister.privacy import (
    ZCDP,
    ApproxDP,
    Guarantee,
    PureDP,
    between_neighbours,
    delta_of_approx,
    delta_of_gaussian,
    delta_of_pure,
    delta_of_zcdp,
    epsilon_of_gaussian,
    epsilon_of_pure,
    epsilon_of_renyi,
    epsilon_of_zcdp,
    for_groups,
    mu_squared_of_gaussian,
    sigma_of_gaussian,
    simple_epsilon_of_zcdp,
    to_bounded,
    zcdp_of_approx,
    zcdp_of_pure,
    zcdp_within,
)
from cloister.privacy.gaussian import _delta_at
from cloister.privacy.precision import down, real, rounded_down, rounded_up, up

epsilons = st.fractions(Fraction(1, 1000), 50, max_denominator=1000)
deltas = st.integers(1, 60).map(lambda n: Fraction(1, 2**n))
rhos = st.fractions(Fraction(1, 10**6), 20, max_denominator=10**6)


def exactly(value: Fraction) -> mpmath.mpf:
    """Eighty digits, by a route of its own."""
    mpmath.mp.dps = 80
    return mpmath.mpf(value.numerator) / value.denominator


def close_above(found: Fraction, truth: mpmath.mpf, relative: float = 1e-13) -> bool:
    difference = exactly(found) - truth
    return bool(0 <= difference <= relative * abs(truth) + mpmath.mpf(10) ** -70)


@given(st.fractions(max_denominator=10**12), st.integers(1, 20))
def test_rounding_is_outwards_and_by_one_unit_at_most(value: Fraction, digits: int) -> None:
    low, high = rounded_down(value, digits), rounded_up(value, digits)
    assert low <= value <= high
    assert high - low <= 2 * abs(value) * Fraction(10) ** (1 - digits)
    assert down(real(value), digits) <= value <= up(real(value), digits)


@given(epsilons)
def test_pure_to_zcdp_is_tight_and_never_above_the_simple_form(epsilon: Fraction) -> None:
    rho = zcdp_of_pure(PureDP(epsilon)).rho
    truth = exactly(epsilon) * mpmath.tanh(exactly(epsilon) / 2)
    assert close_above(rho, truth)
    assert rho <= epsilon**2 / 2


@given(epsilons, st.floats(1.0001, 500))
def test_no_order_passes_the_zcdp_line_of_pure_epsilon(epsilon: Fraction, order: float) -> None:
    half, far = exactly(epsilon) / 2, (mpmath.mpf(order) - 0.5) * exactly(epsilon)
    divergence = mpmath.log(mpmath.cosh(far) / mpmath.cosh(half)) / (mpmath.mpf(order) - 1)
    assert divergence <= order * exactly(zcdp_of_pure(PureDP(epsilon)).rho)


@given(epsilons, deltas)
def test_pure_to_approx_is_the_loss_of_randomised_response(epsilon: Fraction, delta: Fraction) -> None:
    found = epsilon_of_pure(PureDP(epsilon), delta)
    big = mpmath.exp(exactly(epsilon))
    inside = big - exactly(delta) * (1 + big)
    truth = mpmath.log(inside) if inside > 1 else mpmath.mpf(0)
    assert 0 <= exactly(found) - truth <= 1e-13 * float(epsilon)
    assert delta_of_pure(PureDP(epsilon), found) <= delta * (1 + Fraction(1, 10**13))


@given(epsilons, deltas, st.fractions(0, 1))
def test_a_smaller_epsilon_costs_delta(epsilon: Fraction, delta: Fraction, share: Fraction) -> None:
    guarantee = ApproxDP(epsilon, delta)
    found = delta_of_approx(guarantee, share * epsilon)
    big, small = mpmath.exp(exactly(epsilon)), mpmath.exp(exactly(share * epsilon))
    truth = exactly(delta) + (1 - exactly(delta)) * (big - small) / (1 + big)
    assert close_above(found, truth) or found == delta
    assert found >= delta
    assert delta_of_approx(guarantee, epsilon + 1) == delta


@given(rhos, deltas)
def test_zcdp_to_epsilon_is_the_best_order_and_never_below_it(rho: Fraction, delta: Fraction) -> None:
    found = epsilon_of_zcdp(ZCDP(rho), delta)
    r, log_delta = float(rho), math.log(delta)

    def at(t: float) -> float:
        above = math.exp(t)
        return (1 + above) * r - math.log1p(1 / above) - (log_delta + math.log1p(above)) / above

    grid = np.linspace(-25, 25, 2001)
    start = grid[int(np.argmin([at(t) for t in grid]))]
    best = optimize.minimize_scalar(at, bounds=(start - 0.05, start + 0.05), method="bounded", options={"xatol": 1e-10}).fun
    assert float(found) == pytest.approx(max(best, 0.0), rel=1e-8, abs=1e-9)
    assert found <= simple_epsilon_of_zcdp(ZCDP(rho), delta)


@given(rhos, deltas)
def test_zcdp_there_and_back(rho: Fraction, delta: Fraction) -> None:
    epsilon = epsilon_of_zcdp(ZCDP(rho), delta)
    if epsilon > 0:
        assert delta_of_zcdp(ZCDP(rho), epsilon) <= delta * (1 + Fraction(1, 10**9))
        again = zcdp_within(epsilon=epsilon, delta=delta)
        assert float(again.rho) == pytest.approx(float(rho), rel=1e-8)
        assert epsilon_of_zcdp(again, delta) <= epsilon


@given(rhos, rhos, deltas)
def test_conversions_are_monotone(first: Fraction, second: Fraction, delta: Fraction) -> None:
    low, high = sorted([first, second])
    assert epsilon_of_zcdp(ZCDP(low), delta) <= epsilon_of_zcdp(ZCDP(high), delta) * (1 + Fraction(1, 10**13))
    assert epsilon_of_gaussian(low, delta) <= epsilon_of_gaussian(high, delta) * (1 + Fraction(1, 10**13))


def test_the_slack_of_an_approximate_rho_comes_out_of_delta() -> None:
    assert epsilon_of_zcdp(ZCDP(0, "1e-6"), "1e-6") == 0
    left = Fraction(1, 10**6) / (1 - Fraction(1, 10**6))
    assert epsilon_of_zcdp(ZCDP("0.1", "1e-6"), "2e-6") == epsilon_of_zcdp(ZCDP("0.1"), left)
    for delta in ("1e-6", "1e-7", "0"):
        with pytest.raises(NotConvertible):
            epsilon_of_zcdp(ZCDP("0.1", "1e-6"), delta)
    assert delta_of_zcdp(ZCDP("0.1", "1e-6"), 50) >= Fraction(1, 10**6)
    assert zcdp_of_approx(ApproxDP(1, "1e-6")).rho == zcdp_of_pure(PureDP(1)).rho


def test_renyi_at_one_order() -> None:
    alpha, tau, delta = 8.0, 0.4, 1e-6
    truth = tau + math.log(1 - 1 / alpha) - (math.log(delta) + math.log(alpha)) / (alpha - 1)
    assert float(epsilon_of_renyi(8, "0.4", "1e-6")) == pytest.approx(truth, rel=1e-13)
    assert epsilon_of_renyi(1000, 0, "0.9") == 0
    for order in (1, "0.5", -2, math.nan):
        with pytest.raises(InvalidParameter):
            epsilon_of_renyi(order, "0.1", "1e-6")


@given(st.fractions(Fraction(1, 10**6), 100, max_denominator=10**6), epsilons)
def test_gaussian_delta_is_that_of_balle_and_wang(square: Fraction, epsilon: Fraction) -> None:
    mu, bound = mpmath.sqrt(exactly(square)), exactly(epsilon)
    truth = mpmath.ncdf(mu / 2 - bound / mu) - mpmath.exp(bound) * mpmath.ncdf(-mu / 2 - bound / mu)
    if truth > mpmath.mpf(10) ** -60 * mpmath.ncdf(mu / 2 - bound / mu):
        found = delta_of_gaussian(square, epsilon)
        assert exactly(found) >= truth * (1 - mpmath.mpf(10) ** -30)
        assert exactly(found) <= truth * (1 + mpmath.mpf(10) ** -10) + mpmath.mpf(10) ** -60


def test_gaussian_against_scipy() -> None:
    for mu, epsilon in ((0.1, 0.2), (1.0, 1.0), (3.0, 2.0)):
        truth = stats.norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * stats.norm.cdf(-mu / 2 - epsilon / mu)
        assert float(delta_of_gaussian(str(mu * mu), str(epsilon))) == pytest.approx(truth, rel=1e-9)


@given(epsilons, deltas)
def test_gaussian_inverses_hold_and_are_tight(epsilon: Fraction, delta: Fraction) -> None:
    square = mu_squared_of_gaussian(epsilon=epsilon, delta=delta)
    assert delta_of_gaussian(square, epsilon) <= delta < delta_of_gaussian(square * (1 + Fraction(1, 10**10)), epsilon)
    again = epsilon_of_gaussian(square, delta)
    assert delta_of_gaussian(square, again) <= delta
    assert again <= epsilon * (1 + Fraction(1, 10**10))
    sigma = sigma_of_gaussian(epsilon=epsilon, delta=delta, sensitivity_squared=3)
    assert sigma * sigma * square >= 3


def test_the_gaussian_is_never_worse_than_its_rho() -> None:
    for rho in ("0.001", "0.1", "2"):
        assert epsilon_of_gaussian(2 * Fraction(rho), "1e-6") < epsilon_of_zcdp(ZCDP(rho), "1e-6")


@pytest.mark.parametrize("size", ["1e-400", "1e-100", "1e-20", "1e20", "1e100", "1e400"])
def test_extreme_parameters_give_an_answer_on_the_safe_side(size: str) -> None:
    number = Fraction(size)
    assert 0 <= zcdp_of_pure(PureDP(number)).rho <= number**2 / 2
    assert 0 <= epsilon_of_pure(PureDP(number), "1e-6") <= number
    found = epsilon_of_zcdp(ZCDP(number), "1e-6")
    assert found <= simple_epsilon_of_zcdp(ZCDP(number), "1e-6")
    assert found >= 0
    assert 0 <= delta_of_zcdp(ZCDP(number), 1) <= 1
    assert epsilon_of_gaussian(number, "1e-6") <= simple_epsilon_of_zcdp(ZCDP(number / 2), "1e-6") * (1 + Fraction(1, 10**10))
    assert 0 <= delta_of_gaussian(number, 1) <= 1
    assert epsilon_of_zcdp(zcdp_within(epsilon=number, delta="1e-6"), "1e-6") <= number
    assert epsilon_of_zcdp(ZCDP("0.1"), size if number < 1 else Fraction(1, 10**400)) > 0


@pytest.mark.parametrize(("mu", "epsilon"), [("1e10", "5e19"), ("1e30", "5e59"), ("1e45", "5e89"), ("1e-12", "1"), ("1e5", "1")])
def test_far_out_in_the_tail_the_error_is_what_is_said(mu: str, epsilon: str) -> None:
    """Against the two error functions with three hundred digits more than their exponents have."""
    exact = mpmath.MPContext()
    exact.dps = 500
    size, loss = exact.mpf(mu), exact.mpf(epsilon)
    known = exact.ncdf(size / 2 - loss / size) - exact.exp(loss) * exact.ncdf(-size / 2 - loss / size)
    assert abs(exact.mpf(_delta_at(real(Fraction(mu)), real(Fraction(epsilon)))) / known - 1) < 1e-15


def test_nothing_costs_nothing() -> None:
    assert epsilon_of_zcdp(ZCDP(0), 0) == delta_of_zcdp(ZCDP(0), 0) == epsilon_of_gaussian(0, 0) == delta_of_gaussian(0, 0) == 0
    assert zcdp_of_pure(PureDP(0)) == ZCDP(0)
    assert epsilon_of_zcdp(zcdp_within(epsilon=0, delta="1e-6"), "1e-6") == 0


@pytest.mark.parametrize(
    "ask",
    [
        lambda: epsilon_of_zcdp(ZCDP("0.1"), 0),
        lambda: simple_epsilon_of_zcdp(ZCDP("0.1"), 0),
        lambda: epsilon_of_gaussian(1, 0),
        lambda: mu_squared_of_gaussian(epsilon=1, delta=0),
        lambda: zcdp_within(epsilon=1, delta=0),
        lambda: between_neighbours(PureDP(1), source="bounded", target="unbounded"),
        lambda: for_groups(ZCDP("0.1", "1e-6"), 2),
        lambda: for_groups(ApproxDP(10, "1e-6"), 5),
    ],
)
def test_directions_that_do_not_exist_are_refused(ask: object) -> None:
    with pytest.raises(NotConvertible) as refusal:
        ask()  # type: ignore[operator]
    assert refusal.value.instead


def test_groups_and_neighbours() -> None:
    assert for_groups(PureDP("0.1"), 3) == PureDP("0.3")
    assert for_groups(ZCDP("0.1"), 3) == ZCDP("0.9")
    assert for_groups(ApproxDP(0, "1e-6"), 3) == ApproxDP(0, "3e-6")
    trio = for_groups(ApproxDP(1, "1e-6"), 3)
    e = math.e
    assert trio.epsilon == 3
    assert float(trio.delta) == pytest.approx(1e-6 * (1 + e + e * e), rel=1e-13)
    assert float(trio.delta) <= 3 * e * e * 1e-6  # the textbook form
    assert to_bounded(PureDP(1)) == PureDP(2)
    assert float(to_bounded(ApproxDP(1, "1e-6")).delta) == pytest.approx((1 + e) * 1e-6, rel=1e-13)
    assert to_bounded(ZCDP("0.1")) == ZCDP("0.4")
    same: Guarantee = ZCDP(1)
    assert between_neighbours(same, source="bounded", target="bounded") is same


@pytest.mark.parametrize("wrong", [0, -1, "1.5", math.nan, True, ""])
def test_a_group_has_a_whole_number_of_units(wrong: int) -> None:
    with pytest.raises(InvalidParameter):
        for_groups(PureDP(1), wrong)


def test_a_relation_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InvalidParameter):
        between_neighbours(PureDP(1), source="both", target="bounded")


def test_threads_do_not_share_a_precision() -> None:
    alone = [epsilon_of_zcdp(ZCDP(Fraction(n, 100)), "1e-6") for n in range(1, 30)]
    found: list[list[Fraction]] = []

    def work() -> None:
        found.append([epsilon_of_zcdp(ZCDP(Fraction(n, 100)), "1e-6") for n in range(1, 30)])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [alone] * 4


@pytest.mark.parametrize("delta", ["1e-6", "1e-40", "1e-90", "1e-300"])
def test_what_a_tiny_delta_buys_is_never_overstated(delta: str) -> None:
    """The digits of 1 − δ(1 + e^−ε) must not cancel: against the formula in a thousand digits."""
    with mpmath.workdps(1000):
        slack = mpmath.mpf(delta)
        truth = -mpmath.log(1 - slack * (1 + mpmath.exp(-1)))
        bought = 1 - epsilon_of_pure(PureDP(1), delta)
        assert 0 <= mpmath.mpf(bought.numerator) / bought.denominator <= truth
