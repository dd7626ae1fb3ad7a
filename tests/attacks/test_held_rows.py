"""Which models hold training rows: those of scikit-learn that are made of them, and none of ours (test_models.py)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from cloister.attacks import holds_rows
from cloister.errors import InvalidParameter
from cloister.noise import Random


def drawn(rows: int, columns: int) -> np.ndarray:
    return np.asarray(Random.deterministic(1).words(rows * columns).reshape(rows, columns) * 2.0**-64)


X = drawn(60, 3)
Y = (X[:, 0] + X[:, 1] > 1).astype(int)


def test_a_kernel_machine_holds_its_support_vectors() -> None:
    model = SVC().fit(X, Y)
    found = holds_rows(model, X)
    assert found["support_vectors_"] == len(model.support_)
    assert "_dual_coef_" not in found


def test_a_nearest_neighbour_holds_everybody() -> None:
    assert holds_rows(KNeighborsClassifier(n_neighbors=1).fit(X, Y), X)["_fit_X"] == len(X)


def test_the_tree_of_the_neighbours_is_looked_into_too() -> None:
    model = KNeighborsClassifier(n_neighbors=1, algorithm="kd_tree").fit(X, Y)
    del model._fit_X
    assert max(holds_rows(model, X).values()) == len(X)


def test_scaled_rows_are_found_by_their_image() -> None:
    model = make_pipeline(MinMaxScaler(), KNeighborsClassifier(n_neighbors=1)).fit(X, Y)
    assert holds_rows(model, X) == {}
    found = holds_rows(model, X, images=(model[0].transform(X),))
    assert max(found.values()) == len(X)


@pytest.mark.parametrize("model", [LinearSVC(), DecisionTreeClassifier()], ids=["linear", "tree"])
def test_models_that_hold_none(model: Any) -> None:
    assert holds_rows(model.fit(X, Y), X) == {}


class Holder:
    """Holds something."""

    def __init__(self, what: Any) -> None:
        self.what = what


@pytest.mark.parametrize(
    "what",
    [
        X[3].tolist(),
        X[:4].T.copy(),
        X[:2].ravel(),
        {"a": [None, (X[0],)]},
        csr_matrix(X[:2]),
        Holder(Holder(X[:1])),
        np.array([X[0], "text"], dtype=object),
        [X[0].tolist(), [1.0]],
        X.astype(np.float32).astype(np.float64) * 0 + X,
    ],
    ids=["list", "columns", "flat", "deep", "sparse", "object", "object array", "ragged", "all"],
)
def test_wherever_a_row_hides(what: Any) -> None:
    assert holds_rows(Holder(what), X)


@pytest.mark.parametrize("what", [X[:, :2], X[0] + 1e-3, "text", None, X.mean(axis=0), X.sum(axis=0), object(), X.T @ X])
def test_what_is_no_row(what: Any) -> None:
    assert holds_rows(Holder(what), X) == {}


def test_a_model_that_holds_itself_is_no_trap() -> None:
    model = Holder(None)
    model.what = [model, {"again": model}]
    assert holds_rows(model, X) == {}


def test_refusals() -> None:
    with pytest.raises(InvalidParameter, match="by chance"):
        holds_rows(Holder(X), X[:, :1])
    with pytest.raises(InvalidParameter, match="images="):
        holds_rows(Holder(X), X, images=(X[:3],))
