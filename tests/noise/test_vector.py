"""The vector mechanism: its law in closed form, rounding to steps, refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cloister.errors import InvalidParameter
from cloister.noise._continuous import chi_square, in_steps, normals, uniforms
from cloister.noise.random import Random
from cloister.noise.vector import VectorMechanism
from cloister.privacy.guarantee import PureDP
from tests.tiers import by_day_and_night


def test_parameters_and_guarantee() -> None:
    mechanism = VectorMechanism(epsilon="0.5", sensitivity=2, dimension=3, step="0.1")
    assert mechanism.guarantee == PureDP("0.5")
    assert mechanism.scale == 4
    assert mechanism.variance == 4 * 16
    assert mechanism.float_delta < 1e-8
    assert VectorMechanism(epsilon=1, sensitivity=1, dimension=3, step="0.001").float_delta > mechanism.float_delta


def test_one_dimension_is_laplace_noise() -> None:
    mechanism = VectorMechanism(epsilon=1, sensitivity=1, dimension=1, step="0.01")
    assert mechanism.margin(0.95) == pytest.approx(-math.log(0.05))
    assert mechanism.variance == 2


def test_the_margin_is_the_gamma_quantile() -> None:
    from scipy import stats

    for d in (1, 2, 10, 200):
        mechanism = VectorMechanism(epsilon=2, sensitivity=3, dimension=d, step="0.01")
        for level in (0.01, 0.5, 0.95, 0.999999):
            assert mechanism.margin(level) == pytest.approx(1.5 * stats.gamma.ppf(level, d), rel=1e-6)


def test_the_noise_has_the_right_length_and_no_preferred_direction() -> None:
    d, n = 4, 40_000
    mechanism = VectorMechanism(epsilon=1, sensitivity=1, dimension=d, step="0.01")
    noise = mechanism.sample(n, random=Random.deterministic(8))
    lengths = np.sqrt((noise**2).sum(axis=1))
    assert abs(lengths.mean() - d) < 6 * math.sqrt(d / n)
    covariance = noise.T @ noise / n
    fourth = math.sqrt(3 * (d + 1) * (d + 3) * d * (d + 1) / (d * (d + 2)))  # a bound of the deviation of one product
    assert np.abs(covariance - (d + 1) * np.eye(d)).max() < 6 * 2 * fourth / math.sqrt(n) * 2
    assert np.abs(noise.mean(axis=0)).max() < 6 * math.sqrt((d + 1) / n)


def test_releases_are_whole_steps_of_any_size() -> None:
    mechanism = VectorMechanism(epsilon=1, sensitivity=1, dimension=2, step="0.01")
    released = mechanism.release([0, 2**70], random=Random.deterministic(1))
    assert released.dtype == object
    assert abs(int(released[1]) - 2**70) < 100 * 60
    same = mechanism.release([0, 0], random=Random.deterministic(1))
    assert int(released[0]) == int(same[0])
    assert int(released[1]) - 2**70 == int(same[1])


@pytest.mark.parametrize(
    "bad", [{"epsilon": 0}, {"sensitivity": 0}, {"dimension": 0}, {"step": 0}, {"step": "1e-9"}, {"dimension": 2.5}]
)
def test_refused_parameters(bad: dict[str, object]) -> None:
    with pytest.raises(InvalidParameter):
        VectorMechanism(**{"epsilon": 1, "sensitivity": 1, "dimension": 2, "step": "0.01", **bad})


@pytest.mark.parametrize("bad", [[1], [1, 2, 3], [0.5, 1.0], 7])
def test_refused_values(bad: object) -> None:
    with pytest.raises(InvalidParameter):
        VectorMechanism(epsilon=1, sensitivity=1, dimension=2, step="0.01").release(bad)


def test_continuous_numbers() -> None:
    random = Random.deterministic(2)
    n = 40_000
    drawn = normals(n, random)
    assert abs(drawn.mean()) < 6 / math.sqrt(n)
    assert abs((drawn**2).mean() - 1) < 6 * math.sqrt(2 / n)
    assert 0 < uniforms(n, random).min() <= uniforms(n, random).max() <= 1
    for degrees in (1, 2, 7, 1000):
        many = np.array([chi_square(degrees, random) for _ in range(500)])
        assert abs(many.mean() - degrees) < 6 * math.sqrt(2 * degrees / 500)
    assert in_steps(np.array([1e30]), 1.0).dtype == object


@by_day_and_night("n", 2_000, 8_000)
def test_what_is_released_follows_the_law_of_what_is_shown(n: int) -> None:
    """The released steps have the gamma law of length (Kolmogorov–Smirnov) and no preferred direction; fixed generator."""
    from scipy import stats

    d, scale = 5, 1000
    mechanism = VectorMechanism(epsilon=1, sensitivity=scale, dimension=d)
    random = Random.deterministic(21)
    noise = np.array([mechanism.release([0] * d, random=random) for _ in range(n)], dtype=np.float64)
    lengths = np.sqrt((noise**2).sum(axis=1)) / scale
    assert stats.kstest(lengths, stats.gamma(d).cdf).pvalue > 1e-6
    assert stats.kstest(lengths * 1.1, stats.gamma(d).cdf).pvalue < 1e-6
    directions = noise / (lengths * scale)[:, None]
    assert np.abs(directions.mean(axis=0)).max() < 6 / math.sqrt(d * n)
    assert np.abs(directions.T @ directions / n - np.eye(d) / d).max() < 6 / math.sqrt(d * n)


def test_a_computed_draw_is_as_good_as_an_exact_one() -> None:
    """What computing adds to δ stays out of sight at every size that models use."""
    for dimension, epsilon in ((65, "1"), (640, "0.05"), (31, "8"), (10_000, "0.001")):
        mechanism = VectorMechanism(epsilon=epsilon, sensitivity=1000, dimension=dimension)
        assert mechanism.float_delta < 1e-11
