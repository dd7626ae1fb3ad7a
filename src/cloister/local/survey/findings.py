"""What the reports to one question say: estimated counts and means with margins, which add up over groups of people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cloister.local.estimates import Estimate, Number, add_estimates
from cloister.privacy.rational import Exact

__all__ = ["Finding", "add_findings"]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The estimate of each answer's count; and where answers are numbers, of their sum.

    >>> counts = Estimate(counts=np.array([30.0, 70.0]), n=100, variances=np.array([9.0, 9.0]), values=("once", "often"))
    >>> finding = Finding(estimate=counts, scores=(1.0, 2.0))
    >>> finding.mean().value, round(finding.mean().margin(0.95), 3)
    (1.7, 0.063)
    """

    estimate: Estimate
    scores: tuple[float | None, ...] = ()
    """What each answer counts in the mean; None: it does not."""
    total: Number | None = None
    """The sum, over those who answered, of how far their number is from `middle`."""
    middle: float = 0.0
    several: bool = False
    """True where one person may tick several answers, so that counts don't sum to n."""
    found: bool = False
    """True where the answers were found in the reports themselves (free words), so a rare one may be missing."""

    @property
    def answered(self) -> Number:
        """How many gave an answer: all, where "no answer" is not among the answers."""
        left_out = [place for place, label in enumerate(self.estimate.values) if label == "no answer"]
        n = self.estimate.n
        if not left_out:
            return Number(value=float(n), variance=0.0, n=n)
        return Number(
            value=n - float(self.estimate.counts[left_out[0]]), variance=float(self.estimate.variances[left_out[0]]), n=n
        )

    def mean(self) -> Number | None:
        """The mean number of those who answered, with the error of a ratio to first order; None where answers are no numbers,
        or where next to nobody can be seen to have answered."""
        answered = self.answered
        if not (self.scores or self.total) or answered.value <= 3 * np.sqrt(answered.variance) or answered.value <= 0:
            return None
        n = self.estimate.n
        if self.total is not None:
            above = self.total.value / answered.value
            variance = (self.total.variance + above**2 * answered.variance) / answered.value**2
            return Number(value=self.middle + above, variance=variance, n=n)
        counted = [place for place, score in enumerate(self.scores) if score is not None]
        scores = np.array([self.scores[place] for place in counted], dtype=np.float64)
        counts, variances = self.estimate.counts[counted], self.estimate.variances[counted]
        if counts.sum() <= 0:
            return None
        mean = float(scores @ counts / counts.sum())
        # Estimated counts of one report lean against one another by at most a share 1/(d − 1) of their variance.
        lean = len(self.estimate) / (len(self.estimate) - 1)
        variance = lean * float((scores - mean) ** 2 @ variances) / float(counts.sum()) ** 2
        return Number(value=mean, variance=variance, n=n)

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
            for label, count, margin, fit in zip(estimate.values, estimate.counts, margins, likely, strict=True)
        ]


def add_findings(findings: Sequence[Finding]) -> Finding:
    """The findings of groups of different people: each group's own estimates are unbiased, whoever chose which level, and so is
    their sum. (Weighing by precision is not: who chooses which level may depend on the answer.)

    >>> counts = Estimate(counts=np.array([30.0, 70.0]), n=100, variances=np.array([9.0, 9.0]), values=("no", "yes"))
    >>> add_findings([Finding(estimate=counts)] * 2).estimate.counts.tolist()
    [60.0, 140.0]
    """
    totals = [each.total for each in findings if each.total is not None]
    total = (
        Number(
            value=sum(each.value for each in totals), variance=sum(each.variance for each in totals), n=sum(t.n for t in totals)
        )
        if totals
        else None
    )
    return replace(findings[0], estimate=add_estimates(*[each.estimate for each in findings]), total=total)
