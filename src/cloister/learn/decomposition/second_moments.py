"""Second moments of rows in a ball: exact whole numbers, and three noises that are symmetric matrices."""

import math
from contextlib import suppress
from fractions import Fraction
from functools import cache

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.learn.frame.ball import reach_of, steps_in_ball
from cloister.noise import Random, Share, WishartMechanism

Floats = npt.NDArray[np.float64]

BITS = 12
_CHUNK = 1 << 16


def moment_steps(rows: Floats, *, radius: float, bits: int = BITS) -> npt.NDArray[np.int64]:
    """Σ zzᵀ of the rows in steps of radius · 2^−bits. Each chunk's sums are below 2^53, so exact in floating point.

    >>> moment_steps(np.array([[0.5, 0.0], [0.0, 1.0]]), radius=1.0, bits=4).tolist()
    [[64, 0], [0, 256]]
    """
    features = rows.shape[1]
    total = np.zeros((features, features), dtype=np.int64)
    for first in range(0, len(rows), _CHUNK):
        part = steps_in_ball(rows[first : first + _CHUNK], radius=radius, bits=bits).astype(np.float64)
        total += (part.T @ part).astype(np.int64)
    return total


def gaussian_moments(moments: npt.NDArray[np.int64], share: Share, random: Random | None) -> tuple[Floats, float]:
    """With Gaussian noise, σ on the diagonal and σ/√2 off it, and σ² (Analyze Gauss: Dwork, Talwar, Thakurta & Zhang 2014).

    Guarantee: the share, for one row z more or less with ‖z‖ ≤ B. Proof, as of `cloister.noise.SymmetricGaussian`: the upper
    triangle changes by zᵢzⱼ; measured by the deviations of its own noise, σ = B²/μ, the change has the squared length
    Σzᵢ⁴/σ² + Σ_{i<j} 2zᵢ²zⱼ²/σ² = ‖z‖⁴/σ² ≤ μ². The noise here is rounded Gaussian noise (`Share.add`), which is counted in μ²
    exactly, where a discrete Gaussian is counted in ρ.
    """
    square = reach_of(len(moments), BITS) ** 4
    diagonal = share.add(np.diag(moments), l1=1, l2_squared=square, random=random)
    upper = np.triu_indices(len(moments), 1)
    outer = share.add(moments[upper], l1=1, l2_squared=square / 2, random=random)
    return _symmetric(diagonal, outer), share.variance(l1=1, l2_squared=square)


def laplace_moments(moments: npt.NDArray[np.int64], share: Share, random: Random | None) -> tuple[Floats, float]:
    """With discrete Laplace noise on the upper triangle, and its variance. Pure, and exact.

    Guarantee: the share, for one row z more or less with ‖z‖ ≤ B. Proof: Σ_{i≤j} |zᵢzⱼ| = (‖z‖₁² + ‖z‖²)/2 ≤ (d + 1)B²/2.
    """
    size = len(moments)
    most = Fraction(size + 1, 2) * reach_of(size, BITS) ** 2
    upper = np.triu_indices(size)
    noisy = share.add(moments[upper], l1=most, l2_squared=most**2, random=random)
    full = np.zeros(moments.shape)
    full[upper] = noisy
    return full + np.triu(full, 1).T, share.variance(l1=most, l2_squared=most**2)


@cache
def wishart_bits(*, features: int, epsilon: Fraction, delta: Fraction) -> int:
    """The finest steps of rows at which what floating point adds to δ (`WishartMechanism.float_delta`) is at most δ."""
    for bits in (7, 6, 5, 4, 3):
        with suppress(InvalidParameter):  # steps so fine against the noise that it would not draw them
            if _wishart(features, epsilon, delta, bits).float_delta <= delta:
                return bits
    raise InvalidParameter(
        f"Wishart noise for {features} features is invalid",
        why="its noise is floating point, which by the proven bound could cost more than δ",
        instead='method="gaussian"',
    )


def wishart_moments(
    rows: Floats, *, radius: float, epsilon: Fraction, delta: Fraction, random: Random | None
) -> tuple[Floats, int, float, float]:
    """Σ zzᵀ with Wishart noise less its mean, its degrees of freedom k, its scale B² (it is B²(W − k·1)), and the step to which
    rows were rounded.

    Guarantee: (ε, 2δ), one row more or less, ‖z‖ ≤ B; δ by `WishartMechanism.tightest` (see its proof), and at most δ again by
    what floating point may do to the noise.
    """
    features = rows.shape[1]
    bits = wishart_bits(features=features, epsilon=epsilon, delta=delta)
    mechanism = _wishart(features, epsilon, delta, bits)
    noisy = mechanism.release(moment_steps(rows, radius=radius, bits=bits), random=random)
    centred = np.asarray(noisy, dtype=np.float64) - float(mechanism.shift) * np.eye(features)
    step = radius * 2.0**-bits
    scale = math.sqrt(mechanism.variance / mechanism.degrees) * step**2
    return centred * step**2, mechanism.degrees, scale, step


@cache
def _wishart(features: int, epsilon: Fraction, delta: Fraction, bits: int) -> WishartMechanism:
    return WishartMechanism.tightest(dimension=features, epsilon=epsilon, delta=delta, bound=reach_of(features, bits), step=1)


def _symmetric(diagonal: Floats, outer: Floats) -> Floats:
    full = np.zeros((len(diagonal), len(diagonal)))
    full[np.triu_indices(len(diagonal), 1)] = outer
    full = full + full.T
    full[np.diag_indices(len(diagonal))] = diagonal
    return full
