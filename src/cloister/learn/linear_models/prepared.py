"""Rows made ready for a linear classifier: scaled, centred, and cut to a length that noise can be made for.

Bounds alone say little of where the rows lie: pixels of 0–16 have a mean far from 8, a capital gain of 0–99,999 is nearly always
0. So a fifth to a quarter of the allowance buys how many people each class has, how long a row is, and where the rows' middle
is; noise for what is left is then a half to a tenth as wide.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from cloister.learn.frame.bounds import Box, Rows
from cloister.learn.frame.vectors import noisy_vector
from cloister.noise import Random
from cloister.noise.allowance import Allowance, Share

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

BITS = 14
STEPS = 2**BITS
"""A row as whole steps: the longest row has this length."""

_EDGES = 2.0 ** (-np.arange(18, -1, -1) / 3)
_LEAST_PERSONS = 10.0
_WORTH = 0.5
"""How long the noise of a centre may be, over the radius; else only its level is bought: the mean over all features."""
_NEARLY_ALL = 0.95
_MOST = 0.7
"""How many rows are not cut: around a bought centre the few that lie far off may be."""
_INTERCEPT = 0.5
"""The constant feature, over the radius of the others."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Prepared:
    """Rows as whole steps in the unit ball, and the public facts that lead there and back.

    `rows` has a last column for the intercept. Its rows are at most `STEPS` long. Everything else is released, or public.
    """

    rows: Integers
    classes: Integers
    counts: Floats
    """Noisy persons a class, at least 1 each."""
    count_variance: float
    """Of each."""
    square: float
    """Noisy mean of the squared lengths of `rows` without their constant, 1 being the longest; between 0 and 1."""
    box: Box
    centre: Floats
    radius: float

    @property
    def persons(self) -> float:
        """Noisy, at least 10."""
        return max(float(self.counts.sum()), _LEAST_PERSONS)

    @property
    def dimension(self) -> int:
        """Features and the intercept."""
        return len(self.centre) + 1

    @property
    def constant(self) -> float:
        """The last column."""
        return float(math.floor(STEPS * _share_of_intercept()) / STEPS)

    def unscaled(self, weights: Floats) -> tuple[Floats, Floats]:
        """Weights of prepared rows as coefficients and intercepts of the features as they came, a row a column of scores."""
        scale = _share_of_rest() / self.radius
        inner = weights[:-1] * scale
        coefficients = inner * (2 / self.box.width)[:, None]
        shift = self.centre @ inner + self.box.middle @ coefficients
        return np.asarray(coefficients.T), np.asarray(weights[-1] * self.constant - shift)

    def scaled_margins(self, margin: float, columns: int) -> Floats:
        """What a margin of every prepared weight is for the coefficients."""
        each = margin * _share_of_rest() / self.radius * 2 / self.box.width
        return np.tile(each, (columns, 1))


def prepare(rows: Rows, classes: int, allowance: Allowance, random: Random | None) -> Prepared:
    """Buy class counts, a radius, and a centre: of each feature where that is worth its price, else one level for all features.

    Guarantee: each part is a sum in which one person more or less counts once: a class (sensitivity 1), a bin of lengths
    (sensitivity 1), a vector of length at most 1 (L2 sensitivity 1, in whole steps). What is bought next depends on what was
    released before, never on rows: adaptive composition, which the allowance counts.
    """
    y = np.asarray(rows.y, dtype=np.int64)
    X = rows.box.centred(rows.X)
    share = allowance.share("class counts", "0.05")
    counted = np.bincount(y, minlength=classes)[:classes].astype(np.int64)
    counts = np.maximum(share.add(counted, l1=1, l2_squared=1, random=random), 1.0)
    variance = share.variance(l1=1, l2_squared=1)
    persons = max(float(counts.sum()), _LEAST_PERSONS)
    features = X.shape[1]
    radius, square = _radius(X, allowance.share("length of rows", "0.05"), _NEARLY_ALL, random)
    if _expected_error(features, allowance, persons) < _WORTH:
        share, seen = allowance.share("centre of rows", "0.1"), X
    else:
        share, seen = allowance.share("level of rows", "0.05"), X.sum(axis=1, keepdims=True) / math.sqrt(features)
    total = noisy_vector(ball_rows(seen, radius).sum(axis=0), share, random, length=Fraction(STEPS))
    centre = total / (STEPS * persons) * radius * np.ones(features) / math.sqrt(features / seen.shape[1])
    length = float(np.linalg.norm(centre))
    centre *= min(1.0, radius / length) if length > 0 else 1.0
    radius, square = _radius(X - centre, allowance.share("length of centred rows", "0.05"), _MOST, random)
    return Prepared(
        rows=_with_constant(ball_rows(X - centre, radius, share=_share_of_rest())),
        classes=y,
        counts=counts,
        count_variance=variance,
        square=square * _share_of_rest() ** 2,
        box=rows.box,
        centre=centre,
        radius=radius,
    )


def ball_rows(X: Floats, radius: float, *, share: float = 1.0) -> Integers:
    """Rows cut to a length of at most `radius`, as whole steps of which the radius has `share` · STEPS; never longer than that.

    Cut towards 0, after a scaling that leaves a margin of 2⁻⁴⁰: so neither rounding nor floating point can lengthen a row.

    >>> ball_rows(np.array([[3.0, 4.0], [0.5, 0.0]]), 1.0).tolist()
    [[9830, 13107], [8191, 0]]
    """
    lengths = np.sqrt((X**2).sum(axis=1, keepdims=True))
    factors = share * (1 - 2.0**-40) / np.maximum(lengths, radius)
    return np.asarray(np.trunc(X * factors * STEPS), dtype=np.int64)


def _radius(X: Floats, share: Share, quantile: float, random: Random | None) -> tuple[float, float]:
    """The least of 19 public radii within which a noisy share `quantile` of the rows lies, and the rows' mean square over its."""
    longest = math.sqrt(X.shape[1]) * 2
    lengths = np.sqrt((X**2).sum(axis=1)) / longest
    places = np.minimum(np.searchsorted(_EDGES, lengths), len(_EDGES) - 1)
    held = np.bincount(places, minlength=len(_EDGES)).astype(np.int64)
    noisy = share.add(held, l1=1, l2_squared=1, random=random)
    reached = np.cumsum(np.maximum(noisy, 0.0)) >= quantile * max(float(np.maximum(noisy, 0.0).sum()), 1.0)
    radius = float(_EDGES[int(np.argmax(reached)) if reached.any() else -1])
    squares = np.minimum(_EDGES * 2 ** (-1 / 6) / radius, 1.0) ** 2
    square = float(np.clip(noisy @ squares / max(float(noisy.sum()), _LEAST_PERSONS), 0.0, 1.0))
    return radius * longest, square


def _expected_error(features: int, allowance: Allowance, persons: float) -> float:
    """The expected length of a bought centre's noise, over the radius."""
    size = float(allowance.size) * 0.1
    if allowance.currency == "epsilon":
        return features / (size * persons)
    return math.sqrt(features / (size if allowance.currency == "mu_squared" else 2 * size)) / persons


def _share_of_intercept() -> float:
    return _INTERCEPT / math.hypot(1, _INTERCEPT)


def _share_of_rest() -> float:
    return 1 / math.hypot(1, _INTERCEPT)


def _with_constant(rows: Integers) -> Integers:
    constant = np.full((len(rows), 1), math.floor(STEPS * _share_of_intercept()), dtype=np.int64)
    return np.concatenate([rows, constant], axis=1)
