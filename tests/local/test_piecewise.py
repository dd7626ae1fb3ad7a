"""Piecewise, square wave and the circle: their windows against the published formulas, several coordinates, directions."""

from __future__ import annotations

import math
from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from cloister.attacks import audit_channel
from cloister.attacks.broken import useless
from cloister.errors import InvalidParameter
from cloister.local import CircularPiecewise, Piecewise, SquareWave
from cloister.local.numbers.finite import drawn_coordinates
from cloister.noise import Random
from tests.local.words import Scripted


@pytest.mark.parametrize("epsilon", ["0.1", "1", "3", "8"])
def test_the_windows_of_the_papers(epsilon: str) -> None:
    e, half = math.exp(float(epsilon)), math.exp(float(epsilon) / 2)
    window = Piecewise(epsilon=epsilon, grid=1 << 16).window
    reach = (half + 1) / (half - 1)
    assert window.width / window.outputs == pytest.approx((reach - 1) / (2 * reach), rel=1e-3)
    assert window.heads / 2**64 == pytest.approx(half / (half + 1), rel=1e-3)
    wave = SquareWave(epsilon=epsilon, grid=1 << 16)
    b = (float(epsilon) * e - e + 1) / (2 * e * (e - 1 - float(epsilon)))
    assert wave.window.width / wave.grid / 2 == pytest.approx(b, rel=5e-3)
    assert float(wave.window.inside) * wave.grid == pytest.approx(e / (2 * b * e + 1), rel=5e-3)
    assert float(wave.window.outside) * wave.grid == pytest.approx(1 / (2 * b * e + 1), rel=5e-3)
    circle = CircularPiecewise(epsilon=epsilon, grid=1 << 16).window
    assert circle.width / circle.outputs == pytest.approx(1 / (half + 1), rel=1e-3)
    assert circle.heads / 2**64 == pytest.approx(half / (half + 1), rel=1e-3)


@pytest.mark.parametrize("made", [Piecewise, SquareWave, CircularPiecewise])
@pytest.mark.parametrize("epsilon", ["0.01", "1", "3"])
def test_channels(made: type[Piecewise], epsilon: str) -> None:
    found = audit_channel(made(0, 1, epsilon, grid=8).channel())
    assert float(epsilon) * (1 - 1e-9) < found.epsilon <= float(epsilon)


def test_a_report_word_by_word() -> None:
    """The order that the browser follows: the coin to the grid, the window's coin, its place, the other place."""
    mechanism = Piecewise(0, 8, 1, grid=8)
    width, outputs = mechanism.window.width, mechanism.window.outputs
    up, down = 2**62 - 1, 2**62
    assert mechanism.randomize([3.25], random=Scripted([up, 0, 2, 1])).tolist() == [4 + 2]
    assert mechanism.randomize([3.25], random=Scripted([down, 0, 2, 1])).tolist() == [3 + 2]
    assert mechanism.randomize([3.25], random=Scripted([down, 2**64 - 1, 2, 1])).tolist() == [(3 + width + 1) % outputs]


def test_coordinates_without_replacement() -> None:
    """All ordered triples of five are as likely (chi-square at 10⁻⁷); with replacement some are drawn twice."""
    drawn = drawn_coordinates(3, 5, 60_000, Random.deterministic(1))
    counts = Counter(map(tuple, drawn.tolist()))
    assert set(counts) == set(permutations(range(5), 3))
    assert stats.chisquare(list(counts.values())).pvalue > 1e-7
    assert useless.distinct_share(4, 2) == 7 / 8


def test_each_coordinate_gets_its_part_of_epsilon() -> None:
    mechanism = Piecewise(-1, 1, epsilon=8, dimensions=5)
    assert mechanism.picks == 3
    assert mechanism.window == Piecewise(-1, 1, epsilon="8/3").window
    reports = mechanism.randomize(np.zeros((100, 5)), random=Random.deterministic(1))
    assert reports.shape == (100, 3)
    assert mechanism.valid(reports).all()
    twice = reports.copy()
    twice[:, 1] = twice[:, 0]
    assert not mechanism.valid(twice).any()
    assert mechanism.spread(reports, coordinate=4).n == 100
    for coordinate in (-1, 5):
        with pytest.raises(InvalidParameter, match="coordinate="):
            mechanism.spread(reports, coordinate=coordinate)
    with pytest.raises(InvalidParameter, match="too many reports"):
        mechanism.channel()


@pytest.mark.statistical
@pytest.mark.parametrize("made", [Piecewise, SquareWave])
def test_the_spread_is_unbiased_and_its_margin_holds(made: type[Piecewise]) -> None:
    """100 surveys: their mean within 6 standard errors, and at least 80 of 100 in margins of 95 % (10⁻⁷)."""
    mechanism, random = made(0, 10, 2), Random.deterministic(3)
    values = np.concatenate([np.full(1500, 2.0), np.linspace(4, 9, 1500)])
    found = [mechanism.spread(mechanism.randomize(values, random=random)) for _ in range(100)]
    off = np.array([each.value for each in found]) - values.var()
    assert abs(off.mean()) < 6 * off.std() / 10
    assert sum(abs(o) < each.margin(0.95) for o, each in zip(off, found, strict=True)) >= 80


@pytest.mark.statistical
@pytest.mark.parametrize("centre", [0.0, 5.0, 23.5])
def test_directions_on_a_circle(centre: float) -> None:
    """100 surveys around a clock, across midnight too: at least 80 of 100 in margins of 95 % (10⁻⁷), and an error as stated."""
    clock, random = CircularPiecewise(0, 24, 1), Random.deterministic(6)
    times = (centre + np.linspace(-3, 3, 3000)) % 24
    found = [clock.mean(clock.randomize(times, random=random)) for _ in range(100)]
    off = np.array([(each.value - centre + 12) % 24 - 12 for each in found])
    assert abs(off.mean()) < 6 * off.std() / 10
    assert sum(abs(o) < each.margin(0.95) for o, each in zip(off, found, strict=True)) >= 80
    same = np.array([clock.mean(clock.randomize(np.full(3000, centre), random=random)).value for _ in range(300)])
    squares = ((same - centre + 12) % 24 - 12) ** 2
    assert squares.mean() == pytest.approx(clock.variance(3000), rel=6 * math.sqrt(2 / 300))


def test_a_circle_without_a_direction_says_so() -> None:
    clock = CircularPiecewise(0, 24, 4)
    mean = clock.mean(clock.randomize(np.linspace(0, 24, 2000), random=Random.deterministic(1)))
    assert mean.margin(0.95) > 4
    with pytest.raises(InvalidParameter, match="no squares"):
        clock.spread([1])
