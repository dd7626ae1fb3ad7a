"""Noisy Newton steps for two classes: noise on the gradient's sum and on the Hessian's, and a few rounds.

A Newton step knows how the rows lie: it goes as far in directions in which they hardly vary as in the others, for which a descent
needs many rounds. Its price is the Hessian: d² numbers where a gradient has d.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from cloister.learn.frame.vectors import noisy_vector
from cloister.learn.linear_models.losses import Logistic
from cloister.learn.linear_models.prepared import Prepared
from cloister.noise import Random, Share
from cloister.tables.engines.row_sums import RESIDUAL_BITS, STEPS, cut, exact_scores, fine_bits, gradient_sum, longest_residual

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

LONGEST = STEPS // 2
"""The greatest length, in steps, of a row times the root of its curvature, which is at most a quarter."""
_NEAR = 1e-4


@dataclass(frozen=True, kw_only=True)
class Newton:
    """How to go: `rounds` steps; a part `hessian` of each round's share is for the Hessian; residuals are cut to `clip`."""

    rounds: int
    hessian: Fraction = Fraction(1, 4)
    damping: float = 0.5
    """No eigenvalue counts as less than so many times the greatest that noise alone would have."""
    clip: float = 0.7


def plan(*, people: float, dimension: int, mu: float) -> Newton:
    """A few rounds, and a few more where the signal is large against the noise: people · μ over the dimension.

    >>> plan(people=455, dimension=31, mu=0.25).rounds, plan(people=32561, dimension=6, mu=0.25).rounds
    (4, 8)
    """
    signal = people * mu / dimension / 4
    return Newton(rounds=max(2, min(60, round(max(4 * signal**0.12, signal**0.3)))))


def newton_steps(
    prepared: Prepared, loss: Logistic, share: Share, random: Random | None, *, newton: Newton, start: Floats
) -> Floats:
    """Weights after the steps, the mean of the later half of them.

    Guarantee: what the share says, for one person more or less. Every round releases two sums over people. The gradient's:
    residual · row, with ‖row‖₂ ≤ 1 and |residual| ≤ clip (both are cut), as in `descend`. The Hessian's: `noisy_hessian`. Each
    has its part of a round's share, and all add up to the whole (Gaussian composition, each round chosen by the earlier ones:
    Dong, Roth & Su 2022, Corollary 3.3). Everything else is made of releases: eigenvalues are held above what noise alone
    would have, and the step is the inverse times the gradient. After Ganesh, Haghifam, Steinke & Guha Thakurta (2023), whose
    second noise is on the direction; here it is on the Hessian itself, which is then known, and its damping with it.

    Convergence: the curvature is tanh(s/2)/2s of the score s and not p(1 − p), which is never greater: with it the step
    minimises a parabola that lies above the loss (Jaakkola & Jordan 2000; the "quadratic upper bound" of Ganesh et al.), so
    that without noise no step can overshoot.
    """
    rows = prepared.rows.astype(np.float64)
    fine = fine_bits(prepared.dimension)
    weights, total, kept = start.copy(), np.zeros_like(start), 0
    each = share.part(Fraction(1, newton.rounds))
    for_gradient, for_hessian = each.part(1 - newton.hessian), each.part(newton.hessian)
    sensitivity = Fraction(longest_residual(newton.clip) * STEPS)
    for turn in range(newton.rounds):
        scores = exact_scores(rows, weights, fine)
        residuals = cut(loss.residuals(scores, prepared.classes), newton.clip)
        gradient = noisy_vector(gradient_sum(rows, residuals), for_gradient, random, length=sensitivity) / (
            STEPS * 2.0**RESIDUAL_BITS
        )
        hessian, deviation = noisy_hessian(prepared.rows, scores, for_hessian, random)
        weights = weights - _inverse(hessian, newton.damping * deviation * math.sqrt(prepared.dimension)) @ gradient
        if turn >= newton.rounds // 2:
            total, kept = total + weights, kept + 1
    return np.asarray(total / kept)


def curvatures(scores: Floats) -> Floats:
    """tanh(s/2)/2s of each score: a quarter at 0, and less with distance.

    >>> curvatures(np.array([0.0, 2.0, -2.0])).round(3).tolist()
    [0.25, 0.19, 0.19]
    """
    half = np.abs(scores) / 2
    return np.where(half > _NEAR, np.tanh(half) / (4 * np.maximum(half, _NEAR)), 0.25)


def noisy_hessian(rows: Integers, scores: Floats, share: Share, random: Random | None) -> tuple[Floats, float]:
    """Σ curvature · row rowᵀ with symmetric Gaussian noise, and the deviation of the noise on its diagonal (√½ of it elsewhere).

    Guarantee: the share, for one person more or less. A row times the root of its curvature becomes whole steps z, cut towards
    0, with ‖z‖ ≤ L, half of the longest row: the root is at most a half. The upper triangle changes by zᵢzⱼ; measured by the
    deviations of its own noise, σ on the diagonal and σ/√2 off it, σ = L²/μ, the squared length of the change is
    Σzᵢ⁴/σ² + Σ_{i<j} 2zᵢ²zⱼ²/σ² = ‖z‖⁴/σ² ≤ μ² (Analyze Gauss: Dwork, Talwar, Thakurta & Zhang 2014).

    Exactness: z follows from the person's own row and score, which is exact (`exact_scores`); the products' sums are whole
    numbers below 2⁵³ up to 2²⁷ people, and so the same in any order.
    """
    roots = np.minimum(np.sqrt(curvatures(scores[:, :1])), 0.5)
    bent = np.trunc(rows * roots)
    moments = np.rint(bent.T @ bent).astype(np.int64)
    square = Fraction(LONGEST) ** 4
    upper = np.triu_indices(len(moments), 1)
    noisy = np.zeros(moments.shape)
    noisy[upper] = share.add(moments[upper], l1=1, l2_squared=square / 2, random=random)
    noisy = noisy + noisy.T
    noisy[np.diag_indices(len(moments))] = share.add(np.diag(moments), l1=1, l2_squared=square, random=random)
    return noisy / STEPS**2, math.sqrt(share.variance(l1=1, l2_squared=square)) / STEPS**2


def _inverse(hessian: Floats, least: float) -> Floats:
    """Of the nearest matrix whose eigenvalues are no less than that.

    >>> _inverse(np.diag([4.0, -1.0]), 0.5).tolist()
    [[0.25, 0.0], [0.0, 2.0]]
    """
    values, vectors = np.linalg.eigh(hessian)
    return np.asarray((vectors / np.maximum(values, least)) @ vectors.T)
