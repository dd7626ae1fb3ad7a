"""Preparation: what it computes, what one row can move, and that it leaks nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sklearn.preprocessing
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.errors import InvalidParameter, MissingBound
from cloister.learn.frame.bounds import Box, Rows
from cloister.learn.frame.scaling import BoundedScaler, QuantileClipper, StandardScaler, _moment_steps
from cloister.noise import Random
from cloister.privacy import PureDP
from cloister.session import Door
from cloister.tables import Integer, PrivateTable, Real

X = np.column_stack([np.linspace(0, 10, 2001) ** 2, np.linspace(-1, 1, 2001)])
BOUNDS = ([0, -2], [200, 2])


def test_a_feature_of_one_value_is_a_number_and_no_gap() -> None:
    """A model after it would leave out each row."""
    scaler = BoundedScaler(bounds=([0, 5], [1, 5]), target_range=(-1, 1)).fit([[0.5, 5.0]])
    assert scaler.transform([[0.5, 5.0]]).tolist() == [[0.0, -1.0]]
    assert scaler.inverse_transform([[0.0, -1.0]]).tolist() == [[0.5, 5.0]]


def test_the_bounded_scaler_reads_no_value() -> None:
    rows = [BoundedScaler(bounds=BOUNDS).fit(part) for part in (X, X[:1] * np.nan, X[:0], X * 1e200)]
    assert len({model.to_json() for model in rows}) == 1
    assert rows[0].guarantee_ == PureDP(0)
    with pytest.raises(MissingBound):
        BoundedScaler().fit(X)


def test_the_bounded_scaler_scales_and_returns() -> None:
    scaler = BoundedScaler(bounds=BOUNDS, target_range=(-1, 3)).fit(X)
    np.testing.assert_allclose(scaler.transform([[0, -2], [200, 2], [100, 0]]), [[-1, -1], [3, 3], [1, 1]])
    np.testing.assert_allclose(scaler.inverse_transform(scaler.transform(X)), X)
    assert np.isnan(scaler.transform([[np.nan, 0]])).tolist() == [[True, False]]
    assert scaler.get_feature_names_out(["a", "b"]).tolist() == ["a", "b"]
    with pytest.raises(InvalidParameter, match="target_range"):
        BoundedScaler(bounds=(0, 1), target_range=(1, 1)).fit(X)


def test_without_privacy_they_are_scikit_learn_s() -> None:
    ours, theirs = BoundedScaler(privacy=None).fit(X), sklearn.preprocessing.MinMaxScaler().fit(X)
    np.testing.assert_allclose(ours.transform(X), theirs.transform(X), atol=1e-12)
    ours, theirs = StandardScaler(privacy=None).fit(X), sklearn.preprocessing.StandardScaler().fit(X)
    np.testing.assert_allclose(ours.mean_, theirs.mean_, atol=1e-5)
    np.testing.assert_allclose(ours.transform(X), theirs.transform(X), atol=1e-5)
    clipper = QuantileClipper(privacy=None, quantiles=("0.1", "0.9"), bins=1000).fit(X)
    np.testing.assert_allclose(clipper.low_, np.quantile(X, 0.1, axis=0), atol=0.11)
    np.testing.assert_allclose(clipper.high_, np.quantile(X, 0.9, axis=0), atol=0.11)


def test_noisy_moments_are_near() -> None:
    found = StandardScaler(epsilon=5, bounds=BOUNDS, random=Random.deterministic(2)).fit(X)
    assert (np.abs(found.mean_ - X.mean(axis=0)) <= found.mean_margin_ * 2.5).all()
    np.testing.assert_allclose(found.scale_, X.std(axis=0), rtol=0.1)
    np.testing.assert_allclose(found.inverse_transform(found.transform(X)), X, atol=1e-9)
    only = StandardScaler(epsilon=5, bounds=BOUNDS, with_mean=False, with_std=False).fit(X)
    np.testing.assert_array_equal(only.transform(X), X)


@settings(max_examples=200)
@given(row=st.lists(st.floats(-1e6, 1e6, allow_nan=False), min_size=3, max_size=3))
def test_one_row_moves_the_moments_by_no_more_than_was_declared(row: list[float]) -> None:
    box = Box(low=np.array([-10.0, 0.0, 5.0]), high=np.array([10.0, 1e5, 5.0]))
    others = np.array([[1.0, 2.0, 5.0], [-9.0, 7.0, 5.0]])
    pair = [
        np.concatenate(_moment_steps(Rows(X=box.clipped(rows), y=None, box=box))) for rows in (others, np.vstack([others, row]))
    ]
    moved = np.abs(pair[1] - pair[0]).astype(object)
    reach = StandardScaler._reach(3)
    assert moved.sum() <= reach["l1"]
    assert (moved**2).sum() <= reach["l2_squared"]


def test_the_declared_reach_is_attained_but_for_a_feature_without_width() -> None:
    box = Box(low=np.array([0.0]), high=np.array([1.0]))
    sums = np.concatenate(_moment_steps(Rows(X=np.array([[1.0]]), y=None, box=box)))
    assert np.abs(sums).sum() == StandardScaler._reach(1)["l1"]


@pytest.mark.parametrize("delta", [None, "1e-6"])
def test_quantiles_are_bought_near_the_true_ones(delta: str | None) -> None:
    clipper = QuantileClipper(epsilon=4, delta=delta, bounds=BOUNDS, bins=400, random=Random.deterministic(3)).fit(X)
    ranks = np.array([(edge > X).mean(axis=0) for edge in (clipper.low_, clipper.high_)])
    np.testing.assert_allclose(ranks, [[0.05, 0.05], [0.95, 0.95]], atol=0.03)
    assert (clipper.transform(X) <= clipper.high_).all()
    assert (clipper.transform(X) >= clipper.low_).all()


def test_one_row_moves_every_utility_by_no_more_than_was_declared() -> None:
    part, whole = 19, 20
    grid = np.linspace(0, 1, 11)

    def utilities(rows: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
        below = (rows[:, None] < grid).sum(axis=0)
        return -np.abs((whole - part) * below - part * (len(rows) - below))

    rows = np.array([0.05, 0.33, 0.4, 0.97])
    moved = [np.abs(utilities(np.append(rows, value)) - utilities(rows)).max() for value in np.linspace(0, 1, 41)]
    assert max(moved) == max(part, whole - part)


def test_clipping_always_leaves_an_interval() -> None:
    for seed in range(20):
        model = QuantileClipper(epsilon="0.001", bounds=(0, 1), bins=2, random=Random.deterministic(seed)).fit(X[:0])
        assert (model.low_ < model.high_).all()
        assert (model.low_ >= 0).all()
        assert (model.high_ <= 1).all()


@pytest.mark.parametrize(
    "further", [{"quantiles": ("0.9", "0.1")}, {"quantiles": ("0.5",)}, {"quantiles": (-1, 2)}, {"bins": 1}, {"bins": 2.5}]
)
def test_wrong_quantiles_and_bins_are_refused(further: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        QuantileClipper(bounds=BOUNDS, **further).fit(X)


def test_a_declaration_alone_costs_a_table_nothing() -> None:
    table = PrivateTable({"age": [30, 40], "pay": [1.0, 2.0]}, columns={"age": Integer(17, 90), "pay": Real(0, 5)})
    with Door({"people": table}, budget=PureDP(1)) as door:
        scaler = BoundedScaler().fit_table(door, "people", features=["age", "pay"])
        assert door.spent == PureDP(0)
        StandardScaler(epsilon="0.25").fit_table(door, "people", features=["age", "pay"])
        assert door.spent == PureDP("0.25")
    pandas = pytest.importorskip("pandas")
    assert scaler.transform(pandas.DataFrame({"age": [17], "pay": [5.0]})).tolist() == [[0.0, 1.0]]
