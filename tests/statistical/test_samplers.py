"""The samplers draw from the laws they name: shape by chi-square, scale by a test of known power, agreement with a peer.

Every test has a stated chance of a false alarm below 1e-6, and its generator is fixed besides. The last part turns the same test
functions on samplers that are wrong by the least that would harm, and they must see it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from cloister.noise import DiscreteExponential, DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace, Random, Staircase
from cloister.noise.bernoulli import bernoulli, coins
from cloister.noise.enclosure import exp_enclosure
from cloister.noise.inversion import Inversion
from tests.statistical import power

pytestmark = pytest.mark.statistical

LEAST_P = 1e-6
SHAPE_DRAWS = 400_000
SCALES = ["0.1", "1/3", "1", "10", "15.99", "16", "1000", "1e6", "1e9", "1e15"]
SEEDS = range(int(os.environ.get("CLOISTER_SEEDS", "1")))


def real(scale: str) -> mpmath.mpf:
    number = Fraction(scale)
    return mpmath.mpf(number.numerator) / number.denominator


def mean_of_size(draws: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.abs(draws)


def square(draws: NDArray[np.float64]) -> NDArray[np.float64]:
    return draws**2


def laplace_moments(scale: float) -> tuple[float, float]:
    """Of |K|: 2α/(1 − α²), and its standard deviation."""
    alpha = float(np.exp(-1 / scale))
    mean = 2 * alpha / -np.expm1(-2 / scale)
    return mean, float(np.sqrt(2 * alpha / np.expm1(-1 / scale) ** 2 - mean**2))


def gaussian_moments(scale: float) -> tuple[float, float]:
    """Of K²: close to σ² and √2·σ² from σ = 1 on; summed below σ = 10."""
    if scale > 10:
        return scale**2, float(np.sqrt(2)) * scale**2
    k = np.arange(-200.0, 201.0)
    weight = np.exp(-(k**2) / (2 * scale**2))
    weight /= weight.sum()
    mean = float((k**2 * weight).sum())
    return mean, float(np.sqrt((k**4 * weight).sum() - mean**2))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("scale", SCALES)
def test_discrete_laplace_has_its_shape(scale: str, seed: int) -> None:
    draws = DiscreteLaplace(scale=scale).sample(SHAPE_DRAWS, random=Random.deterministic(seed))
    assert power.p_value(draws, power.laplace_cumulative(real(scale))) > LEAST_P


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("scale", SCALES)
def test_discrete_gaussian_has_its_shape(scale: str, seed: int) -> None:
    draws = DiscreteGaussian(scale=scale).sample(SHAPE_DRAWS, random=Random.deterministic(seed))
    assert power.p_value(draws, power.gaussian_cumulative(real(scale))) > LEAST_P


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("scale", ["0.5", "3", "100", "1e9"])
def test_discrete_exponential_has_its_shape(scale: str, seed: int) -> None:
    draws = DiscreteExponential(scale=scale).sample(SHAPE_DRAWS, random=Random.deterministic(seed))
    assert power.p_value(draws, power.exponential_cumulative(real(scale))) > LEAST_P


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("scale", ["0.25", "1", "7", "1e6"])
def test_laplace_on_a_grid_is_the_continuous_law_rounded(scale: str, seed: int) -> None:
    draws = Laplace(scale=scale, step=1).sample(SHAPE_DRAWS, random=Random.deterministic(seed)).astype(np.int64)

    def cumulative(x: mpmath.mpf) -> mpmath.mpf:
        half = mpmath.exp(-abs(x) / real(scale)) / 2
        return 1 - half if x >= 0 else half

    assert power.p_value(draws, power.rounded(cumulative)) > LEAST_P


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("scale", ["0.25", "1", "7", "1e6"])
def test_gaussian_on_a_grid_is_the_continuous_law_rounded(scale: str, seed: int) -> None:
    draws = Gaussian(scale=scale, step=1).sample(SHAPE_DRAWS, random=Random.deterministic(seed)).astype(np.int64)
    assert power.p_value(draws, power.rounded(lambda x: mpmath.ncdf(x / real(scale)))) > LEAST_P


@pytest.mark.parametrize("epsilon", ["0.1", "1", "4"])
@pytest.mark.parametrize("sensitivity", [1, 2, 7, 1000])
def test_staircase_has_its_shape(epsilon: str, sensitivity: int) -> None:
    noise = Staircase(epsilon=epsilon, sensitivity=sensitivity)
    draws = noise.sample(SHAPE_DRAWS, random=Random.deterministic(1))
    b, r, d = mpmath.exp(-real(epsilon)), noise.first_stair, sensitivity
    total = 2 * r - 1 + 2 * d * b / (1 - b)

    def beyond(k: int) -> mpmath.mpf:
        """P(K > k) for k ≥ 0, summed over the stairs."""
        if k < r:
            return (r - 1 - k + d * b / (1 - b)) / total
        level, place = divmod(k - r, d)
        return b ** (level + 1) * (d - 1 - place + d * b / (1 - b)) / total

    assert power.p_value(draws, lambda k: 1 - beyond(k) if k >= 0 else beyond(-k - 1)) > LEAST_P


@pytest.mark.parametrize("scale", [1.0, 10.0, 1000.0, 1e6, 1e9])
def test_scales_are_right_to_five_percent(scale: float) -> None:
    random = Random.deterministic(5)
    laplace = power.scale_test(mean_of_size, laplace_moments, scale)
    assert laplace.accepts(DiscreteLaplace(scale=scale).sample(laplace.n, random=random))
    gaussian = power.scale_test(square, gaussian_moments, scale)
    assert gaussian.accepts(DiscreteGaussian(scale=scale).sample(gaussian.n, random=random))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100))
def test_no_seed_is_special(seed: int) -> None:
    for scale in ("0.5", "3", "1000"):
        random = Random.deterministic(seed)
        laplace = DiscreteLaplace(scale=scale).sample(100_000, random=random)
        assert power.p_value(laplace, power.laplace_cumulative(real(scale)), cells=60) > LEAST_P / 100
        gaussian = DiscreteGaussian(scale=scale).sample(100_000, random=random)
        assert power.p_value(gaussian, power.gaussian_cumulative(real(scale)), cells=60) > LEAST_P / 100


@pytest.mark.parametrize("scale", ["1/3", "5", "1000", "1e9"])
def test_one_draw_at_a_time_has_the_same_law(scale: str) -> None:
    random = Random.deterministic(2)
    noise = DiscreteLaplace(scale=scale)
    draws = np.array([noise.release(0, random=random) for _ in range(40_000)])
    assert power.p_value(draws, power.laplace_cumulative(real(scale)), cells=60) > LEAST_P
    normal = DiscreteGaussian(scale=scale)
    draws = np.array([normal.release(0, random=random) for _ in range(40_000)])
    assert power.p_value(draws, power.gaussian_cumulative(real(scale)), cells=60) > LEAST_P


@pytest.mark.parametrize(("decay", "grid"), [("1/3", "integers"), ("1/1000", "integers"), ("1/7", "rounded")])
def test_the_exact_path_has_the_same_law(decay: str, grid: Any) -> None:
    law = Inversion(decay=Fraction(decay), power=1, grid=grid, slack=2.0, margin=1 << 63)
    draws = law.draw(20_000, Random.deterministic(3))
    scale = 1 / real(decay)
    shape = (
        power.laplace_cumulative(scale)
        if grid == "integers"
        else power.rounded(lambda x: 1 - mpmath.exp(-x / scale) / 2 if x >= 0 else mpmath.exp(x / scale) / 2)
    )
    assert power.p_value(draws, shape, cells=60) > LEAST_P


@pytest.mark.parametrize("p", ["1/3", "1e-3", "0.999"])
def test_coins_are_fair_to_their_bias(p: str) -> None:
    heads = int(bernoulli(p, 1_000_000, random=Random.deterministic(4)).sum())
    assert stats.binomtest(heads, 1_000_000, float(Fraction(p))).pvalue > LEAST_P


@pytest.mark.parametrize("x", ["1e-3", "1", "6.5"])
def test_exponential_coins_are_fair_to_their_bias(x: str) -> None:
    heads = int(coins(exp_enclosure(Fraction(x)), 1_000_000, Random.deterministic(4)).sum())
    assert stats.binomtest(heads, 1_000_000, float(np.exp(-float(Fraction(x))))).pvalue > LEAST_P


@pytest.mark.parametrize("scale", [0.5, 3.0, 1000.0])
def test_we_agree_with_opendp(scale: float) -> None:
    """Two samples, one law: chi-square on a table of two rows. OpenDP can't be seeded: the false alarm is real."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    n = 30_000
    space = dp.vector_domain(dp.atom_domain(T="i64"))
    peers: dict[str, tuple[NDArray[Any], NDArray[Any]]] = {
        "laplace": (
            np.array(dp.m.make_laplace(space, dp.l1_distance(T="i64"), scale=scale)(np.zeros(n, dtype=np.int64))),
            DiscreteLaplace(scale=scale).sample(10 * n, random=Random.deterministic(1)),
        ),
        "gaussian": (
            np.array(dp.m.make_gaussian(space, dp.l2_distance(T="f64"), scale=scale)(np.zeros(n, dtype=np.int64))),
            DiscreteGaussian(scale=scale).sample(10 * n, random=Random.deterministic(1)),
        ),
    }
    for theirs, ours in peers.values():
        edges = np.unique(np.quantile(ours, np.linspace(0.005, 0.995, 100), method="nearest"))
        table = np.array([np.bincount(np.searchsorted(edges, rows), minlength=edges.size + 1) for rows in (theirs, ours)])
        assert stats.chi2_contingency(table[:, table.sum(axis=0) > 100]).pvalue > LEAST_P


# The same functions on samplers that are wrong.


def widened(draw: Callable[[float], NDArray[np.int64]], scale: float) -> list[NDArray[np.int64]]:
    return [draw(scale * 1.05), draw(scale * 0.95)]


@pytest.mark.parametrize("scale", [1.0, 10.0, 1000.0, 1e6])
def test_a_scale_wrong_by_five_percent_is_caught(scale: float) -> None:
    random = Random.deterministic(9)
    test = power.scale_test(mean_of_size, laplace_moments, scale)
    for draws in widened(lambda s: DiscreteLaplace(scale=s).sample(test.n, random=random), scale):
        assert not test.accepts(draws)
    test = power.scale_test(square, gaussian_moments, scale)
    for draws in widened(lambda s: DiscreteGaussian(scale=s).sample(test.n, random=random), scale):
        assert not test.accepts(draws)


@pytest.mark.parametrize("scale", ["1", "10", "1000", "1e9"])
def test_a_wrong_shape_is_caught(scale: str) -> None:
    random = Random.deterministic(9)
    right = DiscreteLaplace(scale=scale).sample(SHAPE_DRAWS, random=random)
    law = power.laplace_cumulative(real(scale))
    far = power.quantile(law, 1 - 1e-4)
    cut = right[np.abs(right) <= far]
    assert power.p_value(cut, law) < LEAST_P  # the tail is missing, two draws in ten thousand
    clamped = np.clip(right, -far, far)
    assert power.p_value(clamped, law) < LEAST_P  # … or piled up at its edge
    assert power.p_value(np.abs(right), law) < LEAST_P  # one side only
    wider = DiscreteLaplace(scale=Fraction(scale) * Fraction(105, 100)).sample(SHAPE_DRAWS, random=random)
    assert power.p_value(wider, law) < LEAST_P


def test_a_zero_drawn_from_both_sides_is_caught() -> None:
    """The classical slip: sign and magnitude drawn apart, and (−, 0) kept."""
    random = Random.deterministic(9)
    for scale in ("1", "10", "50"):
        size = DiscreteExponential(scale=scale).sample(SHAPE_DRAWS, random=random)
        wrong = np.where(bernoulli("1/2", SHAPE_DRAWS, random=random), size, -size)
        assert power.p_value(wrong, power.laplace_cumulative(real(scale))) < LEAST_P


def test_noise_rounded_from_a_wide_grid_is_caught() -> None:
    draws = DiscreteGaussian(scale=100).sample(SHAPE_DRAWS, random=Random.deterministic(9))
    assert power.p_value(draws // 2 * 2, power.gaussian_cumulative(mpmath.mpf(100)), cells=400) < LEAST_P
