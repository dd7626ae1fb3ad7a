"""Laplace noise at the source: its scale, its clamp, its sketch without overflow."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from cloister.errors import InvalidParameter
from cloister.local import LocalLaplace
from cloister.noise import Random
from cloister.privacy import PureDP


@pytest.mark.parametrize("epsilon", ["1e-6", "0.1", "1", "40"])
@pytest.mark.parametrize("dimensions", [1, 3])
def test_the_noise_is_for_the_whole_interval_in_every_dimension(epsilon: str, dimensions: int) -> None:
    mechanism = LocalLaplace(5, 9, epsilon, dimensions=dimensions)
    assert mechanism.noise.sensitivity == mechanism.grid * dimensions
    assert mechanism.noise.guarantee == PureDP(epsilon)
    assert mechanism.guarantee == PureDP(epsilon)
    assert mechanism.variance(1, 5.0) == pytest.approx(2 * (dimensions * 4 / float(epsilon)) ** 2, rel=0.001)


def test_the_clamp() -> None:
    mechanism = LocalLaplace(0, 1, 1)
    last = 1024 + 45 * 1024 + 1
    assert mechanism.valid(np.array([-45 * 1024 - 1, last, last + 1, -45 * 1024 - 2])).tolist() == [True, True, False, False]


def test_sums_of_squares_do_not_overflow() -> None:
    """A million reports at the clamp, at an ε where one squared has 60 bits: the spread is exact."""
    mechanism = LocalLaplace(0, 1, "1e-6")
    last = int(45 * mechanism.noise.scale) + 1 + mechanism.grid
    reports = np.full(1_000_000, last)
    reports[::2] = 0
    counts = [int(each) for each in mechanism.aggregate(reports).counts]
    offset = last - mechanism.grid
    squares = 500_000 * ((last + offset) ** 2 + offset**2)
    assert counts[0] == 500_000 * (last + 2 * offset)
    assert (counts[1] << 32) + counts[2] == squares
    spread = mechanism.spread(reports).value
    noise = Fraction(mechanism.noise.scale) ** 2 * 2 / mechanism.grid**2
    assert spread == pytest.approx(float(Fraction(last, 2) ** 2 / mechanism.grid**2 - noise), rel=1e-5)


@pytest.mark.statistical
def test_the_spread() -> None:
    """100 surveys: their mean within 6 standard errors, and at least 80 of 100 in margins of 95 % (10⁻⁷)."""
    mechanism, random = LocalLaplace(0, 10, 4), Random.deterministic(3)
    values = np.concatenate([np.full(1500, 2.0), np.linspace(4, 9, 1500)])
    found = [mechanism.spread(mechanism.randomize(values, random=random)) for _ in range(100)]
    off = np.array([each.value for each in found]) - values.var()
    assert abs(off.mean()) < 6 * off.std() / 10
    assert sum(abs(o) < each.margin(0.95) for o, each in zip(off, found, strict=True)) >= 80


def test_refusals() -> None:
    with pytest.raises(InvalidParameter, match="fits in no report"):
        LocalLaplace(0, 1, "1e-6", dimensions=1000)
    with pytest.raises(InvalidParameter, match="too many reports"):
        LocalLaplace().channel()
    with pytest.raises(InvalidParameter, match="coordinate="):
        LocalLaplace().spread([1], coordinate=1)
