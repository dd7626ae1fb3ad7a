"""Hybrid: which of the two was used is told, the same error for everybody, the whole channel private."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cloister.attacks import audit_channel
from cloister.errors import InvalidParameter
from cloister.local import Duchi, Hybrid, Piecewise
from cloister.noise import Random
from tests.local.words import Scripted


@pytest.mark.parametrize("epsilon", ["0.3", "1", "3"])
def test_the_channel_is_private_and_tight(epsilon: str) -> None:
    rows = Hybrid(epsilon=epsilon, grid=8).channel()
    found = audit_channel(rows)
    assert float(epsilon) * (1 - 1e-9) < found.epsilon <= float(epsilon)
    assert all(sum(row) == 1 for row in rows)


@pytest.mark.parametrize("epsilon", ["0.7", "1", "3"])
def test_everybody_has_the_same_error(epsilon: str) -> None:
    mechanism = Hybrid(epsilon=epsilon)
    errors = [mechanism.variance(1, t) for t in (-1.0, -0.5, 0.0, 0.9)]
    assert max(errors) / min(errors) == pytest.approx(1, rel=2e-3)
    assert mechanism.variance() < min(Duchi(epsilon=epsilon).variance(), Piecewise(epsilon=epsilon).variance())


def test_up_to_0_61_it_is_duchi() -> None:
    mechanism = Hybrid(epsilon="0.61")
    assert mechanism.variance() == pytest.approx(Duchi(epsilon="0.61").variance(), rel=1e-4)
    reports = mechanism.randomize([0.2] * 100, random=Random.deterministic(1))
    assert set(reports.tolist()) == {0, 1}
    for read in (mechanism.spread, mechanism.distribution):
        with pytest.raises(InvalidParameter, match="Only means"):
            read(reports)
    assert Hybrid(epsilon="0.62").mean([2]).n == 1


def test_the_share_of_each() -> None:
    """α = 1 − e^{−ε/2}: within 6 standard deviations of 100,000 reports."""
    reports = Hybrid(epsilon=2).randomize(np.full(100_000, 0.2), random=Random.deterministic(1))
    alpha = 1 - math.exp(-1)
    assert abs((reports > 1).mean() - alpha) < 6 * math.sqrt(alpha * (1 - alpha) / 100_000)


def test_a_report_word_by_word() -> None:
    """Choice, Duchi's two coins, then grid, window coin, place, other place: all are used in either case."""
    mechanism, last = Hybrid(0, 8, 2, grid=8), 2**64 - 1
    assert mechanism.randomize([3.0], random=Scripted([0, 0, 0, 0, 0, 1, 0])).tolist() == [2 + 3 + 1]
    assert mechanism.randomize([3.0], random=Scripted([last, 0, 0, 0, 0, 1, 0])).tolist() == [1]
    assert mechanism.randomize([3.0], random=Scripted([last, last, 0, 0, 0, 1, 0])).tolist() == [0]
    assert mechanism.randomize([3.0], random=Scripted([last, last, last, 0, 0, 1, 0])).tolist() == [1]


@pytest.mark.statistical
def test_spread_of_hybrid_reports() -> None:
    """100 surveys: their mean within 6 standard errors, and at least 80 of 100 in margins of 95 % (10⁻⁷)."""
    mechanism, random = Hybrid(0, 10, 2), Random.deterministic(3)
    values = np.concatenate([np.full(1500, 2.0), np.linspace(4, 9, 1500)])
    found = [mechanism.spread(mechanism.randomize(values, random=random)) for _ in range(100)]
    off = np.array([each.value for each in found]) - values.var()
    assert abs(off.mean()) < 6 * off.std() / 10
    assert sum(abs(o) < each.margin(0.95) for o, each in zip(off, found, strict=True)) >= 80


def test_forward_and_back_are_the_channel() -> None:
    for epsilon in ("0.5", "2"):
        mechanism = Hybrid(epsilon=epsilon, grid=8)
        rows = np.array(mechanism.channel(), dtype=float)
        shares = np.random.default_rng(1).dirichlet(np.ones(9), size=3)
        numbers = np.random.default_rng(2).normal(size=(3, rows.shape[1]))
        assert np.allclose(mechanism._forward(shares), shares @ rows)
        assert np.allclose(mechanism._back(numbers), numbers @ rows.T)
