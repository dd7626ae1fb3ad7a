"""How wide an interval is: quantiles of the normal law, for noise that is a sum of several."""

import math
from statistics import NormalDist

from cloister.privacy import Exact, exact_probability

LEAST_MISS = 1e-12
"""How rare at the least what is not held by a margin is: of what is rarer the quantiles say nothing."""


def miss_of(confidence: Exact) -> float:
    """How often a margin of that confidence may miss.

    >>> round(miss_of("0.95"), 3), miss_of(0.9999999999999)
    (0.05, 1e-12)
    """
    return max(1 - float(exact_probability(confidence, "confidence")), LEAST_MISS)


def normal_quantile(confidence: Exact) -> float:
    """The half-width, in standard deviations, of the interval that holds a normal number with that confidence.

    >>> round(normal_quantile(0.95), 3)
    1.96
    """
    return NormalDist().inv_cdf((1 + float(exact_probability(confidence, "confidence"))) / 2)


def wider_quantile(confidence: Exact) -> float:
    """The same for a number between a Laplace and a normal one of the same deviation: the wider of the two.

    >>> round(wider_quantile(0.95), 3), round(wider_quantile("0.5"), 3)
    (2.118, 0.674)
    """
    share = float(exact_probability(confidence, "confidence"))
    return max(NormalDist().inv_cdf((1 + share) / 2), -math.log1p(-share) / math.sqrt(2))
