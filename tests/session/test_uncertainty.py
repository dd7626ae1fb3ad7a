"""Margins of sums of noises: against closed forms, and against what the noises do."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cloister.noise import DiscreteGaussian, DiscreteLaplace, Random
from cloister.session.formulas import Ratio, Reading
from cloister.session.uncertainty import Term, _from_grid, half_width, scaled, variance


def laplace(scale: float, weight: float = 1.0) -> Term:
    return Term(weight, DiscreteLaplace(scale=scale))


def test_no_noise_has_no_width() -> None:
    assert half_width((), 0.95) == 0
    assert half_width((laplace(3, 0.0),), 0.95) == 0


def test_one_noise_is_its_own_margin() -> None:
    assert half_width((laplace(10),), 0.95) == DiscreteLaplace(scale=10).margin(0.95)
    assert half_width((laplace(10, -2.5),), 0.95) == 2.5 * DiscreteLaplace(scale=10).margin(0.95)


def test_gaussians_add_in_squares() -> None:
    terms = (Term(3.0, DiscreteGaussian(scale=100)), Term(4.0, DiscreteGaussian(scale=100)))
    assert half_width(terms, 0.95) == pytest.approx(1.959964 * 500, rel=1e-6)
    assert variance(terms) == pytest.approx(500.0**2, rel=1e-6)


@pytest.mark.parametrize("ratio", [1.0, 1.5, 7.0, 100.0])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.9999])
def test_the_closed_form_of_two_laplace_laws_agrees_with_the_grid(ratio: float, confidence: float) -> None:
    terms = (laplace(1000), laplace(1000, ratio))
    assert half_width(terms, confidence) == pytest.approx(_from_grid(terms, confidence), rel=0.01)


def test_the_grid_errs_on_the_wide_side_for_small_discrete_noises() -> None:
    """P(|X + Y + Z| ≤ m) by brute force over three discrete Laplace laws of scale 2."""
    atoms = np.arange(-120, 121)
    law = np.exp(-np.abs(atoms) / 2)
    law /= law.sum()
    three = np.convolve(np.convolve(law, law), law)
    support = np.arange(-360, 361)
    for confidence in (0.8, 0.95, 0.999):
        exact = next(m for m in range(361) if three[np.abs(support) <= m].sum() >= confidence)
        found = half_width((laplace(2), laplace(2), laplace(2)), confidence, True)
        assert exact <= found <= exact + 1


def test_scaling_scales() -> None:
    terms = (laplace(50), laplace(80))
    assert half_width(scaled(terms, 3.0), 0.95) == pytest.approx(3 * half_width(terms, 0.95))


@pytest.mark.statistical
@pytest.mark.parametrize("true_rows", [400, 4000])
def test_fieller_intervals_cover_a_mean_as_often_as_they_say(true_rows: int) -> None:
    """40,000 means: with coverage 0.95 the share lies within ±0.0055 of it but for a chance below 1e-6; the generator is fixed
    besides."""
    runs, width, theta = 40_000, 100, 0.3
    noise = DiscreteLaplace(scale=1000)
    random = Random.deterministic(11)
    above = Reading(noise.sample(runs, random=random) + int(true_rows * width * theta), (Term(1.0, noise),))
    below = Reading(noise.sample(runs, random=random) + int(true_rows * width * (1 - theta)), (Term(1.0, noise),))
    ratio = Ratio(name="m", above="a", below="b", low=0.0, width=1.0, codes=width)
    lower, upper = ratio.interval(
        above.values.astype(float), above.values.astype(float) + below.values, above.terms, below.terms, 0.95
    )
    covered = np.mean((lower <= theta) & (theta <= upper))
    assert math.isclose(covered, 0.95, abs_tol=0.0055)
