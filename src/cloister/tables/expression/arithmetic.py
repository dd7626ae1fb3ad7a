"""Sums, differences, products, remainders and signs of computed numbers: exact, on whole numbers.

Two numbers are brought to their common grid and added as whole numbers; a product lies on the product of the grids. A remainder
has the sign of the dividend, as SQL engines have it; by 0 it is NULL.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

from cloister.errors import UnsupportedQuery
from cloister.tables.expression.forms import (
    NARROW,
    Form,
    Interval,
    Listed,
    Located,
    Nothing,
    Number,
    bounded,
    by_position,
    common_grid,
    either,
    integers,
    joined,
    too_large,
)
from cloister.tables.expression.scalar import Domains, Scalar
from cloister.tables.expression.scope import Scope


def number_form(scalar: Scalar, domains: Domains, within: Interval | None = None) -> Number:
    """A part as a number; whole numbers listed as categories count, text and truth values do not."""
    return as_number(scalar.form(domains, within), scalar)


def as_number(form: Form, scalar: object = None) -> Number:
    """A form as a number, or a refusal that names what it is."""
    if isinstance(form, Number):
        return form
    if isinstance(form, Nothing):
        return Number(grid=Fraction(0), low=0, high=0, integer=True, build=form.build)
    if isinstance(form, Listed) and not form.truths and isinstance(form.options[0], int):
        numbers = [int(option) for option in form.options]
        return from_list(form, [Fraction(number) for number in numbers], integer=True)
    kind = "a truth value" if isinstance(form, Listed) and form.truths else "text" if not hasattr(form, "unit") else "a date"
    kind = "a place" if isinstance(form, Located) else kind
    raise UnsupportedQuery(
        "Arithmetic is not supported",
        why=f"{_named(scalar)} is {kind} and not a number",
        instead="CAST(… AS INTEGER)" if kind != "a date" else "DATE_DIFF('day', later, earlier)",
    )


def from_list(form: Listed, numbers: list[Fraction | None], *, integer: bool) -> Number:
    """The number that stands for each option of a list; NULL for None."""
    present = [number for number in numbers if number is not None]
    grid = common_grid(present or [Fraction(0)])
    targets = [None if number is None else int(number / grid) if grid else 0 for number in numbers]
    ends = [target for target in targets if target is not None] or [0]
    if max(map(abs, ends)) >= NARROW:
        raise too_large("lists numbers of too many digits")
    return Number(grid=grid, low=min(ends), high=max(ends), integer=integer, **by_position(form, targets))


def _named(scalar: object) -> str:
    name = getattr(scalar, "name", None)
    return repr(name) if isinstance(name, str) else "an operand"


def aligned(*numbers: Number) -> tuple[Number, ...]:
    """The numbers on their common grid."""
    grid = common_grid([number.grid for number in numbers])
    return tuple(number.on(grid) for number in numbers)


def combine(scope: Scope, wide: bool, result: Number, work: Callable[..., Any], *numbers: Number) -> Any:
    """Work on whole numbers in one width, its result in the width of its own bounds."""
    done = work(*(number.at(scope, wide=wide) for number in numbers))
    return done if wide == result.wide else scope.operations.fitted(done, wide=result.wide)


@dataclass(frozen=True)
class Binary(Scalar):
    """What is made of two."""

    left: Scalar
    right: Scalar


@dataclass(frozen=True)
class Unary(Scalar):
    """What is made of one."""

    x: Scalar


@dataclass(frozen=True)
class Add(Binary):
    """left + right.

    >>> from cloister.tables.declaring.columns import Integer, Real
    >>> from cloister.tables.expression.scalars import Ref
    >>> Add(Ref("age"), Ref("pay")).domain({"age": Integer(0, 9), "pay": Real(0, 1, step="0.5")})
    Stepped(first=0, last=20, step_size=Fraction(1, 2), nullable=False)
    """

    stored: ClassVar[str] = "add"

    def form(self, domains: Domains, within: Interval | None = None) -> Form:
        """Whole numbers on the common grid."""
        return _sum(number_form(self.left, domains), number_form(self.right, domains))


@dataclass(frozen=True)
class Subtract(Binary):
    """left - right."""

    stored: ClassVar[str] = "subtract"

    def form(self, domains: Domains, within: Interval | None = None) -> Form:
        """left + (-1) * right."""
        right = number_form(self.right, domains)
        return _sum(number_form(self.left, domains), right.times(-1, right.grid))


def _sum(left: Number, right: Number) -> Number:
    first, second = aligned(left, right)
    ends = first.low + second.low, first.high + second.high
    return _worked(operator.add, first, second, first.grid, ends)


def _worked(work: Callable[[Any, Any], Any], first: Number, second: Number, grid: Fraction, ends: tuple[int, int]) -> Number:
    """Work on two whole numbers, in the width that both and the ends of the result need."""
    wide = bounded(*ends) or first.wide or second.wide

    def build(scope: Scope) -> Any:
        return combine(scope, wide, result, work, first, second)

    made, integer = either(build, ends, lambda _, x, y: work(x, y), first, second), first.integer and second.integer
    result = Number(grid=grid, low=ends[0], high=ends[1], integer=integer, build=made, **joined((first, second)))
    return result


@dataclass(frozen=True)
class Multiply(Binary):
    """left * right; a column times itself is never negative.

    >>> from cloister.tables.declaring.columns import Integer
    >>> from cloister.tables.expression.scalars import Ref
    >>> Multiply(Ref("x"), Ref("x")).domain({"x": Integer(-3, 5)})
    Integer(low=0, high=25, nullable=False)
    """

    stored: ClassVar[str] = "multiply"

    def form(self, domains: Domains, within: Interval | None = None) -> Form:
        """Whole numbers on the product of the grids."""
        left, right = number_form(self.left, domains), number_form(self.right, domains)
        return product(left, right, same=self.left == self.right)


def product(left: Number, right: Number, *, same: bool = False) -> Number:
    """left * right; `same` says that both are one and the same."""
    for factor, other in ((left, right), (right, left)):
        if factor.low == factor.high and factor.certain:
            scaled = other.times(factor.low, other.grid * factor.grid)
            return replace(scaled, integer=left.integer and right.integer)
    corners = [x * y for x in (left.low, left.high) for y in (right.low, right.high)]
    low, high = min(corners), max(corners)
    if same:
        low = 0 if left.low <= 0 <= left.high else min(left.low**2, left.high**2)
    return _worked(operator.mul, left, right, left.grid * right.grid, (low, high))


@dataclass(frozen=True)
class Modulo(Binary):
    """What is left of left / right after its whole part: it has the sign of left; NULL where right is 0.

    >>> from cloister.tables.declaring.columns import Integer
    >>> from cloister.tables.expression.scalars import Const, Ref
    >>> Modulo(Ref("x"), Const(10)).domain({"x": Integer(-3, 500)})
    Integer(low=-3, high=9, nullable=False)
    """

    stored: ClassVar[str] = "modulo"

    def form(self, domains: Domains, within: Interval | None = None) -> Form:
        """The remainder of whole numbers on the common grid."""
        left, right = number_form(self.left, domains), number_form(self.right, domains)
        first, second = aligned(left, right)
        most = max(abs(second.low), abs(second.high), 1) - 1
        low, high = max(min(first.low, 0), -most), min(max(first.high, 0), most)
        wide = first.wide or second.wide

        def build(scope: Scope) -> Any:
            zero = scope.operations.whole(0, wide=wide)
            return combine(scope, wide, result, lambda x, y: scope.operations.remainder(x, y.nullif(zero)), first, second)

        inherited = joined((first, second), certain=not second.low <= 0 <= second.high)
        result = Number(grid=first.grid, low=low, high=high, integer=left.integer and right.integer, build=build, **inherited)
        return result


@dataclass(frozen=True)
class Negate(Unary):
    """-x."""

    stored: ClassVar[str] = "negate"

    def form(self, domains: Domains, within: Interval | None = None) -> Form:
        """The whole number with the other sign."""
        x = number_form(self.x, domains, None if within is None else (-within[1], -within[0]))
        return x.times(-1, x.grid)


@dataclass(frozen=True)
class Absolute(Unary):
    """x without its sign.

    >>> from cloister.tables.declaring.columns import Integer
    >>> from cloister.tables.expression.scalars import Ref
    >>> Absolute(Ref("x")).domain({"x": Integer(-3, 2)})
    Integer(low=0, high=3, nullable=False)
    """

    stored: ClassVar[str] = "absolute"

    def form(self, domains: Domains, within: Interval | None = None) -> Form:
        """x, or -x where it is negative."""
        x = number_form(self.x, domains, None if within is None else (-within[1], within[1]))
        if x.low >= 0:
            return x
        low = 0 if x.high >= 0 else -x.high

        def build(scope: Scope) -> Any:
            return combine(scope, x.wide, result, lambda n: n.abs(), x)

        result = replace(x, low=low, high=max(-x.low, x.high), build=build, weight=x.weight + 1)
        return result


@dataclass(frozen=True)
class Sign(Unary):
    """-1, 0 or 1."""

    stored: ClassVar[str] = "sign"

    def form(self, domains: Domains, within: Interval | None = None) -> Form:
        """By comparison with 0."""
        x = number_form(self.x, domains)
        low, high = ((n > 0) - (n < 0) for n in (x.low, x.high))

        def build(scope: Scope) -> Any:
            n, ops = x.build(scope), scope.operations
            zero = ops.whole(0, wide=x.wide)
            branches = [(n > zero, ops.whole(1)), (n < zero, ops.whole(-1)), (n == zero, ops.whole(0))]
            return ops.chosen(branches, ops.nothing())

        return integers(low, high, build, x, weight=3 * x.weight + 4)


def fixed(number: Number) -> Fraction | None:
    """The value of what has the same in every row."""
    return number.low * number.grid if number.low == number.high and number.certain else None
