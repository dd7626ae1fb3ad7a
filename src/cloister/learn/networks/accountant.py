"""What stochastic gradient descent with noise costs: the ε of a noise, and the noise for an ε. Usable alone.

Guarantee. A step takes each person with probability `rate`, independently; clips what each of them adds to the length C; adds
Gaussian noise of standard deviation `noise`·C to each coordinate of the sum; and tells the result. Doing that `steps` times, each
step's question chosen by the answers so far, is (ε, δ)-private for neighbours that differ by one person (one more or less).
Assumptions: rate, noise, C and the number of steps are fixed in advance, and nobody learns who took part. Theorem and proof:
`cloister.privacy.sampled` (Zhu, Dong & Wang 2022, Theorems 10 and 11), composed by privacy loss distributions (`cloister.privacy.
loss`), whose every rounding errs against us. With rate 1 the closed form of Balle & Wang (2018) is used.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from cloister.errors import InvalidParameter, NotConvertible
from cloister.privacy import Exact, PrivacyLossDistribution, exact_positive, exact_probability, mu_squared_of_gaussian, text_of
from cloister.privacy.sampled import sampled_gaussian

_CLOSE = Fraction(1_000_001, 1_000_000)
_NEAR = 1e-4  # of ln δ: some 2e-5 of the noise
_HIGHEST = Fraction(10**9)


def epsilon_for(*, noise: Exact, rate: Exact, steps: int, delta: Exact) -> Fraction:
    """The least ε, rounded up, that a run keeps; `noise` is σ/C, the noise multiplier.

    >>> round(float(epsilon_for(noise=1, rate="0.01", steps=1000, delta="1e-5")), 3)
    1.828
    >>> from cloister.privacy import epsilon_of_gaussian
    >>> epsilon_for(noise=10, rate=1, steps=25, delta="1e-5") == epsilon_of_gaussian("0.25", "1e-5")
    True
    """
    return losses_of(noise=noise, rate=rate, steps=steps).epsilon(_slack(delta))


def noise_for(*, epsilon: Exact, delta: Exact, rate: Exact, steps: int) -> Fraction:
    """The least noise multiplier σ/C, rounded up, to some 2·10⁻⁵ of it, with which a run is (ε, δ)-private.

    What is returned was checked: the run's δ at this ε is at most the δ asked for.

    >>> noise = noise_for(epsilon=1, delta="1e-5", rate="0.02", steps=500)
    >>> 0.99 < epsilon_for(noise=noise, rate="0.02", steps=500, delta="1e-5") <= 1
    True
    """
    return _noise_for(exact_positive(epsilon, "epsilon"), _slack(delta), _rate(rate), _steps(steps))


def losses_of(*, noise: Exact, rate: Exact, steps: int) -> PrivacyLossDistribution:
    """The privacy loss of a whole run, to be composed with what else is released.

    >>> run = losses_of(noise=1, rate="0.01", steps=100)
    >>> (run + PrivacyLossDistribution.laplace("0.1")).epsilon("1e-5") > run.epsilon("1e-5")
    True
    """
    width = exact_positive(noise, "noise")
    return sampled_gaussian(mu_squared=1 / width**2, rate=_rate(rate)) * _steps(steps)


@lru_cache(maxsize=256)
def _noise_for(epsilon: Fraction, delta: Fraction, rate: Fraction, steps: int) -> Fraction:
    if rate == 1:
        square = mu_squared_of_gaussian(epsilon=epsilon, delta=delta) / steps
        return Fraction(math.isqrt(math.ceil(2**120 / square)) + 1, 2**60)

    def excess(noise: Fraction) -> float:
        spent = losses_of(noise=noise, rate=rate, steps=steps).delta(epsilon)
        return math.log(spent / delta) if spent else -math.inf

    high = _noise_for(epsilon, delta, Fraction(1), steps)  # enough for everybody, so enough for a sample
    above = excess(high)
    while above > 0:  # but for what rounding adds
        high *= 2
        above = excess(high)
        if high > _HIGHEST:
            raise NotConvertible(
                f"No noise was found for ε = {text_of(epsilon)}, δ = {text_of(delta)}",
                why="so small a promise is beyond what can be computed",
                instead="a larger epsilon or delta",
            )
    low, below = high, above
    while below <= 0:
        high, above, low = low, below, low / 2
        below = excess(low)
    return _between(low, below, high, above, excess)


def _between(low: Fraction, below: float, high: Fraction, above: float, excess: Callable[[Fraction], float]) -> Fraction:
    """The root, from above, where ln δ misses by less than `_NEAR`. ln δ is nearly straight in ln σ: chords (the Illinois rule
    halves the weight of an end that stays), aimed at the middle of what is near enough."""
    upper, lower, kept = above + _NEAR / 2, below + _NEAR / 2, 0
    while above < -_NEAR and high > low * _CLOSE:
        share = lower / (lower - upper) if math.isfinite(lower - upper) else 0.5
        middle = low * Fraction(math.exp(math.log(high / low) * share))
        middle = Fraction(math.ceil(middle * 2**40), 2**40)
        if not low < middle < high:
            middle = (low + high) / 2
        found = excess(middle)
        if found <= 0:
            high, above, upper = middle, found, found + _NEAR / 2
            lower, kept = (lower / 2 if kept > 0 else lower), 1
        else:
            low, lower = middle, found + _NEAR / 2
            upper, kept = (upper / 2 if kept < 0 else upper), -1
    return high


def _rate(rate: Exact) -> Fraction:
    share = exact_positive(rate, "rate")
    if share > 1:
        raise InvalidParameter(f"rate={text_of(share)} is invalid", why="it is a probability", instead='rate="0.01"')
    return share


def _slack(delta: Exact) -> Fraction:
    slack = exact_probability(delta, "delta")
    if not slack:
        raise InvalidParameter("delta=0 is invalid", why="Gaussian noise is never pure", instead='delta="1e-6"')
    return slack


def _steps(steps: int) -> int:
    number = exact_positive(steps, "steps")
    if number.denominator != 1:
        raise InvalidParameter(f"steps={text_of(number)} is invalid", why="it counts the steps", instead="steps=100")
    return int(number)
