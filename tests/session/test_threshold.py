"""Thresholds of undeclared keys: both directions of the proof, by the whole law of what is shown."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import cloister as cl
from cloister.noise import DiscreteGaussian, DiscreteLaplace, Random
from cloister.privacy import ApproxDP, delta_of_zcdp
from cloister.session.questions.threshold import threshold_for

REACH = 200


def law(noise: DiscreteLaplace | DiscreteGaussian) -> np.ndarray:
    """P(noise = k) for |k| ≤ REACH."""
    k = np.arange(-REACH, REACH + 1)
    scale = float(noise.scale)
    weights = np.exp(-np.abs(k) / scale) if isinstance(noise, DiscreteLaplace) else np.exp(-(k**2) / (2 * scale**2))
    return weights / weights.sum()


def shown(noise: DiscreteLaplace | DiscreteGaussian, count: int | None, least: int) -> np.ndarray:
    """The law of what is seen of one key: that it is not shown, or its noisy count, which is at least `least`."""
    seen = np.zeros(2 * REACH + 12)
    if count is None:
        seen[-1] = 1.0
        return seen
    values, chances = np.arange(-REACH, REACH + 1) + count, law(noise)
    np.add.at(seen, np.where(values >= least, np.maximum(values + REACH, 0), len(seen) - 1), chances)
    return seen


def excess(one: np.ndarray, other: np.ndarray, epsilon: float) -> float:
    """The least δ for which P₁(S) ≤ e^ε·P₂(S) + δ for all S."""
    return float(np.maximum(one - math.exp(epsilon) * other, 0).sum())


@pytest.mark.parametrize(("epsilon", "delta"), [("1", "0.01"), ("0.1", "0.001"), ("0.1", "0.2"), ("0.11", "0.9"), ("4", "1e-6")])
@pytest.mark.parametrize("own", [1, 2])
def test_a_person_with_a_key_of_their_own_is_hidden_both_ways_under_laplace_noise(own: int, epsilon: str, delta: str) -> None:
    """A person under two keys, one or both theirs alone; also where δ is far larger than ε, which cannot pay the factor then."""
    noise = DiscreteLaplace(scale=2 / Fraction(epsilon), sensitivity=2)
    promised = ApproxDP(noise.guarantee.epsilon, delta)
    least = threshold_for(noise, 2, promised.delta).least
    assert least < REACH
    common = None if own == 2 else 7
    without = np.outer(shown(noise, common, least), shown(noise, None, least)).ravel()
    within = np.outer(shown(noise, 1 if common is None else 8, least), shown(noise, 1, least)).ravel()
    for one, other in ((without, within), (within, without)):
        assert excess(one, other, float(promised.epsilon)) <= float(promised.delta) + 1e-12


@pytest.mark.parametrize(("rho", "delta"), [("0.5", "0.01"), ("0.02", "0.2"), ("0.05", "1e-4")])
def test_a_person_with_a_key_of_their_own_is_hidden_both_ways_under_gaussian_noise(rho: str, delta: str) -> None:
    """δ-approximate ρ, as (ε, δ₁ + δ) for every ε: nothing more is needed for the factor 1 − δ′."""
    noise = DiscreteGaussian.for_rho(rho, sensitivity_squared=2)
    least = threshold_for(noise, 2, Fraction(delta)).least
    without = np.outer(shown(noise, 7, least), shown(noise, None, least)).ravel()
    within = np.outer(shown(noise, 8, least), shown(noise, 1, least)).ravel()
    for epsilon in ("0.05", "0.5", "2"):
        allowed = float(delta_of_zcdp(noise.guarantee, epsilon) + Fraction(delta))
        assert max(excess(without, within, float(epsilon)), excess(within, without, float(epsilon))) <= allowed + 1e-12


def test_a_threshold_one_lower_is_not_private() -> None:
    """The check can fail."""
    noise = DiscreteLaplace(scale=1, sensitivity=1)
    least = threshold_for(noise, 1, Fraction("0.001")).least
    alone = shown(noise, None, least - 1), shown(noise, 1, least - 1)
    assert excess(alone[1], alone[0], 1.0) > 0.001


def test_joint_margins_give_each_cell_its_part_of_the_failures() -> None:
    """The sum of the parts bounds the chance of any failure, however the cells hang together."""
    table = cl.PrivateTable({"sex": ["F", "M"] * 50}, columns={"sex": cl.Category(["F", "M"])})
    with cl.Session({"people": table}, budget=cl.PureDP(1), random=Random.deterministic(1)) as session:
        answer = session.sql("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", spend=1)
    for confidence in (0.5, 0.95, 0.999):
        joint, part = answer.margin(confidence, joint=True), answer.margin(1 - (1 - confidence) / 2)
        assert joint["n"].tolist() == part["n"].tolist()
