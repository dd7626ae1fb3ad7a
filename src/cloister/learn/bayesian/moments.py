"""What naive Bayes and discriminants are made of: how many rows each class has, and the sums and sums of squares of each feature.

Everything is worked out in c = (x − middle) / (width/2), in [−1, 1]. From arrays the sums are of whole steps, and exact; from a
table the engine makes them (`class_tables.py`). Both give the same plain object, which says how large the noise in it is.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from cloister.learn.frame.bounds import Box
from cloister.learn.frame.cube import CubeNoise
from cloister.noise import Random, Share
from cloister.privacy.rational import exact_square_root

Floats = npt.NDArray[np.float64]

BITS = 20
_CHUNK = 1 << 14


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassMoments:
    """By class (a row) and feature (a column): rows with a value, Σc and Σc², and the variances of the noise in them.

    Variances are one number, or one for each feature; without noise all are 0.
    """

    sizes: Floats
    """How many rows each class has."""
    counts: Floats
    """How many of them have a value, by feature."""
    sums: Floats
    squares: Floats
    size_variance: float = 0.0
    count_variance: Floats | float = 0.0
    sum_variance: Floats | float = 0.0
    square_variance: Floats | float = 0.0
    covariance: Floats | float = 0.0
    """Of the noise in Σc² with that in the count."""
    sum_covariance: Floats | float = 0.0
    """Of the noise in Σc with that in the count."""
    size_step: float = 0.0
    """The step of the noise in the sizes, where it is felt: a discrete law is wider than the one on the line by half of it."""
    step: Floats | float = 0.0
    """That of the noises of each feature."""

    @property
    def features(self) -> int:
        """How many."""
        return int(self.sums.shape[1])


def class_moments(X: Floats, y: npt.NDArray[np.int64], classes: int, box: Box) -> ClassMoments:
    """Without noise, in floating point.

    >>> from cloister.learn.frame.bounds import box_of
    >>> found = class_moments(np.array([[0.0], [1.0], [1.0]]), np.array([0, 1, 1]), 2, box_of((0, 1), features=1))
    >>> found.sizes.tolist(), found.sums.tolist(), found.squares.tolist()
    ([1.0, 2.0], [[-1.0], [2.0]], [[1.0], [2.0]])
    """
    centred = box.centred(X)
    chosen = (y[:, None] == np.arange(classes)).astype(np.float64)
    sizes = chosen.sum(axis=0)
    return ClassMoments(
        sizes=sizes, counts=np.repeat(sizes[:, None], X.shape[1], axis=1), sums=chosen.T @ centred, squares=chosen.T @ centred**2
    )


def class_sums(X: Floats, y: npt.NDArray[np.int64], classes: int, box: Box, *, pure: bool) -> npt.NDArray[np.int64]:
    """Exact whole numbers, a row a class: 2^BITS for each of its rows, then Σc, then Σ of the coordinate of c² (see
    `noisy_class_moments`), in steps of 2^−BITS.

    Each sum of a chunk is below 2^53, so that the matrix product in floating point, which is fast, is exact.
    """
    features, one = X.shape[1], 2.0**BITS
    total = np.zeros((classes, 1 + 2 * features), dtype=np.int64)
    factor, labels = (2.0 if pure else 1.0), np.arange(classes)[:, None]
    for first in range(0, len(X), _CHUNK):
        steps = np.empty((1 + 2 * features, len(X[first : first + _CHUNK])))
        numbers, squares = steps[1 : 1 + features], steps[1 + features :]
        steps[0] = one
        np.clip(box.centred(X[first : first + _CHUNK]).T, -1.0, 1.0, out=numbers)
        np.multiply(numbers, numbers, out=squares)
        squares -= 0.5
        squares *= factor * one
        numbers *= one
        np.rint(steps, out=steps)
        chosen = (y[first : first + _CHUNK] == labels).astype(np.float64)
        total += (chosen @ steps.T).astype(np.int64)
    return total


def noisy_class_moments(
    X: Floats, y: npt.NDArray[np.int64], classes: int, box: Box, *, share: Share, random: Random | None
) -> ClassMoments:
    """With noise.

    Guarantee: what the share says, for one row more or less. A row is in one class, and changes there alone the vector (1, c₁, …,
    c_d, q₁, …, q_d), in steps; the classes compose in parallel.

    Under ε, q = 2c² − 1: each coordinate lies in [−1, 1], so its steps in ±2^BITS, also after rounding. What a row changes lies
    in that cube, so noise for the cube fits (`CubeNoise`). Independent Laplace noise would need a share of ε for each number.

    Under μ² and ρ, q = c² − ½: c² + q² ≤ 5/4, so in squared length a row moves the steps by at most (1 + d·5/4) · 4^BITS, and
    by the rounding of 2d coordinates (half a step each) a little more, which is added. The noise is Gaussian (`Share.add`).
    """
    pure = share.currency == "epsilon"
    features = X.shape[1]
    exact = class_sums(X, y, classes, box, pure=pure)
    one = 2.0**BITS
    if pure:
        noise = CubeNoise(dimension=1 + 2 * features, reach=2**BITS, epsilon=share.epsilon)
        noisy, variance = noise.release(exact, random=random), noise.variance / one**2
    else:
        l2_squared = reach_squared(features)
        sizes = {"l1": Fraction((1 + 2 * features) * 2**BITS), "l2_squared": l2_squared}
        noisy, variance = share.add(exact, random=random, **sizes), share.variance(**sizes) / one**2
    noisy = noisy / one
    counts = np.repeat(noisy[:, :1], features, axis=1)
    factor = 2.0 if pure else 1.0
    return ClassMoments(
        sizes=noisy[:, 0],
        counts=counts,
        sums=noisy[:, 1 : 1 + features],
        squares=noisy[:, 1 + features :] / factor + counts / 2,
        size_variance=variance,
        count_variance=variance,
        sum_variance=variance,
        square_variance=variance * (1 / factor**2 + 1 / 4),
        covariance=variance / 2,
    )


def reach_squared(features: int) -> Fraction:
    """The greatest squared length, in steps, of what one row adds to its class under μ² (see `noisy_class_moments`).

    The exact vector is no longer than √(1 + 5d/4) · 2^BITS, and rounding moves it by at most √(2d)/2.

    >>> float(reach_squared(4) / 4**BITS) - 6 < 1e-5
    True
    """
    exact = exact_square_root(1 + Fraction(5 * features, 4)) * 2**BITS
    length: Fraction = exact + exact_square_root(Fraction(2 * features)) / 2
    return length * length


def noise_of_mean(moments: ClassMoments, counts: Floats, means: Floats) -> Floats:
    """The variance of the noise in Σc/n, to first order: (Var Σc − 2 mean Cov + mean² Var n) / n²."""
    whole = moments.sum_variance - 2 * means * moments.sum_covariance + means**2 * moments.count_variance
    return np.maximum(whole, 0.0) / counts**2


def noise_of_square(moments: ClassMoments, counts: Floats, squares: Floats) -> Floats:
    """The variance of the noise in Σc²/n, to first order."""
    whole = moments.square_variance - 2 * squares * moments.covariance + squares**2 * moments.count_variance
    return np.maximum(whole, 0.0) / counts**2


def least_count(moments: ClassMoments) -> float:
    """The number of rows below which a class is not told from an empty one: one standard deviation of the noise, at least 1."""
    return max(math.sqrt(moments.size_variance), math.sqrt(np.max(moments.count_variance, initial=0.0)), 1.0)
