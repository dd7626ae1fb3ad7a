"""Gaussian naive Bayes with the class hidden, and bins of equal width."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from cloister.errors import InvalidParameter
from cloister.local import Duchi, LocalLaplace, Piecewise, SquareWave
from cloister.local.learning import LocalGaussianNB, equal_frequency, equal_width, in_bins
from cloister.local.numbers.hybrid import Hybrid
from cloister.noise import Random


def people(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Classes at 3 ± 1 and 7 ± 1 of 0 … 10, two thirds in the second; another number that tells nothing."""
    from statistics import NormalDist

    classes = (np.arange(n) % 3 > 0).astype(int)
    places = (np.arange(n) * 0.618034) % 1 * 0.998 + 0.001
    first = np.array([NormalDist(3 + 4 * c, 1).inv_cdf(p) for c, p in zip(classes, places, strict=True)])
    return np.stack([np.clip(first, 0, 10), (np.arange(n) * 0.4142) % 1], axis=1), classes


@pytest.mark.parametrize("mechanism", [Hybrid, Piecewise, Duchi, LocalLaplace])
def test_the_model_is_that_of_the_people(mechanism: type[Piecewise]) -> None:
    """60,000 people at ε = 6. Slots have standard deviations of at most 0.03 (Laplace: 6 coordinates), 6 of them at the least."""
    rows, classes = people(60_000)
    model = LocalGaussianNB([(0, 10), (0, 1)], range(2), 6, mechanism=mechanism)
    fitted = model.fit(model.aggregate(model.randomize(rows, classes, random=Random.deterministic(2))))
    assert fitted.shares == pytest.approx([1 / 3, 2 / 3], abs=0.1)
    assert fitted.means[:, 0] == pytest.approx([-0.4, 0.4], abs=0.2)
    assert np.mean(np.array(fitted.predict(rows[:3000])) == classes[:3000]) > 0.9
    assert math.isclose(fitted.shares.sum(), 1)


def test_the_class_is_hidden_in_the_shape_too() -> None:
    """Whatever the class, a report has the same shape and the halves are drawn by lot."""
    model = LocalGaussianNB([(0, 10)], ["a", "b", "c"], 1)
    shapes = []
    for name in "abc":
        plain, squares = model.randomize([[5.0]] * 20, [name] * 20, random=Random.deterministic(1))
        shapes.append((plain.shape, squares.shape))
    assert len(set(shapes)) == 1
    assert model.mechanism.dimensions == 6


def test_bins() -> None:
    assert equal_width(np.linspace(0, 1, 9), 0, 1, 4).tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 3]
    assert equal_width([-5, 5], 0, 1, 2).tolist() == [0, 1]
    for bins in (1, 0, True, 2.0):
        with pytest.raises(InvalidParameter, match="bins="):
            equal_width([0.5], 0, 1, bins)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="NaN"):
        equal_width([math.nan], 0, 1, 2)


def test_refusals() -> None:
    model = LocalGaussianNB([(0, 1), (0, 1)], range(2), 1)
    for rows, classes, why in (
        ([[0.5]], [0], "each needs 2"),
        ([[0.5, 1.5]], [0], "outside of the declared"),
        ([[0.5, math.nan]], [0], "NaN"),
        ([[0.5, 0.5]], [3], "outside the domain"),
        ([[0.5, 0.5]], [0, 1], "differ in number"),
        ([[0.5, 0.5], [0.5]], [0, 1], "each needs 2 numbers"),
    ):
        with pytest.raises(InvalidParameter, match=why):
            model.randomize(rows, classes)
    with pytest.raises(InvalidParameter, match="sent nothing"):
        model.fit(model.aggregate(model.randomize([[0.5, 0.5]], [0])))
    assert [len(each) for each in model.randomize([], [])] == [0, 0]
    with pytest.raises(InvalidParameter, match="it is missing"):
        LocalGaussianNB([], range(2), 1)


def test_bins_of_equal_frequency_are_bought() -> None:
    """Of skewed numbers: each of four bins holds a quarter, give or take a tenth; of equal width, one holds nearly all."""
    values = np.minimum(np.random.default_rng(1).exponential(8, 20_000), 100.0)
    wave = SquareWave(0, 100, epsilon=2)
    edges = equal_frequency(wave.distribution(wave.randomize(values[:10_000], random=Random.deterministic(2))), 4)
    shares = np.bincount(in_bins(values[10_000:], edges), minlength=4) / 10_000
    assert np.abs(shares - 0.25).max() < 0.1
    assert np.bincount(equal_width(values, 0, 100, 4)).max() > 18_000
    with pytest.raises(InvalidParameter, match="bins"):
        equal_frequency(wave.distribution(wave.randomize(values[:1000], random=Random.deterministic(3))), 1)


@pytest.mark.parametrize(
    ("values", "edges"), [(["x"], [5]), ([1], ["x"]), ([np.nan], [5]), ([None], [5]), (None, [5]), ([[1, 2]], [5]), ([6], [8, 5])]
)
def test_what_lies_in_no_bin_is_refused(values: Any, edges: Any) -> None:
    """Who had no number was of the highest bin."""
    with pytest.raises(InvalidParameter, match="invalid"):
        in_bins(values, edges)
