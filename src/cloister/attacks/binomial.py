"""Exact confidence bounds for a probability, from a count of successes (Clopper & Pearson 1934), rounded outward.

With k successes in n independent runs, the lower bound at error α is the p at which P[Bin(n, p) ≥ k] = α, and the upper bound
is the mirror image. The tail is the regularised incomplete beta function I_p(k, n−k+1) (DLMF 8.17.5). It is computed as a power
times a continued fraction (DLMF 8.17.22): the power in 60 digits, the fraction in floating point, whose error over the few
thousand steps that it takes stays far below the relative slack of 10⁻⁹ by which the answer is moved outward. So a bound here can
be looser than the exact one by a hair, never tighter.
"""

import math
from fractions import Fraction
from functools import lru_cache

import mpmath

from cloister.errors import InvalidParameter
from cloister.privacy.rational import float_down

_SLACK = 1e-9
_DIGITS = 60
_HALVINGS = 200
_STEPS = 1_000_000
_TINY = 1e-300


def lower_bound(successes: int, runs: int, *, error: Fraction) -> float:
    """A p such that the true probability is below p with chance at most `error`.

    >>> 0.39 < lower_bound(50, 100, error=Fraction(1, 40)) < 0.50
    True
    >>> lower_bound(0, 100, error=Fraction(1, 40))
    0.0
    """
    _check(successes, runs, error)
    return _lower(successes, runs, float_down(error))


def upper_bound(successes: int, runs: int, *, error: Fraction) -> float:
    """A p such that the true probability is above p with chance at most `error`.

    >>> 0.50 < upper_bound(50, 100, error=Fraction(1, 40)) < 0.61
    True
    >>> round(upper_bound(0, 100, error=Fraction(1, 20)), 6)  # the rule of three: about 3/n
    0.029513
    """
    _check(successes, runs, error)
    failing = _lower(runs - successes, runs, float_down(error))
    return math.nextafter(1.0 - failing, 2.0) if failing > 0 else 1.0


@lru_cache(maxsize=4096)
def _lower(successes: int, runs: int, error: float) -> float:
    if successes == 0:
        return 0.0
    log_error = math.log(error) - _SLACK
    low, high = 0.0, successes / runs
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high) if low > 0 else high / 2
        if not low < middle < high or high - low <= low * 1e-13:
            break
        if _log_tail(successes, runs, middle) <= log_error:
            low = middle
        else:
            high = middle
    return low


def _log_tail(successes: int, runs: int, p: float) -> float:
    """ln P[Bin(runs, p) ≥ successes], for 0 < p ≤ successes/runs; past the mean's own place any value near 0 will do."""
    a, b = successes, runs - successes + 1
    with mpmath.workdps(_DIGITS):
        x = mpmath.mpf(p)
        power = a * mpmath.log(x) + b * mpmath.log(1 - x) + mpmath.loggamma(a + b) - mpmath.loggamma(a) - mpmath.loggamma(b)
        if p < (a + 1) / (a + b + 2):
            return float(power - mpmath.log(a)) + math.log(_fraction(a, b, p))
        other = math.exp(float(power - mpmath.log(b))) * _fraction(b, a, 1.0 - p)
    return math.log1p(-other) if other < 1 else math.log(_TINY)


def _fraction(a: int, b: int, x: float) -> float:
    """The continued fraction of I_x(a, b) by Lentz's method, in the form that takes O(√max(a, b)) steps for x < (a+1)/(a+b+2)."""
    c, d = 1.0, 1.0 / _nonzero(1.0 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, _STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1.0 / _nonzero(1.0 + even * d)
        c = _nonzero(1.0 + even / c)
        value *= d * c
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1.0 / _nonzero(1.0 + odd * d)
        c = _nonzero(1.0 + odd / c)
        value *= d * c
        if abs(d * c - 1.0) < 1e-15:
            return value
    raise ArithmeticError("the continued fraction of the incomplete beta function did not settle")


def _nonzero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def _check(successes: int, runs: int, error: Fraction) -> None:
    if runs < 1 or not 0 <= successes <= runs:
        raise InvalidParameter(
            f"{successes} successes in {runs} runs are invalid",
            why="a count lies between 0 and the number of runs, of which there is one or more",
        )
    if not 0 < error <= Fraction(1, 4):
        raise InvalidParameter(
            f"error={error} is invalid", why="it must lie between 0 and 1/4", instead="error=Fraction(1, 10**9)"
        )
