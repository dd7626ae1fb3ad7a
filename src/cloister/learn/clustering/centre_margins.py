"""Between which values the mean of the rows of each k-means cell lies, from the noisy sums that were measured.

Let n and S be the noisy number of rows of a cell and the sum of one coordinate of them, both about a released origin, with noises
e and f. The mean θ without noise is the one for which S − θn is nothing but f − θe: all θ for which it lies within q deviations
of that make an interval that holds θ as often as q says, however few rows the cell has (Fieller 1954). The noise of n counts as
much as that of S wherever a centre is far from the origin. What was done to the ratio afterwards (an empty cell's count was
raised, a centre drawn in, clipped) moves what is shown, not the interval; so a half-width reaches to its farther end.

In a subspace, of projection P, the sums say about Pθ alone, and the released mean m stands for the rest. The mean of all rows is
S*/n* about the middle of the box, for the sum and the number that m was made of, so what is left, (1 − P)(S*/n* − m), has an
interval of the same kind. Half of what may be missed is for that.

The ball that rows were drawn into was made of a noisy spread. Where that may be less than half of what it is without noise, the
squared distances add up to at most some V (`place.Spread.beyond`), and all of them may be of rows that were drawn in: by r − B
≤ r²/4B each, so by V/4B in all, and a mean is off by no more than that over its rows. A tenth of what may be missed is for V.

A number of rows is whole: half a step is added to its noise's half-width. Rows were rounded to steps, each coordinate by half a
step at most, and so their mean is off by no more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.learn.bayesian.class_margins import fieller
from cloister.learn.clustering.noisy_mean import Spread
from cloister.learn.frame.margins import miss_of, wider_quantile
from cloister.stored import Stored

Floats = npt.NDArray[np.float64]

_SPREAD = 0.1


@dataclass(frozen=True, kw_only=True, eq=False)
class Centres:
    """The noisy number and sum of the rows of each cell, about the origin, with the variances of their noises; and how far from
    the origin a row counts at most.

    >>> found = Centres(origin=np.zeros(1), counts=np.array([100.0]), sums=np.array([[50.0]]), count_noise=np.array([4.0]),
    ...     sum_noise=np.array([[4.0]]), reach=np.ones(1))
    >>> [round(float(end[0, 0]), 2) for end in found.interval(0.95)]
    [0.45, 0.55]
    """

    origin: Floats
    counts: Floats
    sums: Floats
    count_noise: Floats
    sum_noise: Floats
    reach: Floats
    rest: tuple[Floats, Floats, Floats, float, float] | None = None
    """Where P is not everything: the part of the sum of all rows outside it, with the variance of its noise; the part of the
    released mean there, about the middle; and the noisy number of rows, with the variance of its noise."""

    ball: tuple[float, ...] | None = None
    """Its radius, and the `place.Spread` that it was made of; None where there was none."""
    rounded: Floats | None = None
    """How far rounding may have moved each coordinate of a row."""
    lost: Floats | None = None
    """V of each coordinate by itself, where rows were drawn into a box, as wide as `reach`."""

    def interval(self, confidence: Any) -> tuple[Floats, Floats]:
        """The least and the greatest of each coordinate, each by itself with that confidence."""
        miss = miss_of(confidence)
        far = self._beyond(miss * _SPREAD) + (0.0 if self.rounded is None else self.rounded)
        miss *= (1.0 if self.ball is None and self.lost is None else 1 - _SPREAD) / (1 if self.rest is None else 2)
        low, high = _ratio(self.sums, self.counts[:, None], self.sum_noise, self.count_noise[:, None], miss, self.reach)
        if self.rest is not None:
            sums, noise, moved, size, size_noise = self.rest
            least, most = _ratio(sums, np.array(size), noise, np.array(size_noise), miss, np.full(len(sums), np.inf))
            low, high = low + least - moved, high + most - moved
        return self.origin + low - far, self.origin + high + far

    def _beyond(self, miss: float) -> Floats:
        """By how much the means may be off since rows were drawn in that noise alone had left outside."""
        if self.ball is not None:
            lost, wide = np.full(1, Spread(*self.ball[1:]).beyond(miss / 2)), np.full(1, self.ball[0])
        else:
            lost, wide = np.zeros(1) if self.lost is None else self.lost, self.reach
        fewest = (self.counts - wider_quantile(1 - miss / 2) * np.sqrt(self.count_noise))[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            off = np.where(fewest > 0, lost / (4 * wide) / np.maximum(fewest, 1.0), np.inf)
        return np.where(lost > 0, off, 0.0)

    def margin(self, shown: Floats, confidence: Any, *, low: Floats, high: Floats) -> Floats:
        """The way from what is shown to the farther end, within the bounds of the features."""
        least, most = self.interval(confidence)
        return np.asarray(np.maximum(shown - np.clip(least, low, high), np.clip(most, low, high) - shown))

    def deviations(self, held: Floats) -> Floats:
        """To first order, of sums over the numbers of rows that were held to be right."""
        means = self.sums / held[:, None]
        left = 0.0 if self.rest is None else self.rest[1] / self.rest[3] ** 2
        return np.asarray(np.sqrt((self.sum_noise + means**2 * self.count_noise[:, None]) / held[:, None] ** 2 + left))

    # ── stored with a model ──────────────────────────────────────────────────────────────────────

    def written(self) -> dict[str, Any]:
        """As plain arrays."""
        return {name: value for name, value in _STORED.told(self).items() if value is not None}

    @classmethod
    def read(cls, written: Mapping[str, Any]) -> Centres:
        """The other way."""
        return _STORED.made(written)


_STORED = Stored(
    Centres, "centres", "origin", "counts", "sums", "count_noise", "sum_noise", "reach", "rest", "ball", "lost", "rounded"
)
"""As a model holds it."""


def _ratio(sums: Floats, count: Floats, noise: Floats, count_noise: Floats, miss: float, reach: Floats) -> tuple[Floats, Floats]:
    q = wider_quantile(1 - miss)
    of_count = (np.sqrt(count_noise) + 0.5 / q) ** 2
    return fieller(sums, count, q=q, of_top=noise, of_count=of_count, both=np.zeros(1), ends=(-reach, reach))
