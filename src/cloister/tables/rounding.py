"""Rounding and clamping of computed numbers: exact, on whole numbers.

Rounding is to the nearest, ties up (2.5 to 3, -2.5 to -2), as everywhere in cloister, and never a division of doubles.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from cloister.errors import InvalidParameter, UnsupportedQuery
from cloister.tables.arithmetic import Unary, number_form
from cloister.tables.forms import LARGEST_DIVIDEND, NARROW, Form, Interval, Number, bounded, common_grid, too_large
from cloister.tables.scalar import Domains, exact_constant
from cloister.tables.scope import Scope

__all__ = ["Ceiling", "Clamp", "Floor", "Round"]


@dataclass(frozen=True)
class Round(Unary):
    """x to the nearest multiple of 10^-digits, ties up.

    >>> from cloister.tables.columns import Real
    >>> from cloister.tables.scalars import Ref
    >>> Round(Ref("x"), 1).domain({"x": Real("-0.25", "0.25", step="0.01")})
    Stepped(first=-2, last=3, step_size=Fraction(1, 10), nullable=False)
    """

    digits: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.digits, bool) or not isinstance(self.digits, int) or not -30 <= self.digits <= 30:
            raise InvalidParameter(f"digits={self.digits!r} was refused", why="it is not within ±30", instead="ROUND(x, 2)")
        super().__post_init__()

    def form(self, domains: Domains, within: Interval | None = None) -> Form:
        """floor(x / step + 1/2) on whole numbers."""
        step = Fraction(10) ** -self.digits
        return rounded(number_form(self.x, domains, wider(within, step)), step, Fraction(1, 2))


@dataclass(frozen=True)
class Floor(Unary):
    """The greatest whole number that is not above x."""

    def form(self, domains: Domains, within: Interval | None = None) -> Form:
        """Rounding down on whole numbers."""
        return rounded(number_form(self.x, domains, wider(within, Fraction(1))), Fraction(1), Fraction(0))


@dataclass(frozen=True)
class Ceiling(Unary):
    """The least whole number that is not below x."""

    def form(self, domains: Domains, within: Interval | None = None) -> Form:
        """-floor(-x)."""
        within = wider(within, Fraction(1))
        x = number_form(self.x, domains, within)
        down = rounded(x.times(-1, x.grid), Fraction(1), Fraction(0))
        return down.times(-1, down.grid)


def wider(within: Interval | None, by: Fraction) -> Interval | None:
    """Bounds for what is about to be rounded into the bounds."""
    return None if within is None else (within[0] - by, within[1] + by)


def rounded(x: Number, step: Fraction, plus: Fraction) -> Number:
    """floor(x / step + plus) * step, for plus 0 or 1/2; x itself where it lies on the steps already."""
    integer = step.denominator == 1
    ratio = x.grid / step
    if ratio.denominator == 1:
        return replace(x, integer=integer or x.integer)
    over, moved = ratio.denominator, plus * ratio.denominator
    double = moved.denominator  # an odd denominator has no half: then all is doubled
    times, under, add = ratio.numerator * double, over * double, int(moved * double)
    ends = [math.floor((end * times + add) / Fraction(under)) for end in (x.low, x.high)]
    lift = max(-ends[0], 0)  # whole steps that make the dividend not negative
    reach = (x.low * times + add + lift * under, x.high * times + add + lift * under)
    wide = bounded(*reach, under, x.low * times, x.high * times, add + lift * under, most=LARGEST_DIVIDEND)
    if max(map(abs, ends)) + lift >= NARROW:
        raise too_large("is rounded to a step that is too fine for its range")

    def build(scope: Scope) -> Any:
        ops = scope.operations
        n = x.at(scope, wide=wide or x.wide)
        n = n if times == 1 else n * ops.whole(times, wide=wide or x.wide)
        n = n if add + lift * under == 0 else n + ops.whole(add + lift * under, wide=wide or x.wide)
        found = ops.quotient(n, ops.whole(under, wide=wide or x.wide), wide=wide or x.wide)
        return found - ops.whole(lift) if lift else found

    return replace(x, grid=step, low=ends[0], high=ends[1], integer=integer, build=build, weight=x.weight + 6)


@dataclass(frozen=True)
class Clamp(Unary):
    """x within [low, high]; and the bounds of what has none of its own, such as a quotient.

    >>> from cloister.tables.columns import Integer
    >>> from cloister.tables.scalars import Const, Divide, Ref
    >>> Clamp(Divide(Const(1), Ref("x")), 0, 1).domain({"x": Integer(0, 9)}).kind
    'real'
    """

    low: Fraction
    high: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", exact_constant(self.low))
        object.__setattr__(self, "high", exact_constant(self.high))
        if self.low > self.high:
            raise UnsupportedQuery("CLAMP was refused", why="its lower bound is above the upper", instead="CLAMP(x, 0, 100)")
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
