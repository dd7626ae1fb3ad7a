"""The minimum: against scikit-learn's, and against its own gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression as Theirs

from cloister.learn.linear_models import minimum as solver
from cloister.learn.linear_models.losses import HuberHinge, Logistic, Loss, Softmax
from cloister.learn.linear_models.minimum import minimum, steps_for

X = np.random.default_rng(1).normal(size=(200, 4))
Y = (X @ np.array([[1.0, -1, 0.5], [0, 1, 1], [1, 1, -1], [0, 0, 2]]) + np.random.default_rng(2).normal(size=(200, 3))).argmax(1)


@pytest.mark.parametrize("classes", [2, 3])
def test_it_is_that_of_scikit_learn(classes: int) -> None:
    y = Y % classes
    loss: Loss = Logistic() if classes == 2 else Softmax(classes=3)
    weights, near = minimum(X, y, loss, ridge=np.full((1, 1), 0.5), linear=np.zeros((1, 1)), tolerance=1e-8, steps=20)
    theirs = Theirs(C=2.0, fit_intercept=False, tol=1e-10, max_iter=10_000).fit(X, y)
    assert near
    assert np.allclose(weights.T, theirs.coef_, atol=1e-5)


@pytest.mark.parametrize(
    "loss", [Logistic(slope=0.6), Softmax(classes=3), HuberHinge(classes=2), HuberHinge(classes=3)], ids=repr
)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_the_gradient_is_as_short_as_was_asked(loss: Loss, scale: float) -> None:
    y = Y % 2 if loss.columns == 1 else Y
    linear = scale * np.random.default_rng(3).normal(size=(4, loss.columns))
    rows = X / np.linalg.norm(X, axis=1, keepdims=True)
    weights, near = minimum(rows, y, loss, ridge=np.full((1, 1), 0.3), linear=linear, tolerance=2.0**-21, steps=30)
    assert near
    assert np.linalg.norm(rows.T @ loss.residuals(rows @ weights, y) + 0.3 * weights + linear) <= 2.0**-21


@pytest.mark.parametrize("rows", [0, 1])
def test_few_rows_leave_the_linear_term(rows: int) -> None:
    linear = np.ones((4, 3))
    weights, near = minimum(
        np.zeros((rows, 4)),
        np.zeros(rows, dtype=np.int64),
        Softmax(classes=3),
        ridge=np.full((1, 1), 2.0),
        linear=linear,
        tolerance=1e-9,
        steps=20,
    )
    assert near
    assert np.allclose(weights, -0.5)


def test_it_says_so_when_it_did_not_get_there() -> None:
    _, near = minimum(X, Y % 2, Logistic(), ridge=np.full((1, 1), 0.1), linear=np.zeros((1, 1)), tolerance=1e-14, steps=1)
    assert not near


@pytest.mark.parametrize(("rows", "width", "ridge"), [(300, 0.1, 0.0017), (300, 0.1, 3e-4), (3000, 0.5, 3.4e-4)])
def test_a_hinge_with_many_corners_and_hardly_a_ridge_is_solved(rows: int, width: float, ridge: float) -> None:
    """0.1 is the sharpest corner that a model takes; the steps are those that public facts fix."""
    generator = np.random.default_rng(0)
    steep = generator.normal(size=(rows, 60))
    steep = np.trunc(steep / np.linalg.norm(steep, axis=1, keepdims=True) * 0.89 * 2**14) / 2**14
    steep = np.concatenate([steep, np.full((rows, 1), 0.447)], axis=1)
    y, loss = (steep[:, 0] > 0).astype(np.int64), HuberHinge(classes=2, width=width)
    steps = steps_for(loss, ridge=ridge, people=rows)
    weights, near = minimum(
        steep, y, loss, ridge=np.full((1, 1), ridge), linear=np.zeros((1, 1)), tolerance=2.0**-21, steps=steps
    )
    assert near
    assert np.linalg.norm(steep.T @ loss.residuals(steep @ weights, y) + ridge * weights) <= 2.0**-21


def test_a_minimum_whose_values_are_all_rounding_is_reached() -> None:
    generator = np.random.default_rng(14)
    rows = generator.normal(size=(20_000, 5))
    rows = np.trunc(rows / np.linalg.norm(rows, axis=1, keepdims=True) * 0.89 * 2**14) / 2**14
    rows = np.concatenate([rows, np.full((20_000, 1), 0.447)], axis=1)
    other = np.random.default_rng(14)
    other.normal(size=5)
    linear = other.normal(size=(6, 3))
    linear *= 22_500 / np.linalg.norm(linear, axis=0)
    y, ridge = (rows[:, 0] > 0).astype(np.int64), np.full((1, 1), 15501.27)
    assert minimum(rows, y, HuberHinge(classes=3), ridge=ridge, linear=linear, tolerance=2.0**-21, steps=12)[1]


def test_how_many_steps_are_made_is_no_fact_about_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that are solved at once, rows that hardly are, and none: as many steps, and never more than sixteen times as many."""
    made: list[int] = []
    one = solver._newton

    def counted(*arguments: Any) -> Any:
        made.append(1)
        return one(*arguments)

    monkeypatch.setattr(solver, "_newton", counted)
    random = np.random.default_rng(5)
    hard = random.normal(size=(200, 10))
    hard /= np.linalg.norm(hard, axis=1, keepdims=True)
    for loss in (Logistic(), Logistic(slope=0.3), Softmax(classes=3), HuberHinge(classes=2), HuberHinge(classes=3)):
        steps = steps_for(loss, ridge=0.5, people=200)
        for rows in (hard, hard[:0], np.zeros_like(hard), np.repeat(hard[:1], 200, axis=0), hard * 1e-9):
            for y in (np.zeros(len(rows), dtype=np.int64), (rows[:, 0] > 0).astype(np.int64)):
                made.clear()
                _, near = minimum(
                    rows, y, loss, ridge=np.full((1, 1), 0.5), linear=np.ones((1, 1)), tolerance=2.0**-21, steps=steps
                )
                assert near
                assert len(made) == steps
    made.clear()
    _, near = minimum(hard, y[:200], Logistic(), ridge=np.full((1, 1), 0.5), linear=np.ones((1, 1)), tolerance=0.0, steps=3)
    assert not near
    assert len(made) == 16 * 3
