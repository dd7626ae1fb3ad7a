"""Staircase noise: its probabilities add up, keep their promise, and beat Laplace by what the paper says."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from cloister.errors import InvalidParameter
from cloister.noise import DiscreteLaplace, Geometric, Random, Staircase
from cloister.privacy.guarantee import PureDP

CASES = [("0.1", 1), ("0.1", 7), ("1", 1), ("1", 2), ("1", 10), ("3", 5), ("10", 3)]


def pmf(epsilon: str, d: int, r: int, k: int) -> mpmath.mpf:
    """By the definition: an even function that falls by e^−ε at r, r + Δ, r + 2Δ, …"""
    b = mpmath.exp(-mpmath.mpf(epsilon))
    level = 0 if abs(k) < r else 1 + (abs(k) - r) // d
    return b**level * (1 - b) / (2 * r + 2 * b * (d - r) - (1 - b))


@pytest.mark.parametrize(("epsilon", "d"), CASES)
def test_the_law_adds_up_and_keeps_its_promise(epsilon: str, d: int) -> None:
    r = Staircase(epsilon=epsilon, sensitivity=d).first_stair
    reach = int(d * (60 / float(epsilon) + 3))
    with mpmath.workprec(150):
        assert abs(mpmath.fsum(pmf(epsilon, d, r, k) for k in range(-reach, reach + 1)) - 1) < 1e-20
        bound = mpmath.exp(mpmath.mpf(epsilon)) * (1 + mpmath.mpf(2) ** -120)
        for k in range(-4 * d, 4 * d + 1):
            for shift in range(-d, d + 1):
                assert pmf(epsilon, d, r, k) <= bound * pmf(epsilon, d, r, k + shift)


@pytest.mark.parametrize(("epsilon", "d"), CASES)
def test_moments_tails_and_margins(epsilon: str, d: int) -> None:
    noise = Staircase(epsilon=epsilon, sensitivity=d)
    r = noise.first_stair
    reach = int(d * (60 / float(epsilon) + 3))
    with mpmath.workprec(150):
        p = [pmf(epsilon, d, r, k) for k in range(reach + 1)]
        assert noise.mean_error == pytest.approx(float(2 * mpmath.fsum(k * q for k, q in enumerate(p))), rel=1e-10)
        assert noise.variance == pytest.approx(float(2 * mpmath.fsum(k * k * q for k, q in enumerate(p))), rel=1e-10)
        for m in (0, 1, r - 1, r, r + d - 1, r + d, 3 * d + 2):
            true = 2 * mpmath.fsum(p[m + 1 :])
            assert float(true) * (1 - 1e-14) <= noise.tail(m) <= float(true) * (1 + 1e-12) + 1e-25
        inside, m = p[0], 0
        while inside < mpmath.mpf("0.95"):
            m += 1
            inside += 2 * p[m]
        assert noise.margin("0.95") == m


@pytest.mark.parametrize(("epsilon", "d"), CASES)
def test_no_other_first_stair_errs_less(epsilon: str, d: int) -> None:
    noise = Staircase(epsilon=epsilon, sensitivity=d)
    assert noise.mean_error == min(noise._mean_at(r) for r in range(1, d + 1))
    assert noise.mean_error <= mean_of_laplace(epsilon, d) * (1 + 1e-12)


def mean_of_laplace(epsilon: str, d: int) -> float:
    alpha = float(np.exp(-float(epsilon) / d))
    return 2 * alpha / (1 - alpha**2)


@pytest.mark.parametrize(("epsilon", "ratio"), [(1, 0.96), (2, 0.85)])
def test_the_error_against_laplace_is_the_published_one(epsilon: int, ratio: float) -> None:
    fine = Staircase(epsilon=epsilon, sensitivity=1, step="0.0001")
    assert fine.mean_error * epsilon == pytest.approx(ratio, abs=0.005)
    assert fine.first_stair / fine.stair == pytest.approx(1 / (1 + np.exp(epsilon / 2)), abs=1e-4)


def test_at_sensitivity_one_it_is_geometric() -> None:
    for epsilon in ("0.2", "1", "5"):
        stairs, geometric = Staircase(epsilon=epsilon), Geometric(epsilon=epsilon)
        assert stairs.variance == pytest.approx(geometric.variance, rel=1e-12)
        assert [stairs.margin(c) for c in (0.5, 0.9, 0.999)] == [geometric.margin(c) for c in (0.5, 0.9, 0.999)]
        assert stairs.tail(3) == pytest.approx(DiscreteLaplace(scale=1 / Fraction(epsilon)).tail(3), rel=1e-12)


def test_real_numbers_on_a_grid() -> None:
    noise = Staircase(epsilon=1, sensitivity=1, step="0.3")
    assert noise.guarantee == PureDP(1)
    assert noise.stair == 4
    released = noise.release(2.0, random=Random.deterministic(1))
    assert isinstance(released, float)
    assert released == pytest.approx(round(released / 0.3) * 0.3)
    assert noise.sample(10).dtype == np.float64


def test_extremes() -> None:
    for epsilon, d in (("1e-20", 1), ("50", 10**30), ("1e-3", 10**15), ("1e5", 3)):
        noise = Staircase(epsilon=epsilon, sensitivity=d)
        draws = noise.sample(50, random=Random.deterministic(1))
        assert max(map(abs, draws.tolist())) < 60 * (d / Fraction(epsilon) + d)
        assert noise.margin(0.95) >= 0
        assert np.isfinite(noise.variance)
        assert isinstance(noise.release(7), int)
    assert Staircase(epsilon=1).sample(0).size == 0


def test_refusals() -> None:
    with pytest.raises(InvalidParameter, match="whole number"):
        Staircase(epsilon=1, sensitivity="0.5")
    with pytest.raises(InvalidParameter, match="one number"):
        Staircase(epsilon=1).release([1, 2])  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter):
        Staircase(epsilon=0)
    with pytest.raises(InvalidParameter):
        Staircase(epsilon=1, step="0.1").release(float("nan"))
