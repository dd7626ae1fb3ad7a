"""What randomised reports say: estimated counts with margins, made consistent when asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.noise.mechanism import check_confidence
from cloister.privacy.rational import Exact

__all__ = ["Estimate", "Number", "add_estimates", "norm_sub", "quantile_of"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Estimated counts of people, in the order of the domain.

    Counts are unbiased, so some lie below 0 or above n; `consistent` says what they are likely to be.

    >>> estimate = Estimate(counts=np.array([60.0, -10.0]), n=50, variances=np.array([100.0, 100.0]), values=("a", "b"))
    >>> estimate.margin(0.95).round(1).tolist(), estimate.consistent().counts.tolist()
    ([19.6, 19.6], [50.0, 0.0])
    """

    counts: Floats
    n: int
    variances: Floats
    """Of each count by itself."""
    values: Sequence[Any]

    @property
    def frequencies(self) -> Floats:
        """Counts as shares of the respondents; 0 where nobody answered."""
        return self.counts / self.n if self.n else np.zeros(len(self.counts))

    def margin(self, confidence: Exact = 0.95) -> Floats:
        """Half-widths of the intervals of the counts, each by itself, by the normal law: a report's part in a count is bounded,
        and a count sums many."""
        return quantile_of(confidence) * np.sqrt(self.variances)

    def consistent(self) -> Estimate:
        """Counts that could be counts: none below 0, and n in sum (norm-sub: Wang et al. 2020, "Consistent").

        The same is taken off every count, and what falls below 0 is 0. It is post-processing, costs nothing, and lessens the
        error where many values are rare; but it is biased upwards for the rare ones. Margins stay those of the raw counts.
        """
        return replace(self, counts=norm_sub(self.counts, float(self.n)))

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

    def margin(self, confidence: Exact = 0.95) -> float:
        """The half-width of its interval, by the normal law."""
        return quantile_of(confidence) * float(np.sqrt(self.variance))


def quantile_of(confidence: Exact) -> float:
    """How many standard deviations an interval of this confidence reaches to each side.

    >>> round(quantile_of(0.95), 3)
    1.96
    """
    return NormalDist().inv_cdf(0.5 + float(check_confidence(confidence)) / 2)


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
    return Estimate(
        counts=np.sum([each.counts for each in estimates], axis=0),
        n=sum(each.n for each in estimates),
        variances=np.sum([each.variances for each in estimates], axis=0),
        values=estimates[0].values,
    )
