"""The half-width of a sum of many independent noises, from their characteristic functions; it never errs on the narrow side.

Let S be the sum. What is wanted is an m with P(|S| ≤ m) ≥ c, close to the least one. Four steps, each with its error counted
against us:

1. *Reach.* Chernoff: P(|S| > x) ≤ 2·exp(K(λ) − λx) for every λ > 0, where K is the sum of the logarithms of the moment generating
   functions (for a discrete Gaussian at most σ²λ²/2: Canonne, Kamath & Steinke 2020). The least x over some λ at which that is
   (1 − c)/1000 is the reach L; it grows with the sum, however many noises are summed.
2. *Smoothing.* U is the sum of r uniform variables on [−h/r, h/r], so |U| ≤ h, and |S| ≤ |S + U| + h.
3. *Fourier.* Let W be S + U wrapped around a circle of length P = 2(L + h). For symmetric laws
   P(|W| ≤ m) = 2m/P + Σ_k (2/πk)·φ(2πk/P)·sin(2πkm/P), with φ the characteristic function of S + U: the product of known
   functions, one for each kind of noise, to the power of how many there are. P(|S + U| ≤ m) is less by at most the
   P(|S| > L) of step 1.
4. *Truncation.* Beyond K terms |φ| ≤ (rP/(2πkh))^r, so what is left out is at most (2/πr)·(rP/(2πKh))^r; h is chosen so that
   this is (1 − c)/1000.

So m is read off at c plus these two errors and the rounding of floats, and h is added, which is some tenth of a per cent of m. No
atom is moved, so neither the number of noises nor their lattices add any error.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_HARMONICS = 1 << 15
_POINTS = 4 * _HARMONICS
_PART = 1e-3  # of what may be missed, for each of two errors
_FLOATS = 1e-14  # what rounding adds up to
_SUREST = 5e-13  # a miss below this is left to step 1 alone
_GONE = -42.0  # the logarithm of a factor that decides nothing
_TRIES = 128
_SLOPES = 40.0  # in standard deviations: steeper than any λ that is the best one here
_UP = 1 + 1e-12
_NIL = 350.0  # half of the inverse of a scale that makes no noise


class Kind(NamedTuple):
    """Equal noises: the law, its scale, the size of its weight, and how many of them there are. Of Laplace noises that may be a
    fraction: the law whose transform is that power of theirs."""

    gaussian: bool
    scale: float
    weight: float
    number: float

    @property
    def variance(self) -> float:
        """Of all of them, at least."""
        return self.number * (self.weight * self.scale) ** 2 * (1.0 if self.gaussian else 2.0)


def reach(kinds: Sequence[Kind], miss: float) -> float:
    """An x with P(|S| > x) ≤ miss, by Chernoff's bound.

    >>> 33.0 < reach([Kind(False, 10.0, 1.0, 1)], 0.05) < 60.0
    True
    >>> reach([Kind(False, 1e-320, 1.0, 1)], 0.05)
    0.0
    """
    kinds = [kind for kind in kinds if kind.weight > 0 and not _is_nil(kind.scale)]
    wide = math.sqrt(math.fsum(kind.variance for kind in kinds))
    if wide == 0:
        return 0.0
    steepest = min([1 / (kind.scale * kind.weight) for kind in kinds if not kind.gaussian], default=math.inf)
    top = min(steepest * (1 - 1e-6), _SLOPES / wide)
    slopes = np.concatenate([np.geomspace(0.02 / wide, top, _TRIES), np.linspace(top / 2, top, _TRIES)])
    with np.errstate(divide="ignore", invalid="ignore"):
        logarithms = sum((kind.number * _log_moment(kind, slopes) for kind in kinds), np.zeros_like(slopes))
        bounds = (math.log(2 / miss) + logarithms) / slopes
    return float(np.nanmin(bounds))


def _is_nil(scale: float) -> bool:
    """Whether a noise of that scale is never anything but 0, for all that floats can tell; it may be too small to divide by."""
    return scale <= 0 or 0.5 / scale > _NIL


def chance_of_one(gaussian: bool, scale: float) -> float:
    """The probability that such a noise is not 0, or a little more.

    >>> round(chance_of_one(False, 1.0), 4), chance_of_one(True, 0.1) < 1e-20
    (0.5379, True)
    """
    if _is_nil(scale):
        return 0.0
    if not gaussian:
        return 2 / (1 + math.exp(1 / scale)) * _UP
    if scale > 2:
        return 1.0
    twice = 2 * math.fsum(math.exp(-((k / scale) ** 2) / 2) for k in range(1, 80))
    return twice / (1 + twice) * _UP


@lru_cache(maxsize=4096)
def width_of_sum(kinds: tuple[Kind, ...], confidence: float, harmonics: int = _HARMONICS) -> float:
    """An m with P(|S| ≤ m) ≥ confidence; with fewer harmonics a little wider.

    >>> 875.0 < width_of_sum((Kind(False, 10.0, 1.0, 1000),), 0.95) < 880.0
    True
    """
    miss = 1 - confidence
    if miss < _SUREST:
        return reach(kinds, max(miss, 1e-300))
    error, points = miss * _PART, 4 * harmonics
    far = reach(kinds, error)
    if far == 0:
        return 0.0
    power = max(2, round(-math.log(error)))
    slack = power / (2 * math.pi * harmonics * (error * math.pi * power / 2) ** (1 / power))  # h in units of P
    period = 2 * far / (1 - 2 * slack)
    numbers = np.arange(1, harmonics + 1)
    places = numbers * (2 * math.pi / period)
    numbers, logarithms = _product(kinds, numbers, places)
    turns = numbers * (2 * math.pi * slack / power)
    heights = np.exp(logarithms) * (np.sin(turns) / turns) ** power * 2 / (math.pi * numbers)
    waves = np.zeros(points // 2 + 1, dtype=np.complex128)
    waves[numbers] = -0.5j * points * heights
    inside = np.fft.irfft(waves, points)[: points // 2 + 1] + np.arange(points // 2 + 1) * (2 / points)
    enough = inside >= confidence + 2 * error + _FLOATS
    bound = reach(kinds, miss)
    return bound if not enough.any() else min(bound, (int(enough.argmax()) / points + slack) * period)


def _product(kinds: Sequence[Kind], numbers: npt.NDArray[np.int64], places: Floats) -> tuple[npt.NDArray[np.int64], Floats]:
    """The logarithm of the characteristic function, where it is not as good as 0: the widest noises first, so that few places are
    left for the others."""
    logarithms = np.zeros(len(places))
    for kind in sorted(kinds, key=lambda each: each.variance, reverse=True):
        logarithms += kind.number * _log_transform(kind, places)
        left = logarithms > _GONE
        if not left.all():
            numbers, places, logarithms = numbers[left], places[left], logarithms[left]
    return numbers, logarithms


def _log_transform(kind: Kind, places: Floats) -> Floats:
    """The logarithm of the characteristic function of one noise; both laws have a positive one.

    Discrete Laplace: 1/(1 + sin²(θ/2)/sinh²(1/2b)). Discrete Gaussian: Σ_k e^(−k²/2σ²)·cos kθ over the same at θ = 0, which by
    Poisson's summation is Σ_j e^(−σ²(θ − 2πj)²/2) over the same.
    """
    if _is_nil(kind.scale):
        return np.zeros(len(places))
    turns = kind.weight * places
    if not kind.gaussian:
        found: Floats = -np.log1p((np.sin(turns / 2) / math.sinh(0.5 / kind.scale)) ** 2)
        return found
    square = kind.scale**2
    if square <= 1:
        most = 4 + math.ceil(9 * kind.scale)  # what is left out is below 10⁻¹⁷
        heights = [math.exp(-(step**2) / (2 * square)) for step in range(1, most)]
        before, sine, twice = np.zeros(len(turns)), np.sin(turns / 2), 2 * np.cos(turns / 2)
        moved = np.zeros(len(turns))
        for height in heights:  # sin (k+1)x = 2·cos x·sin kx − sin (k−1)x: one sine and one cosine for all steps
            moved += height * sine**2
            before, sine = sine, twice * sine - before
        moved *= 4 / (1 + 2 * math.fsum(heights))
        return np.asarray(np.log1p(-moved))
    turns = turns - 2 * math.pi * np.rint(turns / (2 * math.pi))
    others = sum(np.exp(-2 * math.pi * square * each * (math.pi * each - turns)) for each in (-2, -1, 1, 2))
    whole = 2 * sum(math.exp(-2 * math.pi**2 * square * each**2) for each in (1, 2))
    return np.asarray(-square * turns**2 / 2 + np.log1p(others) - math.log1p(whole))


def _log_moment(kind: Kind, slopes: Floats) -> Floats:
    """The logarithm of the moment generating function of one noise, or a bound on it; NaN or ∞ where there is none."""
    turns = kind.weight * slopes
    if kind.gaussian:
        return np.asarray((kind.scale * turns) ** 2 / 2)
    half = 0.5 / kind.scale
    ratio = np.exp(turns / 2 - half) * np.expm1(-turns) / math.expm1(-2 * half)
    return np.asarray(-np.log1p(-(ratio**2)))
