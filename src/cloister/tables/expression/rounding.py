"""Rounding and clamping of computed numbers: exact, on whole numbers, and never a division of doubles.

Which way a number halfway between two goes is said each time: engines differ, and one that rounds halves of doubles to even
rounds those of decimals away from zero (`query/numbers.py` has the rule of each).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Literal, TypeAlias, get_args

from cloister.errors import UnsupportedQuery, check_one_of, check_whole
from cloister.tables.expression.arithmetic import Unary, number_form
from cloister.tables.expression.forms import LARGEST_DIVIDEND, NARROW, Form, Interval, Number, bounded, common_grid, too_large
from cloister.tables.expression.scalar import Domains, exact_constant
from cloister.tables.expression.scope import Scope

Mode: TypeAlias = Literal["half away", "half even", "truncate", "floor", "ceiling"]
"""To the nearest, with halves away from zero or to the even neighbour; or towards zero, down, up."""


@dataclass(frozen=True)
class Round(Unary):
    """x as a multiple of 10^-digits: the nearest one, or the next one in a direction.

    >>> from cloister.tables.declaring.columns import Real
    >>> from cloister.tables.expression.scalars import Ref
    >>> Round(Ref("x"), 1).domain({"x": Real("-0.25", "0.25", step="0.01")})
    Stepped(first=-3, last=3, step_size=Fraction(1, 10), nullable=False)
    >>> Round(Ref("x"), 1, "half even").domain({"x": Real("-0.25", "0.25", step="0.01")})
    Stepped(first=-2, last=2, step_size=Fraction(1, 10), nullable=False)
    """

    stored: ClassVar[str] = "round"

    digits: int = 0
    mode: Mode = "half away"

    def __post_init__(self) -> None:
        check_whole(self.digits, "digits", -30, 30, why="it is not within ±30", instead="ROUND(x, 2)")
        check_one_of(self.mode, "mode", get_args(Mode), why=f"known are {', '.join(get_args(Mode))}", instead='mode="half away"')
        super().__post_init__()

    def form(self, domains: Domains, within: Interval | None = None) -> Form:
        """Whole multiples of the step."""
        step = Fraction(10) ** -self.digits
        return rounded(number_form(self.x, domains, wider(within, step)), step, self.mode)


@dataclass(frozen=True)
class Floor(Unary):
    """The greatest whole number that is not above x."""

    stored: ClassVar[str] = "floor"

    def form(self, domains: Domains, within: Interval | None = None) -> Form:
        """Rounding down on whole numbers."""
        return rounded(number_form(self.x, domains, wider(within, Fraction(1))), Fraction(1), "floor")


@dataclass(frozen=True)
class Ceiling(Unary):
    """The least whole number that is not below x."""

    stored: ClassVar[str] = "ceiling"

    def form(self, domains: Domains, within: Interval | None = None) -> Form:
        """-floor(-x)."""
        within = wider(within, Fraction(1))
        x = number_form(self.x, domains, within)
        down = rounded(x.times(-1, x.grid), Fraction(1), "floor")
        return down.times(-1, down.grid)


def wider(within: Interval | None, by: Fraction) -> Interval | None:
    """Bounds for what is about to be rounded into the bounds."""
    return None if within is None else (within[0] - by, within[1] + by)


def nearest(value: Fraction, mode: Mode) -> int:
    """The whole number that a value is rounded to.

    >>> [nearest(Fraction(-5, 2), mode) for mode in ("half away", "half even", "truncate", "floor", "ceiling")]
    [-3, -2, -2, -3, -2]
    """
    if mode == "half even":
        return round(value)
    if mode == "half away":
        return math.floor(value + Fraction(1, 2)) if value >= 0 else math.ceil(value - Fraction(1, 2))
    down = mode == "floor" or (mode == "truncate" and value >= 0)
    return math.floor(value) if down else math.ceil(value)


def differ(x: Number, step: Fraction, modes: set[Mode]) -> bool:
    """Whether any multiple of x's grid, whatever its sign, is rounded to different multiples of the step by these modes."""
    under = (x.grid / step).denominator
    nearest_only = modes <= {"half away", "half even"}
    return len(modes) > 1 and (under % 2 == 0 if nearest_only else under > 1)


def rounded(x: Number, step: Fraction, mode: Mode) -> Number:
    """x on the multiples of a step; x itself where it lies on them already.

    With D the dividend and U the divisor as whole numbers, floor((D + plus) / U) is the result: plus is 0 for the floor, U - 1
    for the ceiling, U/2 for the nearest with halves up. Away from zero, and towards it, plus depends on the sign of D; to the
    even neighbour, U/2 - 1 rounds halves down, and one more is added where the floor of D / U is odd.
    """
    integer = step.denominator == 1
    ratio = x.grid / step
    if ratio.denominator == 1:
        return replace(x, integer=integer or x.integer)
    double = 2 if mode.startswith("half") and ratio.denominator % 2 else 1  # an odd denominator has no half: then all is doubled
    times, under = ratio.numerator * double, ratio.denominator * double
    below, above = {
        "half away": (under // 2 - 1, under // 2),
        "half even": (under // 2 - 1, under // 2),
        "truncate": (under - 1, 0),
        "floor": (0, 0),
        "ceiling": (under - 1, under - 1),
    }[mode]
    by_sign = mode in ("half away", "truncate")
    if by_sign and x.low >= 0:
        below = above
    elif by_sign and x.high <= 0:
        above = below
    ends = [nearest(Fraction(end * ratio.numerator, ratio.denominator), mode) for end in (x.low, x.high)]
    lift = max(-math.floor(Fraction(x.low * times, under)), 0)  # whole steps that make the dividend not negative
    lift += lift % 2  # an even number of them: odd stays odd
    reach = (x.low * times + min(below, 0) + lift * under, x.high * times + above + lift * under)
    wide = bounded(*reach, under, x.low * times, x.high * times, above + lift * under, most=LARGEST_DIVIDEND)
    if max(map(abs, ends)) + lift >= NARROW:
        raise too_large("is rounded to a step that is too fine for its range")

    def build(scope: Scope) -> Any:
        ops, broad = scope.operations, wide or x.wide

        def whole(number: int) -> Any:
            return ops.whole(number, wide=broad)

        def divided(plus: Any) -> Any:
            return ops.quotient(scaled + plus, whole(under), wide=broad)

        n = x.at(scope, wide=broad)
        scaled = n if times == 1 else n * whole(times)
        if mode == "half even":
            odd = ops.remainder(divided(whole(lift * under)), ops.whole(2)) == ops.whole(1)
            found = divided(ops.chosen([(odd, whole(above + lift * under))], whole(below + lift * under)))
        elif below != above:
            found = divided(ops.chosen([(n < whole(0), whole(below + lift * under))], whole(above + lift * under)))
        else:
            found = divided(whole(above + lift * under))
        return found - ops.whole(lift) if lift else found

    weight = (2 if mode == "half even" or below != above else 1) * x.weight + 12
    return replace(x, grid=step, low=ends[0], high=ends[1], integer=integer, build=build, weight=weight)


@dataclass(frozen=True)
class Clamp(Unary):
    """x within [low, high]; and the bounds of what has none of its own, such as a quotient.

    >>> from cloister.tables.declaring.columns import Integer
    >>> from cloister.tables.expression.scalars import Const, Divide, Ref
    >>> Clamp(Divide(Const(1), Ref("x")), 0, 1).domain({"x": Integer(0, 9)}).kind
    'real'
    """

    stored: ClassVar[str] = "clamp"

    low: Fraction
    high: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", exact_constant(self.low))
        object.__setattr__(self, "high", exact_constant(self.high))
        if self.low > self.high:
            raise UnsupportedQuery("CLAMP is not supported", why="its lower bound is above the upper", instead="CLAMP(x, 0, 100)")
        super().__post_init__()

    def form(self, domains: Domains, within: Interval | None = None) -> Form:
        """Comparisons with the bounds, on a grid that holds them."""
        low, high = self.low, self.high
        if within is not None:
            low, high = (min(max(end, within[0]), within[1]) for end in (low, high))
        return clamped(number_form(self.x, domains, (low, high)), self.low, self.high)


def clamped(x: Number, low: Fraction, high: Fraction) -> Number:
    """x within [low, high]; x itself where its own bounds are as narrow."""
    least, greatest = x.interval
    if low <= least and greatest <= high:
        return x
    needed = [bound for bound, bites in ((low, least < low), (high, greatest > high)) if bites]
    n = x.on(common_grid([x.grid, *needed]))
    bottom, top = math.floor(low / n.grid), math.ceil(high / n.grid)
    ends = [min(max(end, bottom), top) for end in (n.low, n.high)]

    def build(scope: Scope) -> Any:
        ops = scope.operations
        at = n.build(scope)
        branches = []
        if n.low < bottom:
            branches.append((at < ops.whole(bottom, wide=n.wide), ops.whole(bottom, wide=n.wide)))
        if n.high > top:
            branches.append((at > ops.whole(top, wide=n.wide), ops.whole(top, wide=n.wide)))
        done = ops.chosen(branches, at)
        return done if n.wide == result.wide else ops.fitted(done, wide=result.wide)

    result = replace(
        n, low=ends[0], high=ends[1], integer=x.integer and n.grid.denominator == 1, build=build, weight=3 * n.weight + 2
    )
    return result
