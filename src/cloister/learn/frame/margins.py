"""How wide an interval is: quantiles of the normal law, for noise that is a sum of several."""

from __future__ import annotations

import math
from statistics import NormalDist

from cloister.errors import InvalidParameter
from cloister.privacy import Exact, exact_probability


def normal_quantile(confidence: float) -> float:
    """The half-width, in standard deviations, of the interval that holds a normal number with that confidence.

    >>> round(normal_quantile(0.95), 3)
    1.96
    """
    if not 0 < confidence < 1:
        raise InvalidParameter(f"confidence={confidence!r} is invalid", why="it lies between 0 and 1", instead="confidence=0.95")
    return NormalDist().inv_cdf((1 + confidence) / 2)


def wider_quantile(confidence: Exact) -> float:
    """The same for a number between a Laplace and a normal one of the same deviation: the wider of the two.

    >>> round(wider_quantile(0.95), 3), round(wider_quantile("0.5"), 3)
    (2.118, 0.674)
    """
    share = float(exact_probability(confidence, "confidence"))
    return max(NormalDist().inv_cdf((1 + share) / 2), -math.log1p(-share) / math.sqrt(2))
