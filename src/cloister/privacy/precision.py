"""Real numbers of sixty digits, and the way from them to a `Fraction` that errs against ourselves.

Formulas with roots, logarithms and error functions are evaluated with mpmath at 60 significant digits. Every formula here has a
condition number far below 10²⁰ in its arguments (where a difference could cancel, the formula checks it and asks for more
digits), and mpmath's elementary functions are correct to a few units in the last place; so a result is right to 10⁻³⁰ of its
size. `up` and `down` move it by that much first, and then round to a short decimal, outwards.

The context is one for each thread: mpmath changes its precision for a moment inside many functions, which two threads must not
share.
"""

import threading
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from cloister.errors import NotConvertible

DIGITS = 60
_SLACK = Fraction(1, 10**30)
_LARGEST = 4000  # bits: beyond every number that a person may write, and its square
_local = threading.local()


def context(digits: int = DIGITS) -> Any:
    """This thread's mpmath context at the given number of digits.

    >>> context().dps >= 60
    True
    """
    from mpmath.ctx_mp import MPContext

    contexts: dict[int, Any] = _local.__dict__.setdefault("contexts", {})
    if digits not in contexts:
        contexts[digits] = MPContext()
        contexts[digits].dps = digits
    return contexts[digits]


def real(value: Fraction, digits: int = DIGITS) -> Any:
    """A rational as a real of sixty digits.

    >>> float(real(Fraction(1, 3)))
    0.3333333333333333
    """
    number = context(digits)
    return number.mpf(value.numerator) / value.denominator


def up(value: Any, digits: int = 15) -> Fraction:
    """The least decimal of `digits` significant digits that is not below the real number that `value` stands for.

    >>> up(context().sqrt(2), digits=6)
    Fraction(70711, 50000)
    """
    return -down(-value, digits)


def down(value: Any, digits: int = 15) -> Fraction:
    """The greatest decimal of `digits` significant digits that is not above the real number that `value` stands for.

    >>> down(context().sqrt(2), digits=6)
    Fraction(141421, 100000)
    """
    sign, mantissa, exponent, length = value._mpf_
    if (not mantissa and exponent) or exponent + length > _LARGEST:
        raise NotConvertible("A bound was not computed", why="it is too large to write down", instead="a smaller parameter")
    if mantissa and exponent + length < -_LARGEST:  # too small to write down: 0, or what is surely below it
        return -Fraction(1, 2**_LARGEST) if sign else Fraction(0)
    exact = Fraction(-int(mantissa) if sign else int(mantissa)) * Fraction(2) ** int(exponent)
    return rounded_down(exact - abs(exact) * _SLACK, digits)


def rounded_up(value: Fraction, digits: int = 15) -> Fraction:
    """The least decimal of `digits` significant digits that is not below a rational.

    >>> rounded_up(Fraction(2, 3), digits=2)
    Fraction(67, 100)
    """
    return -rounded_down(-value, digits)


def rounded_down(value: Fraction, digits: int = 15) -> Fraction:
    """The greatest decimal of `digits` significant digits that is not above a rational.

    >>> rounded_down(Fraction(2, 3), digits=2)
    Fraction(33, 50)
    """
    if value == 0:
        return value
    power = Fraction(10) ** (digits - 1 - _magnitude(abs(value)))
    return Fraction((value * power).__floor__()) / power


def _magnitude(value: Fraction) -> int:
    """The exponent of the leading decimal digit."""
    guess = int((value.numerator.bit_length() - value.denominator.bit_length()) * 0.30103)
    while Fraction(10) ** guess > value:
        guess -= 1
    while Fraction(10) ** (guess + 1) <= value:
        guess += 1
    return guess


def lowest_between(function: Callable[[Any], Any], left: Any, right: Any, *, width: Any, ratio: Any) -> Any:
    """Where a function with one valley is lowest, to a width, by the golden section: `ratio` is (√5 − 1)/2 in numbers of the kind
    that the function takes.

    >>> round(lowest_between(lambda x: (x - 1) ** 2, 0.0, 3.0, width=1e-6, ratio=0.618), 3)
    1.0
    """
    inner, outer = right - ratio * (right - left), left + ratio * (right - left)
    inner_value, outer_value = function(inner), function(outer)
    while right - left > width:
        if inner_value <= outer_value:
            right, outer, outer_value = outer, inner, inner_value
            inner = right - ratio * (right - left)
            inner_value = function(inner)
        else:
            left, inner, inner_value = inner, outer, outer_value
            outer = left + ratio * (right - left)
            outer_value = function(outer)
    return (left + right) / 2
