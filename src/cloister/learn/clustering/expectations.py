"""One round of a mixture of normal groups: what each row adds to the groups' moments, with noise, and what is made of that.

Rows are scaled to [−1, 1]. Each group looks at them in its own units, (row − mean)/deviation, so its noise is as narrow as the
group is.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.learn.bayesian.bayes import kept_share, prior_of
from cloister.learn.frame.bounds import row_products
from cloister.noise import Gaussian, Random
from cloister.noise.allowance import Share

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

BITS = 20
_CHUNK = 1 << 14
_LESS = 1 - 2.0**-30
_SQUARES = math.sqrt(0.5)
"""What (u² − 1) weighs: then it spreads as much as u."""
_NARROWEST, _WIDEST = 1e-3, 1.0
"""A deviation, over half a feature's declared width."""
_FARTHEST_STEP, _LEAST_RATIO, _MOST_RATIO = 3.0, 0.04, 9.0
"""In a round a mean moves by at most so many deviations, and a variance by at most such factors."""
_SAMPLE = 4096


@dataclass(frozen=True, kw_only=True, eq=False)
class Groups:
    """Weights, means and variances, a row a group; released or public. Of features that are scaled to [−1, 1]."""

    weights: Floats
    means: Floats
    variances: Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class Moments:
    """Noisy sums of a round in each group's own units: of people, of u, of (u² − 1); and the variance of their noise."""

    counts: Floats
    sums: Floats
    squares: Floats
    variance: float
    square_variance: float


def log_densities(X: Floats, groups: Groups) -> Floats:
    """log(weight · density) of each row in each group, each row by itself.

    >>> one = Groups(weights=np.ones(1), means=np.zeros((1, 1)), variances=np.ones((1, 1)))
    >>> log_densities(np.zeros((1, 1)), one).round(3).tolist()
    [[-0.919]]
    """
    found = np.empty((len(X), len(groups.weights)))
    for place, (weight, mean, variance) in enumerate(zip(groups.weights, groups.means, groups.variances, strict=True)):
        constant = math.log(max(weight, 1e-300)) - 0.5 * float(np.log(2 * math.pi * variance).sum())
        found[:, place] = constant - 0.5 * row_products((X - mean) ** 2, 1 / variance)
    return found


def responsibilities(logs: Floats) -> Floats:
    """What part of each row each group has; the parts of a row sum to 1.

    >>> responsibilities(np.array([[0.0, 0.0]])).tolist()
    [[0.5, 0.5]]
    """
    parts = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(parts / parts.sum(axis=1, keepdims=True))


def reach_of(dimension: int, *, pure: bool) -> Fraction:
    """How long a row's (1, u, (u² − 1)/√2) may be before it is drawn in: in the sum of sizes where the promise is pure, else in
    the root of the sum of squares. Most rows of a normal group are shorter. A whole number of quarters, so it is exact.

    >>> reach_of(2, pure=True), reach_of(2, pure=False)
    (Fraction(9, 1), Fraction(17, 4))
    """
    wide = 1 + 1.5 * dimension + 3.5 * math.sqrt(dimension) if pure else math.sqrt(1 + 2 * dimension + 8 * math.sqrt(dimension))
    return Fraction(math.ceil(4 * wide), 4)


def row_moments(X: Floats, groups: Groups, *, reach: Fraction, pure: bool) -> Integers:
    """The sums over rows, exact, a row a group: responsibility · (1, u, (u² − 1)/√2), drawn in to `reach`, in steps of 2⁻²⁰.

    One row changes them by at most reach · 2²⁰ in the sum of sizes (`pure`), or that squared in the sum of squares: in a group
    by responsibility · reach at most, and responsibilities sum to 1. A step is cut towards 0, after a scaling that leaves a
    margin of 2⁻³⁰, so neither rounding nor floating point lengthens it. What a row adds follows from that row and the groups
    alone, which are released: whoever else is there.

    >>> one = Groups(weights=np.ones(1), means=np.zeros((1, 1)), variances=np.ones((1, 1)))
    >>> (row_moments(np.array([[1.0]]), one, reach=Fraction(9), pure=True) / 2**20).round(3).tolist()
    [[1.0, 1.0, 0.0]]
    """
    dimension, most = X.shape[1], float(reach)
    total = np.zeros((len(groups.weights), 2 * dimension + 1), dtype=np.int64)
    for first in range(0, len(X), _CHUNK):
        part = np.ascontiguousarray(X[first : first + _CHUNK])
        shares = responsibilities(log_densities(part, groups))
        for place, (mean, variance) in enumerate(zip(groups.means, groups.variances, strict=True)):
            own = _own(part, mean, variance)
            scale = shares[:, place] * _drawn_in(own, most, pure=pure) * (_LESS * 2.0**BITS)
            total[place] += np.trunc(own * scale[:, None]).astype(np.int64).sum(axis=0)
    return total


def noisy_moments(X: Floats, groups: Groups, *, share: Share, random: Random | None) -> Moments:
    """A round's release.

    Guarantee: what the share says, for one row more or less; the groups are public or released. Sensitivity: `row_moments`.
    Noise: discrete Laplace under ε, rounded Gaussian under μ² and ρ (`Share.add`). After Park, Foulds, Chaudhuri & Welling
    (2017), DP-EM, who noise the moments of every round; that a row is seen in its group's units, and drawn in there, is ours.
    """
    dimension, pure = X.shape[1], share.currency == "epsilon"
    reach = reach_of(dimension, pure=pure)
    sizes: dict[str, Any] = {"l1": reach * 2**BITS, "l2_squared": reach**2 * 4**BITS}
    steps = row_moments(X, groups, reach=reach, pure=pure)
    noisy = share.add(steps, random=random, **sizes) / 2.0**BITS
    variance = share.variance(**sizes) / 4.0**BITS
    squares = noisy[:, dimension + 1 :] / _SQUARES
    shift = _missing_squares(dimension, reach, pure)
    return Moments(
        counts=noisy[:, 0],
        sums=noisy[:, 1 : dimension + 1],
        squares=squares - shift * noisy[:, :1],
        variance=variance,
        square_variance=variance / _SQUARES**2,
    )


def moved(groups: Groups, found: Moments) -> Groups:
    """The groups after a round: post-processing of released numbers.

    A move is kept by as much as it is longer than noise alone would make it (James & Stein 1961, positive part), for means and
    for variances; so a group that is all noise stays where it was. Variances stay above 0, means within the bounds.
    """
    noise = math.sqrt(found.variance)
    counts = np.maximum(found.counts, max(2 * noise, 1.0))[:, None]
    steps = found.sums / counts
    kept = kept_share((steps**2).mean(axis=1), found.variance / counts[:, 0] ** 2)[:, None]
    steps = np.clip(kept * steps, -_FARTHEST_STEP, _FARTHEST_STEP)
    growth = found.squares / counts - steps**2
    kept = kept_share((growth**2).mean(axis=1), found.square_variance / counts[:, 0] ** 2)[:, None]
    ratio = np.clip(1 + kept * growth, _LEAST_RATIO, _MOST_RATIO)
    return Groups(
        weights=prior_of(found.counts, max(noise, 1.0)),
        means=np.clip(groups.means + np.sqrt(groups.variances) * steps, -1.0, 1.0),
        variances=np.clip(groups.variances * ratio, _NARROWEST**2, _WIDEST**2),
    )


def _own(X: Floats, mean: Floats, variance: Floats) -> Floats:
    """(1, u, (u² − 1)/√2) of each row, u in the units of a group."""
    u = (X - mean) / np.sqrt(variance)
    return np.concatenate([np.ones((len(X), 1)), u, (u**2 - 1) * _SQUARES], axis=1)


def _drawn_in(own: Floats, most: float, *, pure: bool) -> Floats:
    """The factor of each row, at most 1."""
    ones = np.ones(own.shape[1])
    lengths = row_products(np.abs(own), ones) if pure else np.sqrt(row_products(own**2, ones))
    return np.asarray(np.minimum(1.0, most / lengths))


@functools.lru_cache(maxsize=64)
def _missing_squares(dimension: int, reach: Fraction, pure: bool) -> float:
    """The mean of u² − 1 over a normal group whose far rows are drawn in, so count for less: a public number, below 0, by rows
    that are drawn from the normal law once and for all."""
    normal = Gaussian(scale=1, sensitivity=1, step="0.0001").sample(_SAMPLE * dimension, random=Random.deterministic(1))
    rows = np.asarray(normal, dtype=np.float64).reshape(_SAMPLE, dimension)
    rows /= np.sqrt((rows**2).mean(axis=0))
    factors = _drawn_in(_own(rows, np.zeros(dimension), np.ones(dimension)), float(reach), pure=pure)
    return float((factors[:, None] * (rows**2 - 1)).mean() / factors.mean())
