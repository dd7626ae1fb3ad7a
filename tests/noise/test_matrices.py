"""Noise that is a matrix: the privacy of Wishart noise by integration, its degrees of freedom, the Gaussian's exact cost."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from cloister.errors import InvalidParameter
from cloister.noise.matrices import SymmetricGaussian, WishartMechanism, delta_of_shift, least_degrees, sheffet_degrees
from cloister.noise.random import Random
from cloister.privacy.guarantee import ZCDP, ApproxDP


@pytest.mark.parametrize(("degrees", "epsilon"), [(100, "0.5"), (50, "0.25"), (30, "2"), (5, "1"), (4, "0.1"), (301, "0.45")])
def test_the_profile_of_a_shifted_chi_square_is_its_integral(degrees: int, epsilon: str) -> None:
    from scipy import stats

    t = np.linspace(0, degrees + 60 * math.sqrt(2 * degrees) + 60, 2_000_001)
    here, there = stats.chi2.pdf(t, degrees), stats.chi2.pdf(t - 1, degrees)
    growth = math.exp(float(epsilon))
    both = [np.trapezoid(np.maximum(a - growth * b, 0), t) for a, b in ((here, there), (there, here))]
    assert delta_of_shift(degrees, Fraction(epsilon)) == pytest.approx(max(both), rel=1e-4, abs=1e-13)


def test_a_smaller_shift_is_no_worse() -> None:
    from scipy import stats

    t = np.linspace(0, 400, 1_000_001)
    divergences = [
        np.trapezoid(np.maximum(stats.chi2.pdf(t, 40) - math.exp(0.7) * stats.chi2.pdf(t - c, 40), 0), t) for c in (0.2, 0.5, 1)
    ]
    assert divergences == sorted(divergences)


@pytest.mark.parametrize(
    ("epsilon", "delta"), [("0.1", "1e-6"), ("0.5", "1e-9"), ("0.49", "0.01"), ("3", "1e-6"), ("20", "1e-3")]
)
def test_least_degrees_are_least(epsilon: str, delta: str) -> None:
    cost, slack = Fraction(epsilon), Fraction(delta)
    least = least_degrees(cost, slack)
    assert delta_of_shift(least, cost) <= slack
    assert least == 3 or delta_of_shift(least - 1, cost) > slack


@pytest.mark.parametrize("dimension", [1, 3, 20])
@pytest.mark.parametrize(("epsilon", "delta"), [("0.1", "1e-6"), ("0.5", "1e-6"), ("0.99", "0.35")])
def test_the_theorems_degrees_are_private_and_generous(dimension: int, epsilon: str, delta: str) -> None:
    theorem = sheffet_degrees(dimension, Fraction(epsilon), Fraction(delta))
    assert theorem == math.ceil(dimension + 28 * math.log(4 / float(delta)) / float(epsilon) ** 2)
    assert delta_of_shift(theorem - dimension + 1, Fraction(epsilon)) <= Fraction(delta)
    tight = WishartMechanism.tightest(dimension=dimension, epsilon=epsilon, delta=delta, bound=1, step="0.01")
    assert tight.degrees < theorem
    assert tight.guarantee == ApproxDP(epsilon, delta)


def test_the_loss_is_that_of_a_chi_square_shift_in_any_dimension() -> None:
    """The reduction that the proof rests on, at random matrices: log-density ratio of both worlds against the one number."""
    rng = np.random.default_rng(1)
    d, k = 4, 30
    for _ in range(20):
        g = rng.standard_normal((k, d))
        noise = g.T @ g
        v = rng.standard_normal(d)
        v /= np.linalg.norm(v) * rng.uniform(1, 3)
        c = v @ v
        # worlds M and M + vvᵀ at the matrix M + noise + vvᵀ: noises noise + vvᵀ and noise
        full = noise + np.outer(v, v)
        a = (k - d - 1) / 2
        loss = a * (np.linalg.slogdet(full)[1] - np.linalg.slogdet(noise)[1]) - c / 2
        t = c / (v @ np.linalg.inv(noise) @ v)
        m = k - d + 1
        assert loss == pytest.approx((m / 2 - 1) * math.log((t + c) / t) - c / 2)


def test_wishart_noise_has_its_mean_and_variance_and_is_positive() -> None:
    mechanism = WishartMechanism.tightest(dimension=3, epsilon=1, delta="1e-3", bound=2, step="0.1")
    random = Random.deterministic(3)
    n, k = 4000, mechanism.degrees
    noises = np.array([mechanism.sample(random=random) for _ in range(n)])
    assert np.linalg.eigvalsh(noises).min() > 0
    mean = noises.mean(axis=0)
    assert np.abs(mean - 4 * k * np.eye(3)).max() < 6 * 4 * math.sqrt(2 * k / n)
    assert float(mechanism.shift) * 0.1 == pytest.approx(4 * k)
    off, on = noises[:, 0, 1].var(), noises[:, 2, 2].var()
    assert off == pytest.approx(mechanism.variance * 0.1**2, rel=0.2)
    assert on == pytest.approx(2 * mechanism.variance * 0.1**2, rel=0.2)
    inside = (np.abs(noises[:, 0, 1]) <= mechanism.margin(0.95) * 0.1).mean()
    assert inside > 0.95


def test_a_wishart_release_is_symmetric_and_whole() -> None:
    mechanism = WishartMechanism.tightest(dimension=3, epsilon=1, delta="1e-3", bound=1, step="0.01")
    moments = np.diag([100, 200, 300])
    released = mechanism.release(moments, random=Random.deterministic(1))
    assert released.dtype == np.int64
    assert (released == released.T).all()
    assert mechanism.float_delta < 1e-6


@pytest.mark.parametrize(
    "bad", [{"epsilon": 1}, {"delta": "0.4"}, {"delta": 0}, {"bound": 0}, {"step": "1e-12"}, {"dimension": 0}]
)
def test_refused_wishart_parameters(bad: dict[str, object]) -> None:
    with pytest.raises(InvalidParameter):
        WishartMechanism(**{"dimension": 2, "epsilon": "0.5", "delta": "1e-6", "bound": 1, "step": "0.01", **bad})


def test_pure_wishart_is_refused_with_what_to_do_instead() -> None:
    with pytest.raises(InvalidParameter, match="support moves with the data"):
        WishartMechanism.tightest(dimension=2, epsilon=1, delta=0, bound=1, step="0.01")


def test_every_row_of_a_length_costs_the_same_under_symmetric_gaussian_noise() -> None:
    mechanism = SymmetricGaussian(dimension=3, scale=50, bound=2, step="0.1")
    rng = np.random.default_rng(2)
    diagonal, off = float(mechanism.diagonal_noise.scale_squared), float(mechanism.off_diagonal_noise.scale_squared)
    for v in [*np.eye(3), *rng.standard_normal((20, 3))]:
        row = 2 * v / np.linalg.norm(v)
        moved = np.outer(row, row) / 0.1
        cost = (np.diag(moved) ** 2).sum() / (2 * diagonal) + (moved[np.triu_indices(3, 1)] ** 2).sum() / (2 * off)
        assert cost == pytest.approx(float(mechanism.guarantee.rho))
    assert mechanism.guarantee == ZCDP(Fraction(40**2, 2 * 2500))


def test_symmetric_gaussian_for_rho_and_its_noise() -> None:
    mechanism = SymmetricGaussian.for_rho("0.1", dimension=2, bound=1, step="0.01")
    assert mechanism.guarantee == ZCDP("0.1")
    random = Random.deterministic(5)
    noises = np.array([mechanism.release([[0, 0], [0, 0]], random=random) for _ in range(3000)])
    assert (noises == noises.transpose(0, 2, 1)).all()
    assert noises[:, 0, 0].var() == pytest.approx(mechanism.variance, rel=0.17)
    assert noises[:, 0, 1].var() == pytest.approx(mechanism.variance / 2, rel=0.17)
    assert (np.abs(noises[:, 0, 0]) <= mechanism.margin(0.95)).mean() > 0.92


@pytest.mark.parametrize("bad", [[[1, 2], [3, 4]], [[1, 2]], [[0.5, 0], [0, 1]], 7])
def test_refused_moments(bad: object) -> None:
    with pytest.raises(InvalidParameter):
        SymmetricGaussian(dimension=2, scale=1, bound=1, step="0.1").release(bad)


def excesses(weights: np.ndarray, shift: int, epsilon: float) -> tuple[float, float]:
    """The δ at ε between a law on a grid and its shift, both ways."""
    law = weights / weights.sum()
    here, there = np.append(law, np.zeros(shift)), np.append(np.zeros(shift), law)
    grown = math.exp(epsilon)
    return float(np.maximum(here - grown * there, 0).sum()), float(np.maximum(there - grown * here, 0).sum())


K = np.arange(-120, 121)
LOG_CONCAVE = {
    "discrete Gaussian": np.exp(-(K**2) / 50),
    "discrete Laplace": np.exp(-np.abs(K) / 4),
    "chi-square": np.arange(1, 400) ** 1.5 * np.exp(-np.arange(1, 400) / 12),
    "one-sided": np.exp(-np.arange(200) / 7),
}


@pytest.mark.parametrize("name", LOG_CONCAVE)
@pytest.mark.parametrize("epsilon", [-1.0, 0.0, 0.2, 1.0, 3.0])
def test_every_divergence_of_a_shift_grows_with_it_for_log_concave_laws(name: str, epsilon: float) -> None:
    found = np.array([excesses(LOG_CONCAVE[name], shift, epsilon) for shift in range(25)])
    assert (np.diff(found, axis=0) >= -1e-12).all()


def test_without_log_concavity_a_larger_shift_may_be_closer() -> None:
    comb = np.where(K % 5 == 0, 1.0, 0.01) * np.exp(-np.abs(K) / 40)
    assert excesses(comb, 5, 0.5)[0] < excesses(comb, 2, 0.5)[0]
