"""The minimum of a regularised convex loss, to a stated length of gradient.

Newton's method with a line search. How many steps it takes depends on rows; nothing shows it but the time.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cloister.learn.losses import Loss

__all__ = ["minimum"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_DIRECT = 500


def minimum(
    rows: Floats, classes: Integers, loss: Loss, *, ridge: Floats, linear: Floats, tolerance: float, most: int = 200
) -> tuple[Floats, bool]:
    """The weights with the least Σ loss + ½ Σ ridge·w² + ⟨linear, w⟩, and whether its gradient is at most `tolerance` long there.

    `ridge` and `linear` have the shape of the weights, or broadcast to it.

    >>> from cloister.learn.losses import Logistic
    >>> weights, near = minimum(np.array([[1.0], [1.0]]), np.array([0, 1]), Logistic(), ridge=np.ones((1, 1)),
    ...     linear=np.full((1, 1), 0.75), tolerance=1e-9)
    >>> weights.round(3).tolist(), near
    ([[-0.503]], True)
    """
    weights = np.zeros((rows.shape[1], loss.columns))
    scores = rows @ weights
    value = _value(scores, weights, classes, loss, ridge, linear)
    for _ in range(most):
        gradient = rows.T @ loss.residuals(scores, classes) + ridge * weights + linear
        length = float(np.linalg.norm(gradient))
        if length <= tolerance:
            return weights, True
        move = _newton(rows, scores, classes, loss, ridge, gradient, length)
        slope, size = float((gradient * move).sum()), 1.0
        moved = rows @ move
        for _ in range(60):
            tried = _value(scores + size * moved, weights + size * move, classes, loss, ridge, linear)
            if tried <= value + 1e-4 * size * slope + 1e-15 * abs(value):
                break
            size /= 2
        weights = weights + size * move
        scores = rows @ weights
        value = _value(scores, weights, classes, loss, ridge, linear)
    gradient = rows.T @ loss.residuals(scores, classes) + ridge * weights + linear
    return weights, bool(np.linalg.norm(gradient) <= tolerance)


def _value(scores: Floats, weights: Floats, classes: Integers, loss: Loss, ridge: Floats, linear: Floats) -> float:
    return loss.value(scores, classes) + float((ridge * weights**2).sum() / 2 + (linear * weights).sum())


def _newton(
    rows: Floats, scores: Floats, classes: Integers, loss: Loss, ridge: Floats, gradient: Floats, length: float
) -> Floats:
    """Newton's direction: solved for one column of moderate size, else by conjugate gradients, as exactly as is of use now."""
    if gradient.shape[1] == 1 and len(gradient) <= _DIRECT:
        bend = loss.bent(scores, classes, np.ones_like(scores))
        hessian = rows.T @ (rows * bend)
        hessian[np.diag_indices_from(hessian)] += np.broadcast_to(ridge, gradient.shape)[:, 0] + 1e-12
        return np.asarray(np.linalg.solve(hessian, -gradient))
    move = np.zeros_like(gradient)
    rest = -gradient
    step = rest.copy()
    size = float((rest**2).sum())
    goal = (min(0.1, length**0.5) * length) ** 2
    for _ in range(min(gradient.size, 250) + 10):
        bent = rows.T @ loss.bent(scores, classes, rows @ step) + (ridge + 1e-12) * step
        along = size / max(float((step * bent).sum()), 1e-300)
        move += along * step
        rest -= along * bent
        after = float((rest**2).sum())
        if after <= goal:
            break
        step = rest + (after / size) * step
        size = after
    return move
