"""Gaussian noise: moments, tails, margins and (ε, δ) against sums by mpmath and formulas by scipy."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import optimize, stats

from cloister.errors import InvalidParameter
from cloister.noise import DiscreteGaussian, Gaussian
from cloister.noise.gaussian_tails import _midpoint_tail, at_least, discrete_delta, discrete_tail
from cloister.privacy.conversion import epsilon_of_zcdp
from cloister.privacy.guarantee import ZCDP, ApproxDP


def law(scale: float, reach: int) -> list[mpmath.mpf]:
    """P(k) for k = −reach … reach; the float means its decimal text, as everywhere."""
    square = mpmath.mpf(str(scale)) ** 2
    weights = [mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * square)) for k in range(-reach, reach + 1)]
    total = mpmath.fsum(weights)
    return [weight / total for weight in weights]


def test_guarantees_are_exact() -> None:
    assert DiscreteGaussian(scale=10, sensitivity=3).guarantee == ZCDP("0.045")
    assert DiscreteGaussian(scale_squared=2, sensitivity_squared=3).guarantee == ZCDP("0.75")
    for rho in ("0.1", "1/3", "1e-9"):
        assert DiscreteGaussian.for_rho(rho, sensitivity=7).guarantee == ZCDP(rho)
    assert Gaussian(scale=10, sensitivity=1).guarantee == ZCDP("0.005")
    assert Gaussian(scale=10, sensitivity=1, step="0.3").guarantee == ZCDP("0.0072")
    four = Gaussian(scale=10, sensitivity=1, step="0.25", coordinates=4).guarantee
    assert four == ZCDP(Fraction(3, 2) ** 2 / 200)


def test_roots_are_exact_or_from_above() -> None:
    noise = DiscreteGaussian(scale_squared=2)
    assert 0 < noise.scale**2 - 2 < Fraction(1, 10**40)
    assert DiscreteGaussian(scale_squared="6.25").scale == Fraction(5, 2)
    assert repr(noise) == "DiscreteGaussian(scale_squared='2', sensitivity='1')"
    with pytest.raises(InvalidParameter, match="twice"):
        DiscreteGaussian(scale=1, scale_squared=1)
    with pytest.raises(InvalidParameter, match="scale"):
        DiscreteGaussian()


@pytest.mark.parametrize("scale", [0.05, 0.3, 0.8, 1.0, 1.9, 2.0, 7.0])
def test_variance(scale: float) -> None:
    with mpmath.workprec(200):
        true = mpmath.fsum(k * k * p for k, p in zip(range(-300, 301), law(scale, 300), strict=True))
    assert DiscreteGaussian(scale=scale).variance == pytest.approx(float(true), rel=1e-12)


@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0, 40.0])
def test_discrete_tails(scale: float) -> None:
    with mpmath.workprec(2000):
        probabilities = law(scale, int(40 * scale) + 5)
        middle = len(probabilities) // 2
        for k in (1, 2, int(scale) + 1, int(5 * scale) + 1, int(21 * scale) + 1):
            true = mpmath.fsum(probabilities[middle + k :])
            low, high = discrete_tail(Fraction(str(scale)) ** 2, k)
            assert low <= Fraction(*mpmath_ratio(true)) <= high
            assert float(high) <= float(true) * (1 + 1e-9) + 1e-323


def mpmath_ratio(value: mpmath.mpf) -> tuple[int, int]:
    sign, mantissa, exponent, _ = value._mpf_
    assert not sign
    return (int(mantissa) << exponent, 1) if exponent >= 0 else (int(mantissa), 1 << -exponent)


@pytest.mark.parametrize("z", [0.001, 0.5, 1.0, 2.0, 2.5, 5.0, 8.0])
def test_the_corrected_integral_encloses_the_sum(z: float) -> None:
    """Where both ways can be computed they must overlap, and the second must be the narrow one that its proof says."""
    square = Fraction(200**2)
    k = max(1, int(z * 200))
    low, high = _midpoint_tail(square, k)
    exact_low, exact_high = discrete_tail(square, k)
    assert low <= exact_high
    assert exact_low <= high
    assert float(high - low) < max(1e-11, 0)
    if z > 3:
        assert float((high - low) / high) < 1e-6


@pytest.mark.parametrize("scale", [0.4, 3.0, 25.0])
@pytest.mark.parametrize("confidence", ["0.5", "0.95", "0.9999"])
def test_margins_by_brute_force(scale: float, confidence: str) -> None:
    probabilities = law(scale, int(20 * scale) + 3)
    middle = len(probabilities) // 2
    inside, m = probabilities[middle], 0
    while inside < mpmath.mpf(confidence):
        m += 1
        inside += 2 * probabilities[middle + m]
    assert DiscreteGaussian(scale=scale).margin(confidence) == m


@pytest.mark.parametrize("scale", ["300", "1e6", "1e9", "1e15", "1e40"])
def test_margins_of_wide_noise_are_those_of_the_normal_law(scale: str) -> None:
    for confidence in ("0.5", "0.95", "0.999999"):
        z = Fraction(stats.norm.isf(float(1 - Fraction(confidence)) / 2))
        assert abs(DiscreteGaussian(scale=scale).margin(confidence) - z * Fraction(scale)) < 2 + Fraction(scale) / 10**9
        assert abs(Fraction(Gaussian(scale=scale).margin(confidence)) - z * Fraction(scale)) < 2 + Fraction(scale) / 10**9


def hockey_stick(probabilities: list[mpmath.mpf], shift: int, epsilon: float) -> mpmath.mpf:
    grown = mpmath.exp(epsilon)
    moved = [mpmath.mpf(0)] * shift + probabilities[:-shift]
    return mpmath.fsum(max(mpmath.mpf(0), a - grown * b) for a, b in zip(moved, probabilities, strict=True))


@pytest.mark.parametrize("shift", [1, 2, 5])
@pytest.mark.parametrize("scale", [1.0, 4.0, 20.0])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_the_discrete_curve_is_the_hockey_stick_itself(scale: float, shift: int, epsilon: float) -> None:
    with mpmath.workprec(300):
        true = float(hockey_stick(law(scale, int(30 * scale) + 2 * shift), shift, epsilon))
    found = float(discrete_delta(Fraction(scale) ** 2, shift, Fraction(epsilon)))
    assert true * (1 - 1e-12) <= found <= true * (1 + 1e-12) + 1e-80


@pytest.mark.parametrize("scale", [1.0, 4.0, 20.0])
def test_a_smaller_shift_is_no_worse(scale: float) -> None:
    deltas = [discrete_delta(Fraction(scale) ** 2, shift, Fraction(1, 2)) for shift in range(1, 8)]
    assert deltas == sorted(deltas)


@pytest.mark.parametrize("scale", ["2", "10", "500", "1e6"])
def test_approx_is_tight_and_never_worse_than_by_rho(scale: str) -> None:
    noise = DiscreteGaussian(scale=scale)
    found = noise.approx("1e-6")
    assert found.epsilon <= epsilon_of_zcdp(noise.guarantee, "1e-6")
    assert discrete_delta(noise.scale_squared, 1, found.epsilon) <= Fraction(1, 10**6)
    less = found.epsilon * (1 - Fraction(1, 10**6))
    assert found.epsilon == 0 or discrete_delta(noise.scale_squared, 1, less) > Fraction(1, 10**6)


def test_several_coordinates_fall_back_to_rho() -> None:
    noise = DiscreteGaussian(scale=10, sensitivity=2)
    assert noise.approx("1e-6").epsilon == epsilon_of_zcdp(noise.guarantee, "1e-6")
    assert noise.approx("1e-6", coordinates=1).epsilon < noise.approx("1e-6").epsilon


@pytest.mark.parametrize(("epsilon", "delta"), [("0.1", "1e-5"), ("1", "1e-6"), ("5", "1e-9"), ("30", "1e-12")])
def test_for_approx_holds_and_is_near_the_least(epsilon: str, delta: str) -> None:
    noise = DiscreteGaussian.for_approx(epsilon, delta)
    assert noise.approx(delta) <= ApproxDP(epsilon, delta)
    assert not DiscreteGaussian(scale=noise.scale * Fraction(97, 100)).approx(delta) <= ApproxDP(epsilon, delta)
    two = DiscreteGaussian.for_approx(epsilon, delta, sensitivity=3)
    assert two.approx(delta) <= ApproxDP(epsilon, delta)


def balle_wang(sigma: float, epsilon: float) -> float:
    return float(
        stats.norm.cdf(0.5 / sigma - epsilon * sigma) - math.exp(epsilon) * stats.norm.cdf(-0.5 / sigma - epsilon * sigma)
    )


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-5), (0.5, 1e-6), (1.0, 1e-6), (3.0, 1e-5)])
def test_the_analytic_scale_is_the_least(epsilon: float, delta: float) -> None:
    wanted = optimize.brentq(lambda sigma: balle_wang(sigma, epsilon) - delta, 0.1, 500, xtol=1e-12)
    noise = Gaussian.analytic(epsilon, delta)
    assert float(noise.scale) == pytest.approx(wanted, rel=1e-7)
    assert noise.approx(delta) <= ApproxDP(epsilon, delta)
    assert float(Gaussian.analytic(epsilon, delta, 10).scale) == pytest.approx(10 * wanted, rel=1e-7)
    if epsilon < 1:
        assert noise.scale < Gaussian.classical(epsilon, delta).scale


def test_the_analytic_scale_pays_for_a_coarse_step() -> None:
    noise = Gaussian.analytic(1, "1e-6", 1, step="0.3")
    assert noise.approx("1e-6") <= ApproxDP(1, "1e-6")
    assert float(noise.scale / Gaussian.analytic(1, "1e-6").scale) == pytest.approx(1.2, rel=1e-9)


def test_the_classical_form() -> None:
    assert float(Gaussian.classical("0.5", "1e-5", 2).scale) == pytest.approx(2 * math.sqrt(2 * math.log(1.25e5)) / 0.5)
    assert Gaussian.classical("0.5", "1e-5").approx("1e-5") <= ApproxDP("0.5", "1e-5")
    for epsilon in (1, 2, "1.5"):
        with pytest.raises(InvalidParameter, match="analytic"):
            Gaussian.classical(epsilon, "1e-6")
    with pytest.raises(InvalidParameter):
        Gaussian.classical("0.5", 0)


def test_the_variance_on_a_coarse_grid() -> None:
    for scale in (0.2, 0.7, 2.0, 9.0):
        true = sum((2 * k - 1) * math.erfc((k - 0.5) / (scale * math.sqrt(2))) for k in range(1, 400))
        assert Gaussian(scale=scale, step=1).variance == pytest.approx(true, rel=1e-9)


def test_probabilities_below_zero_and_above() -> None:
    square = Fraction(9)
    for k in (-7, -1, 0, 1, 5):
        low, high = at_least(square, k)
        true = sum(law(3.0, 100)[100 + k :])
        assert float(low) == pytest.approx(float(true), rel=1e-12)
        assert low <= high
    assert float(at_least(square, -60)[0]) == 1.0


def test_vectors_are_released_in_shape() -> None:
    released = Gaussian(scale=1, coordinates=6).release(np.arange(6.0).reshape(2, 3))
    assert released.shape == (2, 3)
    assert released.dtype == np.float64
