"""Exponentials between integer bounds, for many candidates at once, and rational bounds of logarithms and exponentials.

A coin of bias e^(−x) compares a uniform real with e^(−x). Its first 53 bits or so settle it nearly always, by machine
arithmetic with a proved slack (`exp_floors`); where they don't, `cloister.noise.enclosure.lies_below` draws more bits and
compares with exact bounds. What is assumed: numpy's `exp` errs by less than 2⁻⁴⁶ of its value (64 units in the last place; real
libraries stay below 4), and mpmath's `log` by less than 2⁴⁰ units in the last of at least 140 bits.
"""

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from cloister.noise._checks import IntegerArray
from cloister.noise.enclosure import exp_below

_SLACK = 2.0**-44


def exp_floors(gaps: IntegerArray, rate: Fraction, bits: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Integer arrays (low, high) with low ≤ 2^bits · e^(−rate·gap) ≤ high for every gap ≥ 0; bits ≤ 53.

    The argument x = rate·gap carries three roundings, 3·2⁻⁵³ of x. Where x ≤ 50 that is less than 2⁻⁴⁵ absolutely, hence in
    e^(−x) relatively; with the error of `exp` (below 2⁻⁴⁶) and of the product the sum stays below the slack 2⁻⁴⁴. Where x > 50
    both e^(−x)·2⁵³ and its computed value are below 1, so low is 0 and high is 1.

    >>> exp_floors(np.array([0, 1], dtype=np.uint64), Fraction(1), 10)
    (array([1023,  376]), array([1025,  377]))
    """
    near = np.exp(-exponents(gaps, rate)) * 2.0**bits
    low = np.floor(near * (1 - _SLACK)).astype(np.int64)
    high = np.floor(near * (1 + _SLACK)).astype(np.int64) + 1
    return low, high


def exponents(gaps: IntegerArray, rate: Fraction) -> npt.NDArray[np.float64]:
    """rate·gap in floating point, infinite where it overflows.

    >>> exponents(np.array([0, 3], dtype=np.uint64), Fraction(1, 2)).tolist()
    [0.0, 1.5]
    """
    if gaps.dtype == object:
        return np.array([_to_float(rate * int(gap)) for gap in gaps.tolist()], dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        product = gaps.astype(np.float64) * _to_float(rate)
    return np.where(gaps == 0, 0.0, product)


def ln_up(value: Fraction) -> Fraction:
    """A short rational not below ln(value), and less than 10⁻²⁴ above it, for value > 0.

    >>> float(ln_up(Fraction(3))) == math.log(3), ln_up(Fraction(1))
    (True, Fraction(0, 1))
    """
    return Fraction(0) if value == 1 else _ceiling(_ln(value) + Fraction(1, 2**90))


def ln_down(value: Fraction) -> Fraction:
    """A short rational not above ln(value), and less than 10⁻²⁴ below it, for value > 0.

    >>> ln_down(Fraction(2)) < ln_up(Fraction(2))
    True
    """
    return Fraction(0) if value == 1 else -_ceiling(Fraction(1, 2**90) - _ln(value))


def exp_down(x: Fraction, bits: int = 64) -> Fraction:
    """A rational not above e^x, with a relative error below 2^(2−bits), for 0 ≤ x ≤ 10⁴.

    >>> 2.718 < exp_down(Fraction(1)) <= Fraction(math.e) + Fraction(1, 10**15)
    True
    """
    extra = 2 * int(x) + bits + 4
    return Fraction(1 << extra, exp_below(x, extra) + 2)


def _ln(value: Fraction) -> Fraction:
    from mpmath import libmp

    size = max(value.numerator.bit_length(), value.denominator.bit_length())
    near = libmp.mpf_log(libmp.from_rational(value.numerator, value.denominator, 140 + size), 140 + size.bit_length())
    numerator, denominator = libmp.to_rational(near)
    return Fraction(int(numerator), int(denominator))


def _ceiling(value: Fraction) -> Fraction:
    return Fraction(math.ceil(value * 10**25), 10**25)


def _to_float(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf
