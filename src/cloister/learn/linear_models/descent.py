"""Private gradient descent: noise on the whole gradient's sum, a fixed number of rounds, the later half averaged.

The rounds, the step and the noise follow from the promise, the number of features and classes, and the noisy number of people.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from cloister.learn.frame.vectors import noisy_vector
from cloister.learn.linear_models.losses import Logistic, Loss
from cloister.learn.linear_models.prepared import Prepared, RowSource
from cloister.noise import Random, Share
from cloister.tables.engines.row_sums import RESIDUAL_BITS, STEPS, cut, exact_scores, fine_bits, gradient_sum, longest_residual

Floats = npt.NDArray[np.float64]
MOST_ASKED = 40
"""Steps whose sums are asked of an engine: each is a question to all sites."""
_MANY = 30
_CLEAR = 400
"""How strong the signal is from where on noise is the lesser fault."""


@dataclass(frozen=True, kw_only=True)
class Descent:
    """How to go down: `rounds` steps of `step` over the curvature, with momentum; residuals are cut to a length of `clip`."""

    rounds: int
    step: float
    momentum: float
    clip: float = 0.7


def plan(*, people: float, dimension: int, mu: float, most: int = 300) -> Descent:
    """More rounds and momentum where the signal is large against the noise: people · μ/√d; not more than `most`.

    >>> plan(people=1437, dimension=65, mu=0.25).rounds, plan(people=32561, dimension=108, mu=0.25).rounds
    (20, 208)
    """
    signal = people * mu / math.sqrt(dimension)
    rounds = max(5, min(most, round(20 * (signal / 45) ** 0.82)))
    return Descent(rounds=rounds, step=4.0 if rounds < 80 else 8.0, momentum=0.8 if rounds < 80 else 0.9)


def plan_pure(*, people: float, numbers: int, epsilon: float, most: int = 60) -> Descent:
    """Fewer rounds: under pure ε each of them costs its share in full.

    >>> plan_pure(people=3_000, numbers=6, epsilon=1).rounds, plan_pure(people=10**6, numbers=6, epsilon=1).rounds
    (11, 60)
    """
    signal = people * epsilon / numbers
    return Descent(rounds=max(1, min(most, 60, round(math.sqrt(signal) / 2))), step=4.0, momentum=0.8)


def planned(prepared: Prepared, loss: Loss, share: Share, *, most: int = 300) -> Descent:
    """By what the share is counted in."""
    people, dimension = prepared.people, prepared.dimension
    if share.currency == "epsilon":
        signal = people * float(share.epsilon) / dimension
        found = plan_pure(people=people, numbers=dimension * loss.columns, epsilon=float(share.epsilon), most=most)
    else:
        signal = people * math.sqrt(share.mu_squared / dimension)
        found = plan(people=people, dimension=dimension, mu=math.sqrt(share.mu_squared), most=most)
    # residuals of three classes and more begin over the usual length: cut there, a rare class is told too rare
    clear = signal >= _CLEAR if not loss.separate else isinstance(loss, Logistic)
    return replace(found, clip=loss.length) if clear else found


def descend(
    prepared: Prepared,
    loss: Loss,
    share: Share,
    random: Random | None,
    *,
    descent: Descent,
    start: Floats,
    sums: RowSource | None = None,
) -> Floats:
    """Weights after the descent; `sums` gives the noisy gradients where the rows are elsewhere.

    Guarantee: every round releases one sum over people, residual ⊗ row, with noise for one person more or less. Norm needed:
    ‖row‖₂ ≤ 1 (rows are cut) and ‖residual‖₂ ≤ clip (residuals are cut), so the sum has an L2 sensitivity of clip. T rounds with
    σ = clip·√T/μ are μ-Gaussian private together (Dong, Roth & Su 2022, Corollary 3.3: each round chosen by the earlier ones);
    under ε each round is the vector mechanism at ε/T; under ρ each costs ρ/T. No theorem about the loss is used: with cut
    residuals the steps need not even be those of a gradient.

    Exactness: rows and residuals are whole steps (2⁻¹⁴, 2⁻¹²), cut towards 0; their products are added up exactly
    (`gradient_sum`), and what is noised is that whole number. A residual is a function of its own row and of released weights:
    scores are sums of whole numbers below 2⁵³, so the order of summation, and so the other people, cannot show in them.
    """
    rows, fine = prepared.rows.astype(np.float64), fine_bits(prepared.dimension)
    weights, before, total, kept = start.copy(), start.copy(), np.zeros_like(start), 0
    each = share.part(Fraction(1, descent.rounds))
    sensitivity = Fraction(longest_residual(descent.clip) * STEPS)
    speed = _step(prepared, descent) / loss.curvature / prepared.people
    for turn in range(descent.rounds):
        ahead = weights + descent.momentum * (weights - before)
        if sums is None:
            residuals = cut(loss.residuals(exact_scores(rows, ahead, fine), prepared.classes), descent.clip)
            noisy = noisy_vector(gradient_sum(rows, residuals), each, random, length=sensitivity)
        else:
            how = {"centre": tuple(prepared.centre.tolist()), "radius": prepared.radius, "clip": descent.clip}
            at = tuple(_limited(ahead, fine).ravel().tolist())
            noisy = sums.noisy("gradient", each, weights=at, step=turn + 1, steps=descent.rounds, **how)
        noisy = noisy / (STEPS * 2.0**RESIDUAL_BITS)
        before, weights = weights, ahead - speed * noisy
        if turn >= descent.rounds // 2:
            total, kept = total + weights, kept + 1
    return np.asarray(total / kept) if kept else weights


def _step(prepared: Prepared, descent: Descent) -> float:
    """A step so short that many of them do not swing about the minimum, where their mean has slopes several times too large.

    With momentum β they die down where step · λ < (2 + 2β)/(1 + 2β), λ being the largest eigenvalue of the rows' second moment.
    It lies between the mean square of a feature, or of the constant, and the trace; a tenth less than what their middle allows is
    taken. A few rounds don't come to swing, and need all of their step to arrive.
    """
    if descent.rounds < _MANY:
        return descent.step
    constant, momentum = prepared.constant**2, descent.momentum
    steepest = (max(constant, prepared.square / max(prepared.dimension - 1, 1)) + constant + prepared.square) / 2
    return min(descent.step, 0.9 * (2 + 2 * momentum) / (1 + 2 * momentum) / steepest)


def _limited(weights: Floats, fine: int) -> Floats:
    """What `exact_scores` makes of weights: so they are as short to send as they count, and never too large to be taken."""
    return np.asarray(np.clip(np.rint(weights * 2.0**16), -(2.0**fine), 2.0**fine) / 2.0**16)
