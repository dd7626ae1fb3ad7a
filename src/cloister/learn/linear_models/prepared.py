"""Rows made ready for a linear classifier: scaled, centred, and cut to a length that noise can be made for.

Bounds alone say little of where the rows lie: pixels of 0–16 have a mean far from 8, a capital gain of 0–99,999 is nearly always
0. So a fifth to a quarter of the allowance buys how many people each class has, how long a row is, and where the rows' middle
is; noise for what is left is then a half to a tenth as wide.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from cloister.learn.frame.bounds import Box, Rows
from cloister.learn.frame.vectors import noisy_vector
from cloister.noise import Allowance, Random, Share
from cloister.tables.engines.row_sums import (
    COUNT,
    COUNTED,
    EDGES,
    SHARE_OF_INTERCEPT,
    SHARE_OF_REST,
    STEPS,
    FeatureRows,
    Fit,
    RowSums,
)

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_LEAST_PERSONS = 10.0
_WORTH = 0.5
"""How long the noise of a centre may be, over the radius; else only its level is bought: the mean over all features."""
_NEARLY_ALL = 0.95
_CLEAR = ((0.0, 0.7, 0.7), (400.0, 0.9, 1.0), (1000.0, 0.95, 1.0), (10000.0, 0.99, 1.0))
"""From which signal on, how many rows are not drawn in, and how steep a loss may be: where noise is the greater fault, the few
that lie far off a bought centre are drawn in, and those far on the wrong side count less."""
_PURE = ((0.0, 0.7, 0.7), (2000.0, 0.9, 0.7), (8000.0, 0.95, 1.0), (50000.0, 0.99, 1.0))
"""The same, under pure ε."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Prepared:
    """Rows as whole steps in the unit ball, and the public facts that lead there and back.

    `rows` has a last column for the intercept. Its rows are at most `STEPS` long. Everything else is released, or public.
    """

    rows: Integers
    classes: Integers
    counts: Floats
    """Noisy people a class, at least 1 each; of a count y up to K the sums of 1 − y/K and of y/K."""
    count_variance: float
    """Of each."""
    square: float
    """Noisy mean of the squared lengths of `rows` without their constant, 1 being the longest; between 0 and 1."""
    box: Box
    centre: Floats
    radius: float
    slope: float = 0.7
    """How steep a loss of two classes may become: below 1, a person counts less, and chances are told too near to 0 and 1."""

    @property
    def people(self) -> float:
        """Noisy, at least 10."""
        return max(float(self.counts.sum()), _LEAST_PERSONS)

    @property
    def dimension(self) -> int:
        """Features and the intercept."""
        return len(self.centre) + 1

    @property
    def constant(self) -> float:
        """The last column."""
        return float(math.floor(STEPS * SHARE_OF_INTERCEPT) / STEPS)

    def unscaled(self, weights: Floats) -> tuple[Floats, Floats]:
        """Weights of prepared rows as coefficients and intercepts of the features as they came, a row a column of scores."""
        scale = SHARE_OF_REST / self.radius
        inner = weights[:-1] * scale
        coefficients = inner * (2 / self.box.width)[:, None]
        shift = self.centre @ inner + self.box.middle @ coefficients
        return np.asarray(coefficients.T), np.asarray(weights[-1] * self.constant - shift)

    def scaled_margins(self, margin: float, columns: int) -> Floats:
        """What a margin of every prepared weight is for the coefficients."""
        each = margin * SHARE_OF_REST / self.radius * 2 / self.box.width
        return np.tile(each, (columns, 1))


class RowSource(Protocol):
    """Where sums over rows come from, noisy: the rows themselves, or an engine that hands none out."""

    @property
    def box(self) -> Box:
        """What the features may hold."""

    @property
    def fit(self) -> Fit:
        """What is learned."""

    def noisy(self, stage: str, share: Share, **public: Any) -> Floats:
        """A sum (`cloister.tables.engines.row_sums.STAGES`), with noise for one person more or less."""


@dataclass(frozen=True, eq=False)
class RowsHere:
    """Sums over rows in this process."""

    rows: Rows
    fit: Fit
    random: Random | None

    @property
    def box(self) -> Box:
        """As declared."""
        return self.rows.box

    @cached_property
    def features(self) -> FeatureRows:
        """In [−1, 1]."""
        return FeatureRows(self.box.centred(self.rows.X), np.asarray(self.rows.y))

    def noisy(self, stage: str, share: Share, **public: Any) -> Floats:
        """Exactly summed, then with noise."""
        sums = RowSums(fit=self.fit, stage=stage, **public)
        exact = sums.exact(self.features)
        if stage in COUNTED:
            return share.add(exact // COUNT, l1=1, l2_squared=1, random=self.random)
        return noisy_vector(exact, share, self.random, length=Fraction(sums.length))


def prepare(
    rows: Rows, classes: int, allowance: Allowance, random: Random | None, *, highest: float = 0.0, inside: float = 1.0
) -> Prepared:
    """What `scaled` buys, and these rows as they are then; `highest` is that of a count, where the target is one."""
    whole = (("", rows.X.shape[1]),)
    fit = Fit(features=whole, target="", classes=classes, slope=1.0, most=Fraction(1), highest=highest)
    here = RowsHere(rows, fit, random)
    found, features = scaled(here, allowance, inside=inside), here.features
    ready = features.ready(tuple(found.centre.tolist()), found.radius)
    return replace(found, rows=ready.astype(np.int64), classes=features.y)


def scaled(source: RowSource, allowance: Allowance, *, inside: float = 1.0) -> Prepared:
    """Buy class counts (or how many people there are, and the sum of their counts), a radius, and a centre: of each feature where
    that is worth its price, else one level for all features. There are no rows in it.

    At most a share `inside` of the rows is not drawn in: where a few rows lie far off, the others are short beside them, and few
    steps do not arrive.

    Guarantee: each part is a sum in which one person more or less counts once: a class (sensitivity 1), a bin of lengths
    (sensitivity 1), a vector of length at most 1 (L2 sensitivity 1, in whole steps; so is what stands for a count:
    `row_sums.py`). What is bought next depends on what was released before, never on rows: adaptive composition, which the
    allowance counts.
    """
    whole, what = (STEPS, "number and sum of counts") if source.fit.highest else (1, "class counts")
    share, features = allowance.share(what, "0.05"), source.box.features
    counts = np.maximum(source.noisy(source.fit.first, share) / whole, 1.0)
    variance = share.variance(l1=1, l2_squared=1)
    people = max(float(counts.sum()), _LEAST_PERSONS)
    noisy = source.noisy("lengths", allowance.share("length of rows", "0.05"))
    radius, _ = _radius(noisy, features, _NEARLY_ALL)
    # the expected length of a bought centre's noise, over the radius
    if (10 if allowance.currency == "epsilon" else math.sqrt(10)) / _signal(features, allowance, people) < _WORTH:
        share, stage, seen = allowance.share("centre of rows", "0.1"), "centre", features
    else:
        share, stage, seen = allowance.share("level of rows", "0.05"), "level", 1
    total = source.noisy(stage, share, radius=radius)
    centre = total / (STEPS * people) * radius * np.ones(features) / math.sqrt(features / seen)
    length = float(np.linalg.norm(centre))
    centre *= min(1.0, radius / length) if length > 0 else 1.0
    about = tuple(centre.tolist())
    noisy = source.noisy("lengths", allowance.share("length of centred rows", "0.05"), centre=about)
    signal = _signal(features + 1, allowance, people)
    _, most, slope = max(each for each in (_PURE if allowance.currency == "epsilon" else _CLEAR) if signal >= each[0])
    radius, square = _radius(noisy, features, min(most, inside))
    return Prepared(
        rows=np.zeros((0, features + 1), dtype=np.int64),
        classes=np.zeros(0, dtype=np.int64),
        counts=counts,
        count_variance=variance,
        square=square * SHARE_OF_REST**2,
        box=source.box,
        centre=centre,
        radius=radius,
        slope=slope,
    )


def _radius(noisy: Floats, features: int, quantile: float) -> tuple[float, float]:
    """The least of 19 public radii within which a share `quantile` of the rows lies, by their noisy numbers, and the rows' mean
    square over its."""
    reached = np.cumsum(np.maximum(noisy, 0.0)) >= quantile * max(float(np.maximum(noisy, 0.0).sum()), 1.0)
    radius = float(EDGES[int(np.argmax(reached)) if reached.any() else -1])
    squares = np.minimum(EDGES * 2 ** (-1 / 6) / radius, 1.0) ** 2
    square = float(np.clip(noisy @ squares / max(float(noisy.sum()), _LEAST_PERSONS), 0.0, 1.0))
    return radius * math.sqrt(features) * 2, square


def _signal(dimension: int, allowance: Allowance, people: float) -> float:
    """How large rows are against the noise of their sums: people · ε over the dimension, or people · μ over its root."""
    size = float(allowance.size)
    if allowance.currency == "epsilon":
        return people * size / dimension
    return people * math.sqrt((size if allowance.currency == "mu_squared" else 2 * size) / dimension)
