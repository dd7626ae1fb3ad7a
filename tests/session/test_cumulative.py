"""Half-widths of noisy cumulative counts: against the laws themselves, from noise that is mostly 0 to large noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cloister.noise import DiscreteGaussian, DiscreteLaplace, Random
from cloister.session.planning.leaves import leaves_of
from cloister.session.releases.cumulative import Bounds, narrowed, usual_widths, width_at
from cloister.session.releases.uncertainty import Term, Terms
from tests.session.test_uncertainty import exact_half_width

CONFIDENCES = (0.5, 0.8, 0.9, 0.95, 0.99, 0.999, 1 - 1e-6)
SCALES = ("0.1", "0.2", "0.3", "0.5", "0.8", "1", "2", "5")
QUESTIONS = ((0.5, -0.5), (1.0, 0.0), (0.0, 1.0), (0.95, -0.05), (1.0, 1.0))


def of_scale(law: Any, scale: str) -> Terms:
    return (Term(1.0, law(scale=scale)),)


@pytest.mark.parametrize("law", [DiscreteLaplace, DiscreteGaussian])
@pytest.mark.parametrize("scale", SCALES)
def test_the_half_width_at_a_leaf_is_that_of_the_law(law: Any, scale: str) -> None:
    """Leaves without a level above them: up to the last one their sum is that of as many noises."""
    leaves = leaves_of("x", 0, 5, cells=1, total=False, gaussian=False)
    assert leaves.weights == (1, 0)
    terms = of_scale(law, scale)
    for rows in (1, 3, 5):
        for confidence, exact in zip(CONFIDENCES, exact_half_width(terms * rows, CONFIDENCES), strict=True):
            found = width_at(leaves, terms, confidence, rows - 1, 1.0, 0.0)
            assert exact <= found <= exact * 1.02 + 0.1, (rows, confidence)
            if exact == 0 and rows * law(scale=scale).tail(0) <= 1 - confidence:
                assert found == 0


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("size", [2, 20, pytest.param(74, marks=pytest.mark.slow), pytest.param(256, marks=pytest.mark.slow)])
def test_what_is_known_of_all_leaves_is_never_narrower_than_the_law(gaussian: bool, size: int) -> None:
    law = DiscreteGaussian if gaussian else DiscreteLaplace
    for total in (False, True):
        leaves = leaves_of("x", 0, size, cells=1, total=total, gaussian=gaussian)
        for upto, beyond in QUESTIONS:
            for scale in SCALES[1::3]:
                for confidence in CONFIDENCES[::3]:
                    bounds = Bounds(leaves, of_scale(law, scale), confidence, upto=upto, beyond=beyond, top=False)
                    for place in {size // 3, size - 1}:
                        exact = width_at(leaves, of_scale(law, scale), confidence, place, upto, beyond)
                        assert exact <= bounds.values[place] + 1e-9, (total, upto, beyond, scale, confidence, place)


@pytest.mark.parametrize("top", [False, True])
@pytest.mark.parametrize("scale", ["0.3", "0.6", "2"])
def test_the_noise_in_a_cumulative_count_stays_within_its_half_width(scale: str, top: bool) -> None:
    """4,000 draws of all levels of a tree; a miss rate of 1 % is seen as more than 2 % with a probability below 1e-6."""
    leaves = leaves_of("x", 0, 20, cells=1, total=False, gaussian=True)
    terms, draws = of_scale(DiscreteGaussian, scale), 4000
    noise = terms[0].noise.sample(draws * leaves.measured().sum(), random=Random.deterministic(7)).reshape(draws, -1)
    counts = leaves.counts(noise, None)
    counts = counts[:, ::-1] if top else counts
    for upto, beyond in ((1.0, 0.0), (0.5, -0.5)):
        bounds = Bounds(leaves, terms, 0.99, upto=upto, beyond=beyond, top=top)
        bounds.refine(range(leaves.count))
        before = np.cumsum(counts, axis=1)
        off = np.abs(upto * before + beyond * (before[:, -1:] - before))
        missed = (off > bounds.values + 1e-9).mean(axis=0)
        assert missed.max() <= 0.02, (upto, beyond)


def test_only_the_ends_of_an_interval_are_worked_out() -> None:
    leaves = leaves_of("x", 0, 101, cells=1, total=False, gaussian=False)
    bounds = Bounds(leaves, of_scale(DiscreteLaplace, "0.3"), 0.95, upto=0.5, beyond=-0.5, top=False)
    over = np.sign(np.arange(101) - 50.5)[None] * 20.0 + (np.arange(101) - 50)[None] / 10
    over[0, 40:61] = np.linspace(-2, 2, 21)
    loose = bounds.values.copy()
    found = narrowed([bounds], lambda: np.abs(over) <= bounds.values)
    worked = np.flatnonzero(bounds.known)
    assert 0 < len(worked) < 30
    ends = np.flatnonzero(found[0])[[0, -1]]
    assert bounds.known[ends].all()
    assert (bounds.values[ends] < loose[ends]).all()
    assert (bounds.values <= loose).all()


@pytest.mark.parametrize("scale", ["0.002", "0.0017", "0.0015"])
def test_noise_whose_variance_has_no_square_as_a_double_has_a_half_width(scale: str) -> None:
    leaves = leaves_of("x", 0, 90, cells=1, total=False, gaussian=False)
    terms = of_scale(DiscreteLaplace, scale)
    assert terms[0].variance ** 2 == 0 < terms[0].variance
    found = usual_widths(leaves, terms, 0.95, 0.5, -0.5)
    assert ((found >= 0) & (found < 1)).all()
