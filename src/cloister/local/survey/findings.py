"""What the reports to one question say: estimated counts and means with margins, which add up over groups of people."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cloister.local.frequency.estimates import Estimate, Number, add_estimates, half_width, quantile_of
from cloister.local.survey.poisoning import Lift, sway_of_ratio
from cloister.local.survey.question import NO_ANSWER
from cloister.privacy.rational import Exact

_SEEN = 9.0
"""Standard deviations, squared, from 0 at which somebody can be seen to have answered."""


@dataclass(frozen=True, kw_only=True)
class Mean(Number):
    """A mean of those who answered: an estimated sum by an estimated number of people, and so no more certain than both.

    The interval is Fieller's (1954): all means m that the reports do not contradict, |sum − m·answered| ≤ z·σ(m), where
    σ²(m) = noise[0] + noise[1]·m + noise[2]·m² is the variance of the left side. At the true mean the expectation of that side is
    0, so the interval holds it with its confidence however few answered; z is the normal quantile, and what that is short of with
    few reports (`half_width`), where σ(m) is least. Where the reports do not tell from 0 how many answered,
    it has no end; then it is all that may be answered, beyond which it does not go either.

    >>> sure = Mean.of((50.0, 100.0), (9.0, 0.0, 0.0), (0.0, 1.0), 0.0, 100)
    >>> round(sure.value, 3), round(sure.margin(0.95), 3)
    (0.5, 0.059)
    >>> Mean.of((5.0, 10.0), (9.0, 0.0, 900.0), (0.0, 1.0), 0.0, 100).interval()
    (0.0, 1.0)
    """

    total: float
    """The sum over those who answered, of how far their answer is from `middle`."""
    answered: float
    noise: tuple[float, float, float]
    ends: tuple[float, float]
    """The least and the largest answer that there is."""
    middle: float

    @classmethod
    def of(
        cls,
        parts: tuple[float, float],
        noise: tuple[float, float, float],
        ends: tuple[float, float],
        middle: float,
        n: int,
        part: float = 0.0,
    ) -> Mean:
        """The mean of a sum and a number of people; within the ends where there is next to nobody to divide by. `part` is by how
        much one report can move sum − m·answered at the most."""
        total, answered = parts
        low, high = ends[0] - middle, ends[1] - middle
        if answered > 0 and answered**2 > _SEEN * noise[2]:
            above = total / answered
        else:
            above = min(max(total / answered, low), high) if answered > 0 else (low + high) / 2
        variance = max(noise[0] + noise[1] * above + noise[2] * above**2, 0.0) / answered**2 if answered > 0 else math.inf
        return cls(
            value=middle + above,
            variance=variance,
            n=n,
            part=part / answered if answered > 0 else 0.0,
            total=total,
            answered=answered,
            noise=noise,
            ends=ends,
            middle=middle,
        )

    @property
    def seen(self) -> bool:
        """Whether the reports tell from 0, by three standard deviations, how many answered."""
        return self.answered > 0 and self.answered**2 > _SEEN * self.noise[2]

    def interval(self, confidence: Exact = 0.95) -> tuple[float, float]:
        """From where to where it lies."""
        low, high = self.ends
        found = self._unbounded(confidence)
        if found is None:
            return low, high
        return (max(found[0], low), min(found[1], high)) if low <= self.value <= high else found

    def _unbounded(self, confidence: Exact) -> tuple[float, float] | None:
        """Fieller's interval, whatever may be answered; None where it has no end."""
        squared = self._deviations(confidence) ** 2
        a = self.answered**2 - squared * self.noise[2]
        b = -2 * self.total * self.answered - squared * self.noise[1]
        c = self.total**2 - squared * self.noise[0]
        if self.answered <= 0 or not a > 0:
            return None
        root = math.sqrt(max(b * b - 4 * a * c, 0.0))
        return self.middle + (-b - root) / (2 * a), self.middle + (-b + root) / (2 * a)

    def _deviations(self, confidence: Exact) -> float:
        """To how many deviations σ(m) the interval of sum − m·answered reaches, whichever mean m is the true one."""
        if not self.part:
            return quantile_of(confidence)
        low, high = (end - self.middle for end in self.ends)
        constant, linear, square = self.noise
        lowest = min(max(-linear / (2 * square), low), high) if square > 0 else low
        least = min(constant + linear * m + square * m**2 for m in (low, lowest, high))
        if least <= 0:
            return math.inf
        return float(half_width(confidence, np.asarray(least), part=self.part * self.answered)) / math.sqrt(least)

    def margin(self, confidence: Exact = 0.95) -> float:
        """How far the farther end of the interval is: it need not lie evenly about the mean."""
        least, most = self.interval(confidence)
        return max(most - self.value, self.value - least)

    def planned(self, confidence: Exact = 0.95) -> float:
        """How far the farther end may be where the mean comes out near this one, on either side of an end of what may be
        answered. Where it is uncertain how many answered, that is at most all that may be answered: no mean is shown beyond
        it which the reports do not tell."""
        span, found = self.ends[1] - self.ends[0], self._unbounded(confidence)
        wide = span if found is None else max(found[1] - self.value, self.value - found[0])
        return min(wide, span) if self.noise[2] > 0 else wide

    def told(self, confidence: Exact = 0.95) -> bool:
        """Whether the reports say more of it than what may be answered does."""
        return self.interval(confidence) != self.ends

    def sway(self, lift: Lift, liars: float) -> float:
        """The most that so many made-up reports move it: infinite where the reports do not tell how many answered.

        A mean that lies make uncertain is shown within the ends (`of`), which may add as far as it lies beyond them now.
        """
        if liars > 0 and not self.seen:
            return math.inf
        beyond = max(self.ends[0] - self.value, self.value - self.ends[1], 0.0) if liars > 0 else 0.0
        return beyond + sway_of_ratio(lift, total=self.total, answered=self.answered, liars=liars)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The estimate of each answer's count; and where answers are numbers, of their sum.

    >>> counts = Estimate(counts=np.array([30.0, 70.0]), n=100, variances=np.array([9.0, 9.0]), values=("once", "often"))
    >>> finding = Finding(estimate=counts, scores=(1.0, 2.0), noise=(9.0, 0.0, 0.0))
    >>> finding.mean().value, round(finding.mean().margin(0.95), 3)
    (1.7, 0.059)
    """

    estimate: Estimate
    scores: tuple[float | None, ...] = ()
    """What each answer counts in the mean; None: it does not."""
    noise: tuple[float, float, float] | None = None
    """Of those scores, as in `Mean`: the variance of Σ (score − m)·count is noise[0] + noise[1]·m + noise[2]·m²."""
    part: float = 0.0
    """By how much one report can move Σ (score − m)·count at the most, for any mean m."""
    total: Number | None = None
    """The sum, over those who answered, of how far their number is from the middle of its ends."""
    ends: tuple[float, float] = (0.0, 0.0)
    """Of numbers: the least and the largest."""
    several: bool = False
    """True where one person may tick several answers, so that counts don't sum to n."""
    found: bool = False
    """True where the answers were found in the reports themselves (free words), so a rare one may be missing."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The answers as they are told: of words that were found, the empty one is no answer, and one that reads so is quoted.

        >>> counts = Estimate(counts=np.zeros(2), n=9, variances=np.ones(2), values=("", "no answer"))
        >>> Finding(estimate=counts, found=True).labels
        ('no answer', '"no answer"')
        """
        told = {"": NO_ANSWER, NO_ANSWER: f'"{NO_ANSWER}"'} if self.found else {}
        return tuple(told.get(each, each) for each in self.estimate.values)

    @property
    def answered(self) -> Number:
        """How many gave an answer: all, where "no answer" is not among the answers."""
        left_out = [place for place, label in enumerate(self.labels) if label == NO_ANSWER]
        n = self.estimate.n
        if not left_out:
            return Number(value=float(n), variance=0.0, n=n)
        place = left_out[0]
        value, variance = n - float(self.estimate.counts[place]), float(self.estimate.variances[place])
        return Number(value=value, variance=variance, n=n, part=self.estimate.part)

    def mean(self) -> Mean | None:
        """The mean number of those who answered, with an interval that holds for every number of them; None where answers are no
        numbers, or there is no report. Nothing is left out for being uncertain: that would be seen in the means that are shown.
        """
        n = self.estimate.n
        if not n:
            return None
        if self.total is not None:
            answered, (low, high) = self.answered, self.ends
            return Mean.of(
                (self.total.value, answered.value),
                (self.total.variance, 0.0, answered.variance),
                (low, high),
                (low + high) / 2,
                n,
                self.total.part + answered.part * (high - low) / 2,
            )
        if self.noise is None:
            return None
        counted = [place for place, score in enumerate(self.scores) if score is not None]
        scores = np.array([self.scores[place] for place in counted], dtype=np.float64)
        counts = self.estimate.counts[counted]
        ends = float(scores.min()), float(scores.max())
        return Mean.of((float(scores @ counts), float(counts.sum())), self.noise, ends, 0.0, n, self.part)

    def rows(self, confidence: Exact = 0.95) -> list[dict[str, Any]]:
        """What a table or a chart needs, one row an answer: estimated count, share and margins; `likely` is the share after
        the counts were made to fit (none below 0, all in sum)."""
        estimate = self.estimate
        n = max(estimate.n, 1)
        margins = estimate.margin(confidence)
        one_each = not self.found and not self.several
        likely = estimate.consistent().counts if one_each else np.clip(estimate.counts, 0, n)
        return [
            {
                "answer": label,
                "count": float(count),
                "margin": float(margin),
                "share": float(count) / n,
                "share_margin": float(margin) / n,
                "likely": float(fit) / n,
            }
            for label, count, margin, fit in zip(self.labels, estimate.counts, margins, likely, strict=True)
        ]


def add_findings(findings: Sequence[Finding]) -> Finding:
    """The findings of groups of different people: each group's own estimates are unbiased, whoever chose which level, and so is
    their sum. (Weighing by precision is not: who chooses which level may depend on the answer.)

    >>> counts = Estimate(counts=np.array([30.0, 70.0]), n=100, variances=np.array([9.0, 9.0]), values=("no", "yes"))
    >>> add_findings([Finding(estimate=counts)] * 2).estimate.counts.tolist()
    [60.0, 140.0]
    """
    totals = [each.total for each in findings if each.total is not None]
    total = None
    if totals:
        value, variance, n = (sum(getattr(each, name) for each in totals) for name in ("value", "variance", "n"))
        total = Number(value=value, variance=variance, n=n, part=max(each.part for each in totals))
    noises = [each.noise for each in findings if each.noise is not None]
    noise = (
        (sum(each[0] for each in noises), sum(each[1] for each in noises), sum(each[2] for each in noises)) if noises else None
    )
    estimate, part = add_estimates(*[each.estimate for each in findings]), max(each.part for each in findings)
    return replace(findings[0], estimate=estimate, total=total, noise=noise, part=part)
