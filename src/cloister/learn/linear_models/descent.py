"""Private gradient descent: noise on the whole gradient's sum, a fixed number of rounds, the later half averaged.

The rounds, the step and the noise follow from the promise, the number of features and classes, and the noisy number of people.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from cloister.learn.frame.vectors import noisy_vector
from cloister.learn.linear_models.losses import Loss
from cloister.learn.linear_models.prepared import BITS, STEPS, Prepared
from cloister.noise import Random
from cloister.noise.allowance import Share

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

RESIDUAL_BITS = 12
"""A residual is a whole number of steps of 2⁻¹²."""


@dataclass(frozen=True, kw_only=True)
class Descent:
    """How to go down: `rounds` steps of `step` over the curvature, with momentum; residuals are cut to a length of `clip`."""

    rounds: int
    step: float
    momentum: float
    clip: float = 0.7


def plan(*, persons: float, dimension: int, mu: float) -> Descent:
    """More rounds and momentum where the signal is large against the noise: people · μ/√d.

    >>> plan(persons=1437, dimension=65, mu=0.25).rounds, plan(persons=32561, dimension=108, mu=0.25).rounds
    (20, 208)
    """
    signal = persons * mu / math.sqrt(dimension)
    rounds = max(5, min(300, round(20 * (signal / 45) ** 0.82)))
    return Descent(rounds=rounds, step=4.0 if rounds < 80 else 8.0, momentum=0.8 if rounds < 80 else 0.9)


def plan_pure(*, persons: float, numbers: int, epsilon: float) -> Descent:
    """A few rounds only: under pure ε each of them costs its share in full.

    >>> plan_pure(persons=30_000, numbers=6, epsilon=1).rounds
    20
    """
    signal = persons * epsilon / numbers
    return Descent(rounds=max(1, min(20, round(math.sqrt(signal) / 2))), step=4.0, momentum=0.8)


def descend(prepared: Prepared, loss: Loss, share: Share, random: Random | None, *, descent: Descent, start: Floats) -> Floats:
    """Weights after the descent.

    Guarantee: every round releases one sum over people, residual ⊗ row, with noise for one person more or less. Norm needed:
    ‖row‖₂ ≤ 1 (rows are cut) and ‖residual‖₂ ≤ clip (residuals are cut), so the sum has an L2 sensitivity of clip. T rounds with
    σ = clip·√T/μ are μ-Gaussian private together (Dong, Roth & Su 2022, Corollary 3.3: each round chosen by the earlier ones);
    under ε each round is the vector mechanism at ε/T. No theorem about the loss is used: with cut residuals the steps need not
    even be those of a gradient.

    Exactness: rows and residuals are whole steps (2⁻¹⁴, 2⁻¹²), cut towards 0; their products' sum is exact in float64 up to
    2²⁷ people, and what is noised is that whole number. A residual is a function of its own row and of released weights: scores
    are sums of whole numbers below 2⁵³, so the order of summation, and so the other people, cannot show in them.
    """
    rows = prepared.rows.astype(np.float64)
    fine = 52 - BITS - math.ceil(math.log2(prepared.dimension))
    weights, before, total, kept = start.copy(), start.copy(), np.zeros_like(start), 0
    each = share.part(Fraction(1, descent.rounds))
    sensitivity = Fraction(math.ceil(descent.clip * 2**RESIDUAL_BITS)) * STEPS
    speed = descent.step / loss.curvature / prepared.persons
    for turn in range(descent.rounds):
        ahead = weights + descent.momentum * (weights - before)
        residuals = cut(loss.residuals(exact_scores(rows, ahead, fine), prepared.classes), descent.clip)
        summed = np.rint(rows.T @ residuals.astype(np.float64)).astype(np.int64)
        noisy = noisy_vector(summed, each, random, length=sensitivity) / (STEPS * 2.0**RESIDUAL_BITS)
        before, weights = weights, ahead - speed * noisy
        if turn >= descent.rounds // 2:
            total, kept = total + weights, kept + 1
    return np.asarray(total / kept) if kept else weights


def exact_scores(rows: Floats, weights: Floats, fine: int) -> Floats:
    """Exact scores of weights that are rounded to 2⁻¹⁶, and cut where a score would no longer be an exact float."""
    steps = np.clip(np.rint(weights * 2.0**16), -(2.0**fine), 2.0**fine)
    return np.asarray(rows @ steps / (STEPS * 2.0**16))


def cut(residuals: Floats, clip: float) -> Integers:
    """Residuals at most `clip` long, in steps, cut towards 0.

    >>> cut(np.array([[0.6, -0.8]]), 0.5).tolist()
    [[1228, -1638]]
    """
    lengths = np.sqrt((residuals**2).sum(axis=1, keepdims=True))
    factors = np.where(lengths > clip, clip / np.maximum(lengths, 1e-300), 1.0) * (1 - 2.0**-40)
    return np.asarray(np.trunc(residuals * factors * 2.0**RESIDUAL_BITS), dtype=np.int64)
