"""Class sums: noise for one class, and a discriminant that shrinks as it should."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from cloister.learn.linear_models import linear_classes as module
from cloister.learn.linear_models.linear_classes import centroids
from cloister.learn.linear_models.prepared import Prepared, prepare
from cloister.noise import Random
from cloister.noise.allowance import Allowance
from cloister.privacy import ApproxDP, PureDP
from cloister.tables.engines.row_sums import STEPS
from tests.learn.test_descent import without
from tests.learn.test_prepared import rows_of, some


def apart(n: int = 3000, classes: int = 3) -> Prepared:
    draw = np.random.default_rng(1)
    y = draw.choice(classes, size=n, p=[0.7, *[0.3 / (classes - 1)] * (classes - 1)])
    middles = draw.uniform(3, 7, size=(classes, 8))
    return prepare(rows_of(middles[y] + draw.normal(size=(n, 8)), y), classes, Allowance(PureDP(10_000)), Random.deterministic(1))


def accuracy(given: Prepared, weights: np.ndarray) -> float:
    scores = given.rows / STEPS @ weights
    found = scores.argmax(axis=1) if scores.shape[1] > 1 else (scores[:, 0] > 0).astype(int)
    return float((found == given.classes).mean())


def test_one_person_changes_one_column_by_at_most_a_length_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[np.ndarray, Fraction]] = []

    def noised(values: np.ndarray, share: Any, random: Any, *, length: Fraction) -> np.ndarray:
        seen.append((values, length))
        return values.astype(float)

    monkeypatch.setattr(module, "noisy_columns", noised)
    given = prepare(some(80), 3, Allowance(PureDP(1)), Random.deterministic(1))
    for row in (None, *range(80)):
        centroids(without(given, row), 3, Allowance(PureDP(1)).rest("x"), None)
    (whole, length), others = seen[0], seen[1:]
    assert length == STEPS
    for fewer, _ in others:
        lengths = np.linalg.norm(whole - fewer, axis=0)
        assert (lengths > 0).sum() == 1
        assert 0 < lengths.max() <= STEPS


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("whole", [PureDP(20), ApproxDP(10, "1e-5")], ids=repr)
def test_classes_that_are_apart_are_told_apart(classes: int, whole: Any) -> None:
    given = apart(classes=classes)
    assert accuracy(given, centroids(given, classes, Allowance(whole).rest("x"), Random.deterministic(1))) > 0.9


@pytest.mark.parametrize("classes", [2, 3])
def test_with_nothing_but_noise_the_largest_class_is_guessed(classes: int) -> None:
    """At ε = 0.02 the middles drown and the counts (±100 of 3,000) do not; the mean over 20 seeds."""
    given = apart(classes=classes)
    found = [
        accuracy(given, centroids(given, classes, Allowance(PureDP("0.02")).rest("x"), Random.deterministic(seed)))
        for seed in range(20)
    ]
    assert np.mean(found) > 0.65


@pytest.mark.parametrize("n", [0, 1])
def test_without_rows_it_is_still_a_model(n: int) -> None:
    given = prepare(some(n), 3, Allowance(PureDP("0.001")), Random.deterministic(1))
    assert np.isfinite(centroids(given, 3, Allowance(PureDP("0.001")).rest("x"), Random.deterministic(1))).all()
