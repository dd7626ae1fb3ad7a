"""Whole distributions from reports: expectation–maximisation, and what is read of it."""

from __future__ import annotations

import numpy as np
import pytest

from cloister.errors import InvalidParameter
from cloister.local import CircularPiecewise, Distribution, Hybrid, Piecewise, SquareWave
from cloister.local.numbers.distribution import _redrawn, maximise
from cloister.noise import Random


def people(n: int) -> np.ndarray:
    """Two groups of ages, as quantiles: no chance of their own."""
    from scipy import stats

    places = (np.arange(n // 2) + 0.5) / (n // 2)
    return np.concatenate([stats.norm(30, 6).ppf(places), stats.norm(65, 5).ppf(places)]).clip(0, 100)


@pytest.mark.parametrize("made", [SquareWave, Piecewise, Hybrid])
def test_a_distribution_is_found(made: type[SquareWave]) -> None:
    """At ε = 4 with 100,000 people, bins are within 1.5 points of their shares (5 of their standard errors)."""
    values = people(100_000)
    mechanism = made(0, 100, 4, grid=256)
    shape = mechanism.distribution(mechanism.randomize(values, random=Random.deterministic(1)))
    truth = np.histogram(values, np.linspace(0, 100, 11))[0]
    histogram = shape.histogram(10)
    assert np.abs(histogram.counts - truth).max() < 1500
    assert shape.shares.sum() == pytest.approx(1)
    assert histogram.counts.sum() == pytest.approx(100_000)
    assert histogram.values[0] == (0.0, 10.0)
    assert shape.mean.value == pytest.approx(values.mean(), abs=0.5)
    assert shape.variance.value == pytest.approx(values.var(), rel=0.05)
    for q in ("0.1", "0.5", "0.9"):
        near = np.quantile(values, [float(q) - 0.02, float(q) + 0.02])
        assert near[0] - 0.5 < shape.quantile(q).value < near[1] + 0.5


@pytest.mark.statistical
def test_margins_hold_what_is_read() -> None:
    """25 surveys: of means, medians and variances at least 17 of 25 lie in margins of 95 % (10⁻⁶ each for such margins), of the
    250 bins, which hang together by surveys, at least 200; and margins are not idle: none is over a sixth of the interval."""
    values, mechanism, random = people(20_000), SquareWave(0, 100, 2, grid=128), Random.deterministic(4)
    truth = np.histogram(values, np.linspace(0, 100, 11))[0]
    inside = np.zeros(4)
    for _ in range(25):
        shape = mechanism.distribution(mechanism.randomize(values, random=random))
        reads = [(shape.mean, values.mean()), (shape.quantile("0.3"), np.quantile(values, 0.3)), (shape.variance, values.var())]
        inside[:3] += [abs(read.value - true) < read.margin(0.95) for read, true in reads]
        histogram = shape.histogram(10)
        inside[3] += (np.abs(histogram.counts - truth) < histogram.margin(0.95)).sum()
        assert 0 < reads[0][0].margin(0.95) < 17
    assert bool((inside[:3] >= 17).all())
    assert inside[3] >= 200


def test_the_same_reports_say_the_same() -> None:
    mechanism = SquareWave(0, 1, 1, grid=64)
    reports = mechanism.randomize(np.linspace(0, 1, 3000), random=Random.deterministic(1))
    one, other = mechanism.distribution(reports), mechanism.distribution(mechanism.aggregate(reports))
    assert one.quantile("0.5") == other.quantile("0.5")


@pytest.mark.parametrize("n", [500, 60_000, 70_000, 10**9])
def test_redrawn_reports_have_the_means_and_variances_of_reports(n: int) -> None:
    """Drawn one by one up to 2¹⁶ reports, by the normal law beyond. 40 replicas of 20 cells: means within 6 standard errors, and
    variances within 6 times √(2/800) of n·p(1 − p)."""
    cells = np.arange(11, 31) / np.arange(11, 31).sum()
    drawn = _redrawn(cells, n)
    spread = np.sqrt(n * cells * (1 - cells))
    assert (np.abs(drawn.mean(axis=0) - n * cells) < 6 * spread / np.sqrt(40)).all()
    assert ((drawn - n * cells) ** 2 / spread**2).mean() == pytest.approx(1, abs=0.3)
    assert drawn.sum(axis=1) == pytest.approx(np.full(40, n), rel=1e-9)


def test_on_a_circle() -> None:
    clock = CircularPiecewise(0, 24, 3, grid=96)
    times = (np.linspace(-2, 2, 20_000) + 23.5) % 24
    shape = clock.distribution(clock.randomize(times, random=Random.deterministic(1)))
    assert min(abs(shape.mean.value - 23.5), 24 - abs(shape.mean.value - 23.5)) < 0.3
    assert shape.mean.margin(0.95) < 1
    bins = shape.histogram(6)
    assert bins.counts[0] + bins.counts[-1] > 15_000
    for read in (lambda: shape.variance, lambda: shape.quantile("0.5")):
        with pytest.raises(InvalidParameter, match="circle"):
            read()


def test_without_noise_the_estimate_is_the_truth() -> None:
    """The channel that changes nothing: expectation–maximisation needs one round, and smoothing is all that is left."""
    counts = np.array([[10.0, 0, 0, 30, 60]])
    found = maximise(counts, lambda x: x, lambda y: y, 5, epsilon=1.0)[0]
    assert found.sum() == pytest.approx(1)
    assert found.argmax() == 4


def test_bad_questions() -> None:
    mechanism = SquareWave(0, 1, 1, grid=32)
    shape = mechanism.distribution(mechanism.randomize([0.5] * 100, random=Random.deterministic(1)))
    assert isinstance(shape, Distribution)
    for q in ("-0.1", "1.1"):
        with pytest.raises(InvalidParameter, match="share of people"):
            shape.quantile(q)
    for bins in (0, [1], [1, 1], [2, 1]):
        with pytest.raises(InvalidParameter, match="bins="):
            shape.histogram(bins)
    with pytest.raises(InvalidParameter, match="nobody answered"):
        mechanism.distribution([])


@pytest.mark.parametrize(
    ("values", "epsilon"), [([0, 8, 16] * 50 + [4] * 5, 2), ([0, 8, 16] * 50 + [4] * 25, 1), ([3, 5, 7] * 60, 3)]
)
def test_a_direction_that_is_hardly_one_says_so(values: list[float], epsilon: int) -> None:
    """60 draws: a margin of 95 % misses 15 with a probability below 1e-6."""
    clock, random, missed = CircularPiecewise(0, 24, epsilon, grid=128), Random.deterministic(5), 0
    truth = np.angle(np.exp(2j * np.pi * np.array(values) / 24).mean()) / (2 * np.pi) * 24
    for _ in range(60):
        mean = clock.distribution(clock.randomize(values, random=random)).mean
        missed += abs((mean.value - truth + 12) % 24 - 12) > mean.margin(0.95)
    assert missed < 15
