"""The minimum of a regularised convex loss, to a stated length of gradient, after a number of steps that public facts fix.

Newton's method with a line search that looks at values, and near the minimum at slopes: there the values of two points differ by
less than their own rounding, and say nothing any more. How many steps are made must not depend on rows, so none of them is left
out: `steps_for` says how many by the noisy number of people, the loss and the ridge, about twice what they take, and those left
over move nothing. Where they were too few after all, as many for each of fifteen ridges follow, from the strongest on: then the
way is short each time. That is the other number of steps that there is, and the most.

What rows decide shows in the time alone: which of the two numbers it is, and within a step how often a value or a slope is looked
at (61 times at the most) and how many conjugate gradients are taken (260 at the most). No weight shows it, since both ways end at
the same minimum but for the tolerance that the released noise hides; `docs/explanation/channels.md` says what time tells.
"""

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from cloister.learn.linear_models.losses import HuberHinge, Loss

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_DIRECT = 500
_STRONGEST = 14
_SEEN = 1e-10
"""Of the value: a smaller change may be its rounding."""


def steps_for(loss: Loss, *, ridge: float, people: float) -> int:
    """How many steps: more, the flatter the ridge is against the curvature of so many people; a hinge bends at many places.

    >>> from cloister.learn.linear_models.losses import HuberHinge, Logistic
    >>> steps_for(Logistic(), ridge=1.15, people=5000), steps_for(HuberHinge(classes=2), ridge=1.15, people=5000)
    (14, 27)
    """
    doublings = math.log2(1 + max(people, 1.0) * loss.curvature / ridge)
    return 8 + math.ceil(doublings * (1.5 if isinstance(loss, HuberHinge) else 0.5))


def minimum(
    rows: Floats, classes: Integers, loss: Loss, *, ridge: Floats, linear: Floats, tolerance: float, steps: int = 40
) -> tuple[Floats, bool]:
    """The weights with the least Σ loss + ½ Σ ridge·w² + ⟨linear, w⟩, and whether its gradient is at most `tolerance` long there.

    `ridge` and `linear` have the shape of the weights, or broadcast to it. It takes `steps` steps, or sixteen times as many.

    >>> from cloister.learn.linear_models.losses import Logistic
    >>> weights, near = minimum(np.array([[1.0], [1.0]]), np.array([0, 1]), Logistic(), ridge=np.ones((1, 1)),
    ...     linear=np.full((1, 1), 0.75), tolerance=1e-9, steps=9)
    >>> weights.round(3).tolist(), near
    ([[-0.503]], True)
    """
    start = np.zeros((rows.shape[1], loss.columns))
    weights, near = _down(start, rows, classes, loss, ridge, linear, tolerance, steps)
    if near:
        return weights, near
    weights = start
    for power in range(_STRONGEST, -1, -1):
        weights, near = _down(weights, rows, classes, loss, ridge * 4.0**power, linear, tolerance, steps)
    return weights, near


def _down(
    weights: Floats, rows: Floats, classes: Integers, loss: Loss, ridge: Floats, linear: Floats, tolerance: float, steps: int
) -> tuple[Floats, bool]:
    """After so many steps. Once the gradient is short, steps are worked out and not made."""
    scores, near = rows @ weights, False
    for _ in range(steps):
        gradient = rows.T @ loss.residuals(scores, classes) + ridge * weights + linear
        length = float(np.linalg.norm(gradient))
        near = near or length <= tolerance
        move = _newton(rows, scores, classes, loss, ridge, gradient, length)
        along = rows @ move
        inner = float(((ridge * weights + linear) * move).sum())
        bend = float((ridge * move**2).sum())

        def slope(size: float, scores: Floats = scores, along: Floats = along, inner: float = inner, bend: float = bend) -> float:
            return float((loss.residuals(scores + size * along, classes) * along).sum()) + inner + size * bend

        def value(size: float, scores: Floats = scores, along: Floats = along, inner: float = inner, bend: float = bend) -> float:
            return loss.value(scores + size * along, classes) + size * inner + size**2 * bend / 2

        moved = weights + _size(slope, value) * move
        weights = weights if near else moved
        scores = rows @ weights
    gradient = rows.T @ loss.residuals(scores, classes) + ridge * weights + linear
    return weights, bool(np.linalg.norm(gradient) <= tolerance)


def _size(slope: Callable[[float], float], value: Callable[[float], float]) -> float:
    """How far to go, at most 1: where the value has fallen enough; where that cannot be seen, where the slope, which never falls
    along a line, is below 0 or nearly 0.

    >>> _size(lambda size: size - 0.25, lambda size: 1e20), _size(lambda size: size - 0.25, lambda size: size**2 / 2 - size / 4)
    (0.25, 0.25)
    """
    start, here, low, high, size = -slope(0.0), value(0.0), 0.0, 1.0, 1.0
    seen = start > _SEEN * abs(here)
    for _ in range(60):
        if seen:
            if value(size) <= here - 1e-4 * size * start:
                break
            size /= 2
            continue
        found = slope(size)
        if -0.9 * start <= found <= 0.1 * start or (size == 1 and found <= 0):
            break
        low, high = (low, size) if found > 0 else (size, high)
        size = (low + high) / 2
    return size


def _newton(
    rows: Floats, scores: Floats, classes: Integers, loss: Loss, ridge: Floats, gradient: Floats, length: float
) -> Floats:
    """Newton's direction: solved column by column where none depends on another, of moderate size; else by conjugate gradients,
    as exactly as is of use now."""
    if loss.separate and len(gradient) <= _DIRECT:
        bend, flat = loss.bent(scores, classes, np.ones_like(scores)), np.broadcast_to(ridge, gradient.shape) + 1e-12
        columns = range(gradient.shape[1])
        return np.stack([_solved(rows, bend[:, each], flat[:, each], gradient[:, each]) for each in columns], axis=1)
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


def _solved(rows: Floats, bend: Floats, flat: Floats, gradient: Floats) -> Floats:
    """One column of Newton's direction."""
    hessian = rows.T @ (rows * bend[:, None])
    hessian[np.diag_indices_from(hessian)] += flat
    try:
        return np.asarray(np.linalg.solve(hessian, -gradient))
    except np.linalg.LinAlgError:  # would say something about the rows; straight down is always a way
        return np.asarray(-gradient / (np.trace(hessian) + 1.0))
