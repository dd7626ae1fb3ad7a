"""Between which values the variances along principal components lie, from the noisy sums that were measured.

Let T be the exact sum of squares of the rows along a released component (about the released mean m, drawn into the ball), n*
their number: the variance is T/(n* − 1). Known are a noisy square within t of T and a noisy number within u of n*, so the
variance lies between (square − t)/(n + u − 1) and (square + t)/(n − u − 1); and between 0 and B²·n/(n − 1), for rows within B of
m.

- Squares that were measured along given directions have each the noise's own quantile for t.
- Eigenvalues of a matrix M + N are each within ‖N‖ of those of M (Weyl), and so is uᵀ(M + N)u for whatever u was chosen by
  looking at N. For the symmetric Gaussian matrix the greatest eigenvalue λ has Eλ ≤ √(2d)·σ and is σ-Lipschitz in standard
  normal numbers, so P(λ > σ(√(2d) + s)) ≤ e^(−s²/2), and so for minus the least. For Laplace noise of scale b on the upper
  triangle N = Σ XᵢⱼEᵢⱼ, where the Eᵢⱼ² are projections that add up to d·1: by the matrix Laplace transform (Tropp 2012)
  P(λ > x) ≤ d·e^(−sx)·(1 − s²b²)^(−d) for every s < 1/b. Wishart noise is B²(GᵀG − k·1) for a k × d matrix G of standard
  normal numbers, whose singular values lie within √k ± (√d + s) (Davidson & Szarek 2001).
- About their own mean the squares are less by n*(uᵀ(m − m*))²; how far m may be from m* follows from the noise of its sum and
  of n.

Where columns were divided by s ≤ 1, uᵀS(M + N)Su is off by at most ‖Su‖²‖N‖ along any u, with S = diag(s); a row of the ball, or
its rounding, reaches ‖Su‖ times as far along u. Eigenvalues of SMS are within ‖N‖ of the noisy ones, which may be more.

The ball was made of a noisy spread. Where that may be less than half of what it is without noise, all squared distances
(`place.Spread.beyond`) may be of rows that were drawn in, and a square may be greater by that much.

Rows were rounded: that moves Z, whose ‖Zu‖² or whose squared singular values the squares are, by a matrix R of ‖R‖ ≤ √n·r, for
rows that move by r at most. So roots of squares move by no more than that.

Half of what may be missed is for the squares, a twentieth each for the mean and the spread, the rest for the number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from cloister.learn.bayesian.class_margins import fieller
from cloister.learn.clustering.noisy_mean import Spread
from cloister.learn.frame.margins import LEAST_MISS, miss_of, normal_quantile, wider_quantile
from cloister.stored import Stored

Floats = npt.NDArray[np.float64]
Law: TypeAlias = Literal["each laplace", "each gaussian", "laplace", "gaussian", "wishart", "table"]

_SQUARES, _MEAN = 0.5, 0.05
_SLOPES = np.concatenate([np.linspace(0.01, 0.99, 99), 1 - np.geomspace(1e-2, 1e-6, 40)])


def norm_of(law: Law, scale: float, *, features: int, miss: float, degrees: int = 0) -> float:
    """How far the noise may have moved any square, but for a probability of `miss`. `scale`: that of Laplace noise, σ, of Wishart
    noise B²; of a table the widest 95 % margin of a covariance.

    >>> [round(norm_of("gaussian", 1.0, features=d, miss=0.05), 2) for d in (1, 2, 100)]
    [1.96, 4.72, 16.86]
    """
    if law == "table":  # ‖N‖ is at most d times the largest entry; beyond 95 % no law here falls slower than a Laplace one
        entries = features * (features + 1) // 2
        return features * scale * max(1.0, wider_quantile(1 - max(miss / entries, LEAST_MISS)) / normal_quantile(0.95))
    if law == "each gaussian" or (law == "gaussian" and features == 1):
        return normal_quantile(1 - miss) * scale
    if law == "each laplace" or (law == "laplace" and features == 1):
        return -math.log(miss) * scale
    further = math.sqrt(2 * math.log(2 / miss))
    if law == "gaussian":
        return (math.sqrt(2 * features) + further) * scale
    if law == "laplace":
        return scale * float(((math.log(2 * features / miss) - features * np.log1p(-(_SLOPES**2))) / _SLOPES).min())
    root, width = math.sqrt(degrees), math.sqrt(features) + further
    return scale * max((root + width) ** 2 - degrees, degrees - max(root - width, 0.0) ** 2)


@dataclass(frozen=True, kw_only=True, eq=False)
class Variances:
    """Noisy squares and number of rows, and the laws of their noises.

    >>> found = Variances(squares=np.array([500.0]), law="each laplace", scale=2.0, features=2, size=1000.0, size_noise=8.0,
    ...     radius=1.0)
    >>> [round(float(end[0]), 3) for end in found.interval(0.95)]
    [0.489, 0.512]
    """

    squares: Floats
    law: Law
    scale: float
    features: int
    size: float
    size_noise: float
    """The variance of the noise in the number."""
    radius: float
    degrees: int = 0
    mean: tuple[Floats, Floats, Floats, Floats] | None = None
    """Noisy sums of the coordinates about the middle of the box, the variances of their noise, the released mean less the middle,
    and half of the box's widths; None where the mean is known."""

    corner: float = math.inf
    """The farthest that a row can be from the released mean, squared."""
    rounded: float = 0.0
    """How far rounding may have moved a row."""
    rounded_square: float = 0.0
    """By how much rounding may have changed a row's square along a component, beside that."""
    spread: tuple[float, ...] | None = None
    """The `place.Spread` that the ball was made of; None where it holds all rows."""
    stretch: Floats | None = None
    """‖Su‖² of each component u, S as above; None where it is 1."""

    def interval(self, confidence: Any, along: Floats | None = None) -> tuple[Floats, Floats]:
        """The least and the greatest variance along each component (`along`), each by itself with that confidence."""
        miss = miss_of(confidence)
        t = norm_of(self.law, self.scale, features=self.features, miss=miss * _SQUARES, degrees=self.degrees)
        if self.law == "table":  # covariances already
            return np.maximum(self.squares - t, 0.0), np.minimum(self.squares + t, 2 * self.corner)
        beside = 0.0 if self.mean is None else self._beside(miss * _MEAN, along)
        u = wider_quantile(1 - miss * (1 - _SQUARES - 2 * _MEAN)) * math.sqrt(self.size_noise) + 0.5
        fewest, most = max(self.size - u, 2.0), max(self.size + u, 2.0)
        lost = 0.0 if self.spread is None else Spread(*self.spread).beyond(miss * _MEAN)
        stretch = np.ones(1) if self.stretch is None else self.stretch
        bound = (self.corner if lost else self.radius**2 * stretch) * fewest / (fewest - 1)
        off, root = (t + most * self.rounded_square) * stretch, np.sqrt(most * stretch) * self.rounded
        least = np.maximum(np.sqrt(np.maximum(self.squares - off, 0.0)) - root, 0.0) ** 2
        greatest = (np.sqrt(np.maximum(self.squares + off, 0.0)) + root) ** 2
        low = least / (most - 1) - beside * fewest / (fewest - 1)
        return np.maximum(low, 0.0), np.minimum((greatest + lost * stretch) / (fewest - 1), bound)

    def margin(self, shown: Floats, confidence: Any, along: Floats | None = None) -> Floats:
        """The way from what is shown to the farther end."""
        low, high = self.interval(confidence, along)
        return np.asarray(np.maximum(np.maximum(shown - low, high - shown), 0.0))

    def deviations(self, deviation: Any) -> Floats:
        """To first order, of squares with that deviation over the number of rows less one."""
        rest = max(self.size - 1, 1.0)
        deviation = deviation * (1.0 if self.stretch is None else self.stretch)
        return np.asarray(np.sqrt(deviation**2 + (self.squares / rest) ** 2 * self.size_noise) / rest)

    def _beside(self, miss: float, along: Floats | None) -> Any:
        """The greatest ‖m − m*‖², or (uᵀ(m − m*))² where columns were divided, by Fieller's intervals (`class_margins.py`)."""
        assert self.mean is not None
        sums, noise, moved, half = self.mean
        q = wider_quantile(1 - max(miss / len(sums), LEAST_MISS))
        count, of_count = np.array(self.size), np.array((math.sqrt(self.size_noise) + 0.5 / q) ** 2 if self.size_noise else 0.0)
        low, high = fieller(sums, count, q=q, of_top=noise, of_count=of_count, both=np.zeros(1), ends=(-half, half))
        off = np.maximum(moved - low, high - moved)
        return (off**2).sum() if along is None or self.stretch is None else (np.abs(along) @ off) ** 2

    # ── stored with a model ──────────────────────────────────────────────────────────────────────

    def written(self) -> dict[str, Any]:
        """As plain values."""
        return {name: value for name, value in _STORED.told(self).items() if value is not None}

    @classmethod
    def read(cls, written: Mapping[str, Any]) -> Variances:
        """The other way."""
        return _STORED.made(written)


_STORED = Stored(
    Variances,
    "variances",
    *("squares", "law", "scale", "features", "size", "size_noise", "radius", "degrees", "mean", "corner", "spread"),
    *("rounded", "rounded_square", "stretch"),
)
"""As a model holds it."""
