"""Do those who chose one level for a question answer like those who chose another?"""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np

from cloister.local.frequency.estimates import Estimate, beyond, half_width
from cloister.local.protocols.levels import OUTSIDE, Homogeneity, homogeneity
from cloister.local.survey.findings import Finding
from cloister.local.survey.question import Question
from cloister.local.survey.questions import Number

MEAN = "mean"
"""What differs most, where it is not the share of an answer."""


def alike_of(question: Question, groups: Mapping[Fraction, Finding]) -> Homogeneity | None:
    """The test of homogeneity of one question's groups, by their ε; None where fewer than two have respondents, and for words,
    which were found in the very reports that would test them.

    Shares are compared answer by answer, two groups at a time (`cloister.local.protocols.levels`). Of numbers, the shares of who
    gave one, and the means: not the bins of a distribution, whose estimates lean towards smoothness, the more so the smaller ε.
    The p-value is that of the one that differs most, times the number of comparisons (Bonferroni).

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
    return Estimate(
        counts=np.array([answered.value]),
        n=n,
        variances=np.array([answered.variance]),
        values=("a number",),
        part=answered.part,
        slope=finding.estimate.slope,
    )


def _means(question: Number, groups: list[Finding]) -> Homogeneity | None:
    """Each two of the groups' means are compared, by the intervals of few reports: each has the noise of its reports, and that
    of who fell into the group. The second is not known; people's numbers around a mean of m have a variance of
    (high − m)(m − low) at most (Bhatia and Davis 2000), and m is the one of those that all groups together do not rule out where
    that is largest."""
    found = [mean for finding in groups if (mean := finding.mean()) is not None and mean.seen]
    if len(found) < 2:
        return None
    low, high = float(Fraction(question.low)), float(Fraction(question.high))
    span = high - low
    noise = np.array([mean.variance for mean in found])
    people = np.array([mean.answered for mean in found])
    parts = np.array([mean.part for mean in found]) + span / people
    weights = 1 / np.maximum(noise + span**2 / 4 / people, 1e-300)
    weights = weights / weights.sum()
    pooled = float(weights @ [mean.value for mean in found])
    doubt = np.asarray(weights**2 @ (noise + span**2 / 4 / people))
    wide = float(half_width(1 - Fraction(OUTSIDE), doubt, part=float((weights * parts).max())))
    common = min(max((low + high) / 2, max(pooled - wide, low)), min(pooled + wide, high))
    variances = noise + max((high - common) * (common - low), 0.0) / people
    pairs = list(combinations(range(len(found)), 2))
    apart = np.array([abs(found[one].value - found[other].value) for one, other in pairs])
    doubts = np.array([variances[one] + variances[other] for one, other in pairs])
    chances = beyond(apart, doubts, part=np.array([max(parts[one], parts[other]) for one, other in pairs]))
    p_value = min(1.0, len(pairs) * float(chances.min()) + OUTSIDE)
    statistic = float((apart**2 / np.maximum(doubts, 1e-300)).max())
    return Homogeneity(statistic=statistic, degrees=len(found) - 1, p_value=p_value, value=MEAN)
