"""How private chi-square noise is on a number that moves by one: what a Wishart mechanism comes down to."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from cloister.errors import InvalidParameter
from cloister.noise._exponentials import ln_up

_DIGITS = 50
_MOST_DEGREES = 1 << 24


def delta_of_shift(degrees: int, epsilon: Fraction) -> float:
    """The least δ for which chi-square noise of m = `degrees` ≥ 3 on a number that moves by at most 1 is (ε, δ)-DP.

    With densities p(t) ∝ t^a e^(−t/2), a = m/2 − 1, and p(t − 1), the ratio p(t)/p(t−1) = (t/(t−1))^a e^(−1/2) falls in t. So
    the worst events are t < t₁ one way and, for ε < ½, t > t₂ the other way. A smaller shift is no worse, since the law is
    log-concave (`matrices.proof.md`, last section).

    >>> delta_of_shift(100, Fraction(1)) < 1e-6 < delta_of_shift(50, Fraction("0.5"))
    True
    """
    import mpmath

    context = mpmath.MPContext()
    context.dps = _DIGITS
    half, cost = context.mpf(degrees) / 2, context.mpf(epsilon.numerator) / epsilon.denominator
    a = half - 1
    t1 = 1 / -context.expm1(-(cost + 0.5) / a)
    worst = _gamma_below(context, half, t1 / 2) - context.exp(cost) * _gamma_below(context, half, (t1 - 1) / 2)
    if cost < 0.5:
        t2 = 1 / -context.expm1(-(0.5 - cost) / a)
        early, late = _gamma_below(context, half, (t2 - 1) / 2), _gamma_below(context, half, t2 / 2)
        worst = max(worst, (1 - early) - context.exp(cost) * (1 - late))
    return max(0.0, float(worst) * (1 + 2.0**-40))


def _gamma_below(context: Any, shape: Any, x: Any) -> Any:
    """P(Γ ≤ x) for a gamma number, x^s e^(−x)/Γ(s+1) · Σ_k x^k/((s+1)…(s+k)), to some 45 digits."""
    if x <= 0:
        return context.mpf(0)
    if x > shape + 100 * context.sqrt(shape) + 1000:  # the tail is below e^(−400)
        return context.mpf(1)
    total = term = context.exp(shape * context.log(x) - x - context.loggamma(shape + 1))
    k = 0
    while k < x - shape or term > total * context.eps:
        k += 1
        term *= x / (shape + k)
        total += term
    return total


def least_degrees(epsilon: Fraction, delta: Fraction) -> int:
    """The least m ≥ 3 with `delta_of_shift(m, ε)` ≤ δ.

    >>> least_degrees(Fraction(1), Fraction("1e-6")) < 60
    True
    """
    low, high = 2, 4
    while delta_of_shift(high, epsilon) > delta:
        low, high = high, high * 2
        if high > _MOST_DEGREES:
            raise InvalidParameter(
                "epsilon is invalid", why="it needs more degrees of freedom than can be drawn", instead='epsilon="0.1"'
            )
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if delta_of_shift(middle, epsilon) <= delta else (middle, high)
    return high


def sheffet_degrees(dimension: int, epsilon: Fraction, delta: Fraction) -> int:
    """The degrees of freedom of Sheffet's theorem, for ε < 1 and δ < 1/e: ⌈d + 28 ln(4/δ)/ε²⌉.

    >>> sheffet_degrees(3, Fraction("0.5"), Fraction("1e-6"))
    1706
    """
    needed = dimension + 28 * ln_up(4 / delta) / epsilon**2
    return -(-needed.numerator // needed.denominator)
