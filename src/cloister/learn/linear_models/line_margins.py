"""Between which values the coefficients of a line lie, from the noisy sums that were measured.

Let w be the coefficients without noise: Mw = c, for the exact sums M and c of products. Known are A = M + N and b = c + e, with
noises N and e, and perhaps with something left out of them (rows cut short), which is E and f. So whatever the noise does,

    Aw − b = r,    r = (N + E)w − (e + f),

and of the right side much is known: by a few rare events, which take a quarter of what may be missed, ‖N‖ ≤ K, ‖Nw − e‖ ≤
k‖w‖ + l, ‖E‖ ≤ x and ‖f‖ ≤ y. Let λ be the least eigenvalue of A. Where λ ≤ max(k, K) + x nothing is known: the noise alone
could have made A, and the margin has no end. Else w = A⁻¹(b + r) is at most R = (‖A⁻¹b‖ + (l + y)/λ)/(1 − (k + x)/λ) long, and
for any direction u, with v = A⁻¹u,

    |uᵀw − uᵀA⁻¹b| = |vᵀr| ≤ |vᵀ(Nw − e)| + ‖v‖(xR + y).

The first term is at most ‖v‖(kR + l). It is also |vₒᵀ(Nw − e) + (v − vₒ)ᵀ(Nw − e)| for vₒ = (A − N)⁻¹u, which no noise has
moved: a sum of noises, of a deviation of at most ‖vₒ‖·√(2oR² + s²), where o and s² are the variances of a number in N off the
diagonal (half of that on it, if larger) and in e; and ‖v − vₒ‖ ≤ K‖v‖/(λ − K), since v − vₒ = −(A − N)⁻¹Nv. The rest of what
may be missed is that sum's. The lesser of the two is taken: both hold unless a rare event happens. (That a set of w is found by
what Aw − b may be is Fieller's way, 1954, for more numbers than one.)

From rows, sums are taken of rows moved by a released centre m and height h, z = c − m and t − h. The line that belongs to them
has an intercept a, and Σzzᵀw − Σz(t − h) = −aΣz, where a = (Σ(t − h) − wᵀΣz)/n: how long both are is known from the noisy sums
and n. What cutting left out is bounded by how many rows are beyond the radii, by the noisy histogram of lengths.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.learn.frame.margins import LEAST_MISS, miss_of, wider_quantile
from cloister.stored import Stored

Floats = npt.NDArray[np.float64]

_RARE = 0.25
_EVENTS = 8


@dataclass(frozen=True, kw_only=True, eq=False)
class Moved:
    """How well the centre and the height are known that rows were moved by: noisy sums of what is left, with the deviations of
    their noise, and the least number of rows."""

    centre: Floats
    height: float
    rows: float
    rows_noise: float
    features: Floats
    features_noise: Floats
    target: float
    target_noise: float

    def ends(self, q: float) -> tuple[float, float, float]:
        """The longest sum of the features, the largest of the target, and the fewest rows."""
        longest = float(np.linalg.norm(np.abs(self.features) + q * self.features_noise))
        return longest, abs(self.target) + q * self.target_noise, self.rows - q * self.rows_noise


@dataclass(frozen=True, kw_only=True, eq=False)
class Cut:
    """How many rows were beyond the radii: noisy histograms with one deviation, and what a row of each place may have lost of
    the products of features, and of those with the target."""

    lengths: Floats
    targets: Floats
    noise: float
    products: Floats
    with_target: Floats
    beyond: Floats

    @classmethod
    def of(cls, histograms: list[Floats], noise: float, *, longest: float, farthest: float, radius: float, reach: float) -> Cut:
        """A row of length ℓ > radius keeps (radius/ℓ)² of its product with z of length ℓ and t of size `farthest` at most; a
        target beyond the reach is cut off, in a row that is then no longer than the radius."""
        ends = 2.0 ** (-np.arange(len(histograms[0])) / 2)
        lengths, targets = longest * ends, farthest * ends
        lost = np.maximum(lengths**2 - radius**2, 0.0)
        lost[lost < 1e-9 * radius**2] = 0.0
        beyond = radius * np.maximum(targets - reach, 0.0)
        beyond[beyond < 1e-9 * radius * reach] = 0.0
        return cls(
            lengths=histograms[0],
            targets=histograms[1],
            noise=noise,
            products=lost,
            with_target=np.divide(lost, lengths, out=np.zeros_like(lost), where=lengths > 0) * farthest,
            beyond=beyond,
        )

    @classmethod
    def lacking(cls, rows: float, size: int) -> Cut:
        """So many rows have no part in some of the numbers, each of which they move by 1 at most."""
        none, whole = np.zeros(1), np.full(1, float(size))
        return cls(lengths=np.full(1, rows), targets=none, noise=0.0, products=whole, with_target=np.sqrt(whole), beyond=none)

    def most(self, q: float) -> tuple[float, float]:
        """The most that was lost of the products, and of those with the target."""
        lost = float(self.lengths @ self.products) + q * self.noise * float(np.linalg.norm(self.products))
        weights = np.concatenate([self.with_target, self.beyond])
        counts = np.concatenate([self.lengths, self.targets])
        other = float(counts @ weights) + q * self.noise * float(np.linalg.norm(weights))
        return max(lost, 0.0), max(other, 0.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Known:
    """A⁻¹, and λ, R, k, l, x and y of the text above."""

    inverse: Floats
    least: float
    longest: float
    near: float
    far: float
    lost: float
    other: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Evidence:
    """All that was measured, with the noise in it: A and b of the text above, and what was moved and cut.

    >>> found = Evidence(matrix=np.diag([100.0, 400.0]), with_target=np.array([50.0, 0.0]), entry=1.0, whole=6.0, target=1.0)
    >>> [round(float(end), 3) for end in found.interval(np.array([1.0, 0.0]), 0.95)]
    [0.444, 0.556]
    >>> Evidence(matrix=np.eye(1), with_target=np.ones(1), entry=1.0, whole=2.0, target=1.0).interval(np.ones(1), 0.95)
    (-inf, inf)
    """

    matrix: Floats
    with_target: Floats
    entry: float
    """o: the variance of the noise in a number off the diagonal, or half of that on it."""
    whole: float
    """The expected squared Frobenius norm of the noise."""
    target: float
    """s²: the variance of the noise in a number of b."""
    constant: bool = False
    """Whether the first of the coefficients is the intercept, of a 1 in each row."""
    moved: Moved | None = None
    cut: Cut | None = None

    def coefficients(self, confidence: float, *, ridge: Floats) -> tuple[Floats, Floats]:
        """The least and the greatest of each, the intercept left out. `ridge`: what is added to the diagonal of M."""
        first = int(self.constant)
        ends = [self.interval(each, confidence, ridge=ridge) for each in np.eye(len(self.matrix))[first:]]
        low, high = np.array(ends).T
        return low, high

    def intercept(self, origin: Floats, confidence: float, *, ridge: Floats) -> tuple[float, float]:
        """The least and the greatest that the line is at the origin."""
        if self.constant:
            return self.interval(np.concatenate([[1.0], origin]), confidence, ridge=ridge)
        if self.moved is None:
            return 0.0, 0.0
        low, high = self.interval(origin - self.moved.centre, confidence, ridge=ridge)
        known = self._known(confidence, ridge)
        features, target, rows = self.moved.ends(self._rare(confidence))
        a = math.inf if known is None else (target + features * known.longest) / rows
        return self.moved.height + low - a, self.moved.height + high + a

    def interval(self, direction: Floats, confidence: float, *, ridge: Floats | None = None) -> tuple[float, float]:
        """Between which ends uᵀw lies, with that confidence."""
        with np.errstate(all="ignore"):
            known = self._known(confidence, ridge)
            if known is None:
                return -math.inf, math.inf
            v = known.inverse @ direction
            length, norm = float(np.linalg.norm(v)), self._rare(confidence) * math.sqrt(self.whole)
            miss = miss_of(confidence)
            apart = norm / (known.least - norm)
            noise = wider_quantile(1 - miss * (1 - _RARE)) * math.sqrt(2 * self.entry * known.longest**2 + self.target)
            jointly = known.near * known.longest + known.far
            wide = length * (min((1 + apart) * noise + apart * jointly, jointly) + known.lost * known.longest + known.other)
            middle = float(v @ self.with_target)
        return (middle - wide, middle + wide) if math.isfinite(middle + wide) else (-math.inf, math.inf)

    def _known(self, confidence: float, ridge: Floats | None) -> _Known | None:
        """None where the noise alone could have made A."""
        rare, d = self._rare(confidence), len(self.matrix)
        matrix = (self.matrix + self.matrix.T) / 2
        if ridge is not None:
            matrix = matrix + np.diag(np.concatenate([np.zeros(int(self.constant)), ridge]))
        if not np.isfinite(matrix).all() or not np.isfinite(self.with_target).all():
            return None
        values, vectors = np.linalg.eigh(matrix)
        least, norm = float(values[0]), rare * math.sqrt(self.whole)
        each = math.sqrt(d) * self._quantile(confidence, d)
        near, far = min(math.sqrt(2 * self.entry) * each, norm), math.sqrt(self.target) * each
        lost, other = (0.0, 0.0) if self.cut is None else self.cut.most(rare)
        if self.moved is not None:
            features, target, rows = self.moved.ends(rare)
            if rows <= 0:
                return None
            lost, other = lost + features**2 / rows, other + features * target / rows
        if least <= max(near, norm) + lost:
            return None
        inverse = (vectors / values) @ vectors.T
        longest = (float(np.linalg.norm(inverse @ self.with_target)) + (far + other) / least) / (1 - (near + lost) / least)
        return _Known(inverse=inverse, least=least, longest=longest, near=near, far=far, lost=lost, other=other)

    def _rare(self, confidence: float) -> float:
        """How many deviations one number of a rare event may be off: one of all entries of N, or of the sums."""
        return self._quantile(confidence, len(self.matrix) * (len(self.matrix) + 1) // 2)

    def _quantile(self, confidence: float, numbers: int) -> float:
        miss = miss_of(confidence) * _RARE / _EVENTS
        return wider_quantile(1 - max(miss / numbers, LEAST_MISS))

    # ── stored with a model ──────────────────────────────────────────────────────────────────────

    def written(self) -> dict[str, Any]:
        """As plain numbers and arrays."""
        parts = {name: value for name, value in _STORED.told(self).items() if value is not None}
        return {name: _INSIDE[name].told(value) if name in _INSIDE else value for name, value in parts.items()}

    @classmethod
    def read(cls, written: Mapping[str, Any]) -> Evidence:
        """The other way."""
        return _STORED.made({name: _INSIDE[name].made(value) if name in _INSIDE else value for name, value in written.items()})


_STORED = Stored(Evidence, "evidence", "matrix", "with_target", "entry", "whole", "target", "constant", "moved", "cut")
_INSIDE: Mapping[str, Stored[Any]] = {
    "moved": Stored(
        Moved, "moved", "centre", "height", "rows", "rows_noise", "features", "features_noise", "target", "target_noise"
    ),
    "cut": Stored(Cut, "cut", "lengths", "targets", "noise", "products", "with_target", "beyond"),
}
"""As a model holds them."""
