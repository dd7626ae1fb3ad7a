"""How much of a Gaussian law lies beyond a point, bounded from both sides; and the (ε, δ) that follow for the discrete one.

- Discrete, σ² ≤ 2¹⁶: the sums themselves, in integers (`Tails`).
- Discrete, larger σ: the integral from half-way before the first term, corrected once (Euler & Maclaurin's formula for
  midpoints), with
  a bound of what is left.
- Continuous: the complementary error function.

mpmath's erfc, exp and sqrt are taken to be right to 40 of the 60 digits; every bound is moved outwards by that much.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any

from cloister.noise.enclosure import exp_above, exp_below
from cloister.noise.thresholds import Tails
from cloister.privacy.precision import context, real
from cloister.privacy.rational import fraction_up

_TABLE_BITS = 320
_LARGEST_TABLE = 1 << 16
_FAR = 400
_BEYOND = Fraction(1, 1 << 115_000)
"""P(|Z| ≥ 400) ≤ exp(−80000) is below this; and so is the discrete law's tail, which is at most exp(−z²/2) as well."""


def discrete_tail(scale_squared: Fraction, k: int) -> tuple[Fraction, Fraction]:
    """(low, high) with low ≤ P(K ≥ k) ≤ high, for the discrete Gaussian of that σ² and k ≥ 1.

    >>> low, high = discrete_tail(Fraction(1), 1)
    >>> round(float(low), 6), float(high - low) < 1e-90
    (0.300529, True)
    """
    if scale_squared <= _LARGEST_TABLE:
        floors = _tails(scale_squared).floors(_TABLE_BITS)
        floor = floors[k - 1] if k <= len(floors) else 0
        high = Fraction(floor + 1, 2 << _TABLE_BITS)
        return Fraction(floor, 2 << _TABLE_BITS), high if floor >> 64 else min(high, _far_tail(scale_squared, k))
    return _midpoint_tail(scale_squared, k)


def at_least(scale_squared: Fraction, k: int) -> tuple[Fraction, Fraction]:
    """(low, high) with low ≤ P(K ≥ k) ≤ high, for any integer k.

    >>> at_least(Fraction(1), 0)[0] == 1 - discrete_tail(Fraction(1), 1)[1]
    True
    """
    if k >= 1:
        return discrete_tail(scale_squared, k)
    low, high = discrete_tail(scale_squared, 1 - k)
    return 1 - high, 1 - low


def discrete_delta(scale_squared: Fraction, shift: int, epsilon: Fraction) -> Fraction:
    """Not below the least δ for which two discrete Gaussians, `shift` apart, are (ε, δ)-close; one coordinate.

    Canonne, Kamath & Steinke (2020), Theorem 7: P(K > a) − e^ε·P(K > a + shift) with a = εσ²/shift − shift/2.

    >>> round(float(discrete_delta(Fraction(100), 1, Fraction(1, 2))) * 1e9, 3)
    6.934
    """
    start = math.floor(epsilon * scale_squared / shift - Fraction(shift, 2)) + 1
    bits = 128 + int(epsilon * 3 / 2)
    grown = exp_below(epsilon, bits) + 2  # e^ε ≥ 2^bits / grown
    left, right = at_least(scale_squared, start)[1], at_least(scale_squared, start + shift)[0]
    return max(Fraction(0), left - right * Fraction(1 << bits, grown))


def least_epsilon(delta_at: Callable[[Fraction], Fraction], delta: Fraction, above: Fraction) -> Fraction:
    """The least ε, rounded up to 12 digits, with delta_at(ε) ≤ delta; delta_at falls, and `above` is a first guess from above.

    >>> float(least_epsilon(lambda epsilon: 1 / (1 + epsilon), Fraction(1, 5), Fraction(3)))
    4.00000000001
    """
    if delta_at(Fraction(0)) <= delta:
        return Fraction(0)
    low, high = Fraction(0), above
    while delta_at(high) > delta:
        low, high = high, 2 * high
    while high - low > high / 2**44:
        middle = _short((low + high) / 2)
        if delta_at(middle) <= delta:
            high = middle
        else:
            low = middle
    rounded = fraction_up(math.nextafter(float(high), math.inf), 12)
    return rounded if delta_at(rounded) <= delta else high


def normal_tail(ratio: Fraction) -> Fraction:
    """Not below P(|Z| ≥ ratio) for a standard normal Z, and close.

    >>> round(float(normal_tail(Fraction(196, 100))), 6)
    0.049996
    """
    if ratio > _FAR:
        return _BEYOND
    number = context()
    return min(Fraction(1), _fraction(number.erfc(real(ratio) / number.sqrt(2)) * (1 + number.mpf(10) ** -40)))


def _far_tail(scale_squared: Fraction, k: int) -> Fraction:
    """P(K ≥ k) = w(k)·(1 + w(k + 1)/w(k) + …)/Σw with w(i) = exp(−i²/2σ²), from above.

    The quotients are multiplied up, each product rounded upwards; what is left is a geometric series of the last quotient.
    The sum of all weights is more than √(2π)σ (Poisson's formula) and more than any part of it.
    """
    one = 1 << 192
    quotient = exp_below((2 * k + 1) / (2 * scale_squared), 192) + 2
    square = exp_below(1 / scale_squared, 192) + 2
    term, total = one, 0
    while term >> 64:
        total += term
        term = (term * quotient >> 192) + 1
        quotient = min((quotient * square >> 192) + 1, quotient)
    total += term * one // (one - quotient) + 1
    if scale_squared > 4:
        square_of_all = Fraction(628318530717958, 10**14) * scale_squared  # just below 2πσ²
        weight = Fraction(math.isqrt(math.floor(square_of_all * (1 << 400))), 1 << 200)
    else:
        weight = Fraction(one + 2 * sum(exp_below(i * i / (2 * scale_squared), 192) for i in range(1, 14)), one)
    return exp_above(k * k / (2 * scale_squared)) * Fraction(total, one) / weight


def _midpoint_tail(scale_squared: Fraction, k: int) -> tuple[Fraction, Fraction]:
    """Σ f(i) over i ≥ k is F(x) + f′(x)/24 + R, where x = k − ½, f(u) = exp(−u²/2σ²), F its integral from x on.

    |R| ≤ ∫|f⁗|/720, since Bernoulli's fourth polynomial stays within 1/30. With z = x/σ that is at most |f‴(x)|/720 where z ≥
    2.34 (f⁗ keeps its sign beyond its last zero, 2.334…), and below 0.017/σ³ anywhere (∫|He₄(z)|·exp(−z²/2) ≤ √(24·2π) < 12.3).
    The sum of all weights lies between √(2π)σ and √(2π)σ(1 + 3·exp(−2π²σ²)) by Poisson's formula, and exp(−2π²·2¹⁶) <
    10^−500000.
    """
    number = context()
    sigma = number.sqrt(real(scale_squared))
    z = real(k - Fraction(1, 2)) / sigma
    if z > _FAR:
        return Fraction(0), _BEYOND
    height = number.exp(-z * z / 2)
    area = sigma * number.sqrt(number.pi / 2) * number.erfc(z / number.sqrt(2))
    slope = -z / sigma * height
    rest = number.mpf("0.018") / sigma**3
    if z >= number.mpf("2.34"):
        rest = min(rest, (z**3 - 3 * z) * height / sigma**3 / 720)
    total = sigma * number.sqrt(2 * number.pi)
    middle = (area + slope / 24) / total
    spread = rest / total + area / total * number.mpf(10) ** -40
    return max(Fraction(0), _fraction(middle - spread)), min(Fraction(1), _fraction(middle + spread))


@lru_cache(maxsize=64)
def _tails(scale_squared: Fraction) -> Tails:
    return Tails(rate=1 / (2 * scale_squared), power=2, mirrored=True)


def _short(value: Fraction) -> Fraction:
    """A rational near `value` with a short denominator, so that halving does not make ever longer ones."""
    return value.limit_denominator(10**18) or value


def _fraction(value: Any) -> Fraction:
    sign, mantissa, exponent, _ = value._mpf_
    whole = -int(mantissa) if sign else int(mantissa)
    return Fraction(whole << exponent) if exponent >= 0 else Fraction(whole, 1 << -exponent)
