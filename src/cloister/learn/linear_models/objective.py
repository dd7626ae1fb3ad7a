"""Objective perturbation: a random linear term is added to a regularised loss, and the minimum of it is released."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from cloister.learn.frame.vectors import as_fraction
from cloister.learn.linear_models.losses import Loss
from cloister.learn.linear_models.minimum import minimum, steps_for
from cloister.learn.linear_models.prepared import Prepared
from cloister.noise import Random, VectorMechanism
from cloister.tables.engines.row_sums import STEPS

Floats = npt.NDArray[np.float64]

TOLERANCE = 2.0**-20
"""How long the gradient may be where the solver stops; rows are at most 1 long."""
_FINE = Fraction(1, 64)
"""How much of ε hides that the minimum is only nearly one."""
_MOST = 8
"""From here on more ε for the Jacobian would hardly lower the ridge."""


@dataclass(frozen=True, kw_only=True)
class PerturbationPlan:
    """How ε is split, and what follows from it; all public."""

    noise: Fraction
    jacobian: Fraction
    rounding: Fraction
    ridge: float


def plan(
    loss: Loss, epsilon: Fraction, *, numbers: int, ridge: float = 0.0, split: Fraction = Fraction(4, 5)
) -> PerturbationPlan:
    """Four fifths of ε for the noise, the rest for the Jacobian; a ridge that is larger than needed leaves more for the noise.

    >>> from cloister.learn.linear_models.losses import Logistic
    >>> round(plan(Logistic(), Fraction(1), numbers=6).ridge, 2)
    1.15
    """
    rounding = max(epsilon * _FINE, min(epsilon / 2, as_fraction(math.sqrt(numbers)) / 2**17))
    jacobian = min((epsilon - rounding) * (1 - split), Fraction(_MOST))
    least = _least_ridge(loss, float(jacobian))
    if ridge > least:
        least = ridge
        jacobian = min(jacobian, as_fraction(loss.columns * math.log1p(loss.trace / (loss.columns * ridge)) * (1 + 1e-9)))
    return PerturbationPlan(noise=epsilon - rounding - jacobian, jacobian=jacobian, rounding=rounding, ridge=least)


def perturbed_objective(prepared: Prepared, loss: Loss, random: Random | None, *, plan: PerturbationPlan) -> Floats:
    """The weights w that minimise Σ loss + ½λ‖w‖² + ⟨b, w⟩, nearly.

    Guarantee: ε-DP for one person more or less, ε = noise + jacobian + rounding. Theorem: Chaudhuri, Monteleoni & Sarwate (2011),
    Theorem 9, and Kifer, Smith & Thakurta (2012), for sums and for neighbours of different size; approximate minima: Iyengar et
    al. (2019). Norm needed: ‖row‖₂ ≤ 1 (rows are cut), and residuals whose sizes sum to at most c = `loss.reach`.

    Proof. The objective is λ-strongly convex with a Lipschitz gradient, so b ↔ w is one-to-one and Lipschitz both ways: b(w)
    = −Σ∇loss − λw, and w has the density of b(w) times |det ∂b/∂w|, which exists almost everywhere (Rademacher's theorem and
    the area formula: a second derivative with jumps, as of a cut slope or a rounded hinge, is enough). One person more
    changes b(w) by residual ⊗ row, whose columns' lengths sum to at most c. b has density ∝ exp(−noise·Σ_columns‖b_c‖₂/c)
    (one draw of the vector mechanism for each column): the first factor changes by at most e^noise. The determinant is of
    Σ(second derivatives) + λ; one person adds a positive semidefinite term of rank at most the number r of columns and of
    trace at most t = `loss.trace`, so it grows by a factor between 1 and (1 + t/(rλ))^r (the inequality of the means), at
    most e^jacobian by the choice of λ.
    Near minimum: the solver stops where the gradient is shorter than γ (mostly 2⁻²⁰), checked; there ‖w̃ − w‖ ≤ γ/λ by strong
    convexity. So w̃ is w with an error that may depend on the rows; the vector mechanism for a sensitivity of 2γ/λ hides it.
    The released w̃ is in whole steps. Floating point in b (2⁻⁴⁵ of its length a number) and in the gradient's sum moves w by
    less than γ/λ, and is hidden with it: the solver stops at γ/2, and where b is long (a small ε, many numbers), γ is four
    times b's error; it follows from public facts and the noisy number of people. A 64th of ε is enough for that noise to be
    coarse in steps (its `float_delta`, some 10⁻²⁰, is what computing may add to δ = 0). The solver makes a number of steps that
    follows from the same public facts (`minimum.steps_for`). That it reaches that gradient is what the guarantee rests on. Where
    the check failed all the same, the weights would be 0 and the noise: nothing of the rows but that it failed.
    """
    shape = (prepared.dimension, loss.columns)
    near_enough = max(solvable(prepared, loss), _error_of_the_term(plan, loss, shape))
    reach = as_fraction(loss.reach)
    term = VectorMechanism(epsilon=plan.noise, sensitivity=reach, dimension=shape[0], step=reach / plan.noise)
    linear = term.sample(shape[1], random=random).T
    rows = prepared.rows / STEPS
    ridge = np.full((1, 1), plan.ridge)
    steps = steps_for(loss, ridge=plan.ridge, people=prepared.people)
    weights, near = minimum(rows, prepared.classes, loss, ridge=ridge, linear=linear, tolerance=near_enough / 2, steps=steps)
    if not near:
        weights = np.zeros(shape)
    return _hidden(weights, plan.rounding, 2 * near_enough / plan.ridge, random)


def solvable(prepared: Prepared, loss: Loss) -> float:
    """γ: 2⁻²⁰, or for very many people (by their noisy number) what floating point can still find: the last bit of a weight
    moves the gradient by as much as they bend the loss."""
    return max(TOLERANCE, prepared.people * loss.curvature * 2.0**-42)


def _error_of_the_term(plan: PerturbationPlan, loss: Loss, shape: tuple[int, int]) -> float:
    """Four times what floating point may do to b, whose columns are shorter than (8d + 60) scales but for 2⁻⁸⁰."""
    longest = (8 * shape[0] + 60) * loss.reach / float(plan.noise)
    return 4 * math.sqrt(shape[0] * shape[1]) * 2.0**-45 * longest


def _hidden(weights: Floats, epsilon: Fraction, gap: float, random: Random | None) -> Floats:
    """Weights in steps, with noise for the gap between near minima; rounding to steps adds half a step a number to it."""
    step = gap
    sensitivity = as_fraction(gap / step + math.sqrt(weights.size))
    mechanism = VectorMechanism(epsilon=epsilon, sensitivity=sensitivity, dimension=weights.size)
    bound = 2.0**50
    counted = np.clip(np.rint(weights.ravel() / step), -bound, bound).astype(np.int64)
    return np.asarray(mechanism.release(counted, random=random), dtype=np.float64).reshape(weights.shape) * step


def _least_ridge(loss: Loss, jacobian: float) -> float:
    """The λ for which r·log(1 + t/(rλ)) = jacobian, rounded up."""
    rank = loss.columns
    return loss.trace / (rank * math.expm1(jacobian / rank)) * (1 + 1e-9)
