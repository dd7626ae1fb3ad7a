"""The accountant of noisy gradients: closed forms, another accountant, and its own inverse."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from cloister.errors import InvalidParameter
from cloister.learn.networks.accountant import epsilon_for, losses_of, noise_for
from cloister.privacy import PrivacyLossDistribution, epsilon_of_gaussian, mu_squared_of_gaussian
from cloister.privacy.sampled import SampledGaussianPair, sampled_gaussian

RUNS = [
    ("1", "0.01", 1000),
    ("1", "0.01", 10_000),
    ("0.7", "0.001", 20_000),
    ("2", "0.3", 50),
    ("5", "0.1", 300),
    ("10", "0.5", 200),
    ("30", "0.9", 200),
    ("0.5", "0.02", 100),
    ("1.1", "0.004", 15_000),
    ("5300", "0.25", 150),
]


def tail(x: float) -> float:
    return math.erfc(x / math.sqrt(2)) / 2


def one_step(epsilon: float, mu: float, q: float, added: bool) -> float:
    """δ of a single step, in closed form."""
    if not added:
        x = (math.log((math.expm1(epsilon) + q) / q) + mu * mu / 2) / mu
        return (1 - q) * tail(x) + q * tail(x - mu) - math.exp(epsilon) * tail(x)
    inside = math.expm1(-epsilon) + q
    if inside <= 0:
        return 0.0
    x = (math.log(inside / q) + mu * mu / 2) / mu
    return tail(-x) - math.exp(epsilon) * ((1 - q) * tail(-x) + q * tail(mu - x))


@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize(("mu", "q"), [(1.0, "0.01"), (0.2, "0.5"), (3.0, "0.1"), (0.01, "0.25"), (1.0, "0.97")])
def test_a_gridded_step_is_never_more_private_than_the_true_one(mu: float, q: str, added: bool) -> None:
    pair = SampledGaussianPair(Fraction(mu) ** 2, Fraction(q), added)
    spread = math.sqrt(pair.variance)
    for fine in (0.01, 0.3):
        grid = pair.on_grid(fine * spread)
        losses = (grid.first + np.arange(grid.mass.size)) * fine * spread
        assert 0 <= grid.mass.sum() + grid.infinite - 1 < 1e-6
        assert 0 <= (grid.mass * np.exp(-losses)).sum() - 1 + 1e-12 < 1e-6
        for epsilon in spread * np.linspace(0, 5, 23):
            gridded = float((np.maximum(-np.expm1(epsilon - losses), 0) * grid.mass).sum()) + grid.infinite
            true = one_step(float(epsilon), mu, float(Fraction(q)), added)
            assert gridded >= true * (1 - 1e-12)
            if fine == 0.01:
                assert gridded <= true * 1.001 + 1e-4 * spread


@pytest.mark.parametrize(("noise", "q"), [("1", "0.05"), ("4", "0.5"), ("0.4", "0.2")])
def test_one_step_is_the_closed_form(noise: str, q: str) -> None:
    run = losses_of(noise=noise, rate=q, steps=1)
    for epsilon in ("0.01", "0.1", "0.5"):
        true = max(one_step(float(epsilon), 1 / float(noise), float(q), added) for added in (False, True))
        assert true * (1 - 1e-12) <= float(run.delta(epsilon)) <= true * 1.001 + 1e-15


@pytest.mark.parametrize("steps", [1, 40])
def test_full_participation_is_one_gaussian(steps: int) -> None:
    assert epsilon_for(noise=20, rate=1, steps=steps, delta="1e-6") == epsilon_of_gaussian(Fraction(steps, 400), "1e-6")
    noise = noise_for(epsilon=1, delta="1e-6", rate=1, steps=steps)
    exact = float(steps / mu_squared_of_gaussian(epsilon=1, delta="1e-6")) ** 0.5
    assert exact * (1 - 1e-15) <= float(noise) <= exact * (1 + 1e-12)
    assert epsilon_for(noise=noise, rate=1, steps=steps, delta="1e-6") <= 1


@pytest.mark.parametrize(("noise", "rate", "steps"), RUNS)
def test_dp_accounting_agrees(noise: str, rate: str, steps: int) -> None:
    """Theirs errs upwards, too, by its own grid: ours may lie below it by that much only."""
    pytest.importorskip("dp_accounting")
    import dp_accounting as root
    from dp_accounting import pld

    step: Any = root.PoissonSampledDpEvent(float(rate), root.GaussianDpEvent(float(noise)))
    spread = math.sqrt(SampledGaussianPair(1 / Fraction(noise) ** 2, Fraction(rate)).variance * steps)
    theirs = pld.PLDAccountant(value_discretization_interval=min(1e-4, spread / 5000))
    theirs.compose(root.SelfComposedDpEvent(step, steps))
    expected = theirs.get_epsilon(1e-5)
    ours = float(epsilon_for(noise=noise, rate=rate, steps=steps, delta="1e-5"))
    assert expected * (1 - 2e-4) <= ours <= expected * 1.01


@pytest.mark.parametrize(
    ("epsilon", "delta", "rate", "steps"),
    [(1, "1e-5", "0.02", 500), (8, "1e-5", "0.1", 300), ("0.1", "1e-6", "0.01", 1000), ("0.001", "1e-5", "0.25", 150)],
)
def test_the_noise_is_enough_and_the_least(epsilon: Any, delta: str, rate: str, steps: int) -> None:
    noise = noise_for(epsilon=epsilon, delta=delta, rate=rate, steps=steps)
    assert losses_of(noise=noise, rate=rate, steps=steps).delta(epsilon) <= Fraction(delta)
    assert losses_of(noise=noise * Fraction(9999, 10_000), rate=rate, steps=steps).delta(epsilon) > Fraction(delta)


def test_more_of_anything_costs_more() -> None:
    base = {"noise": "2", "rate": "0.1", "steps": 100, "delta": "1e-5"}
    least = epsilon_for(**base)
    for name, value in (("noise", "1.9"), ("rate", "0.11"), ("steps", 110), ("delta", "1e-6")):
        assert epsilon_for(**{**base, name: value}) > least


def test_a_run_composes_with_other_releases() -> None:
    run = losses_of(noise=2, rate="0.1", steps=100)
    both = run + PrivacyLossDistribution.gaussian(mu_squared="0.04")
    alone = run.epsilon("1e-5")
    assert alone < both.epsilon("1e-5") < alone + epsilon_of_gaussian("0.04", "1e-5")
    assert sampled_gaussian(mu_squared=1, rate=0) == PrivacyLossDistribution(())
    assert sampled_gaussian(mu_squared=1, rate=1) == PrivacyLossDistribution.gaussian(mu_squared=1)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"rate": 2}, "it is a probability"),
        ({"rate": 0}, "rate"),
        ({"steps": "1.5"}, "it counts the steps"),
        ({"delta": 0}, "Gaussian noise is never pure"),
        ({"noise": 0}, "noise"),
    ],
)
def test_nonsense_is_refused(wrong: dict[str, Any], why: str) -> None:
    given: dict[str, Any] = {"noise": 1, "rate": "0.1", "steps": 10, "delta": "1e-5", **wrong}
    with pytest.raises(InvalidParameter, match=why):
        epsilon_for(**given)


def test_losses_beyond_what_an_exponential_holds_are_counted_and_give_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sampled_gaussian(mu_squared=1600, rate="0.01").delta(700) >= Fraction("0.0099")
