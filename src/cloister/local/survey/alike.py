"""Do those who chose one level for a question answer like those who chose another?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np

from cloister.local.estimates import Estimate
from cloister.local.levels import Homogeneity, homogeneity
from cloister.local.survey.anomalies import chi_square_tail
from cloister.local.survey.findings import Finding
from cloister.local.survey.question import Question
from cloister.local.survey.questions import Number

__all__ = ["MEAN", "alike_of"]

MEAN = "mean"
"""What differs most, where it is not the share of an answer."""


def alike_of(question: Question, groups: Mapping[Fraction, Finding]) -> Homogeneity | None:
    """The test of homogeneity of one question's groups, by their ε; None where fewer than two have respondents, and for words,
    which were found in the very reports that would test them.

    Shares are compared answer by answer (`cloister.local.levels`). Of numbers, the shares of who gave one, and the means: not
    the bins of a distribution, whose estimates lean towards smoothness, the more so the smaller ε. The p-value is that of the
    one that differs most, times the number of comparisons (Bonferroni).

    >>> from cloister.local.survey import YesNo
    >>> half = Estimate(counts=np.array([500.0, 500.0]), n=1000, variances=np.full(2, 100.0), values=("no", "yes"))
    >>> most = replace(half, counts=np.array([100.0, 900.0]))
    >>> found = alike_of(YesNo("copied", "Have you?"), {Fraction(1): Finding(estimate=half), Fraction(2): Finding(estimate=most)})
    >>> found.p_value < 1e-9, alike_of(YesNo("copied", "Have you?"), {Fraction(1): Finding(estimate=half)})
    (True, None)
    """
    some = {epsilon: each for epsilon, each in groups.items() if each.estimate.n}
    if any(each.found for each in some.values()):
        return None
    if not isinstance(question, Number):
        return homogeneity({epsilon: each.estimate for epsilon, each in some.items()})
    tests = [_means(question, list(some.values()))]
    if question.no_answer:
        tests.append(homogeneity({epsilon: _given(each) for epsilon, each in some.items()}))
    held = [each for each in tests if each is not None]
    if not held:
        return None
    worst = min(held, key=lambda each: each.p_value)
    return replace(worst, p_value=min(1.0, len(held) * worst.p_value))


def _given(finding: Finding) -> Estimate:
    """How many gave a number, of a group."""
    answered, n = finding.answered, finding.estimate.n
    return Estimate(counts=np.array([answered.value]), n=n, variances=np.array([answered.variance]), values=("a number",))


def _means(question: Number, groups: list[Finding]) -> Homogeneity | None:
    """Chi-square of the groups' means: each has the noise of its reports, and that of who fell into the group. The second is not
    known; people's numbers around a mean of m have a variance of (high − m)(m − low) at most (Bhatia and Davis 2000), so the
    test is on the safe side."""
    found = [(mean, finding.answered.value) for finding in groups if (mean := finding.mean()) is not None]
    if len(found) < 2:
        return None
    low, high = float(Fraction(question.low)), float(Fraction(question.high))
    means = np.array([mean.value for mean, _ in found])
    noise = np.array([mean.variance for mean, _ in found])
    people = np.array([answered for _, answered in found])
    pooled = float(np.clip(np.average(means, weights=1 / noise), low, high))
    variances = noise + (high - pooled) * (pooled - low) / people
    centre = float(np.average(means, weights=1 / variances))
    statistic = float(((means - centre) ** 2 / variances).sum())
    degrees = len(found) - 1
    return Homogeneity(statistic=statistic, degrees=degrees, p_value=chi_square_tail(statistic, degrees), value=MEAN)
