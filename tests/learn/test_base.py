"""What every model has from its base: checks that tell nothing, declared bounds and classes."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from cloister.errors import CloisterError, InvalidParameter, MissingBound
from cloister.learn.base import classes_of, places_of
from cloister.learn.bounds import Box, box_of, interval_of, steps_of
from cloister.learn.examples import Threshold
from cloister.learn.scaling import BoundedScaler
from cloister.noise import Random
from cloister.privacy import ApproxDP, PureDP

X = np.array([[0.2], [0.8]] * 50)
Y = np.array([0, 1] * 50)


def model(**further: Any) -> Threshold:
    return Threshold(**{"bounds": (0, 1), "epsilon": 100, "random": Random.deterministic(1), **further})


def test_the_promise_follows_from_the_parameters() -> None:
    assert model(epsilon="0.1").fit(X, Y).guarantee_ == PureDP("0.1")
    assert model(epsilon=1, delta="1e-6").fit(X, Y).guarantee_ == ApproxDP(1, "1e-6")
    assert model(privacy=None).fit(X, Y).guarantee_ is None
    with pytest.raises(InvalidParameter, match='known are "central" and None'):
        model(privacy="local").fit(X, Y)
    with pytest.raises(CloisterError):
        model(epsilon=0).fit(X, Y)


def test_rows_with_missing_values_or_undeclared_classes_count_for_nothing() -> None:
    rows = np.vstack([X, [[np.nan]], [[0.1]], [[0.9]]])
    target = np.concatenate([Y, [0], [5], [np.nan]])
    found = model()._checked(rows, target)
    assert len(found.X) == len(X)
    assert np.asarray(found.y).tolist() == Y.tolist()


def test_values_outside_are_clipped_and_infinities_too() -> None:
    found = model()._checked([[-5.0], [np.inf], [0.5], [-np.inf]], [0, 1, 0, 1])
    assert found.X.ravel().tolist() == [0.0, 1.0, 0.5, 0.0]


@pytest.mark.parametrize("mixed", [["no", "yes", None, np.nan, 3, ["no"]], ["no", "yes", "maybe", "NO", "", "x"]])
def test_a_mixed_target_is_read_value_by_value(mixed: list[Any]) -> None:
    """Whether one person's label is a text or a number must not decide whether there is an error."""
    target = np.empty(6, dtype=object)
    target[:] = mixed
    found = model(classes=["no", "yes"])._checked(np.full((6, 1), 0.5), target)
    assert np.asarray(found.y).tolist() == [0, 1]


def test_a_mixed_target_without_declared_classes_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="not declared"):
        model().fit(X, np.array(["a"] * 100, dtype=object))


def test_kinds_of_a_target_are_checked_by_its_type() -> None:
    with pytest.raises(InvalidParameter, match="holds texts"):
        model().fit(X, np.array(["0", "1"] * 50))
    with pytest.raises(InvalidParameter, match="holds numbers"):
        model(classes=["no", "yes"]).fit(X, Y)
    assert model(classes=[False, True]).fit(X, Y.astype(bool)).classes_.tolist() == [False, True]


@pytest.mark.parametrize(
    ("rows", "target"),
    [
        ([1.0, 2.0], [0, 1]),
        ([[1.0], [2.0]], None),
        ([[1.0], [2.0]], [0]),
        ([[1.0], [2.0]], [[0, 1], [1, 0]]),
        ([["secret"], [2.0]], [0, 1]),
        ([[1.0, 2.0], [3.0]], [0, 1]),
        (np.array([[1 + 2j], [0]]), [0, 1]),
    ],
)
def test_wrong_shapes_are_refused_without_their_values(rows: Any, target: Any) -> None:
    with pytest.raises(InvalidParameter) as caught:
        model().fit(rows, target)
    assert "secret" not in str(caught.value)
    assert "2." not in str(caught.value)


def test_a_sparse_matrix_is_refused() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(InvalidParameter, match="dense"):
        model().fit(sparse.csr_array(X), Y)


def test_weights_and_other_arguments_are_refused() -> None:
    assert model().fit(X, Y, sample_weight=None).predict(X).tolist() == Y.tolist()
    with pytest.raises(InvalidParameter, match="count as much as their weight"):
        model().fit(X, Y, sample_weight=np.ones(100))
    with pytest.raises(InvalidParameter, match="groups= was refused"):
        model().fit(X, Y, groups=Y)


def test_models_stand_in_pipelines() -> None:
    pipeline = make_pipeline(BoundedScaler(bounds=(-10, 10)), model())
    holed = np.vstack([X * 20 - 10, [[np.nan]]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pipeline.fit(holed, np.append(Y, 0))
    assert pipeline.predict(X * 20 - 10).tolist() == Y.tolist()


def test_the_report_says_what_was_spent() -> None:
    assert model(epsilon="0.5").fit(X, Y).report().splitlines() == ["ε = 0.5", "  counts: ε = 0.5 (100.0%)"]
    assert model(privacy=None).fit(X, Y).report().startswith("NOT PRIVATE")


def test_declared_classes() -> None:
    for wrong in ([], [1], [1, 1], [[1, 2], [3, 4]]):
        with pytest.raises(InvalidParameter, match="two different classes"):
            classes_of(wrong)
    assert places_of(np.array([1.5, np.nan, 2.0]), np.array([2, 1])).tolist() == [-1, -1, 0]


def test_bounds_are_pairs_of_finite_numbers() -> None:
    for wrong in ((1,), "01", (0, np.inf), (np.nan, 1), (2, 1), ([0, 0], [1, 1]), (0, "high"), (-1e300, 1e300)):
        with pytest.raises(InvalidParameter):
            box_of(wrong, features=3)
    with pytest.raises(MissingBound):
        box_of(None, features=3)
    with pytest.raises(InvalidParameter, match="empty"):
        interval_of((3, 3))


def test_steps_stay_within_what_was_declared() -> None:
    wild = np.array([np.nan, np.inf, -np.inf, 5.0, -5.0, 1 + 1e-16, 0.5])
    assert steps_of(wild, bits=20).tolist() == [0, 2**20, -(2**20), 2**20, -(2**20), 2**20, 2**19]


def test_boxes_map_to_unit_and_centre() -> None:
    box = Box(low=np.array([0.1, 5.0]), high=np.array([0.7, 5.0]))
    rows = np.array([[0.1, 5.0], [0.7, 9.0], [1e300, -1e300]])
    assert (box.unit(rows) <= 1).all()
    assert (np.abs(box.centred(rows)) <= 1).all()
    assert box.unit(rows)[:, 1].tolist() == [0.0, 0.0, 0.0]
