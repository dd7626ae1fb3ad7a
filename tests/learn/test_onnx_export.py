"""ONNX: every graph says what its model says, by the reference evaluator; the promise travels; no row does; refusals.

Where the package onnx is not installed, these tests are skipped aloud, but for that of the refusal.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister.errors import InvalidParameter, MissingDependency
from cloister.installed import install
from cloister.learn import (
    DecisionTreeClassifier,
    GaussianMixture,
    GaussianNB,
    GradientBoostingClassifier,
    KernelClassifier,
    LinearDiscriminantAnalysis,
    LogisticRegression,
    NeuralClassifier,
    RandomForestClassifier,
    to_onnx,
)
from cloister.learn.frame.catalogue import METHODS
from cloister.learn.frame.onnx_graphs import GRAPHS
from cloister.noise import Random
from tests.learn.checks import model_of, rows_of

CLOSE = {"NeuralClassifier": 1e-5}
"""Whose own products are rounded to 22 bits."""


def evaluated(written: bytes, X: np.ndarray) -> dict[str, np.ndarray]:
    """All outputs, by the evaluator that comes with ONNX."""
    onnx = pytest.importorskip("onnx", reason="!!! the package onnx is NOT INSTALLED: graphs are not tested")
    evaluator = importlib.import_module("onnx.reference").ReferenceEvaluator(onnx.load_from_string(written))
    return dict(zip(evaluator.output_names, evaluator.run(None, {"X": X}), strict=True))


def written(model: Any) -> bytes:
    pytest.importorskip("onnx", reason="!!! the package onnx is NOT INSTALLED: graphs are not tested")
    return to_onnx(model)


def compare(model: Any, X: np.ndarray) -> dict[str, np.ndarray]:
    """Each output is as the model says it."""
    found, close = evaluated(written(model), X), CLOSE.get(type(model).__name__, 1e-9)
    if "label" in found:
        assert found["label"].tolist() == model.predict(X).tolist()
    if "prediction" in found:
        assert found["prediction"] == pytest.approx(model.predict(X), abs=close)
    if "probabilities" in found:
        assert np.abs(found["probabilities"] - model.predict_proba(X)).max() < close
    if "scores" in found:
        assert np.abs(found["scores"] - model.decision_function(X).reshape(len(X), -1)).max() < close
    if "log_density" in found:
        assert found["log_density"] == pytest.approx(model.score_samples(X), abs=1e-9)
    for name in ("features", "distances"):
        if name in found:
            assert np.abs(found[name] - model.transform(X)).max() < close
    return found


@pytest.mark.parametrize("privacy", ["central", None])
@pytest.mark.parametrize("name", GRAPHS)
def test_a_graph_says_what_its_model_says(name: str, privacy: str | None) -> None:
    """Of its own rows, and of others beyond the bounds."""
    X, y = rows_of(name)
    further = X if name == "CategoricalNB" else X * 3 - 1
    assert compare(model_of(name, privacy=privacy).fit(X, y), np.vstack([X, further]))


THREE = {
    "KernelClassifier": {"loss": "hinge", "n_components": 3, "epsilon": 5},
    "LogisticRegression": {"delta": "1e-5"},
    "LinearDiscriminantAnalysis": {},
    "GaussianNB": {},
    "NeuralClassifier": {"delta": "1e-5", "hidden": (4, 3)},
    "DecisionTreeClassifier": {"max_depth": 5},
    "GradientBoostingClassifier": {"epsilon": 5},
    "RandomForestClassifier": {"n_estimators": 7, "max_depth": 3, "persons": "all"},
}
KINDS = [LogisticRegression, LinearDiscriminantAnalysis, GaussianNB, NeuralClassifier]
KINDS += [KernelClassifier, GradientBoostingClassifier, DecisionTreeClassifier, RandomForestClassifier]


@pytest.mark.parametrize("classes", [["low", "middle", "Größe"], [-5, 0, 7], [0.5, 1.5, 2.5]])
@pytest.mark.parametrize("kind", KINDS)
def test_several_classes_keep_their_names(kind: Any, classes: list[Any]) -> None:
    X = np.random.default_rng(1).uniform(0, 10, (500, 3))
    y = np.array(classes)[(X[:, 0] // 3.4).astype(int)]
    given = {"bounds": (0, 10), "classes": classes, "random": Random.deterministic(1), **THREE[kind.__name__]}
    found = compare(kind(**given).fit(X, y), X)
    assert set(found["label"].tolist()) <= set(classes)


def test_a_category_of_several_features_is_one_column_of_a_boosted_model() -> None:
    X = np.random.default_rng(1).integers(0, 2, (600, 5)).astype(float)
    X[:, 0] *= 0.3
    model = GradientBoostingClassifier(epsilon=8, bounds=(0, 1), groups=[[1, 2, 3]], random=Random.deterministic(1))
    compare(model.fit(X, X[:, 2].astype(int)), X)


def test_one_row_and_none_are_rows_too() -> None:
    X, y = rows_of("DecisionTreeClassifier")
    for name in ("RandomForestClassifier", "KernelClassifier", "GaussianNB"):
        model = model_of(name).fit(X, y)
        compare(model, X[:1])
        assert evaluated(written(model), X[:0])["label"].shape == (0,)


def test_every_model_of_the_catalogue_has_a_graph_or_is_refused_in_its_own_words() -> None:
    assert set(GRAPHS) <= set(METHODS)
    for name in set(METHODS) - set(GRAPHS):
        with pytest.raises(InvalidParameter, match="draws no ONNX graph"):
            to_onnx(model_of(name))


def test_the_promise_and_the_names_travel() -> None:
    onnx = pytest.importorskip("onnx", reason="!!! the package onnx is NOT INSTALLED: graphs are not tested")
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"age": [30.0, 60.0] * 200, "pay": [1.0, 2.0] * 200})
    model = LogisticRegression(epsilon="0.5", bounds=([0, 0], [100, 9])).fit(frame, [0, 1] * 200)
    found = onnx.load_from_string(to_onnx(model))
    about = {line.key: line.value for line in found.metadata_props}
    assert (about["private"], about["guarantee"], about["marked"]) == ("yes", "ε = 0.5", "no")
    assert json.loads(about["guarantee_exact"]) == {"kind": "pure", "epsilon": "0.5"}
    assert json.loads(about["features"]) == ["age", "pay"]
    assert len(json.loads(about["spent"])) == len(model.spent_)
    assert found.doc_string == model.report()
    assert found.producer_name == "cloister"
    plain = onnx.load_from_string(to_onnx(LogisticRegression(privacy=None).fit(frame, [0, 1] * 200)))
    about = {line.key: line.value for line in plain.metadata_props}
    assert (about["private"], about["guarantee"]) == ("no", "NOT PRIVATE: learnt without noise")
    assert "bounds" not in about
    assert plain.doc_string.startswith("NOT PRIVATE")


def test_no_row_is_in_the_file() -> None:
    onnx = pytest.importorskip("onnx", reason="!!! the package onnx is NOT INSTALLED: graphs are not tested")
    X = np.random.default_rng(3).uniform(0, 1, (60, 4))
    for kind in (KernelClassifier, GaussianMixture):
        model = kind(bounds=(0, 1)).fit(X, np.arange(60) % 2)
        made = onnx.load_from_string(to_onnx(model)).graph
        numbers = np.concatenate([onnx.numpy_helper.to_array(each).ravel() for each in made.initializer if each.data_type != 8])
        assert not np.isin(X.ravel(), numbers).any()
        assert not np.isin((2 * X - 1).ravel(), numbers).any()


def test_it_is_written_where_it_should_be(tmp_path: Path) -> None:
    pytest.importorskip("onnx", reason="!!! the package onnx is NOT INSTALLED: graphs are not tested")
    X, y = rows_of("GaussianNB")
    model = model_of("GaussianNB").fit(X, y)
    assert to_onnx(model, tmp_path / "model.onnx") == (tmp_path / "model.onnx").read_bytes() == to_onnx(model)
    with pytest.raises(InvalidParameter, match="cannot be written"):
        to_onnx(model, tmp_path / "nowhere" / "model.onnx")


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    X, y = rows_of("GaussianNB")
    with pytest.raises(MissingDependency, match=re.escape(install("onnx"))):
        to_onnx(model_of("GaussianNB").fit(X, y))
