"""Sums of products: how often a length is exceeded, and the second moments of rows within a ball, with noise.

What a person does to XᵀX is bounded by the square of the length of their row. Declared bounds allow a length of √d, and rows are
usually much shorter: so a length is bought first, with a histogram, and longer rows count with less weight.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.learn.frame.vectors import finest_steps
from cloister.noise import Random
from cloister.noise.allowance import FLOAT_DELTA, Share
from cloister.privacy.rational import exact_square_root

Floats = npt.NDArray[np.float64]

_BITS = 16
_CHUNK = 1 << 16
_ROOT_BITS = 40
_ROOT = math.isqrt(2 << (2 * _ROOT_BITS))
"""√2, rounded down, in steps of 2^−_ROOT_BITS."""
LENGTHS = 17


@dataclass(frozen=True, kw_only=True, eq=False)
class Products:
    """XᵀX, and the variances of the noise in an entry on its diagonal and off it."""

    matrix: Floats
    diagonal: float = 0.0
    off: float = 0.0

    @property
    def whole(self) -> float:
        """The expected squared Frobenius norm of the noise."""
        d = len(self.matrix)
        return d * self.diagonal + d * (d - 1) * self.off


def noisy_lengths(parts: list[tuple[Floats, float]], *, share: Share, random: Random | None) -> list[Floats]:
    """Histograms of several numbers that are at least 0, each with the most that it may be: how many rows lie in
    (most·2^(−(i+1)/2), most·2^(−i/2)], for i = 0, 1, …, and in the last all that are less.

    Guarantee: what the share says, for one row more or less: it moves one count of each histogram by 1, so l1 and l2² are their
    number.
    """
    exact = []
    for lengths, most in parts:
        with np.errstate(divide="ignore"):
            places = np.floor(-2 * np.log2(lengths / most)) if most > 0 else np.full(len(lengths), LENGTHS - 1.0)
        exact.append(np.bincount(np.clip(places, 0, LENGTHS - 1).astype(np.int64), minlength=LENGTHS))
    noisy = share.add(np.array(exact, dtype=np.int64), l1=len(parts), l2_squared=len(parts), random=random)
    return list(noisy)


def radius_within(histogram: Floats, most: float, *, beyond: float | Floats, loss: float = 0.0) -> float:
    """The least length r of most·2^(−i/2) that about so many rows exceed, and by no more than loss·r in all. Post-processing.

    >>> [round(radius_within(np.array([0.0, 1.0, 50.0] + [0.0] * 14), 2.0, beyond=5.0, loss=most), 3) for most in (0.0, 10.0)]
    [1.0, 0.707]
    """
    above, ends = np.cumsum(histogram)[:-1] > beyond, 2.0 ** (-np.arange(LENGTHS) / 2)
    far = np.where(np.arange(LENGTHS) < (above.argmax() if above.any() else LENGTHS), 0.0, histogram)
    over = (2.0**-0.25 * np.cumsum(far * ends)[:-1] / ends[1:] - np.cumsum(far)[:-1]) > loss  # rows amid their cells
    return float(most * 2.0 ** (-(int(over.argmax()) if over.any() else len(over)) / 2))


def exact_products(rows: Floats) -> npt.NDArray[Any]:
    """XᵀX of whole numbers of at most 2^_BITS, exactly: each sum of a chunk is below 2^53. Rows are given in steps.

    >>> exact_products(np.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [[10, 14], [14, 20]]
    """
    total = np.zeros((rows.shape[1], rows.shape[1]), dtype=np.int64)
    for first in range(0, len(rows), _CHUNK):
        part = rows[first : first + _CHUNK]
        total += (part.T @ part).astype(np.int64)
    return total


def noisy_products(
    rows: Floats, *, radius: float, share: Share, float_delta: float = float(FLOAT_DELTA), random: Random | None
) -> Products:
    """XᵀX of rows no longer than the radius, with noise.

    Guarantee: what the share says, for one row more or less. Rows are whole steps of radius·2^−16, rounded towards 0, so that
    they get no longer; a row v adds vvᵀ, of Frobenius norm ‖v‖² ≤ 4^16 squared steps. That is the length of what it adds to the
    d(d+1)/2 numbers of the upper triangle, those off the diagonal times √2 (rounded down). These are rounded to whole coarse
    steps of radius²·2^−b, in whole numbers of any size (`coarse_steps`): a row moves them by a vector no longer than 2^b +
    √(d(d+1)/2), since rounding moves each number by at most half a step in either world. Under ε the noise is that of
    `VectorMechanism`, whose floating point adds at most `float_delta`, 10⁻¹² or less, to δ = 0 (b is chosen so; where none will
    do, and for one number, it is discrete Laplace noise, and exact); under μ² and ρ it is Gaussian (`Share.add`).
    """
    d = rows.shape[1]
    exact = exact_products(np.trunc(rows * (2.0**_BITS / radius * (1 - 2.0**-40))))
    upper = np.triu_indices(d, 1)
    size = d + len(upper[0])
    vectors = finest_steps(share, size, lambda bits: _reach(size, bits), float_delta=float_delta)
    bits = _BITS if vectors is None else vectors[0]
    whole = coarse_steps(exact, bits)
    reach = _reach(size, bits)
    if vectors is not None:
        noisy, variance = np.asarray(vectors[1].release(whole, random=random), dtype=np.float64), vectors[1].variance
    else:
        sizes: dict[str, Any] = {"l1": reach * exact_square_root(Fraction(size)), "l2_squared": reach**2}
        noisy, variance = share.add(whole, random=random, **sizes), share.variance(**sizes)
    unit = radius**2 * 2.0**-bits
    matrix = np.zeros((d, d))
    matrix[upper] = noisy[d:] / np.sqrt(2.0)
    matrix = matrix + matrix.T
    matrix[np.diag_indices(d)] = noisy[:d]
    return Products(matrix=matrix * unit, diagonal=variance * unit**2, off=variance * unit**2 / 2)


def coarse_steps(products: npt.NDArray[np.int64], bits: int) -> npt.NDArray[np.int64]:
    """The diagonal, then what is above it times √2, rounded from steps of 4^−_BITS to steps of 2^−bits.

    Exact but for the rounding: √2 is a fraction that is a little too small.

    >>> coarse_steps(np.array([[4 << 16, 1 << 16], [1 << 16, 0]]), 16).tolist()
    [4, 0, 1]
    """
    upper = np.triu_indices(len(products), 1)
    numbers = np.concatenate([np.diag(products).astype(object) << _ROOT_BITS, products[upper].astype(object) * _ROOT])
    shift = _ROOT_BITS + 2 * _BITS - bits
    return np.asarray((numbers + (1 << (shift - 1))) >> shift).astype(np.int64)


def _reach(size: int, bits: int) -> Fraction:
    return Fraction(2**bits) + exact_square_root(Fraction(size))
