"""From noisy second moments to coefficients that never explode. Post-processing: it costs nothing.

Let A = XᵀX and b = Xᵀy, both noisy. If the coefficients were drawn with variance τ² in each direction, then along an
eigenvector of A with eigenvalue λ the noisy b is λw and noise (variance s_b²), while λ itself is off by about s_A. The best
linear guess of w is then f·b with

    f = τ²λ / (τ²(λ² + s_A²) + s_b²),

which is 1/λ without noise, and at most 1/(2 s_A) with it: an eigenvalue that the noise could have made says little, a negative
one nothing. τ² follows from the released b (how much longer it is than noise would make it, and one standard deviation of
that), s_A and s_b are public. So the noise itself says how much is regularised, and an indefinite matrix needs no other repair.
Where most of A is noise, it is drawn towards the multiple of the identity that has its trace (Ledoit & Wolf 2004, with the
noise in place of the sampling error).
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cloister.learn.decomposition.products import Products

Floats = npt.NDArray[np.float64]

_LEAST_TAU, _MOST_TAU = 1e-3, 1e100
"""Where no eigenvalue is above 0, τ has nothing to go by: it stays a number, and no coefficient becomes none."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Solution:
    """Coefficients, and the standard deviation of the noise in each."""

    weights: Floats
    noise: Floats


def solved(products: Products, with_target: Floats, target_variance: float, *, most: float, alpha: float = 0.0) -> Solution:
    """The coefficients. `target_variance`: of the noise in each number of b; `most`: the largest
    that the trace of A can be; `alpha`: what a ridge adds to the diagonal.

    The noise of the coefficients is, to first order, f·(N_b − N_A·w) along each eigenvector: what is known of it from the
    released numbers alone. It does not speak of what the drawing together leaves out.

    >>> exact = Products(matrix=np.array([[4.0, 0.0], [0.0, 1.0]]))
    >>> solved(exact, np.array([4.0, 2.0]), 0.0, most=10.0).weights.tolist()
    [1.0, 2.0]
    """
    d = len(products.matrix)
    values, vectors = repaired(products, most)
    along = vectors.T @ with_target
    spread = products.off * d
    with np.errstate(all="ignore"):  # all of it is noisy, and of any size
        squares = float((values**2).sum())
        longer = float(along @ along) - (d + math.sqrt(2 * d)) * target_variance
        tau = min(max(float(longer / max(squares, np.finfo(np.float64).tiny)), _LEAST_TAU), _MOST_TAU)
        ridged = values + alpha
        below = tau * (ridged * values + spread) + target_variance
        factors = tau * values / np.maximum(below, np.finfo(np.float64).tiny)
        weights = vectors @ (factors * along)
        moved = target_variance + products.off * float(weights @ weights)
        noise = np.sqrt((vectors**2 * factors**2).sum(axis=1) * moved)
    return Solution(weights=weights, noise=noise)


def repaired(products: Products, most: float) -> tuple[Floats, Floats]:
    """The eigenvalues of a noisy XᵀX, none below 0, and the eigenvectors; drawn towards their mean as far as the noise dominates.
    `most` is the largest that the trace can be.

    >>> repaired(Products(matrix=np.array([[1.0, 0.0], [0.0, -3.0]]), diagonal=100.0, off=50.0), 8.0)[0].tolist()
    [0.004, 0.004]
    """
    d, whole = len(products.matrix), products.whole
    values, vectors = np.linalg.eigh((products.matrix + products.matrix.T) / 2)
    if whole > 0:
        mean = float(np.clip(values.sum() / d, most / d * 1e-3, most / d))
        apart = float(((values - mean) ** 2).sum())
        values = mean + max(0.0, 1 - whole / max(apart, whole * 1e-9)) * (values - mean)
    return np.maximum(values, 0.0), vectors
