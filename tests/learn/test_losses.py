"""Losses: their bounds hold, and their derivatives are those of their values."""

from __future__ import annotations

import numpy as np
import pytest

from cloister.learn.linear_models.losses import HuberHinge, Logistic, Loss, Poisson, Softmax

LOSSES = [
    Logistic(),
    Logistic(slope=0.7),
    Softmax(classes=4),
    HuberHinge(classes=2),
    HuberHinge(classes=4, width=0.2),
    Poisson(highest=3),
]
CLASSES = np.arange(400) % 4


def given(loss: Loss, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    scores = np.random.default_rng(seed).normal(scale=3, size=(400, loss.columns))
    return scores, CLASSES % 2 if loss.columns == 1 else CLASSES


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_residuals_are_the_slope_of_the_value(loss: Loss) -> None:
    scores, classes = given(loss)
    direction = np.random.default_rng(2).normal(size=scores.shape)
    near = (loss.value(scores + 1e-6 * direction, classes) - loss.value(scores - 1e-6 * direction, classes)) / 2e-6
    assert near == pytest.approx(float((loss.residuals(scores, classes) * direction).sum()), rel=1e-5)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_bent_is_the_slope_of_the_residuals(loss: Loss) -> None:
    scores, classes = given(loss)
    direction = np.random.default_rng(2).normal(size=scores.shape)
    after, before = (loss.residuals(scores + sign * 1e-7 * direction, classes) for sign in (1, -1))
    assert np.allclose((after - before) / 2e-7, loss.bent(scores, classes, direction), atol=1e-5)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_declared_bounds_hold_and_are_nearly_reached(loss: Loss) -> None:
    scores, classes = given(loss)
    scores = np.concatenate([scores, 50 * scores])
    classes = np.concatenate([classes, classes])
    residuals = loss.residuals(scores, classes)
    reach, length = np.abs(residuals).sum(axis=1).max(), np.linalg.norm(residuals, axis=1).max()
    assert 0.95 * loss.reach <= reach <= loss.reach + 1e-12
    assert 0.95 * loss.length <= length <= loss.length + 1e-12


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_second_derivatives_are_within_trace_and_curvature(loss: Loss) -> None:
    scores, classes = given(loss)
    corners = 2.0 * (classes[:, None] == np.arange(loss.columns)) - 1.0
    scores = np.concatenate([scores / 30, np.ones_like(scores), corners])
    classes = np.concatenate([classes, classes, classes])
    columns = [loss.bent(scores, classes, np.tile(unit, (len(scores), 1))) for unit in np.eye(loss.columns)]
    matrices = np.stack(columns, axis=2)
    values = np.linalg.eigvalsh(matrices)
    assert values.min() >= -1e-12
    assert 0.6 * loss.trace <= values.sum(axis=1).max() <= loss.trace + 1e-12
    assert values.max() <= loss.curvature + 1e-12
