"""Duchi's mechanism: exactly its law in one dimension, half-spaces with halved ties in many."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy import stats

from cloister.attacks import audit_channel
from cloister.attacks.broken import found_epsilon, twin
from cloister.attacks.broken.local import duchi_channel
from cloister.errors import InvalidParameter
from cloister.local import Duchi, Hybrid
from cloister.noise import Random
from tests.local.words import Scripted


@pytest.mark.parametrize("dimensions", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("epsilon", ["0.1", "1", "4"])
def test_the_channel_is_private_and_tight(dimensions: int, epsilon: str) -> None:
    found = audit_channel(Duchi(epsilon=epsilon, dimensions=dimensions).channel())
    assert float(epsilon) * (1 - 1e-9) < found.epsilon <= float(epsilon)


@pytest.mark.parametrize("dimensions", [2, 3, 4])
def test_ties_are_halved_and_the_twins_that_do_otherwise_are_caught(dimensions: int) -> None:
    ours = np.array(Duchi(epsilon=1, dimensions=dimensions).channel(), dtype=float)
    assert np.allclose(ours, duchi_channel(dimensions, ties="half"))
    for name in ("ties dropped on one side", "ties on both sides"):
        broken = twin(name)
        assert broken.audit().contradicts(broken.claims)
        assert found_epsilon(broken, broken.audit()) == pytest.approx(broken.truth)
    ratios = [max(row[0]) / min(row[0]) for row in (duchi_channel(d, ties="one") for d in (2, 4, 6))]
    assert ratios == pytest.approx([8.155, 5.98, 5.19], abs=0.01)


@pytest.mark.parametrize("t", [-1.0, -0.4, 0.0, 0.7, 1.0])
def test_the_law_of_one_dimension(t: float) -> None:
    """P(+) = ½ + t(e − 1)/(2(e + 1)) at ε = 1: 400,000 reports within 6 standard deviations."""
    reports = Duchi(epsilon=1).randomize(np.full(400_000, t), random=Random.deterministic(1))
    plus = 0.5 + t * (math.e - 1) / (2 * (math.e + 1))
    assert abs(reports.mean() - plus) < 6 * math.sqrt(plus * (1 - plus) / 400_000)


def test_a_report_word_by_word() -> None:
    mechanism = Duchi(0, 4, 1)
    assert [mechanism.randomize([1.0], random=Scripted(words)).tolist() for words in ([2**62 - 1, 0], [2**62, 0])] == [[1], [0]]
    assert mechanism.randomize([1.0], random=Scripted([2**62, 2**64 - 1])).tolist() == [1]


@pytest.mark.statistical
@pytest.mark.parametrize("dimensions", [2, 3, 4])
def test_draws_have_the_law_of_the_channel(dimensions: int) -> None:
    """At each corner of the cube; chi-square at 10⁻⁸."""
    mechanism = Duchi(epsilon=1, dimensions=dimensions)
    corners = list(product((-1, 1), repeat=dimensions))
    for corner, row in zip(corners, mechanism.channel(), strict=True):
        reports = mechanism.randomize(np.tile(corner, (40_000, 1)), random=Random.deterministic(2))
        numbers = [sum(1 << j for j, side in enumerate(each) if side == 1) for each in corners]
        counts = np.bincount(reports[:, 0].astype(np.int64), minlength=1 << dimensions)[numbers]
        assert stats.chisquare(counts, np.array(row, dtype=float) * 40_000).pvalue > 1e-8


@pytest.mark.parametrize("dimensions", [1, 2, 3, 4, 5, 6])
def test_the_mean_by_the_channel(dimensions: int) -> None:
    """B, by another route: Σ P(corner)·B·corner is the truth at each corner."""
    mechanism = Duchi(epsilon=1, dimensions=dimensions)
    corners = np.array(list(product((-1, 1), repeat=dimensions)), dtype=float)
    reach = math.sqrt(mechanism.variance())
    assert np.allclose(np.array(mechanism.channel(), dtype=float) @ (corners * reach), corners)


def test_reports_of_many_dimensions() -> None:
    mechanism = Duchi(0, 1, 1, dimensions=70)
    reports = mechanism.randomize(np.full((5, 70), 0.5), random=Random.deterministic(1))
    assert reports.shape == (5, 2)
    assert reports.dtype == np.uint64
    assert mechanism.valid(reports).all()
    beyond = reports.copy()
    beyond[2, 1] = 1 << 6
    assert mechanism.valid(beyond).tolist() == [True, True, False, True, True]
    assert not mechanism.valid(np.array([[-1, 0]])).any()
    assert Duchi(dimensions=64).valid(np.array([[2**64 - 1]], dtype=np.uint64)).all()
    with pytest.raises(InvalidParameter, match="too many reports"):
        mechanism.channel()


def test_the_price_of_all_coordinates_at_once() -> None:
    """A whole corner is worse than one coordinate drawn by lot, by nearly π/2 in many dimensions (and ε small)."""
    for dimensions in (4, 10, 50):
        assert Hybrid(epsilon=1, dimensions=dimensions).variance() < Duchi(epsilon=1, dimensions=dimensions).variance()
    small = [made(epsilon="0.1", dimensions=100).variance() for made in (Duchi, Hybrid)]
    assert small[0] / small[1] == pytest.approx(math.pi / 2, rel=0.02)
