"""Shares of noise add up to the law that they are shares of, and the law of a sum is what it says."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

import cloister as cl
from cloister.noise import DiscreteGaussian, DiscreteLaplace, Random, SummedNoise
from cloister.noise.laws import law_from, law_plain
from cloister.noise.shares import NoiseShares, gaussian_share, rho_of_sum

FALSE_ALARM = 1e-7
DRAWS = 40_000


def chances(law: SummedNoise, size: int = 1 << 12) -> np.ndarray[Any, Any]:
    """P(noise = k) for k = 0 … on a circle that is far longer than the noise, from the law's transform."""
    turns = 2 * np.pi * np.arange(size) / size
    transform = np.ones(size)
    for part, number in law.parts:
        if isinstance(part, DiscreteLaplace):
            transform *= (1 + (np.sin(turns / 2) / math.sinh(0.5 / float(part.scale))) ** 2) ** -float(number)
        else:
            transform *= (np.fft.fft(gaussian(float(part.scale_squared), size)).real) ** int(number)
    return np.fft.ifft(transform).real


def gaussian(square: float, size: int) -> np.ndarray[Any, Any]:
    """The discrete Gaussian law on a circle."""
    places = np.minimum(np.arange(size), size - np.arange(size))
    heights = np.exp(-(places.astype(np.float64) ** 2) / (2 * square))
    return heights / heights.sum()


def check_law(drawn: np.ndarray[Any, Any], law: SummedNoise) -> None:
    """Pearson's chi-square over values with an expected count of at least 20, the rest together; false alarm 10⁻⁷."""
    found = chances(law)
    inside = [k for k in range(-400, 401) if found[k] * len(drawn) >= 20]
    expected = np.array([found[k] for k in inside] + [1 - sum(found[k] for k in inside)]) * len(drawn)
    seen = np.array([int((drawn == k).sum()) for k in inside])
    seen = np.append(seen, len(drawn) - seen.sum())
    statistic = float(((seen - expected) ** 2 / expected).sum())
    assert len(inside) > 10
    assert statistic < stats.chi2.isf(FALSE_ALARM, len(inside))


@pytest.mark.parametrize("number", [2, 3, 7])
def test_laplace_shares_add_up_to_the_law_exactly(number: int) -> None:
    law, random = DiscreteLaplace(scale=6), Random.deterministic(number)
    drawn = sum(NoiseShares(law=law, parties=number, honest=number).share.sample(DRAWS, random=random) for _ in range(number))
    check_law(np.asarray(drawn), SummedNoise(parts=[(law, 1)]))


@pytest.mark.parametrize("number", ["1/3", "3/2", "2"])
def test_a_fraction_of_a_law_has_that_power_of_its_transform(number: str) -> None:
    law = SummedNoise(parts=[(DiscreteLaplace(scale=4), number)])
    check_law(law.sample(DRAWS, random=Random.deterministic(1)), law)


def test_a_share_drawn_with_a_wrong_shape_is_caught() -> None:
    law = SummedNoise(parts=[(DiscreteLaplace(scale=4), "1/3")])
    wrong = SummedNoise(parts=[(DiscreteLaplace(scale=4), "4/10")])
    with pytest.raises(AssertionError):
        check_law(wrong.sample(DRAWS, random=Random.deterministic(1)), law)


def test_laws_in_one_sum_are_independent() -> None:
    law = SummedNoise(parts=[(DiscreteLaplace(scale=3), "3/2"), (DiscreteGaussian(scale=5), 2)])
    assert law.variance == pytest.approx(1.5 * DiscreteLaplace(scale=3).variance + 50)
    check_law(law.sample(DRAWS, random=Random.deterministic(2)), law)


def farthest(square: float, number: int) -> float:
    """The largest logarithm of a quotient of the sum's law and the discrete Gaussian of the same parameter, within six σ."""
    size, reach = 1 << 10, int(6 * math.sqrt(number * square))
    whole = np.fft.fft(gaussian(square, size)).real ** number
    found = np.fft.ifft(whole).real[:reach]
    near = gaussian(number * square, size)[:reach]
    return float(np.abs(np.log(found / near)).max())


def test_gaussian_shares_of_two_steps_are_as_good_as_gaussian_noise() -> None:
    for number in (2, 3, 10):
        assert farthest(4.0, number) < 1e-6  # what floats show of a difference below 10⁻¹⁶
    assert farthest(0.1, 3) > 0.01  # a narrow share is told apart


@pytest.mark.parametrize("square", [0.5, 1.0])
def test_the_stated_closeness_holds_where_floats_show_it(square: float) -> None:
    bound = 10 * sum(math.exp(-2 * math.pi**2 * square * each / (each + 1)) for each in range(1, 3))
    assert 1e-9 < farthest(square, 3) < bound


def test_gaussian_shares_pay_for_the_difference() -> None:
    law = DiscreteGaussian(scale=10, sensitivity=3)
    share = gaussian_share(law, 5, coordinates=10**6)
    assert 5 * share.scale_squared > law.scale_squared
    assert rho_of_sum(share, 5, coordinates=10**6) <= law.guarantee.rho
    assert rho_of_sum(DiscreteGaussian(scale_squared=Fraction(20), sensitivity=3), 5) > law.guarantee.rho
    with pytest.raises(cl.InvalidParameter, match="at least 2 steps"):
        gaussian_share(DiscreteGaussian(scale=3), 3)


@pytest.mark.parametrize(
    "parts",
    [
        [],
        [(DiscreteGaussian(scale=3), "1/2")],
        [(DiscreteLaplace(scale=3), 0)],
        [("noise", 1)],
        [(DiscreteLaplace(scale=3), 10**7)],
    ],
)
def test_what_is_no_sum_is_refused(parts: list[Any]) -> None:
    with pytest.raises(cl.InvalidParameter):
        SummedNoise(parts=parts)


def test_laws_are_known_again_by_name() -> None:
    for law in (
        DiscreteLaplace(scale="1/3", sensitivity=2),
        DiscreteGaussian(scale_squared=7, sensitivity_squared=3),
        SummedNoise(parts=[(DiscreteLaplace(scale=10), "3/2"), (DiscreteGaussian(scale=4), 2)]),
    ):
        assert law_from(law_plain(law)) == law
    with pytest.raises(KeyError):
        law_from({"law": "NoNoise"})


def test_a_share_may_be_wide() -> None:
    for scale, kind in ((10**7, np.int64), (10**30, object)):
        share = NoiseShares(law=DiscreteLaplace(scale=scale), parties=3, honest=3).share
        assert share.sample(1, random=Random.deterministic(1)).dtype == kind


@pytest.mark.parametrize(("parties", "honest"), [(3, 3), (5, 3), (10, 4), (4, 1)])
@pytest.mark.parametrize("law", [DiscreteLaplace(scale=12), DiscreteGaussian(scale=12, sensitivity=3)])
def test_shares_are_sized_for_those_who_are_honest_at_least(law: Any, parties: int, honest: int) -> None:
    shares = NoiseShares(law=law, parties=parties, honest=honest)
    assert shares.total(honest).variance == pytest.approx(law.variance, rel=2e-6)
    assert shares.total(honest).variance >= law.variance * (1 - 1e-12)
    assert shares.total(parties).variance == pytest.approx(law.variance * parties / honest, rel=2e-6)
    assert shares.share.variance * honest == pytest.approx(law.variance, rel=2e-6)
    for present in (honest - 1, parties + 1):
        with pytest.raises(cl.InvalidParameter, match="sized for"):
            shares.total(present)


@pytest.mark.parametrize("law", [DiscreteLaplace(scale=6), DiscreteGaussian(scale=6)])
def test_the_shares_of_all_have_the_law_with_the_surplus(law: Any) -> None:
    shares, random = NoiseShares(law=law, parties=4, honest=2), Random.deterministic(9)
    drawn = sum(shares.share.sample(DRAWS, random=random) for _ in range(4))
    total = shares.total(4)
    assert isinstance(total, SummedNoise)
    check_law(np.asarray(drawn), total)


@pytest.mark.parametrize("honest", [-1, 0, 4, True, "1"])
def test_someone_must_be_honest_and_present(honest: Any) -> None:
    with pytest.raises(cl.InvalidParameter, match="honest and present"):
        NoiseShares(law=DiscreteLaplace(scale=6), parties=3, honest=honest)
