"""Logistic regression and the linear support vector machine: accuracy, choice of method, nasty rows, tables."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import LogisticRegression as Theirs
from sklearn.utils.estimator_checks import check_estimator

import cloister as cl
from cloister.errors import InvalidParameter, MissingBound
from cloister.learn import load
from cloister.learn.linear_models.logistic import LogisticRegression
from cloister.learn.linear_models.svm import LinearSVC
from cloister.noise import Random
from tests.tiers import pairwise, some_by_day

MODELS = [LogisticRegression, LinearSVC]
METHODS = ["auto", "objective", "gradient", "output", "centroids"]
DRAW = np.random.default_rng(1)
X = DRAW.uniform(0, 10, size=(2000, 4))
Y = (X[:, 0] + X[:, 1] > 10 + DRAW.normal(size=2000)).astype(int)
THREE = (X[:, 0] // 3.4).astype(int)
# The lowest and the highest value of each feature, from the table in the description that comes with the data.
CANCER_LOW = """6.981 9.71 43.79 143.5 0.053 0.019 0 0 0.106 0.05 0.112 0.36 0.757 6.802 0.002 0.002 0 0 0.008 0.001
    7.93 12.02 50.41 185.2 0.071 0.027 0 0 0.156 0.055"""
CANCER_HIGH = """28.11 39.28 188.5 2501 0.163 0.345 0.427 0.201 0.304 0.097 2.873 4.885 21.98 542.2 0.031 0.135 0.396 0.053
    0.079 0.03 36.04 49.54 251.2 4254 0.223 1.058 1.252 0.291 0.664 0.208"""


def model(kind: Any = LogisticRegression, seed: int = 1, **parameters: Any) -> Any:
    return kind(**{"bounds": (0, 10), "random": Random.deterministic(seed), **parameters})


@pytest.mark.parametrize("kind", MODELS)
def test_scikit_learn_accepts_it_without_privacy(kind: Any) -> None:
    check_estimator(kind(privacy=None), on_skip=None)


def test_without_privacy_it_is_scikit_learns_on_scaled_rows() -> None:
    ours = LogisticRegression(privacy=None, bounds=(0, 10), classes=[0, 1, 2]).fit(X, THREE)
    theirs = Theirs(tol=1e-10, max_iter=10_000).fit(X / 10, THREE)
    assert np.allclose(ours.predict_proba(X), theirs.predict_proba(X / 10), atol=1e-4)
    two = LogisticRegression(privacy=None, bounds=(0, 10)).fit(X, Y)
    assert np.allclose(two.coef_ * 10, Theirs(tol=1e-10).fit(X / 10, Y).coef_, atol=1e-3)
    assert "NOT PRIVATE" in two.report()


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("delta", [None, "1e-5"])
def test_every_method_learns(kind: Any, method: str, delta: str | None) -> None:
    two = model(kind, epsilon=2, delta=delta, method=method).fit(X, Y)
    assert two.score(X, Y) > 0.85
    three = model(kind, epsilon=20, delta=delta, method=method, classes=[0, 1, 2]).fit(X, THREE)
    assert three.score(X, THREE) > 0.6
    assert sum(line.portion for line in two.spent_) == 1
    assert (two.coef_.shape, three.coef_.shape, three.intercept_.shape) == ((1, 4), (3, 4), (3,))


CASES = [*product(MODELS, METHODS, ["0.001", "1", "10000"], [None, "1e-6"], [2, 3])]


@some_by_day("kind, method, epsilon, delta, classes", CASES, pairwise(CASES))
def test_nothing_breaks_it(kind: Any, method: str, epsilon: str, delta: str | None, classes: int) -> None:
    nasty = [
        (np.empty((0, 4)), np.empty(0, dtype=int)),
        (X[:1], THREE[:1]),
        (np.full((50, 4), 5.0), np.zeros(50, dtype=int)),
        (np.array([[np.nan] * 4, [np.inf] * 4, [-np.inf] * 4, [1e308] * 4]), np.array([0, 1, 7, -3])),
    ]
    for rows, target in nasty:
        fitted = model(kind, epsilon=epsilon, delta=delta, method=method, classes=list(range(classes))).fit(rows, target)
        assert np.isfinite(fitted.coef_).all()
        assert np.isfinite(fitted.intercept_).all()
        assert set(fitted.predict(X)) <= set(range(classes))


def test_the_choice_of_method_follows_public_and_released_facts() -> None:
    assert model(epsilon=1).fit(X, Y).method_ == "objective"
    assert model(epsilon=1, delta="1e-5").fit(X, Y).method_ == "objective"
    many = np.tile(X, (1, 3))
    assert model(epsilon=1, delta="1e-5").fit(many, Y).method_ == "gradient"
    assert model(epsilon=1, classes=[0, 1, 2]).fit(X[:200], THREE[:200]).method_ == "centroids"
    assert model(epsilon=10, classes=[0, 1, 2]).fit(X, THREE).method_ == "objective"


def test_an_objective_costs_a_pure_epsilon_even_with_a_delta() -> None:
    fitted = model(epsilon=1, delta="1e-5", method="objective").fit(X, Y)
    assert {line.currency for line in fitted.spent_} == {"epsilon"}
    assert sum(line.amount for line in fitted.spent_) == 1


@pytest.mark.parametrize("delta", [None, "1e-5"])
def test_margins_of_an_output_hold(delta: str | None) -> None:
    """Over 60 fits some 95 % of coefficients lie within their margins of the mean fit's; the seeds are fixed.

    The ridge counts in units of the radius, which is bought: fits of one radius, and so of one margin, have one middle.
    """
    fits = [model(seed=seed, epsilon=5, delta=delta, method="output", ridge=20.0).fit(X, Y) for seed in range(60)]
    usual = np.median([fitted.margins_ for fitted in fits])
    fits = [fitted for fitted in fits if np.allclose(fitted.margins_, usual, rtol=0.05)]
    assert len(fits) > 30
    middle = np.mean([fitted.coef_ for fitted in fits], axis=0)
    within = [np.abs(fitted.coef_ - middle) <= fitted.margins_ for fitted in fits]
    assert np.mean(within) > 0.85
    assert fits[0].margins_.shape == (1, 4)
    assert (fits[0].margins_ > 0).all()
    assert model().fit(X, Y).margins_ is None


def test_cancer_and_digits_keep_their_promised_accuracy() -> None:
    """Every third row is a test row; means of 8 fits, some five standard errors under what was measured."""
    cancer, digits = load_breast_cancer(), load_digits()
    box = ([float(value) for value in CANCER_LOW.split()], [float(value) for value in CANCER_HIGH.split()])
    for data, bounds, epsilon, delta, least in (
        (cancer, box, 8, None, 0.93),
        (cancer, box, 8, "1e-5", 0.94),
        (digits, (0, 16), 8, None, 0.82),
        (digits, (0, 16), 1, None, 0.45),
    ):
        test = np.arange(len(data.data)) % 3 == 0
        found = [
            model(seed=seed, bounds=bounds, epsilon=epsilon, delta=delta, classes=sorted(set(data.target)))
            .fit(data.data[~test], data.target[~test])
            .score(data.data[test], data.target[test])
            for seed in range(8)
        ]
        assert np.mean(found) > least


@pytest.mark.parametrize("kind", MODELS)
def test_it_travels_as_text_and_is_marked(kind: Any) -> None:
    fitted = model(kind, method="output").fit(X, Y)
    again = load(fitted.to_json())
    assert fitted.marked_
    assert again.marked_
    assert (again.decision_function(X) == fitted.decision_function(X)).all()
    assert (again.margins_ == fitted.margins_).all()


@pytest.mark.parametrize("kind", MODELS)
def test_it_learns_from_a_table(kind: Any) -> None:
    table = cl.PrivateTable(
        {"left": X[:, 0].round().tolist(), "right": X[:, 1].round().tolist(), "high": ["yes" if one else "no" for one in Y]},
        columns={"left": cl.Integer(0, 10), "right": cl.Integer(0, 10), "high": cl.Category(["no", "yes"])},
    )
    with cl.Session({"people": table}, budget=cl.PureDP(10)) as session:
        fitted = kind(epsilon=5).fit_table(session, "people", features=["left", "right"], target="high")
        assert session.spent == cl.PureDP(5)
    assert fitted.predict([[10, 10], [0, 0]]).tolist() == ["yes", "no"]
    assert fitted.classes_.tolist() == ["no", "yes"]


@pytest.mark.parametrize(
    "parameters", [{"method": "magic"}, {"ridge": 0}, {"ridge": float("inf")}, {"ridge": "much"}, {"classes": [1]}]
)
def test_what_is_wrong_is_refused(parameters: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        model(**parameters).fit(X, Y)


def test_what_is_not_declared_is_refused() -> None:
    with pytest.raises(MissingBound):
        LogisticRegression(epsilon=1).fit(X, Y)
    with pytest.raises(InvalidParameter):
        model(LinearSVC, width=0).fit(X, Y)


def test_a_rare_third_class_is_as_rare_as_it_is() -> None:
    """Residuals of three classes are longer than those of two: cut as these are, they told a rare class a third too rare."""
    draw = np.random.default_rng(1)
    X = draw.uniform(-1, 1, (20_000, 1))
    chances = np.exp(np.column_stack([0 * X, 0.2 + 3 * X, -3.8 + 0 * X]))
    chances /= chances.sum(axis=1, keepdims=True)
    y = (draw.uniform(size=(20_000, 1)) > chances.cumsum(axis=1)).sum(axis=1)
    given = {"bounds": (-1, 1), "classes": (0, 1, 2), "method": "gradient", "random": Random.deterministic(1)}
    found = LogisticRegression(epsilon=20, delta="1e-6", **given).fit(X, y).predict_proba(X).mean(axis=0)
    assert found == pytest.approx(chances.mean(axis=0), abs=0.01)
    assert found[2] == pytest.approx(chances[:, 2].mean(), rel=0.1)


@pytest.mark.parametrize(
    ("method", "delta"), [("objective", None), ("gradient", "1e-5"), ("newton", "1e-5"), ("auto", None), ("auto", "1e-5")]
)
def test_at_a_huge_epsilon_a_rare_class_has_its_chances(method: str, delta: str | None) -> None:
    """Gradients under a pure promise are too few to come there."""
    draw = np.random.default_rng(5)
    rows = np.clip(draw.normal(scale=0.3, size=(20_000, 3)), -1, 1)
    chances = 1 / (1 + np.exp(4 - rows @ [2.0, -3.0, 1.0]))
    ours = model(epsilon=10**4, delta=delta, method=method, bounds=(-1, 1)).fit(rows, (draw.random(20_000) < chances).astype(int))
    assert ours.predict_proba(rows)[:, 1].mean() == pytest.approx(chances.mean(), rel=0.1)
    assert np.abs(ours.predict_proba(rows)[:, 1] - chances).mean() < 0.15 * chances.mean()
