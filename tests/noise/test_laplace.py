"""Laplace noise: its numbers against closed forms, its guarantee against its own probabilities."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloister.errors import InvalidParameter
from cloister.noise import DiscreteExponential, DiscreteLaplace, Geometric, Laplace
from cloister.privacy.guarantee import PureDP

SCALES = ["0.01", "0.3", "1", "10", "1234.5", "1e9", "1e15", "1e60"]


def pmf(scale: Fraction, k: int) -> mpmath.mpf:
    alpha = mpmath.exp(-mpmath.mpf(scale.denominator) / scale.numerator)
    return (1 - alpha) / (1 + alpha) * alpha ** abs(k)


@pytest.mark.parametrize("scale", SCALES)
def test_the_guarantee_is_exact(scale: str) -> None:
    assert DiscreteLaplace(scale=scale, sensitivity=3).guarantee == PureDP(3 / Fraction(scale))
    assert DiscreteLaplace.for_epsilon(scale, sensitivity=7).guarantee == PureDP(Fraction(scale))
    assert Geometric(epsilon=scale, sensitivity=2).guarantee == PureDP(scale)
    assert Laplace(scale=scale, sensitivity="0.7").guarantee == PureDP(Fraction(7, 10) / Fraction(scale))
    assert Laplace.for_epsilon(scale, sensitivity="0.7").guarantee == PureDP(scale)


def test_the_probabilities_keep_the_guarantee() -> None:
    scale = Fraction(7, 2)
    with mpmath.workprec(200):
        bound = mpmath.exp(mpmath.mpf(2) / 7)
        assert all(pmf(scale, k) <= bound * pmf(scale, k + 1) * (1 + mpmath.mpf(2) ** -150) for k in range(-50, 50))


@pytest.mark.parametrize("scale", SCALES)
def test_moments(scale: str) -> None:
    number = Fraction(scale)
    with mpmath.workprec(600):
        alpha = mpmath.exp(-mpmath.mpf(number.denominator) / number.numerator)
        assert DiscreteLaplace(scale=scale).variance == pytest.approx(float(2 * alpha / (1 - alpha) ** 2), rel=1e-12)
        assert DiscreteExponential(scale=scale).mean == pytest.approx(float(alpha / (1 - alpha)), rel=1e-12)
        assert DiscreteExponential(scale=scale).variance == pytest.approx(float(alpha / (1 - alpha) ** 2), rel=1e-12)


@pytest.mark.parametrize("scale", SCALES)
def test_tails(scale: str) -> None:
    number = Fraction(scale)
    noise = DiscreteLaplace(scale=scale)
    with mpmath.workprec(600):
        alpha = mpmath.exp(-mpmath.mpf(number.denominator) / number.numerator)
        for m in (0, 1, 10, int(3 * number), int(500 * number)):
            true = 2 * alpha ** (m + 1) / (1 + alpha)
            assert true <= noise.tail(m) <= float(true) * (1 + 1e-15) + 1e-323
            assert alpha ** (m + 1) <= DiscreteExponential(scale=scale).tail(m)


def test_margins_by_brute_force() -> None:
    for scale in (Fraction(1, 3), Fraction(1), Fraction(10), Fraction(123)):
        for confidence in (Fraction(1, 2), Fraction(95, 100), Fraction(9999, 10000)):
            inside, m = pmf(scale, 0), 0
            while inside < mpmath.mpf(confidence.numerator) / confidence.denominator:
                m += 1
                inside += 2 * pmf(scale, m)
            assert DiscreteLaplace(scale=scale).margin(confidence) == m


def test_margins_of_the_real_law() -> None:
    noise = Laplace(scale=10)
    assert noise.margin(0.95) == pytest.approx(10 * math.log(20), abs=float(noise.step))
    assert Laplace(scale=10, step=1).margin(0.95) == 30.5
    assert noise.tail(float(10 * math.log(20))) == pytest.approx(0.05, rel=1e-5)


def test_the_variance_on_a_coarse_grid() -> None:
    for scale in ("0.1", "0.7", "3"):
        t = Fraction(scale)
        with mpmath.workprec(200):
            terms = [(2 * k - 1) * mpmath.exp(-(k - mpmath.mpf(1) / 2) * t.denominator / t.numerator) for k in range(1, 900)]
            assert Laplace(scale=scale, step=1).variance == pytest.approx(float(mpmath.fsum(terms)), rel=1e-12)
            assert Laplace(scale=t / 4, step="0.25").variance == pytest.approx(float(mpmath.fsum(terms)) / 16, rel=1e-12)


def test_rounding_grows_the_guarantee() -> None:
    assert Laplace(scale=1, sensitivity=1, step="0.3").guarantee == PureDP("1.2")
    assert Laplace(scale=1, sensitivity=1, step="0.25").guarantee == PureDP(1)
    assert Laplace(scale=1, sensitivity=1, step="0.25", coordinates=5).guarantee == PureDP(2)
    assert Laplace(scale=1, sensitivity="0.1", step=1).guarantee == PureDP(1)
    assert Laplace.for_epsilon("0.1", sensitivity=1, step="0.3", coordinates=4).guarantee == PureDP("0.1")


@given(value=st.floats(allow_nan=False, allow_infinity=False, width=64, max_value=1e12, min_value=-1e12))
def test_a_release_is_a_multiple_of_the_step(value: float) -> None:
    released = Laplace(scale=3, step="0.125").release(value)
    assert (Fraction(released) / Fraction(1, 8)).denominator == 1


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "3", None, True, [1.0, float("nan")], 1j, [[1.0], [2.0, 3.0]]])
def test_what_is_no_real_number_is_refused(value: object) -> None:
    with pytest.raises(InvalidParameter):
        Laplace(scale=1, coordinates=1).release(value)  # type: ignore[arg-type]


def test_an_array_needs_the_number_of_coordinates() -> None:
    with pytest.raises(InvalidParameter, match="coordinates"):
        Laplace(scale=1).release([1.0, 2.0])
    assert Laplace(scale=1, coordinates=2).release([[1.0, 2.0]]).shape == (1, 2)


def test_the_geometric_mechanism_is_clamped_to_its_range() -> None:
    noise = Geometric(epsilon="0.01", low=0, high=5)
    assert set(noise.release([2] * 200).tolist()) <= set(range(6))
    assert 0 <= noise.release(2) <= 5
    assert Geometric(epsilon="0.01").sample(2000).std() == pytest.approx(math.sqrt(Geometric(epsilon="0.01").variance), rel=0.5)
    assert Geometric(epsilon=1).margin() == DiscreteLaplace(scale=1).margin()
    with pytest.raises(InvalidParameter):
        Geometric(epsilon=1, low=5, high=0)


def test_the_one_sided_law() -> None:
    noise = DiscreteExponential(scale=10)
    assert (noise.sample(5000) >= 0).all()
    assert noise.margin("0.5") == 6
    assert noise.tail(noise.margin("0.99")) <= 0.01 < noise.tail(noise.margin("0.99") - 1)
    assert not hasattr(noise, "guarantee")
    assert not hasattr(noise, "release")
