"""Exact privacy parameters: from what a person writes to a `Fraction`, and back to a float that never promises too much."""

import math
import numbers
import re
import sys
from decimal import Context, Decimal, InvalidOperation, localcontext
from fractions import Fraction
from typing import TypeAlias

from cloister.errors import InvalidParameter

Exact: TypeAlias = int | float | str | Fraction | Decimal
"""What a person may write where an exact number is meant. A float counts as its shortest decimal text."""

_LONGEST_TEXT = 400
_LONGEST_PLAIN = 2000
"""Of a text without an exponent: `text_of` writes up to some 1,600 characters for what 400 characters and an exponent say."""
_LARGEST_EXPONENT = 400
_MANY = r"\d[\d./]{39,1999}"


def exact(value: Exact, name: str = "value") -> Fraction:
    """The rational number that `value` stands for.

    A float means its shortest decimal text: `0.1` is exactly 1/10. NaN and infinities are refused, and so are bool (almost
    always a mistake) and texts whose exact value would not fit in memory. Of a text that is accepted, `text_of` the number is
    accepted too: what is written down is read back.

    >>> exact(0.1) == exact("0.1") == Fraction(1, 10)
    True
    >>> exact(text_of(exact("1e400"))) == 10**400
    True
    >>> exact("1/3"), exact("1e-6"), exact(2)
    (Fraction(1, 3), Fraction(1, 1000000), Fraction(2, 1))
    """
    if type(value) is Fraction and type(value.numerator) is type(value.denominator) is int:
        return value  # one that is made of numpy's integers would overflow in silence
    if isinstance(value, bool):
        raise InvalidParameter(f"{name}={value!r} is invalid", why="a truth value is not a number", instead=f"{name}=1")
    if isinstance(value, int | Fraction):
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, float):
        if not math.isfinite(value):
            raise _not_a_number(value, name)
        return Fraction(repr(float(value)))
    if isinstance(value, Decimal):
        return _from_text(str(value), value, name)
    if isinstance(value, str):
        return _from_text(value.strip(), value, name)
    if isinstance(value, numbers.Rational):  # numpy's integers, gmpy2's rationals
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, numbers.Real):  # numpy's shorter floats: their own shortest text, not that of the double they widen to
        return _from_text(str(value), value, name)
    raise InvalidParameter(
        f"{name}=… is invalid", why=f"a {type(value).__name__} is not an exact number", instead=f'{name}="0.1"'
    )


def exact_positive(value: Exact, name: str = "value") -> Fraction:
    """`exact`, and greater than zero.

    >>> exact_positive("0.5")
    Fraction(1, 2)
    """
    number = exact(value, name)
    if number <= 0:
        raise InvalidParameter(f"{name}={shown(value)} is invalid", why="it must be greater than 0", instead=f'{name}="0.1"')
    return number


def exact_nonnegative(value: Exact, name: str = "value") -> Fraction:
    """`exact`, and not below zero.

    >>> exact_nonnegative(0)
    Fraction(0, 1)
    """
    number = exact(value, name)
    if number < 0:
        raise InvalidParameter(f"{name}={shown(value)} is invalid", why="it must not be negative", instead=f'{name}="0.1"')
    return number


def exact_probability(value: Exact, name: str = "delta") -> Fraction:
    """`exact`, within [0, 1).

    >>> exact_probability("1e-6")
    Fraction(1, 1000000)
    """
    number = exact(value, name)
    if not 0 <= number < 1:
        usual = "0.95" if name == "confidence" else "1e-6"
        raise InvalidParameter(
            f"{name}={shown(value)} is invalid", why="it must be at least 0 and less than 1", instead=f'{name}="{usual}"'
        )
    return number


def whole_number(number: Fraction, name: str, *, least: int = 0, usual: int = 1) -> int:
    """A number that counts something: whole, and at least 0 or 1.

    >>> whole_number(Fraction(3), "times")
    3
    """
    if number.denominator != 1 or number < least:
        why = "it must be a whole number from 1 on" if least else "it must be a whole number"
        raise InvalidParameter(f"{name}={text_of(number)} is invalid", why=why, instead=f"{name}={usual}")
    return int(number)


def float_up(value: Fraction) -> float:
    """The least float that is not below `value`.

    >>> float_up(Fraction(1, 10)) >= Fraction(1, 10)
    True
    >>> float_up(Fraction(1, 3)) > Fraction(1, 3)
    True
    """
    try:
        near = float(value)
    except OverflowError:
        return math.inf if value > 0 else -sys.float_info.max
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)


def float_down(value: Fraction) -> float:
    """The greatest float that is not above `value`.

    >>> float_down(Fraction(1, 3)) < Fraction(1, 3)
    True
    """
    return -float_up(-value)


def fraction_up(value: float, digits: int = 15) -> Fraction:
    """A short rational that is not below `value`: for parameters that had to pass through floating point.

    >>> fraction_up(0.1) >= Fraction(0.1)
    True
    """
    if not math.isfinite(value):
        raise _not_a_number(value, "value")
    if value == 0:
        return Fraction(0)
    scale = digits - 1 - math.floor(math.log10(abs(value)))
    power = Fraction(10) ** scale
    return Fraction(math.ceil(Fraction(value) * power)) / power


def text_of(value: Fraction) -> str:
    """The shortest faithful text: a decimal where one exists within 30 digits, a ratio otherwise.

    >>> text_of(Fraction(1, 10)), text_of(Fraction(1, 3)), text_of(Fraction(1, 10**6)), text_of(Fraction(5))
    ('0.1', '1/3', '0.000001', '5')
    """
    if value.denominator == 1:
        return str(value.numerator)
    rest, twos, fives = value.denominator, 0, 0
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    places = max(twos, fives)
    if rest != 1 or places > 30:
        return f"{value.numerator}/{value.denominator}"
    digits = str(abs(value.numerator) * 10**places // value.denominator).zfill(places + 1)
    sign = "-" if value < 0 else ""
    return f"{sign}{digits[:-places]}.{digits[-places:]}"


def figures(value: Fraction, digits: int = 6) -> str:
    """A number to so many figures, however large or small it is.

    >>> figures(Fraction(1, 3)), figures(Fraction(10**400)), figures(Fraction(-2, 10**400), 3)
    ('0.333333', '1e+400', '-2e-400')
    """
    try:
        near = float(value)
    except OverflowError:
        near = 0.0
    return f"{near or _decimal(value):.{digits}g}"


def _decimal(value: Fraction) -> Decimal:
    with localcontext(Context(prec=60)):
        return (Decimal(value.numerator) / Decimal(value.denominator)).normalize()


def legible(value: object) -> str:
    """A guarantee, or its text, with numbers of so many digits that nobody reads them to six figures.

    >>> legible("ρ = 0.1"), legible(f"ρ = {10**40}/{3 * 10**40}")
    ('ρ = 0.1', 'ρ = 0.333333')
    """
    return re.sub(_MANY, _to_figures, str(value))


def _to_figures(found: re.Match[str]) -> str:
    try:
        return figures(exact(found[0]))
    except InvalidParameter:
        return f"{found[0][:37]}…"


def reads_back(value: Fraction) -> bool:
    """Whether `exact` reads the text that `text_of` writes: so it is of every number that was read from a text, and not of one
    that was computed and is too long.

    >>> reads_back(exact("1e-400")), reads_back(Fraction(10**3000))
    (True, False)
    """
    if value.numerator.bit_length() + value.denominator.bit_length() > 4 * _LONGEST_PLAIN:  # more than a decimal digit in 4 bits
        return False
    return len(text_of(value)) <= _LONGEST_PLAIN


def shown(value: object) -> str:
    """A value as a message shows it: cut where it is long, since a number of thousands of digits has no text that Python makes.

    >>> shown(Fraction(1, 3)), shown("1e-6"), shown(10**400)
    ('1/3', "'1e-6'", '…')
    """
    if isinstance(value, int | Fraction) and max(abs(value.numerator), value.denominator).bit_length() > 1000:
        return "…"
    text = str(value) if isinstance(value, Fraction) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def plain_number(text: str) -> float | Fraction:
    """The number of a text exactly: whole, or as a decimal, which reads best, where it is one.

    >>> plain_number("1/5"), plain_number("1/3"), plain_number("3")
    (0.2, Fraction(1, 3), 3)
    """
    value = exact(text)
    if value.denominator == 1:
        return value.numerator
    try:
        near = float(value)
    except OverflowError:
        return value
    return near if exact(near) == value else value


def _from_text(text: str, value: object, name: str) -> Fraction:
    exponent = text.lower().partition("e")[2]
    longest = _LONGEST_TEXT if exponent else _LONGEST_PLAIN
    if len(text) > longest:
        raise InvalidParameter(f"{name} is invalid", why=f"its text is longer than {longest} characters", instead=f'{name}="0.1"')
    try:
        if exponent and abs(int(exponent)) > _LARGEST_EXPONENT:
            raise InvalidParameter(
                f"{name}={shown(value)} is invalid",
                why=f"its exponent is beyond ±{_LARGEST_EXPONENT}",
                instead=f'{name}="1e-6"',
            )
        if not text.isascii():
            raise ValueError(text)
        number = Fraction(text)
    except InvalidParameter:
        raise
    except (ValueError, ZeroDivisionError, InvalidOperation):
        raise _not_a_number(value, name) from None
    if len(text) > _LONGEST_TEXT and not reads_back(number):
        raise InvalidParameter(
            f"{name} is invalid", why=f"written as a ratio it is longer than {longest} characters", instead=f'{name}="0.1"'
        )
    return number


def _not_a_number(value: object, name: str) -> InvalidParameter:
    # 1,000 is more likely a thousand
    if isinstance(value, str) and (found := re.fullmatch(r"\s*(\d{0,9})[,，](\d{1,2}|\d{4,9})\s*", value)):
        why, instead = "it has a decimal comma, and numbers are read with a point", f'{name}="{found[1] or 0}.{found[2]}"'
        return InvalidParameter(f"{name}={shown(value)} is invalid", why=why, instead=instead)
    return InvalidParameter(f"{name}={shown(value)} is invalid", why="it is not a finite number", instead=f'{name}="0.1"')


def exact_square_root(value: Fraction) -> Fraction:
    """The square root, rounded up by at most 2⁻³⁹.

    >>> exact_square_root(Fraction(4)) - 2 < Fraction(1, 10**9)
    True
    """
    return Fraction(math.isqrt(math.ceil(value * 2**80)) + 1, 2**40)
