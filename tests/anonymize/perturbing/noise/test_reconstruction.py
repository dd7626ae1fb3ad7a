"""The original distribution out of noised values: known ones come back, with margins that hold."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest

from cloister.anonymize.perturbing import AdditiveNoise, MultiplicativeNoise, NoiseLaw, reconstruct
from cloister.errors import InvalidParameter
from cloister.noise import Random

Floats = npt.NDArray[np.float64]
EDGES = np.linspace(0, 120, 13)


def peaks(n: int, seed: int) -> Floats:
    generator = np.random.default_rng(seed)
    return np.where(generator.random(n) < 0.3, generator.normal(30, 8, n), generator.normal(75, 10, n))


def shares(values: Floats, edges: Floats = EDGES) -> Floats:
    return np.asarray(np.histogram(values, edges)[0] / len(values))


@pytest.mark.parametrize("shape", ["normal", "laplace", "uniform"])
@pytest.mark.parametrize("smooth", [True, False])
def test_two_peaks_come_back(shape: str, smooth: bool) -> None:
    """Without smoothing in wider bins, twice the noise."""
    values, law, edges = peaks(5_000, 1), NoiseLaw(shape=shape, scale=10), EDGES if smooth else EDGES[::2]
    noised = values + law.draw(len(values), Random.deterministic(2))
    found = reconstruct(noised, law, bins=edges, smooth=smooth)
    truth = shares(values, edges)
    away, left = np.abs(shares(noised, edges) - truth).sum(), np.abs(found.shares - truth).sum()
    assert left < away / 2
    assert found.shares.sum() == pytest.approx(1)
    assert (np.abs(found.shares - truth) <= found.margin("0.999")).mean() > 0.9


def test_margins_hold() -> None:
    """95 % margins over 12 tables hold in at least 85 of 100 bins, and of mean and variance in at least 10 of 12."""
    law, bins, means, spreads = NoiseLaw(scale=10), [], 0, 0
    for seed in range(12):
        values = peaks(3000, seed)
        found = reconstruct(values + law.draw(3000, Random.deterministic(seed)), law, bins=EDGES)
        bins.append((np.abs(found.shares - shares(values)) <= found.margin(0.95)).mean())
        means += abs(found.mean.value - values.mean()) <= found.mean.margin()
        spreads += abs(found.variance.value - values.var()) <= found.variance.margin()
    assert np.mean(bins) > 0.85
    assert means >= 10
    assert spreads >= 10


def test_quantiles_and_shares() -> None:
    values, law = peaks(10_000, 3), NoiseLaw(scale=8)
    found = reconstruct(values + law.draw(10_000, Random.deterministic(3)), law)
    median, old = found.quantile("0.5"), found.share_below(50)
    assert abs(median.value - np.median(values)) < max(median.margin("0.999"), 1)
    assert abs(old.value - (values < 50).mean()) < max(old.margin("0.999"), 0.01)
    assert found.quantile(0).value <= found.quantile(1).value


def test_rounded_noise_is_known_to_be_rounded() -> None:
    """Noise no wider than the rounding: cells between whole numbers are what keeps the estimate right."""
    ages = np.random.default_rng(4).integers(20, 30, 20_000)
    done = AdditiveNoise(columns="age", scale=0.6).apply({"age": ages}, random=Random.deterministic(4))
    found = reconstruct(np.array(done.frame["age"]), done.laws["age"], bins=np.arange(19.5, 30.5), smooth=False)
    assert found.shares == pytest.approx(shares(ages.astype(float), np.arange(19.5, 30.5)), abs=0.03)
    assert abs(found.variance.value - ages.var()) < found.variance.margin("0.9999")


def test_factors_through_logarithms() -> None:
    pays = np.random.default_rng(5).lognormal(7.5, 0.6, 20_000)
    done = MultiplicativeNoise(columns="pay", scale=0.5).apply({"pay": pays}, random=Random.deterministic(5))
    noised = np.array(done.frame["pay"])
    edges = [200, 1000, 2000, 4000, 20_000]
    found = reconstruct(noised, done.laws["pay"], bins=edges, multiplicative=True)
    before = np.abs(shares(noised, np.array(edges)) - shares(pays, np.array(edges))).sum()
    assert np.abs(found.shares - shares(pays, np.array(edges))).sum() < before / 2
    assert abs(found.mean.value - pays.mean()) < found.mean.margin("0.9999")
    assert abs(found.variance.value - pays.var()) < found.variance.margin("0.9999")
    assert found.edges[0] == pytest.approx(200)


def test_the_likeliest_histogram_is_a_fixed_point() -> None:
    """Without noise to speak of, the likeliest histogram is the histogram."""
    values = np.random.default_rng(6).uniform(0, 10, 5000)
    edges = np.linspace(0, 10, 6)
    found = reconstruct(values, NoiseLaw(scale=1e-3), bins=edges, smooth=False)
    assert found.shares == pytest.approx(shares(values, edges), abs=1e-2)


def test_one_value_and_gaps() -> None:
    found = reconstruct([5.0, math.nan], NoiseLaw(scale=1))
    assert (found.n, found.mean.value) == (1, 5.0)
    assert found.shares.sum() == pytest.approx(1)
    assert reconstruct([5.0] * 50, NoiseLaw(scale=1)).shares.sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("values", "options", "said"),
    [
        ([], {}, "none is there"),
        ([math.nan], {}, "none is there"),
        ([math.inf], {}, "infinite"),
        ([1.0], {"bins": 0}, "bins="),
        ([1.0], {"bins": [3, 2]}, "bins="),
        ([1.0], {"bins": [0, 2], "multiplicative": True}, "above 0"),
        ([0.0], {"multiplicative": True}, "logarithm"),
    ],
)
def test_refusals(values: list[float], options: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidParameter, match=said):
        reconstruct(values, NoiseLaw(scale=1), **options)  # type: ignore[arg-type]


def test_a_share_that_is_none() -> None:
    with pytest.raises(InvalidParameter, match="q="):
        reconstruct([1.0, 2.0], NoiseLaw(scale=1)).quantile(2)


@pytest.mark.parametrize("n", [1, 2, 5, 10, 50])
def test_margins_of_mean_and_variance_know_the_noise_where_values_are_few(n: int) -> None:
    """200 draws of equal values: a margin of 95 % misses 30 with a probability below 1e-6."""
    law, random, missed = NoiseLaw(scale=10), Random.deterministic(n), [0, 0]
    for _ in range(200):
        found = reconstruct(30 + law.draw(n, random), law, bins=[0, 30, 90])
        missed[0] += abs(found.mean.value - 30) > found.mean.margin(0.95)
        missed[1] += abs(found.variance.value) > found.variance.margin(0.95)
    assert max(missed) < 30
