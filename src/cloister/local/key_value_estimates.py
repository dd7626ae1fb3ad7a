"""What reports of keys with values say: counts, sums and means, and how sure each is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cloister.local.estimates import Estimate, quantile_of
from cloister.local.interval import Floats, Interval
from cloister.privacy.rational import Exact

__all__ = ["KeyValueEstimate", "Weights"]


@dataclass(frozen=True, kw_only=True)
class KeyValueEstimate:
    """For each key, how many people have it, and the mean of their numbers.

    >>> from cloister.local import KeyValue
    >>> from cloister.noise import Random
    >>> scores = KeyValue(["a", "b"], 0, 10, epsilon=4, padding=1)
    >>> reports = scores.randomize([{"a": 7}] * 9_000 + [{}] * 9_000, random=Random.deterministic(1))
    >>> found = scores.estimate(scores.aggregate(reports))
    >>> found.means[0].round(1), found.margin(0.95).round(1).tolist()
    (np.float64(6.9), [0.1, 10.0])
    """

    counts: Estimate
    signs: Floats
    """The sums of people's numbers in units where low is −1 and high is 1: unbiased."""
    covariances: npt.NDArray[np.float64]
    """Of these sums and the counts, for each key: (sum, both, count)."""
    interval: Interval

    @property
    def sums(self) -> Floats:
        """The sum of people's numbers for each key: unbiased."""
        middle, half = (self.interval.low + self.interval.high) / 2, self.interval.span / 2
        return np.asarray(middle * self.counts.counts + half * self.signs, dtype=np.float64)

    @property
    def means(self) -> Floats:
        """The sum over the count, moved to the nearer end where it lies outside of the interval; its middle where the count is
        not above 0."""
        return np.asarray(self.interval.low + self.interval.span * (self._ratios + 1) / 2, dtype=np.float64)

    def margin(self, confidence: Exact = 0.95) -> Floats:
        """Half-widths of the intervals of the means, each by itself.

        A mean m fits where the sum less m times the count lies within its normal interval around 0; these m are an interval
        (Fieller 1954), which reaches as far as the margin, or less. Where the count itself can't be told from 0, every mean fits:
        the margin reaches to the farther end. Where people's numbers differ, it has their variety in it, and is a little wide.
        """
        z = quantile_of(confidence)
        both = self.covariances * z**2
        counts, ratios = self.counts.counts, self._ratios
        a = counts**2 - both[:, 2]
        b = self.signs * counts - both[:, 1]
        c = self.signs**2 - both[:, 0]
        told = (a > 0) & (counts > 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.sqrt(np.maximum(b**2 - a * c, 0.0)) / a
            ends = np.abs(b / a - ratios) + reach
        farthest = 1 + np.abs(ratios)
        return np.asarray(self.interval.span / 2 * np.where(told, np.minimum(ends, farthest), farthest), dtype=np.float64)

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def _ratios(self) -> Floats:
        counts = self.counts.counts
        held = np.where(counts > 0, counts, 1.0)
        return np.asarray(np.where(counts > 0, np.clip(self.signs / held, -1.0, 1.0), 0.0), dtype=np.float64)


@dataclass(frozen=True, kw_only=True)
class Weights:
    """What one report adds to a key's count and to its sum, so that their means over reports are right.

    With the drawn key reported with probability `seen`, another one with `unseen`, and the true end likelier than the other by
    `pull`: a report that has the key adds padding·(1 − unseen)/(seen − unseen) to the count, one that has not −padding·unseen
    /(seen − unseen); and ±padding/pull to the sum, by its end.
    """

    seen: float
    unseen: float
    pull: float
    padding: int

    def read(self, cells: npt.NDArray[np.int64], n: int) -> tuple[Floats, Floats]:
        """The estimated counts, and the sums in units of signs."""
        counts = self.padding * (cells.sum(axis=1) - n * self.unseen) / (self.seen - self.unseen)
        sums = self.padding * (cells[:, 1] - cells[:, 0]) / self.pull
        return np.asarray(counts, dtype=np.float64), np.asarray(sums, dtype=np.float64)

    def covariances(self, cells: npt.NDArray[np.int64], n: int) -> Floats:
        """Of sums and counts, as the reports themselves tell: those of n draws from their own distribution."""
        if not n:
            return np.full((len(cells), 3), np.inf)
        told, signed = cells.sum(axis=1) / n, (cells[:, 1] - cells[:, 0]) / n
        sums = (told - signed**2) * (self.padding / self.pull) ** 2
        both = signed * (1 - told) * self.padding**2 / (self.pull * (self.seen - self.unseen))
        counts = told * (1 - told) * (self.padding / (self.seen - self.unseen)) ** 2
        return np.asarray(n * np.stack([sums, both, counts], axis=1), dtype=np.float64)

    def count_variance(self, frequency: float) -> float:
        """Of one person's part of a count."""
        chances = self.unseen, self.unseen + (self.seen - self.unseen) / self.padding
        none, held = (chance * (1 - chance) * (self.padding / (self.seen - self.unseen)) ** 2 for chance in chances)
        return none + frequency * (held - none)

    def mean_variance(self, frequency: float, sign: float) -> float:
        """n times the variance of a mean, where all who have the key are at `sign` of [−1, 1]: that of the sum less `sign` times
        the count, over the squared share."""
        step = self.padding / self.pull
        none = self.unseen * step**2 + sign**2 * self.count_variance(0.0)
        chance = self.unseen + (self.seen - self.unseen) / self.padding
        both = self.padding * (1 - self.unseen) / (self.seen - self.unseen)
        held = chance * step**2 + sign**2 * (self.count_variance(1.0) + 1 - 2 * both)
        return (none + frequency * (held - none)) / frequency**2

    @property
    def rare(self) -> float:
        """What a mean's error is like where few people have the key, and are at an end."""
        return self.unseen * (self.padding / self.pull) ** 2 + self.count_variance(0.0)
