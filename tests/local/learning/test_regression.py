"""Moments, linear and logistic regression, fewer dimensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from cloister.errors import InvalidParameter
from cloister.local.learning import LocalLinearRegression, LocalLogisticRegression, LocalNaiveBayes
from cloister.local.learning.moments import LocalMoments
from cloister.noise import Random


def square(n: int) -> np.ndarray:
    """Points spread evenly over a square."""
    return np.stack([np.arange(n) * 0.618034 % 1, np.arange(n) * 0.414214 % 1], axis=1)


def test_moments_are_those_of_the_people() -> None:
    """100,000 people, 9 products at ε = 4: within 6 standard deviations of each."""
    points = square(100_000)
    people = np.column_stack([points, 0.7 * points[:, 0] + 0.2 * points[:, 1]])
    mechanism = LocalMoments([(0, 1)] * 3, 4)
    found = mechanism.fit(mechanism.aggregate(mechanism.randomize(people, random=Random.deterministic(1))))
    units = 2 * people - 1
    assert np.abs(found.mean - units.mean(axis=0)).max() < 6 * found.noise
    truth = np.cov(units.T, bias=True)
    assert np.abs(found.covariance - truth).max() < 8 * found.noise
    assert 0 < found.noise < 0.02
    direction = found.principal(1)[:, 0]
    assert abs(direction @ np.linalg.eigh(truth)[1][:, -1]) > 0.95
    slope = found.discriminant()[:, 0]
    assert slope == pytest.approx([0.7, 0.2], abs=0.15)


def test_linear_regression() -> None:
    points = square(100_000)
    targets = 10 * points[:, 0] - 5 * points[:, 1]
    model = LocalLinearRegression([(0, 1), (0, 1)], (-10, 10), 4)
    fitted = model.fit(model.aggregate(model.randomize(points, targets, random=Random.deterministic(2))))
    asked = np.array([[0.2, 0.2], [0.8, 0.5], [0.5, 0.9]])
    assert fitted.predict(asked) == pytest.approx(10 * asked[:, 0] - 5 * asked[:, 1], abs=1.2)
    assert fitted.predict([[9, -9]])[0] <= 10


def test_logistic_regression() -> None:
    points = square(60_000)
    classes = np.where(points[:, 0] > points[:, 1], "right", "left")
    model = LocalLogisticRegression([(0, 1), (0, 1)], ["left", "right"], 2)
    fitted = model.train(points, classes, random=Random.deterministic(3))
    right = fitted.scores(points[:5000]) > 0
    assert np.mean(right == (classes[:5000] == "right")) > 0.9


def test_each_person_is_asked_once() -> None:
    asked = []

    class Counting(LocalLogisticRegression):
        def respond(self, weights, rows, classes, *, random=None):  # type: ignore[no-untyped-def]
            asked.extend(rows[:, 0].tolist())
            return super().respond(weights, rows, classes, random=random)

    Counting([(0, 1)], range(2), 1, rounds=7).train(np.linspace(0, 1, 50)[:, None], np.arange(50) % 2)
    assert sorted(asked) == np.linspace(0, 1, 50).tolist()


@pytest.mark.parametrize(
    "made",
    [
        lambda: LocalLinearRegression((0, 10), (0, 10)),  # type: ignore[arg-type]
        lambda: LocalLinearRegression([], (0, 10)),
        lambda: LocalLogisticRegression([], ["no", "yes"]),
        lambda: LocalLogisticRegression([(0, 1, 2)], ["no", "yes"]),  # type: ignore[list-item]
        lambda: LocalMoments(5),  # type: ignore[arg-type]
    ],
)
def test_bounds_are_a_pair_for_each_number(made: Callable[[], object]) -> None:
    with pytest.raises(InvalidParameter, match="bounds= is invalid"):
        made()


def test_refusals() -> None:
    with pytest.raises(InvalidParameter, match="it is missing"):
        LocalMoments([], 1)
    moments = LocalMoments([(0, 1)], 1)
    found = moments.fit(moments.aggregate(moments.randomize([[0.5]] * 100)))
    for k in (0, 2, True):
        with pytest.raises(InvalidParameter, match="directions"):
            found.principal(k)
    with pytest.raises(InvalidParameter, match="there must be two"):
        LocalLogisticRegression([(0, 1)], range(3), 1)
    with pytest.raises(InvalidParameter, match="rounds="):
        LocalLogisticRegression([(0, 1)], range(2), 1, rounds=0)
    with pytest.raises(InvalidParameter, match="needs a person"):
        LocalLogisticRegression([(0, 1)], range(2), 1, rounds=20).train([[0.5]], [1])
    with pytest.raises(InvalidParameter, match="each needs 2"):
        LocalLinearRegression([(0, 1)], (0, 1), 1).randomize([[0.5, 0.5]], [1])


def test_frames_are_read_by_row_as_arrays_are() -> None:
    """A frame iterates over the names of its columns (pandas) or over its columns (polars): as rows these were refused, or with
    as many rows as columns taken for them in silence."""
    rows = np.array([[0.0, 1.0], [1.0, 0.0]])
    model, told = LocalLinearRegression([(0, 1), (0, 1)], (0, 1)), [0.5, 0.25]
    bayes = LocalNaiveBayes([[0, 1], [0, 1]], ["n", "y"])
    plain = model.randomize(rows, told, random=Random.deterministic(1))
    first = bayes.randomize(rows.astype(int), ["n", "y"], random=Random.deterministic(1))
    fitted = model.fit(model.aggregate(plain))
    for made in (pd.DataFrame, pl.DataFrame):
        frame = made(rows, columns=["a", "b"]) if made is pd.DataFrame else made(rows, schema=["a", "b"])
        again = model.randomize(frame, told, random=Random.deterministic(1))
        assert all(np.array_equal(one, other) for one, other in zip(plain, again, strict=True))
        assert np.array_equal(fitted.predict(frame), fitted.predict(rows))
        whole = frame.astype(int) if isinstance(frame, pd.DataFrame) else frame.cast(pl.Int64)
        second = bayes.randomize(whole, ["n", "y"], random=Random.deterministic(1))
        assert repr(first) == repr(second)


def test_the_rate_is_a_number_above_0() -> None:
    for rate in ("x", 0, -1, None, [2]):
        with pytest.raises(InvalidParameter, match="rate"):
            LocalLogisticRegression([(0, 1)], ["n", "y"], rate=rate)  # type: ignore[arg-type]


@pytest.mark.parametrize("rows", [None, 5])
def test_what_has_no_rows_is_refused_by_a_training_too(rows: Any) -> None:
    for rounds in (1, 20):
        with pytest.raises(InvalidParameter):
            LocalLogisticRegression([(0, 1)], ["no", "yes"], rounds=rounds).train(rows, rows)


@pytest.mark.parametrize(
    ("weights", "rows", "classes"),
    [
        ([0, 0], [[0.5], [0.6]], ["no"]),
        ([0, 0], [[0.5], [0.6], [0.7]], ["no", "yes"]),
        ([0] * 5, [[0.5]], ["no"]),
        (None, [[0.5]], ["no"]),
        (["a", "b"], [[0.5]], ["no"]),
        ([np.nan, 0], [[0.5]], ["no"]),
    ],
)
def test_a_report_needs_a_class_a_row_and_a_weight_a_number(weights: Any, rows: Any, classes: Any) -> None:
    """One class of two rows made two reports."""
    with pytest.raises(InvalidParameter, match="invalid"):
        LocalLogisticRegression([(0, 1)], ["no", "yes"], epsilon=2).respond(weights, rows, classes)
