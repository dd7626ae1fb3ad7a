"""What a computed column is while it is worked out: bounds that follow from declarations, and how to build it from codes.

A number is N * grid for a rational grid and whole N within bounds that interval arithmetic gives; so every operation is one on
whole numbers, its size is known before any row is read, and what could pass 2^120 is refused from the declarations. Beside
numbers there are lists (categories and truth values, by position), dates (by day or by period) and texts.

`certain` says that no row makes it NULL. `nullable` says whether NULL is a group of its own when the column is a key: it is
where a column that it reads declares so, and where CASE or NULLIF name it. An undefined result (x / 0) of columns that are not
nullable is NULL and falls in no group.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeAlias

from cloister.errors import UnsupportedQuery
from cloister.tables.declaring.columns import Boolean, Category, Date, Domain, Integer, Text
from cloister.tables.declaring.moments import Moment, moment_of
from cloister.tables.declaring.places import Place
from cloister.tables.expression.computed import LARGEST_CODE, Periods, Stepped, SteppedInteger
from cloister.tables.expression.operations import Operations
from cloister.tables.expression.scope import Scope

SHORT = 2**31
"""Whole numbers below it may be computed in 32 bits, where an engine is twice as quick."""
NARROW = 2**62
"""Whole numbers below it are computed in 64 bits: one more addition still fits."""
LARGEST = 2**120
"""The largest whole number that a part may reach."""
LARGEST_DIVIDEND = 2**126
"""The largest whole number that is divided, once doubled and made positive for rounding: it fits 38 digits, and 127 bits."""
HEAVIEST = 20_000
"""How many operations may be written out for one column: some seconds to compile."""

Build: TypeAlias = Callable[[Scope], Any]
Interval: TypeAlias = tuple[Fraction, Fraction]


@dataclass(frozen=True)
class Either:
    """An expression in 64 bits, and the same in 32: every number on its way there is smaller than 2^31."""

    long: Build
    short: Build

    def __call__(self, scope: Scope) -> Any:
        """In 64 bits: whoever computes on need not know."""
        return self.long(scope)


def either(long: Build, ends: tuple[int, int], work: Callable[..., Any], *parts: Form) -> Build:
    """`long`, with the same work in 32 bits where the result and all parts fit there."""
    builds = [part.build for part in parts]
    shorts = [build.short for build in builds if isinstance(build, Either)]
    if len(shorts) < len(builds) or max(map(abs, ends)) >= SHORT:
        return long
    return Either(long, lambda scope: work(scope, *(short(scope) for short in shorts)))


def shortest(form: Form, scope: Scope) -> Any:
    """The expression in as few bits as its bounds allow."""
    return form.build.short(scope) if isinstance(form.build, Either) and scope.operations.shortens else form.build(scope)


@dataclass(frozen=True, kw_only=True)
class Form(ABC):
    """What every kind has in common."""

    build: Build
    """From a scope to the expression of the codes."""
    nullable: bool = False
    certain: bool = False
    exact: bool = True
    """False where an engine's own logarithm went in: the last bit of a double may then differ between engines."""
    weight: int = 1
    """How many operations the expression is made of, written out."""

    @abstractmethod
    def domain(self) -> Domain:
        """The domain of the finished column."""


@dataclass(frozen=True, kw_only=True)
class Number(Form):
    """N * grid, for N from low to high. The grid is 0 for the constant 0."""

    grid: Fraction
    low: int
    high: int
    integer: bool
    """Whether its values are of integer type in SQL."""

    @property
    def wide(self) -> bool:
        """Whether N needs 38 digits."""
        return max(abs(self.low), abs(self.high)) >= NARROW

    @property
    def interval(self) -> Interval:
        """The least and the greatest value."""
        return self.low * self.grid, self.high * self.grid

    def at(self, scope: Scope, *, wide: bool) -> Any:
        """N in the wanted width."""
        built = self.build(scope)
        return built if wide == self.wide else scope.operations.fitted(built, wide=wide)

    def on(self, grid: Fraction) -> Number:
        """The same values on a grid that divides this one."""
        times = 1 if grid == self.grid else int(self.grid / grid) if grid else 0
        return self.times(times, grid)

    def times(self, factor: int, grid: Fraction) -> Number:
        """factor * N on another grid."""
        if factor == 1:
            return replace(self, grid=grid)
        ends = sorted((self.low * factor, self.high * factor))
        wide = bounded(*ends) or self.wide

        def build(scope: Scope) -> Any:
            done = self.at(scope, wide=wide) * scope.operations.whole(factor, wide=wide)
            return done if wide == result.wide else scope.operations.fitted(done, wide=result.wide)

        made = either(build, (ends[0], ends[1]), lambda scope, x: x * scope.operations.short(factor), self)
        result = replace(self, grid=grid, low=ends[0], high=ends[1], build=made, weight=self.weight + 1)
        return result

    def domain(self) -> Domain:
        """Integer where the step is 1, else multiples of the step."""
        check_weight(self.weight)
        if max(abs(self.low), abs(self.high)) > LARGEST_CODE:
            raise too_large("is more than 2^62 steps from 0")
        if self.integer and self.grid in (0, 1):
            return Integer(self.low, self.high, nullable=self.nullable)
        kind = SteppedInteger if self.integer else Stepped
        return kind(first=self.low, last=self.high, step_size=self.grid or Fraction(1), nullable=self.nullable)


@dataclass(frozen=True, kw_only=True)
class Listed(Form):
    """A position in a public list."""

    options: tuple[str | int | bool, ...]

    @property
    def truths(self) -> bool:
        """Whether it holds truth values: then the list is False, True."""
        return isinstance(self.options[0], bool)

    def domain(self) -> Domain:
        """A Category, or Boolean."""
        check_weight(self.weight)
        return Boolean(nullable=self.nullable) if self.truths else Category(self.options, nullable=self.nullable)


@dataclass(frozen=True, kw_only=True)
class Moments(Form):
    """Days since 1970-01-01, seconds since then, or periods."""

    unit: str
    low: int
    high: int

    def domain(self) -> Domain:
        """A Date, a Moment or Periods."""
        check_weight(self.weight)
        if self.unit == "second":
            return Moment(moment_of(self.low), moment_of(self.high), nullable=self.nullable)
        if self.unit != "day":
            return Periods(self.unit, self.low, self.high, nullable=self.nullable)
        whole = Date("0001-01-01", "9999-12-31")
        return Date(whole.decode(self.low), whole.decode(self.high), nullable=self.nullable)


@dataclass(frozen=True, kw_only=True)
class Located(Form):
    """A place, by its position on the lattice of its box."""

    place: Place

    def domain(self) -> Domain:
        """The place itself."""
        check_weight(self.weight)
        return self.place


@dataclass(frozen=True, kw_only=True)
class Words(Form):
    """Text whose values are private."""

    def domain(self) -> Domain:
        """Text."""
        check_weight(self.weight)
        return Text(nullable=self.nullable)


@dataclass(frozen=True, kw_only=True)
class Nothing(Form):
    """NULL in every row, of no kind yet."""

    def domain(self) -> Domain:
        """Refused: it needs something beside it that has a kind."""
        raise UnsupportedQuery("A column of NULL is not supported", why="its kind is not known", instead="COALESCE(NULL, 0)")


def joined(parts: tuple[Form, ...], weight: int | None = None, *, certain: bool = True, exact: bool = True) -> dict[str, Any]:
    """What a result takes over from its parts; `certain` and `exact` are whether it can be either."""
    return {
        "nullable": any(part.nullable for part in parts),
        "certain": certain and all(part.certain for part in parts),
        "exact": exact and all(part.exact for part in parts),
        "weight": sum(part.weight for part in parts) + 1 if weight is None else weight,
    }


def integers(low: int, high: int, build: Build, *parts: Form, weight: int | None = None) -> Number:
    """Whole numbers, worked out from these parts."""
    return Number(grid=Fraction(1), low=low, high=high, integer=True, build=build, **joined(parts, weight))


def form_of(name: str, domain: Domain) -> Form:
    """A declared or computed column as it enters a computation."""

    def build(scope: Scope) -> Any:
        return scope.code(name)

    def position(scope: Scope) -> Any:
        return scope.operations.fitted(scope.code(name), wide=False)

    if isinstance(domain, Text):
        return Words(build=build, nullable=domain.nullable)
    if isinstance(domain, Category | Boolean):
        listed = Listed(options=domain.values(), build=position, nullable=domain.nullable)
        if listed.truths and (listed.options[0] or len(listed.options) == 1):  # truth values listed in an order of their own
            targets = [int(bool(option)) for option in listed.options]
            return remapped(listed, targets, (False, True))
        return listed
    if isinstance(domain, Place):
        return Located(place=domain, build=position, nullable=domain.nullable)
    if isinstance(domain, Date | Periods | Moment):
        unit = domain.unit if isinstance(domain, Periods) else "second" if isinstance(domain, Moment) else "day"
        return Moments(unit=unit, low=domain.low_code, high=domain.high_code, build=position, nullable=domain.nullable)
    origin = int(domain.origin / common_grid((domain.origin, domain.step)))
    number = Number(
        grid=domain.step,
        low=domain.low_code,
        high=domain.high_code,
        integer=domain.kind == "integer",
        build=either(position, (domain.low_code, domain.high_code), lambda scope: scope.operations.shortened(scope.code(name))),
        nullable=domain.nullable,
    )
    if origin == 0:
        return number
    number = number.on(common_grid((domain.origin, domain.step)))
    return shifted(number, origin)


def shifted(number: Number, plus: int) -> Number:
    """N + plus."""
    wide = bounded(number.low + plus, number.high + plus) or number.wide

    def build(scope: Scope) -> Any:
        moved = number.at(scope, wide=wide) + scope.operations.whole(plus, wide=wide)
        return moved if wide == result.wide else scope.operations.fitted(moved, wide=False)

    ends = (number.low + plus, number.high + plus)
    made = either(build, ends, lambda scope, x: x + scope.operations.short(plus), number)
    result = replace(number, low=ends[0], high=ends[1], build=made, weight=number.weight + 2)
    return result


def remapped(listed: Form, targets: Sequence[int | None], options: tuple[str | int | bool, ...]) -> Listed:
    """Positions of one list turned into positions of another, NULL where the target is None."""
    return Listed(options=options, **by_position(listed, targets))


def by_position(listed: Form, targets: Sequence[int | None]) -> dict[str, Any]:
    """What a result is that has one of the targets for each position of a list."""
    inherited = joined((listed,), (listed.weight + 2) * pieces(targets), certain=None not in targets)
    return {**inherited, "build": lambda scope: looked_up(scope.operations, listed.build(scope), targets)}


def looked_up(operations: Operations, position: Any, targets: Sequence[int | None]) -> Any:
    """targets[position]: by halves, over the runs of equal targets."""
    if _identity(targets):
        return position
    starts = _starts(targets)

    def between(first: int, last: int) -> Any:
        if last - first == 1:
            target = targets[starts[first]]
            return operations.nothing() if target is None else operations.whole(target)
        middle = (first + last) // 2
        below = position < operations.whole(starts[middle])
        return operations.chosen([(below, between(first, middle))], between(middle, last))

    # a NULL position is below no start: without the first question it would fall into the last run
    return operations.chosen([(position.notnull(), between(0, len(starts)))], operations.nothing())


def _identity(targets: Sequence[int | None]) -> bool:
    return all(target == place for place, target in enumerate(targets))


def _starts(targets: Sequence[int | None]) -> list[int]:
    return [place for place in range(len(targets)) if place == 0 or targets[place] != targets[place - 1]]


def pieces(targets: Sequence[int | None]) -> int:
    """How often a lookup writes out the position."""
    return 1 if _identity(targets) else len(_starts(targets))


def common_grid(grids: Sequence[Fraction]) -> Fraction:
    """The coarsest grid that each of the grids is a multiple of.

    >>> common_grid((Fraction(1, 4), Fraction(1, 6), Fraction(0)))
    Fraction(1, 12)
    """
    scale = math.lcm(*(grid.denominator for grid in grids))
    return Fraction(math.gcd(*(int(grid * scale) for grid in grids)), scale)


def bounded(*ends: int, most: int = LARGEST) -> bool:
    """Whether whole numbers within the ends need 38 digits; refused where they would need more."""
    largest = max(abs(end) for end in ends)
    if largest > most:
        raise too_large("could pass 2^120 steps within the declared bounds")
    return largest >= NARROW


def check_weight(weight: int) -> None:
    """Refuses an expression that would take more to write out than an engine should be given."""
    if weight > HEAVIEST:
        raise UnsupportedQuery(
            "A computed column is not supported",
            why=f"written out it has more than {HEAVIEST} operations",
            instead="the same in two steps, or with fewer parts",
        )


def too_large(why: str) -> UnsupportedQuery:
    """The refusal of what needs too many digits."""
    return UnsupportedQuery(
        "A computed column is not supported",
        why=f"it {why}",
        instead="ROUND(expression, 2) or CLAMP(expression, low, high) of its parts",
    )
