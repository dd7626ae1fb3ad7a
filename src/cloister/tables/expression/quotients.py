"""Quotients, roots, logarithms, exponentials and powers: what does not stay on the grid of its operands.

A quotient by a constant stays exact, on the grid divided by it. Every other result is rounded, ties up, to a grid that follows
from the bounds of the result: the finest power of ten with at most 10^9 steps up to the largest value. A quotient is rounded
from the exact one, on whole numbers. A root is computed in IEEE doubles, whose square root is correctly rounded everywhere.
Logarithms, exponentials and fractional powers are the engine's own: engines may differ in the last bit of a double, so where
the exact value lies within about 10^-6 of a step from a tie, one engine may round up and another down. Bounds hold on every
engine, and so does the guarantee.

Undefined results are NULL: x / 0, the root of a negative number, the logarithm of what is not positive. Where the divisor may
be 0, or an exponential has no bound, CLAMP(expression, low, high) gives one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

from cloister.errors import MissingBound, UnsupportedQuery
from cloister.tables.expression.arithmetic import Binary, Unary, fixed, number_form
from cloister.tables.expression.forms import LARGEST_DIVIDEND, Form, Interval, Number, bounded, joined, shifted, too_large
from cloister.tables.expression.operations import Operations
from cloister.tables.expression.scalar import Const, Domains, exact_constant
from cloister.tables.expression.scope import Scope

_MOST_STEPS = 10**9
_LARGEST_RESULT = Fraction(10) ** 30
_LARGEST_EXPONENT = 700
_LARGEST_POWER = 16
_EXACT_IN_DOUBLE = 2**53


@dataclass(frozen=True)
class Divide(Binary):
    """left / right, never the whole part alone; NULL where right is 0.

    >>> from cloister.tables.declaring.columns import Integer
    >>> from cloister.tables.expression.scalars import Ref
    >>> Divide(Ref("x"), Const(4)).domain({"x": Integer(0, 10)})
    Stepped(first=0, last=10, step_size=Fraction(1, 4), nullable=False)
    >>> Divide(Ref("x"), Ref("y")).domain({"x": Integer(0, 10), "y": Integer(1, 3)})
    Stepped(first=0, last=1000000000, step_size=Fraction(1, 100000000), nullable=False)
    >>> Divide(Ref("y"), Ref("x")).domain({"x": Integer(0, 10), "y": Integer(1, 3)})
    Traceback (most recent call last):
    ...
    cloister.errors.MissingBound: A quotient needs bounds: its divisor may be 0, so it has no bounds.
      Instead: CLAMP(numerator / divisor, low, high)
    """

    stored: ClassVar[str] = "divide"

    def form(self, domains: Domains, within: Interval | None = None) -> Form:
        """Exact by a constant; else rounded from the exact quotient of whole numbers."""
        left, right = number_form(self.left, domains), number_form(self.right, domains)
        if right.low == right.high == 0:
            inherited = joined((left, right), certain=False)
            return Number(
                grid=Fraction(0), low=0, high=0, integer=False, build=lambda scope: scope.operations.nothing(), **inherited
            )
        divisor = fixed(right)
        if divisor is not None:
            done = left.times(1 if divisor > 0 else -1, left.grid / abs(divisor))
            return replace(done, integer=False)
        return _quotient(left, right, within)


def _quotient(left: Number, right: Number, within: Interval | None) -> Number:
    by_zero = right.low <= 0 <= right.high
    if by_zero:
        if within is None:
            raise MissingBound(
                "A quotient needs bounds",
                why="its divisor may be 0, so it has no bounds",
                instead="CLAMP(numerator / divisor, low, high)",
            )
        low, high = within
    else:
        corners = [x / y for x in left.interval for y in right.interval]
        low, high = min(corners), max(corners)
        if within is not None:
            low, high = (min(max(end, within[0]), within[1]) for end in (low, high))
    grid = grid_for(low, high)
    cut = by_zero or within is not None
    half = Fraction(1, 2)
    first, last = math.floor(low / grid + half), math.floor(high / grid + half)
    if cut:  # the quotient itself may lie beyond: it is held within ±most, and the CLAMP around it does the rest
        last = max(abs(first), abs(last)) + 1
        first = -last
    ratio = left.grid / (right.grid * grid)
    times, under = ratio.numerator, ratio.denominator
    largest = max(abs(right.low), abs(right.high)) * under
    lift = max(-first, 0)
    dividend = 2 * max(abs(left.low), abs(left.high)) * times
    wide = bounded(dividend, (2 * max(last, -first) + 2 * lift + 1) * largest, left.low, left.high, most=LARGEST_DIVIDEND)
    wide = wide or left.wide or right.wide

    def build(scope: Scope) -> Any:
        ops = scope.operations

        def whole(number: int) -> Any:
            return ops.whole(number, wide=wide)

        n, divisor = left.at(scope, wide=wide), right.at(scope, wide=wide)
        if by_zero:
            divisor = divisor.nullif(whole(0))
        if right.low < 0:
            n = n * (whole(-1) if right.high <= 0 else ops.chosen([(divisor < whole(0), whole(-1))], whole(1)))
            divisor = divisor.abs()
        n = n if times == 1 else n * whole(times)
        divisor = divisor if under == 1 else divisor * whole(under)
        if cut:
            most = divisor * whole(last)
            n = ops.chosen([(n > most, most), (n < -most, -most)], n)
        return ops.quotient(n * whole(2) + divisor * whole(2 * lift + 1), divisor * whole(2), wide=wide) - ops.whole(lift)

    weight = (4 if cut else 1) * (left.weight + 4) + (8 if cut else 4) * (right.weight + 3)
    inherited = joined((left, right), weight, certain=not by_zero)
    return Number(grid=grid, low=first, high=last, integer=False, build=build, **inherited)


def grid_for(low: Fraction, high: Fraction) -> Fraction:
    """The finest power of ten with at most 10^9 steps from 0 to the largest value.

    >>> grid_for(Fraction(-2), Fraction(10)), grid_for(Fraction(0), Fraction(1, 3)), grid_for(Fraction(0), Fraction(10) ** 11)
    (Fraction(1, 100000000), Fraction(1, 1000000000), Fraction(100, 1))
    """
    largest = max(abs(low), abs(high))
    grid = Fraction(1)
    while largest > grid * _MOST_STEPS:
        grid *= 10
    while 0 < largest * 10 <= grid * _MOST_STEPS and grid > Fraction(1, 10**15):
        grid /= 10
    return grid


@dataclass(frozen=True)
class Sqrt(Unary):
    """The square root; NULL of a negative number.

    >>> from cloister.tables.declaring.columns import Integer
    >>> from cloister.tables.expression.scalars import Ref
    >>> Sqrt(Ref("x")).domain({"x": Integer(-4, 100)})
    Stepped(first=0, last=1000000000, step_size=Fraction(1, 100000000), nullable=False)
    """

    stored: ClassVar[str] = "sqrt"

    def form(self, domains: Domains, within: Interval | None = None) -> Form:
        """A double, rounded to its grid."""
        x = number_form(self.x, domains)
        high = math.sqrt(max(_float(x.interval[1]), 0.0))
        return _by_double(x, least=0, low=0.0, high=high, work=lambda ops, y: ops.sqrt(y), exact=True)


@dataclass(frozen=True)
class Ln(Unary):
    """The natural logarithm; NULL of what is not greater than 0.

    >>> from cloister.tables.declaring.columns import Integer
    >>> from cloister.tables.expression.scalars import Ref
    >>> Ln(Ref("x")).domain({"x": Integer(0, 100)}).step
    Fraction(1, 100000000)
    """

    stored: ClassVar[str] = "ln"

    def form(self, domains: Domains, within: Interval | None = None) -> Form:
        """A double, rounded to its grid."""
        x = number_form(self.x, domains)
        ends = [math.log(_float(max(end, 1) * x.grid or Fraction(1))) for end in (x.low, x.high)]
        return _by_double(x, least=1, low=ends[0], high=ends[1], work=lambda ops, y: ops.ln(y))


@dataclass(frozen=True)
class Exp(Unary):
    """e to the power of x.

    >>> from cloister.tables.declaring.columns import Integer
    >>> from cloister.tables.expression.scalars import Ref
    >>> Exp(Ref("x")).domain({"x": Integer(0, 100)})
    Traceback (most recent call last):
    ...
    cloister.errors.MissingBound: EXP needs bounds: it may pass 1e30 within the declared bounds.
      Instead: CLAMP(EXP(x), low, high)
    """

    stored: ClassVar[str] = "exp"

    def form(self, domains: Domains, within: Interval | None = None) -> Form:
        """A double, rounded to its grid; the exponent is held within what a double and the bounds around it can hold."""
        x = number_form(self.x, domains)
        most = _most_exponent("EXP", x.interval[1], within)
        ends = [math.exp(min(max(_float(end), -_LARGEST_EXPONENT), most)) for end in x.interval]

        def work(ops: Operations, y: Any) -> Any:
            return ops.exp(_held(ops, y, -_LARGEST_EXPONENT, most))

        return _by_double(x, least=None, low=ends[0], high=ends[1], work=work)


@dataclass(frozen=True)
class Power(Unary):
    """x to a constant power: exact for whole powers from 0 to 16, a quotient for negative ones, else a double.

    Powers of negative numbers that are not whole are NULL; so is 0 to a negative power.

    >>> from cloister.tables.declaring.columns import Integer
    >>> from cloister.tables.expression.scalars import Ref
    >>> Power(Ref("x"), 2).domain({"x": Integer(-3, 5)})
    Integer(low=0, high=25, nullable=False)
    """

    stored: ClassVar[str] = "power"

    exponent: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "exponent", exact_constant(self.exponent))
        if abs(self.exponent) > _LARGEST_POWER or self.exponent.denominator > 1000:
            raise UnsupportedQuery(
                "POWER is not supported", why="its exponent is beyond ±16 or not a short fraction", instead="POWER(x, 2)"
            )
        super().__post_init__()

    def form(self, domains: Domains, within: Interval | None = None) -> Form:
        """As its exponent says."""
        exponent = self.exponent
        if exponent.denominator == 1:
            if exponent < 0:
                return Divide(Const(1), Power(self.x, -exponent)).form(domains, within)
            return _whole_power(number_form(self.x, domains), int(exponent))
        if exponent == Fraction(1, 2):
            return Sqrt(self.x).form(domains, within)
        return _power(number_form(self.x, domains), exponent, within)


def _whole_power(x: Number, exponent: int) -> Number:
    if exponent == 0:
        return shifted(x.times(0, Fraction(1)), 1)
    if exponent == 1:
        return x
    ends = [x.low**exponent, x.high**exponent]
    low = 0 if exponent % 2 == 0 and x.low <= 0 <= x.high else min(ends)
    high = max(ends)
    wide = bounded(low, high) or x.wide

    def build(scope: Scope) -> Any:
        n = x.at(scope, wide=wide)
        done = n
        for _ in range(exponent - 1):
            done = done * n
        return done if wide == result.wide else scope.operations.fitted(done, wide=result.wide)

    result = replace(x, grid=x.grid**exponent, low=low, high=high, build=build, weight=exponent * (x.weight + 1))
    return result


def _power(x: Number, exponent: Fraction, within: Interval | None) -> Number:
    if exponent < 0 and x.low <= 0 and within is None:
        raise MissingBound(
            "POWER needs bounds",
            why="what it divides by may be 0, so it has no bounds",
            instead="CLAMP(POWER(x, -0.5), low, high)",
        )
    logs = [math.log(_float(max(end, 1) * x.grid or Fraction(1))) * float(exponent) for end in (x.low, x.high)]
    most = _most_exponent("POWER", Fraction(max(logs)), within)
    ends = [math.exp(min(max(log, -_LARGEST_EXPONENT), most)) for log in logs]
    low = 0.0 if exponent > 0 and x.low <= 0 else min(ends)

    def work(ops: Operations, y: Any) -> Any:
        zero, one = ops.double(ops.whole(0)), ops.double(ops.whole(1))
        log = ops.ln(ops.chosen([(y > zero, y)], one))
        log = log * ops.double(ops.whole(exponent.numerator)) / ops.double(ops.whole(exponent.denominator))
        return ops.chosen([(y > zero, ops.exp(_held(ops, log, -_LARGEST_EXPONENT, most))), (y == zero, zero)], y)

    return _by_double(x, least=0 if exponent > 0 else 1, low=low, high=max(ends), work=work)


def _most_exponent(name: str, high: Fraction, within: Interval | None) -> int:
    """What the exponent is held below: its own bound, or one above which the result is clamped anyway."""
    most = math.ceil(high)
    if within is not None:
        wanted = min(max(within[1], Fraction(1)), _LARGEST_RESULT)
        most = min(most, math.ceil(math.log(_float(wanted))) + 1)
    if most > math.log(_LARGEST_RESULT):
        raise MissingBound(
            f"{name} needs bounds", why="it may pass 1e30 within the declared bounds", instead=f"CLAMP({name}(x), low, high)"
        )
    return max(most, -_LARGEST_EXPONENT)


def _held(ops: Operations, y: Any, low: int, high: int) -> Any:
    bottom, top = ops.double(ops.whole(low)), ops.double(ops.whole(high))
    return ops.chosen([(y < bottom, bottom), (y > top, top)], y)


def _by_double(
    x: Number, *, least: int | None, low: float, high: float, work: Callable[[Operations, Any], Any], exact: bool = False
) -> Number:
    """floor(work(x) / grid + 1/2) for x = N * p / q in doubles, N at least `least`; the result is held within its bounds."""
    times, under = x.grid.numerator, x.grid.denominator
    if x.wide or max(times, under) >= _EXACT_IN_DOUBLE:
        raise too_large("takes a root, logarithm or exponential of a number with too many digits")
    grid = grid_for(Fraction(low), Fraction(high))
    half = Fraction(1, 2)
    margin = 0 if exact else 1
    first = math.floor(Fraction(low) / grid + half) - margin
    last = math.floor(Fraction(high) / grid + half) + margin

    def build(scope: Scope) -> Any:
        ops = scope.operations
        n = x.build(scope)
        if least is not None and x.low < least:
            n = ops.chosen([(n >= ops.whole(least), n)], ops.nothing())
        y = _scaled(ops, ops.double(n), times, under)
        y = _scaled(ops, work(ops, y), grid.denominator, grid.numerator)
        found = ops.floor(y + ops.double(ops.whole(1)) / ops.double(ops.whole(2)))
        return ops.chosen([(found < ops.whole(first), ops.whole(first)), (found > ops.whole(last), ops.whole(last))], found)

    inherited = joined((x,), 24 * (x.weight + 4), certain=least is None or x.low >= least, exact=exact)
    return Number(grid=grid, low=first, high=last, integer=False, build=build, **inherited)


def _scaled(ops: Operations, y: Any, times: int, under: int) -> Any:
    y = y if times == 1 else y * ops.double(ops.whole(times))
    return y if under == 1 else y / ops.double(ops.whole(under))


def _float(value: Fraction) -> float:
    """The value as a double: beyond doubles it is past every bound anyway, and a negative one has no root."""
    if value > 10**300:
        return 1e300
    return max(float(value), -1e300) if value < 0 else float(value)
