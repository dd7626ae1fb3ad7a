"""Published numbers that are wrong without leaking anything: what they cost is truth, and here is how much."""

import math
from collections.abc import Sequence


def unweighted_average_variance(variances: Sequence[float]) -> float:
    """The variance of the plain mean of independent answers to one question.

    >>> unweighted_average_variance([200.0, 50.0])
    62.5
    """
    return sum(variances) / len(variances) ** 2


def weighted_average_variance(variances: Sequence[float]) -> float:
    """The variance when each answer is weighted by the inverse of its variance: never above the best single answer's.

    >>> weighted_average_variance([200.0, 50.0])
    40.0
    """
    return 1 / sum(1 / each for each in variances)


def threshold_encoding_p(theta: float, epsilon: float) -> float:
    """The probability that a true bit is kept in thresholded histogram encoding, for 0 ≤ θ ≤ 1.

    >>> round(threshold_encoding_p(0.25, 5), 3)
    0.923
    """
    return 1 - 0.5 * math.exp((theta - 1) * epsilon / 2)


def threshold_encoding_p_published(theta: float, epsilon: float) -> float:
    """The same with the sign error of a published listing: not a probability at all.

    >>> round(threshold_encoding_p_published(0.25, 5), 2)
    -2.26
    """
    return 1 - 0.5 * math.exp(-(theta - 1) * epsilon / 2)


def piecewise_by_coin_mean(value: float, epsilon: float) -> float:
    """What the mean of piecewise reports tends to when the tail is chosen by a fair coin.

    >>> round(piecewise_by_coin_mean(0.5, 1), 2)
    1.03
    """
    half = math.exp(epsilon / 2)
    reach = (half + 1) / (half - 1)
    middle = half / (half + 1)
    return (reach + 1) / 2 * value * (1 + middle) / 2


def distinct_share(dimensions: int, draws: int) -> float:
    """By how much a mean shrinks when coordinates are drawn with replacement and a repeated one counts once.

    >>> distinct_share(4, 2)
    0.875
    """
    return dimensions * (1 - (1 - 1 / dimensions) ** draws) / draws


def exponential_mechanism(utilities: Sequence[float], epsilon: float, *, sensitivity: float = 1.0) -> list[float]:
    """The probabilities of the exponential mechanism.

    >>> [round(p, 4) for p in exponential_mechanism([50, 20, 30], 0.1)]
    [0.6285, 0.1402, 0.2312]
    """
    top = max(utilities)
    weights = [math.exp(epsilon * (each - top) / (2 * sensitivity)) for each in utilities]
    return [each / sum(weights) for each in weights]


def attackers_error(noise_variance: float, spread: float) -> tuple[float, float]:
    """The mean squared error of an attacker who takes a noisy value as it is, and of one who shrinks it towards the known mean.

    >>> attackers_error(9.0, 1.0)
    (9.0, 0.9)
    """
    return noise_variance, noise_variance * spread / (noise_variance + spread)
