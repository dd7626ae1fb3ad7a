"""Output perturbation: the minimum of a strongly regularised loss, with noise for how far one person can move it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cloister.learn.frame.margins import normal_quantile
from cloister.learn.frame.vectors import as_fraction, noisy_vector
from cloister.learn.linear_models.losses import Loss
from cloister.learn.linear_models.minimum import minimum, steps_for
from cloister.learn.linear_models.objective import solvable
from cloister.learn.linear_models.prepared import STEPS, Prepared
from cloister.noise import Random, VectorMechanism
from cloister.noise.allowance import Share

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Perturbed:
    """Released weights, and what was added to them: the scale of its length (under ε) or σ."""

    weights: Floats
    scale: float
    pure: bool

    def margin(self, confidence: float) -> float:
        """Within this length of the released weights, with that confidence, lie those without noise (of the same ridge).

        Under ε for the vector of all weights at once; under μ² for each weight apart.
        """
        if self.pure:
            mechanism = VectorMechanism(epsilon=1, sensitivity=1, dimension=self.weights.size, step="0.001")
            return mechanism.margin(confidence) * self.scale
        return normal_quantile(confidence) * self.scale


def perturbed_output(prepared: Prepared, loss: Loss, share: Share, random: Random | None, *, ridge: float) -> Perturbed:
    """The minimum of Σ loss + ½λ‖w‖², with noise.

    Guarantee: what the share says, for one person more or less. Theorem: Chaudhuri, Monteleoni & Sarwate (2011), Corollary 8,
    for sums: the minimum moves by at most c/λ, where c bounds ‖residual‖₂·‖row‖₂. Norm needed: ‖row‖₂ ≤ 1 (rows are cut). Their
    2/(nΛ) is the same for means, Λ = λ/n, and neighbours that replace a person: two moves of 1/λ each. With sums and an
    absolute λ the number n, which is private here, is not needed. Proof: both objectives are λ-strongly convex and differ by one
    term whose gradient is at most c long; at the two minima, λ‖w − w′‖ ≤ c.
    The solver's stop adds 2γ/λ, γ as `solvable` says (checked; else the weights are 0), and rounding to steps √m/2 steps for
    each of the two worlds, m the number of weights.
    """
    rows = prepared.rows / STEPS
    shape, near_enough = (prepared.dimension, loss.columns), solvable(prepared, loss)
    weights, near = minimum(
        rows,
        prepared.classes,
        loss,
        ridge=np.full((1, 1), ridge),
        linear=np.zeros(shape),
        tolerance=near_enough / 2,
        steps=steps_for(loss, ridge=ridge, persons=prepared.persons),
    )
    if not near:
        weights = np.zeros(shape)
    moved = (loss.length + 2 * near_enough) / ridge
    step = moved / 4096
    sensitivity = as_fraction(4096 * (1 + 1e-9) + math.sqrt(weights.size))
    bound = 2.0**50
    counted = np.clip(np.rint(weights.ravel() / step), -bound, bound).astype(np.int64)
    noisy = noisy_vector(counted, share, random, length=sensitivity)
    scale = float(share.scale(l1=sensitivity, l2_squared=sensitivity**2))
    released = noisy.reshape(shape) * step
    return Perturbed(weights=released, scale=scale * step, pure=share.currency == "epsilon")
