"""Sums of vectors whose length is bounded: as whole steps, summed exactly, with noise that fits a ball.

k-means sums the rows of each cluster, principal components the rows' distances from a reference; both change by one vector of a
declared length when a person comes or goes.
"""

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.learn.frame.bounds import row_lengths
from cloister.learn.frame.vectors import finest_steps
from cloister.noise import Random
from cloister.noise.allowance import FLOAT_DELTA, Share
from cloister.privacy.rational import exact_square_root

Floats = npt.NDArray[np.float64]

_BITS = 20
_FINE_BITS = 26
_CHUNK = 1 << 16


def in_ball(rows: Floats, radius: float) -> Floats:
    """Rows drawn in towards the origin until they are no longer than the radius.

    >>> in_ball(np.array([[3.0, 4.0], [0.3, 0.4]]), 1.0).round(6).tolist()
    [[0.6, 0.8], [0.3, 0.4]]
    """
    lengths = row_lengths(rows)
    if not len(lengths) or lengths.max() <= radius:
        return rows
    return np.asarray(rows * np.minimum(1.0, radius / np.maximum(lengths, np.finfo(np.float64).tiny))[:, None])


def steps_in_ball(rows: Floats, *, radius: float, bits: int) -> npt.NDArray[np.int64]:
    """Rows as whole multiples of radius · 2^−bits; the length of each, in steps, is at most `reach_of`(dimension, bits).

    >>> steps_in_ball(np.array([[3.0, 4.0]]), radius=1.0, bits=10).tolist()
    [[614, 819]]
    """
    return np.rint(in_ball(rows, radius) * (2.0**bits / radius)).astype(np.int64)


def projected(rows: Floats, axes: Floats, *, reach: float) -> Floats:
    """Rows, drawn into a ball, by their coordinates along orthonormal axes (columns).

    Both are rounded to 2^−26 first, so that every partial sum is a whole number below 2^53 (its terms' sizes sum to at most the
    product of the lengths) and exact: in floating point, a product's last bits would depend on how many rows it is made for, and
    so one row would move another across a rounding. The rounding lengthens a coordinate's row by at most 1 + √(number of axes ·
    dimension) · 2^−26.

    >>> projected(np.array([[3.0, 4.0]]), np.array([[0.6], [0.8]]), reach=8.0).round(6).tolist()
    [[5.0]]
    """
    whole = np.rint(in_ball(rows, reach) / reach * 2.0**_FINE_BITS)
    return np.asarray(whole @ np.rint(axes * 2.0**_FINE_BITS) * 4.0**-_FINE_BITS * reach)


def reach_of(dimension: int, bits: int) -> Fraction:
    """The greatest length of a row in steps: 2^bits, and what rounding adds: half a step a coordinate, √d/2 at most.

    A millionth of a step more covers what floating point does to the length of a row before it is rounded (some 2^−50 of it).

    >>> float(reach_of(4, 10)) - 1025 < 1e-5
    True
    """
    return Fraction(2**bits) + exact_square_root(Fraction(dimension)) / 2 + Fraction(1, 10**6)


def group_sums(steps: npt.NDArray[np.int64], labels: npt.NDArray[np.int64], groups: int) -> npt.NDArray[np.int64]:
    """The exact sum of the rows of each group.

    Each sum of a chunk is below 2^53, so that the matrix product in floating point, which is fast, is exact.

    >>> group_sums(np.array([[1, 2], [3, 4], [5, 6]]), np.array([0, 2, 0]), 3).tolist()
    [[6, 8], [0, 0], [3, 4]]
    """
    total = np.zeros((groups, steps.shape[1]), dtype=np.int64)
    for first in range(0, len(steps), _CHUNK):
        part, where = steps[first : first + _CHUNK], labels[first : first + _CHUNK]
        chosen = np.zeros((groups, len(part)))
        chosen[where, np.arange(len(part))] = 1.0
        total += (chosen @ part.astype(np.float64)).astype(np.int64)
    return total


def noisy_group_sums(
    rows: Floats,
    labels: npt.NDArray[np.int64],
    groups: int,
    *,
    radius: float,
    share: Share,
    float_delta: float = float(FLOAT_DELTA),
    random: Random | None,
) -> tuple[Floats, float, float]:
    """The sum of the rows of each group, drawn into a ball of that radius, with noise; the variance of each coordinate; and the
    step to which coordinates of rows were rounded.

    Guarantee: what the share says, for one row more or less. It lies in one group and changes that group's sum, in steps, by a
    vector no longer than `reach_of`; the sums of the other groups stay. Under ε each group's sum gets noise of density
    ∝ exp(−ε‖b‖/Δ₂) (`cloister.noise.VectorMechanism`; Chaudhuri, Monteleoni & Sarwate 2011), and parallel composition makes the
    ε of one group that of all. Its coordinates have variance (d + 1)(Δ₂/ε)²; independent Laplace noise would need 2d(Δ₂/ε)²
    for the same ball. Under μ² and ρ the noise is Gaussian (`Share.add`).

    Vector noise is drawn in floating point, and rounded before it is added to whole numbers. What that may add to δ = 0 is
    `VectorMechanism.float_delta`: steps are chosen so coarse that it is at most `float_delta`, 10⁻¹² or less (a sum of other
    groups has the same law in both worlds, so one group counts). Where no step would do (a very small ε, very many dimensions),
    the noise is discrete Laplace noise, and exact.
    """
    dimension = rows.shape[1]
    vectors = finest_steps(share, dimension, lambda bits: reach_of(dimension, bits), float_delta=float_delta)
    bits = _BITS if vectors is None else vectors[0]
    steps, unit = group_sums(steps_in_ball(rows, radius=radius, bits=bits), labels, groups), radius * 2.0**-bits
    if vectors is not None:
        noisy = np.array([vectors[1].release(row, random=random) for row in steps], dtype=np.float64)
        return noisy * unit, vectors[1].variance * unit**2, unit
    reach = reach_of(dimension, bits)
    sizes: dict[str, Any] = {"l1": reach * exact_square_root(Fraction(dimension)), "l2_squared": reach**2}
    return share.add(steps, random=random, **sizes) * unit, share.variance(**sizes) * unit**2, unit


def noisy_total(values: Floats, *, most: float, share: Share, random: Random | None) -> tuple[float, float]:
    """The sum of numbers of [0, most] with noise, and the variance of the noise.

    Guarantee: what the share says; one row changes the sum by at most 2^20 steps of most · 2^−20.
    """
    steps = np.rint(np.clip(values / most, 0.0, 1.0) * 2.0**_BITS).astype(np.int64).sum()
    sizes: dict[str, Any] = {"l1": 2**_BITS, "l2_squared": 4**_BITS}
    unit = most * 2.0**-_BITS
    noisy = share.add(np.array([steps], dtype=np.int64), random=random, **sizes)[0]
    return float(noisy) * unit, share.variance(**sizes) * unit**2
