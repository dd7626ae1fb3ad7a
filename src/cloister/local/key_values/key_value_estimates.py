"""What reports of keys with values say: counts, sums and means, and how sure each is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cloister.local.frequency.estimates import Estimate, half_width
from cloister.local.numbers.interval import Floats, Interval
from cloister.privacy.rational import Exact


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
    weights: Weights
    """What a report adds to a sum and to a count."""
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

        A mean m fits where the sum less m times the count lies within its interval around 0 (`half_width`); these m are an
        interval (Fieller 1954), which reaches as far as the margin, or less. Where the count itself can't be told from 0, every
        mean fits: the margin reaches to the farther end. The variance is that of the protocol where the key's people all hold the
        mean, and where as many have the key as the count's own interval allows: no other people have a larger one.
        """
        counts, ratios, n = self.counts.counts, self._ratios, self.counts.n
        wide = self.counts.margin(confidence)
        ends = [np.clip(counts + side * wide, 0.0, n) for side in (-1, 1)]
        constant, square = np.maximum(*(self.weights.spread(n, held) for held in ends))
        reach = half_width(confidence, constant, part=self.weights.part)
        with np.errstate(divide="ignore", invalid="ignore"):
            squared = np.where(constant > 0, reach**2 / constant, np.inf)
            a = counts**2 - squared * square
            b = self.signs * counts
            c = self.signs**2 - squared * constant
            told = (a > 0) & (counts > 0)
            away = np.abs(b / a - ratios) + np.sqrt(np.maximum(b**2 - a * c, 0.0)) / a
        farthest = 1 + np.abs(ratios)
        return np.asarray(self.interval.span / 2 * np.where(told, np.minimum(away, farthest), farthest), dtype=np.float64)

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

    With the drawn key reported with probability `seen`, another one with `unseen`, and the true end more likely than the other by
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

    def spread(self, n: int, held: Floats) -> Floats:
        """The variance of a sum less m times the count, with m from −1 to 1, where so many of n people have the key and all hold
        m: two rows, what is constant in m and what is in front of m². Where people differ it is less, by the variety of their
        numbers."""
        step = self.padding / self.pull
        seen = self.unseen + (self.seen - self.unseen) / self.padding
        both = self.padding * (1 - self.unseen) / (self.seen - self.unseen)
        constant = ((n - held) * self.unseen + held * seen) * step**2
        square = (n - held) * self.count_variance(0.0) + held * (self.count_variance(1.0) + 1 - 2 * both)
        return np.stack([constant, square])

    @property
    def part(self) -> float:
        """By how much one report moves a sum less m times the count at the most."""
        step = self.padding / self.pull
        return step + max(step, self.count_part)

    @property
    def count_part(self) -> float:
        """By how much one report moves a count: far more than its deviation, where a false report is rare."""
        return self.padding / (self.seen - self.unseen)

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
