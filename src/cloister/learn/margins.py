"""How wide an interval is: quantiles of the normal law, for noise that is a sum of several."""

from __future__ import annotations

from statistics import NormalDist

from cloister.errors import InvalidParameter

__all__ = ["normal_quantile"]


def normal_quantile(confidence: float) -> float:
    """The half-width, in standard deviations, of the interval that holds a normal number with that confidence.

    >>> round(normal_quantile(0.95), 3)
    1.96
    """
    if not 0 < confidence < 1:
        raise InvalidParameter(f"confidence={confidence!r} was refused", why="it lies between 0 and 1", instead="confidence=0.95")
    return NormalDist().inv_cdf((1 + confidence) / 2)
