"""The laws of choices, counted: chi-square against exact probabilities, each with a false alarm below 10⁻⁶ a hundred times over.

Seeds are fixed, so a commit's run is repeatable; CLOISTER_SEEDS asks for more of them. 200,000 draws of a law that is off by
5 % in one cell of probability ⅓ or more shift its chi-square by 250 and more: the power at these thresholds is above 0.999.
"""

from __future__ import annotations

import math
import os
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from cloister.noise.random import Random
from cloister.noise.randomized_response import BinaryResponse, KaryResponse
from cloister.noise.selection import Exponential, PermuteAndFlip, ReportNoisyMax, categorical

pytestmark = pytest.mark.statistical
SEEDS = range(20, 20 + int(os.environ.get("CLOISTER_SEEDS", "1")))
ALARM = 1e-8
DRAWS = 200_000


@pytest.fixture(params=SEEDS)
def random(request: pytest.FixtureRequest) -> Random:
    """A source for each seed: one for a commit, a hundred at night."""
    return Random.deterministic(request.param)


def assert_follows(drawn: np.ndarray, probabilities: np.ndarray) -> None:
    """Chi-square, with cells of fewer than 10 expected draws put together."""
    expected = probabilities * len(drawn)
    counts = np.bincount(drawn, minlength=len(expected)).astype(float)
    assert len(counts) == len(expected)
    rare = expected < 10
    if rare.any():
        # Poisson tail for what should hardly ever come
        assert stats.poisson.sf(counts[rare].sum() - 1, max(expected[rare].sum(), 1e-12)) > ALARM or counts[rare].sum() == 0
        counts, expected = counts[~rare], expected[~rare]
    statistic = ((counts - expected) ** 2 / expected).sum()
    assert stats.chi2.sf(statistic, max(1, len(expected) - 1)) > ALARM


@pytest.mark.parametrize(
    "utilities", [[50, 20, 30], [49, 25, 6, 2], [0, 0, 0], list(range(40)), [Fraction(1, 3), Fraction(-5, 2)]]
)
@pytest.mark.parametrize("epsilon", ["0.1", "1"])
@pytest.mark.parametrize("kind", [Exponential, PermuteAndFlip])
def test_choices_follow_their_law(kind: type, epsilon: str, utilities: list[int], random: Random) -> None:
    mechanism = kind(epsilon=epsilon)
    drawn = mechanism.sample(DRAWS, utilities, random=random)
    assert_follows(drawn, mechanism.probabilities(utilities))


def test_the_check_can_fail(random: Random) -> None:
    """A twin with ε 5 % too large is caught."""
    drawn = Exponential(epsilon="1.05").sample(DRAWS, [3, 1, 0], random=random)
    with pytest.raises(AssertionError):
        assert_follows(drawn, Exponential(epsilon=1).probabilities([3, 1, 0]))


def noisy_max_law(scale: float, utilities: list[int]) -> np.ndarray:
    """P(winner) for discrete Laplace noise with ties split evenly, by summing over the winner's value and who else ties."""
    k = np.arange(-400, 401)
    alpha = math.exp(-1 / scale)
    mass = (1 - alpha) / (1 + alpha) * alpha ** np.abs(k)
    law = []
    for place, utility in enumerate(utilities):
        total = np.zeros(len(k))
        others = [other for index, other in enumerate(utilities) if index != place]
        ties = [np.zeros(len(k)) for _ in range(len(others) + 1)]
        ties[0] += 1
        for other in others:
            shift = k + utility - other
            equal = np.where(np.abs(shift) <= 400, (1 - alpha) / (1 + alpha) * alpha ** np.abs(shift), 0.0)
            below = np.where(
                shift <= 0, alpha ** (1.0 - np.minimum(shift, 0)) / (1 + alpha), 1 - alpha ** np.maximum(shift, 0) / (1 + alpha)
            )
            ties = [ties[0] * below, *[ties[n] * below + ties[n - 1] * equal for n in range(1, len(ties))]]
        for n, chance in enumerate(ties):
            total += chance / (n + 1)
        law.append(float((mass * total).sum()))
    return np.array(law)


@pytest.mark.parametrize("utilities", [[5, 3, 3], [0, 0, 0, 0], [2, 0]])
@pytest.mark.parametrize("epsilon", ["0.5", "4"])
def test_report_noisy_max_follows_its_law(epsilon: str, utilities: list[int], random: Random) -> None:
    mechanism = ReportNoisyMax(epsilon=epsilon)
    law = noisy_max_law(2 / float(epsilon), utilities)
    assert law.sum() == pytest.approx(1, abs=1e-9)
    assert_follows(mechanism.sample(DRAWS, utilities, random=random), law)


def test_laplace_noise_can_be_a_little_worse_than_gumbel() -> None:
    """Among many equal rivals; permute-and-flip beats both."""
    utilities = [6, *[0] * 5]
    laplace = noisy_max_law(2.0, utilities)[0]
    gumbel = Exponential(epsilon=1).probabilities(utilities)[0]
    flip = PermuteAndFlip(epsilon=1).probabilities(utilities)[0]
    assert flip > gumbel
    assert flip > laplace


@pytest.mark.parametrize("noise", ["gumbel", "exponential"])
def test_twins_follow_the_law_of_what_they_are(noise: str, random: Random) -> None:
    utilities = [4, 1, 3]
    kind = Exponential if noise == "gumbel" else PermuteAndFlip
    drawn = ReportNoisyMax(epsilon=1, noise=noise).sample(DRAWS, utilities, random=random)
    assert_follows(drawn, kind(epsilon=1).probabilities(utilities))


def test_a_million_candidates(random: Random) -> None:
    """Ten classes of 100,000 equal candidates each: the class follows its law, and so does the place within it."""
    gaps = np.repeat(np.arange(10), 100_000)
    law = np.exp(-np.arange(10) / 2)
    for kind in (Exponential, PermuteAndFlip):
        n = 50_000 if kind is Exponential else 100
        drawn = kind(epsilon=1).sample(n, -gaps, random=random)
        assert_follows(drawn // 100_000, law / law.sum())
        assert_follows(drawn % 100_000 // 10_000, np.full(10, 0.1))


def test_categorical_follows_its_weights(random: Random) -> None:
    weights = [Fraction(1, 7), 3, 0, Fraction(22, 10)]
    drawn = categorical(weights, DRAWS, random=random)
    assert_follows(drawn, np.array([float(weight / sum(weights)) for weight in weights]))


def test_randomised_responses_follow_their_laws(random: Random) -> None:
    binary = BinaryResponse(truth="0.3", coin="0.6")
    for truth, yes in zip((False, True), binary.yes, strict=True):
        drawn = binary.release(np.full(DRAWS, truth), random=random).astype(int)
        assert_follows(drawn, np.array([1 - float(yes), float(yes)]))
    kary = KaryResponse.for_epsilon(1, categories=6)
    for truth in (0, 3, 5):
        law = np.full(6, float(kary.other))
        law[truth] = float(kary.truth)
        assert_follows(kary.release(np.full(DRAWS, truth), random=random), law)
