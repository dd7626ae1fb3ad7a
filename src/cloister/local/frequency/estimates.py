"""What randomised reports say: estimated counts with margins, made consistent when asked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.noise.mechanism import check_confidence
from cloister.privacy.rational import Exact

Floats = npt.NDArray[np.float64]

SURE = 6.0
"""So many deviations from an estimate its number hardly ever is."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Estimated counts of people, in the order of the domain.

    Counts are unbiased, so some lie below 0 or above n; `consistent` says what they are likely to be, and is biased: margins of
    either hold the truth.

    >>> estimate = Estimate(counts=np.array([60.0, -10.0]), n=50, variances=np.array([100.0, 100.0]), values=("a", "b"))
    >>> estimate.margin(0.95).round(1).tolist(), estimate.consistent().counts.tolist()
    ([19.6, 19.6], [50.0, 0.0])
    >>> estimate.consistent().margin(0.95).round(1).tolist()
    [9.6, 9.6]
    """

    counts: Floats
    n: int
    variances: Floats
    """Of each count by itself."""
    values: Sequence[Any]
    raw: Floats | None = None
    """The unbiased counts, where these were made consistent."""
    part: float = 0.0
    """By how much one report can move a count at the most: what makes the law of a few reports another than the normal one."""
    slope: float = 0.0
    """By how much a count's variance may change where one person more holds the value."""
    bias: Floats | float = 0.0
    """How far each count may be off beside chance: what no reading of the reports can tell."""

    @property
    def frequencies(self) -> Floats:
        """Counts as shares of the respondents; 0 where nobody answered."""
        return self.counts / self.n if self.n else np.zeros(len(self.counts))

    def margin(self, confidence: Exact = 0.95) -> Floats:
        """Half-widths of the intervals of the counts, each by itself (`half_width`). Of consistent counts they reach to the
        farther end of the interval of the unbiased count, as far as that lies between 0 and n."""
        wide = half_width(confidence, self.variances, part=self.part, slope=self.slope) + self.bias
        if self.raw is None:
            return np.asarray(wide, dtype=np.float64)
        low, high = (np.clip(end, 0.0, self.n) for end in (self.raw - wide, self.raw + wide))
        return np.asarray(np.maximum(self.counts - low, high - self.counts), dtype=np.float64)

    def consistent(self) -> Estimate:
        """Counts that could be counts: none below 0, and n in sum (norm-sub: Wang et al. 2020, "Consistent").

        The same is taken off every count, and what falls below 0 is 0. It is post-processing, costs nothing, and lessens the
        error where many values are rare; but it is biased: upwards for the rare ones, and downwards for the others. Margins are
        wider by that.
        """
        return replace(self, counts=norm_sub(self.counts, float(self.n)), raw=self.counts if self.raw is None else self.raw)

    def __len__(self) -> int:
        return len(self.counts)


@dataclass(frozen=True, kw_only=True)
class Number:
    """One estimated number: a mean, a variance, a quantile.

    >>> round(Number(value=0.5, variance=0.01, n=100).margin(0.95), 3)
    0.196
    """

    value: float
    variance: float
    n: int
    bias: float = 0.0
    """How far the estimate may be off however many people answer: what no reading of the reports can tell."""
    part: float = 0.0
    """By how much one report can move it at the most."""

    def margin(self, confidence: Exact = 0.95) -> float:
        """The half-width of its interval: chance (`half_width`), and the bias."""
        return float(half_width(confidence, np.asarray(self.variance), part=self.part)) + self.bias


@dataclass(frozen=True, kw_only=True)
class Spread(Number):
    """An estimated variance of people's numbers: the mean of their squares less the square of their mean.

    With e₁ and e₂ the errors of these two means, and μ the mean itself, it is off by e₂ − 2μe₁, which is a mean of reports and
    has the variance `variance`, and by e₁², less what e₁² is on average. The interval has room for both, and ends where no
    variance of numbers in an interval can be.

    >>> Spread(value=0.5, variance=0.01, n=100, mean=Number(value=0.0, variance=0.01, n=100), most=1.0).margin(0.95).__round__(3)
    0.234
    """

    mean: Number
    """The mean, as the same reports tell it."""
    most: float
    """The square of half the interval."""

    def margin(self, confidence: Exact = 0.95) -> float:
        """The half-width of its interval: to the farther end, where it does not lie evenly."""
        wide = float(half_width(confidence, np.asarray(self.variance), part=self.part)) + self.mean.margin(confidence) ** 2
        low, high = (min(max(end, 0.0), self.most) for end in (self.value - wide, self.value + wide))
        return max(self.value - low, high - self.value) + self.bias


def quantile_of(confidence: Exact) -> float:
    """How many standard deviations an interval of this confidence reaches to each side.

    >>> round(quantile_of(0.95), 3)
    1.96
    """
    return NormalDist().inv_cdf(0.5 + float(check_confidence(confidence)) / 2)


def half_width(confidence: Exact, variance: Floats, *, part: Floats | float = 0.0, slope: float = 0.0) -> Floats:
    """The half-width of the interval of a sum of reports: by the normal law, made wider by what that law neglects with few.

    One report moves the sum by at most B = `part`, so its third central moment is at most Bσ², and its fourth cumulant at most
    B²σ²: the quantile z of σ moves by at most (B/σ)(z² − 1)/6 and (B/σ)²|z³ − 3z|/24 (Cornish & Fisher 1938, the terms of first
    and of second order, with no regard to sign; where B > 2σ they say little, and B counts as 2σ in the second). Half a step, at
    most B/2, is for sums on a grid. And the variance is the one that was estimated: with s = `slope`, that at the interval's
    farther end is at most s times its half-width more, as in an interval of Wilson's (1927). All of it vanishes beside zσ as
    people become many.

    >>> [half_width(0.95, np.array([4.0 * n]), part=4.0).round(1).tolist() for n in (1, 100, 10_000)]
    [[8.4], [43.1], [395.9]]
    """
    return _reach(quantile_of(confidence), variance, part, slope)


def beyond(off: Floats, variance: Floats, *, part: Floats | float = 0.0) -> Floats:
    """The probability of being off by so much or more: of all intervals of `half_width` the widest that does not reach so far.

    >>> off = np.array([1.96, 0.1])
    >>> beyond(off, np.ones(2)).round(3).tolist(), beyond(off, np.ones(2), part=0.5).round(3).tolist()
    ([0.05, 0.92], [0.115, 1.0])
    """
    least, most = np.zeros(np.shape(off)), np.full(np.shape(off), 40.0)
    for _ in range(50):
        z = (least + most) / 2
        short = _reach(z, variance, part, 0.0) <= off
        least, most = np.where(short, z, least), np.where(short, most, z)
    return np.asarray([math.erfc(each / math.sqrt(2)) for each in least.ravel()], dtype=np.float64).reshape(least.shape)


def _reach(z: Floats | float, variance: Floats, part: Floats | float, slope: float) -> Floats:
    """Half a width of z standard deviations, and what it is short of with few reports."""
    sigma, part = np.sqrt(variance), np.asarray(part)
    skewed = part * np.maximum(np.square(z) - 1, 0.0) / 6 + part / 2
    each = np.maximum(np.maximum(sigma, part / 2), 1e-300)
    skewed = skewed + part**2 / each * np.abs(np.power(z, 3) - 3 * np.asarray(z)) / 24
    if slope > 0:
        sigma = (z * slope + np.sqrt(np.square(z * slope) + 4 * variance + 4 * slope * skewed)) / 2
    return np.asarray(z * sigma + skewed, dtype=np.float64)


def norm_sub(counts: Floats, total: float) -> Floats:
    """The nearest counts (in Euclid's sense) that are none below 0 and sum to `total`.

    >>> norm_sub(np.array([5.0, 3.0, -1.0]), 6.0).tolist()
    [4.0, 2.0, 0.0]
    """
    if total <= 0 or not len(counts):
        return np.zeros(len(counts))
    ordered = np.sort(counts)[::-1]
    shifts = (np.cumsum(ordered) - total) / np.arange(1, len(counts) + 1)
    kept = int(np.flatnonzero(ordered > shifts)[-1])
    return np.asarray(np.maximum(counts - shifts[kept], 0.0), dtype=np.float64)


def add_estimates(*estimates: Estimate) -> Estimate:
    """The estimates of groups of different people, added: counts add, and so do variances.

    Right whoever chose which protocol or ε, since each group's own estimate is unbiased.

    >>> half = Estimate(counts=np.array([3.0, 1.0]), n=4, variances=np.array([1.0, 1.0]), values=("a", "b"))
    >>> add_estimates(half, half).counts.tolist(), add_estimates(half, half).n
    ([6.0, 2.0], 8)
    """
    if not estimates or any(list(each.values) != list(estimates[0].values) for each in estimates):
        raise InvalidParameter(
            "The estimates were not added", why="they are of different domains", instead="estimates of one domain"
        )
    raws = [each.counts if each.raw is None else each.raw for each in estimates]
    return Estimate(
        counts=np.sum([each.counts for each in estimates], axis=0),
        n=sum(each.n for each in estimates),
        variances=np.sum([each.variances for each in estimates], axis=0),
        values=estimates[0].values,
        raw=None if all(each.raw is None for each in estimates) else np.sum(raws, axis=0),
        part=max(each.part for each in estimates),
        slope=max(each.slope for each in estimates),
        bias=np.sum([np.broadcast_to(each.bias, len(each)) for each in estimates], axis=0),
    )
