"""CASE, COALESCE, NULLIF, LEAST, GREATEST, and a condition as a column: one of several values, all of one kind.

Numbers are brought to their common grid, texts to one list in order of first appearance, periods of different units to days. A
part that is NULL takes the kind of the others. LEAST and GREATEST pass over NULL and are NULL only where all parts are, as in
PostgreSQL, DuckDB and Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from cloister.errors import UnsupportedQuery
from cloister.tables.expression.arithmetic import Binary, aligned, as_number
from cloister.tables.expression.dates import to_days
from cloister.tables.expression.evaluate import may_reach
from cloister.tables.expression.expressions import And, Compare, Expression, In, IsNull, Literal, Not, Or
from cloister.tables.expression.forms import (
    Form,
    Interval,
    Listed,
    Located,
    Moments,
    Nothing,
    Number,
    Words,
    bounded,
    joined,
    remapped,
)
from cloister.tables.expression.scalar import Domains, Scalar, need
from cloister.tables.expression.scope import RecordingScope, Scope
from cloister.tables.sourcing.reading import read_days

Choose = Callable[[Scope, list[Any]], Any]


@dataclass(frozen=True)
class Case(Scalar):
    """The value of the first branch whose condition is true; else `otherwise`, or NULL.

    >>> from cloister.tables.declaring.columns import Integer
    >>> from cloister.tables.expression.expressions import Column, Compare, Literal
    >>> from cloister.tables.expression.scalars import Const
    >>> young = Compare("<", Column("age"), Literal(30))
    >>> Case(((young, Const("young")),), Const("old")).domain({"age": Integer(0, 120)})
    Category(['young', 'old'])
    """

    stored: ClassVar[str] = "case"

    branches: tuple[tuple[Expression, Scalar], ...]
    otherwise: Scalar | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "branches", tuple((condition, value) for condition, value in self.branches))
        if not self.branches or not all(isinstance(condition, Expression) for condition, _ in self.branches):
            raise UnsupportedQuery(
                "CASE is not supported",
                why="it needs branches, each with a condition",
                instead="CASE WHEN age < 30 THEN 1 ELSE 0 END",
            )
        for _, value in self.branches:
            need(value, "Case")
        if self.otherwise is not None:
            need(self.otherwise, "Case")
        super().__post_init__()

    def form(self, domains: Domains, within: Interval | None = None) -> Form:
        """The branches as one kind. NULL is a group where one of them is, and where declared values reach a NULL that is
        written: no ELSE is ELSE NULL."""
        values = [value.form(domains, within) for _, value in self.branches]
        values.append(self.otherwise.form(domains, within) if self.otherwise is not None else _null())
        conditions = [condition for condition, _ in self.branches]
        for condition in conditions:
            check_condition(condition, domains)

        def choose(scope: Scope, built: list[Any]) -> Any:
            branches = [(condition.condition(scope), value) for condition, value in zip(conditions, built[:-1], strict=True)]
            return scope.operations.chosen(branches, built[-1])

        one = unified(values, "CASE", choose, extra=sum(2 * condition.size + 1 for condition in conditions))
        null = [isinstance(value, Nothing) for value in values]
        nullable = one.nullable or may_reach(conditions, null, domains)
        return replace(one, certain=all(value.certain for value in values), nullable=nullable)


@dataclass(frozen=True)
class _Several(Scalar):
    parts: tuple[Scalar, ...]

    def __post_init__(self) -> None:
        name = type(self).__name__
        object.__setattr__(self, "parts", tuple(self.parts))
        if not self.parts:
            raise UnsupportedQuery(f"{name} is not supported", why="it has no parts", instead="COALESCE(age, 0)")
        for part in self.parts:
            need(part, name)
        super().__post_init__()


@dataclass(frozen=True)
class Coalesce(_Several):
    """The first part that is not NULL.

    >>> from cloister.tables.declaring.columns import Integer
    >>> from cloister.tables.expression.scalars import Const, Ref
    >>> Coalesce((Ref("age"), Const(0))).domain({"age": Integer(17, 90, nullable=True)})
    Integer(low=0, high=90, nullable=False)
    """

    stored: ClassVar[str] = "coalesce"

    def form(self, domains: Domains, within: Interval | None = None) -> Form:
        """The parts as one kind. NULL is a group only where it is one for every part."""
        forms = [part.form(domains, within) for part in self.parts]
        one = unified(forms, "COALESCE", lambda scope, built: scope.operations.first(built))
        present = [form for form in forms if not isinstance(form, Nothing)]
        return replace(one, nullable=all(form.nullable for form in present), certain=any(form.certain for form in forms))


@dataclass(frozen=True)
class LeastOf(_Several):
    """The least of the parts that are not NULL: numbers or dates."""

    stored: ClassVar[str] = "leastof"

    def form(self, domains: Domains, within: Interval | None = None) -> Form:
        """Bounded above by every part that is never NULL."""
        return _extreme(self, domains, within, least=True)


@dataclass(frozen=True)
class GreatestOf(_Several):
    """The greatest of the parts that are not NULL: numbers or dates.

    >>> from cloister.tables.declaring.columns import Integer
    >>> from cloister.tables.expression.scalars import Const, Ref
    >>> GreatestOf((Ref("x"), Const(0))).domain({"x": Integer(-5, 5)})
    Integer(low=0, high=5, nullable=False)
    """

    stored: ClassVar[str] = "greatestof"

    def form(self, domains: Domains, within: Interval | None = None) -> Form:
        """Bounded below by every part that is never NULL."""
        return _extreme(self, domains, within, least=False)


def _extreme(scalar: _Several, domains: Domains, within: Interval | None, *, least: bool) -> Form:
    name = "LEAST" if least else "GREATEST"
    forms = [part.form(domains, within) for part in scalar.parts]

    def choose(scope: Scope, built: list[Any]) -> Any:
        return scope.operations.least(built) if least else scope.operations.greatest(built)

    one = unified(forms, name, choose, ordered=True)
    parts = common(forms, name)
    certain = [part for part in parts if isinstance(part, Number | Moments) and part.certain]
    present = [form for form in forms if not isinstance(form, Nothing)]
    changes: dict[str, Any] = {"nullable": all(form.nullable for form in present), "certain": bool(certain)}
    if certain and isinstance(one, Number | Moments):
        end = "high" if least else "low"
        changes[end] = (min if least else max)(getattr(part, end) for part in certain)
        # the other end can lie beyond it only where a part always does, and then the result is that one value
        if least:
            changes["low"] = min(one.low, changes["high"])
        else:
            changes["high"] = max(one.high, changes["low"])
        if isinstance(one, Number):
            changes["build"] = _refitted(one, changes)
    return replace(one, **changes)


def _refitted(one: Number, changes: dict[str, Any]) -> Any:
    """Narrower bounds may mean fewer digits."""
    narrowed = replace(one, low=changes.get("low", one.low), high=changes.get("high", one.high))
    if narrowed.wide == one.wide:
        return one.build
    return lambda scope: scope.operations.fitted(one.build(scope), wide=False)


@dataclass(frozen=True)
class NullIf(Binary):
    """NULL where the two are equal, else left.

    >>> from cloister.tables.declaring.columns import Integer
    >>> from cloister.tables.expression.scalars import Const, Ref
    >>> NullIf(Ref("pay"), Const(99)).domain({"pay": Integer(0, 99)})
    Integer(low=0, high=99, nullable=True)
    """

    stored: ClassVar[str] = "nullif"

    def form(self, domains: Domains, within: Interval | None = None) -> Form:
        """left, compared on what both have in common. NULL is a group where the two can be equal."""
        left, right = self.left.form(domains), self.right.form(domains)
        if isinstance(left, Nothing) or isinstance(right, Nothing):
            return left
        first, second = common([left, right], "NULLIF")
        lists = isinstance(left, Listed) and isinstance(right, Listed)  # as they are before they are put together
        meet = _meet(left, right) if lists else _meet(first, second)

        def build(scope: Scope) -> Any:
            wide = any(isinstance(form, Number) and form.wide for form in (first, second))
            sides = [form.at(scope, wide=wide) if isinstance(form, Number) else form.build(scope) for form in (first, second)]
            ops = scope.operations
            is_wide = isinstance(left, Number) and left.wide
            gone = ops.no_words() if isinstance(left, Words) else ops.nothing(wide=is_wide)
            return ops.chosen([(sides[0] == sides[1], gone)], left.build(scope))

        weight = left.weight + first.weight + second.weight + 2
        return replace(left, build=build, certain=False, nullable=left.nullable or meet, weight=weight)


def _meet(first: Form, second: Form) -> bool:
    """Whether two forms of one kind have a value in common, as far as their bounds tell."""
    if isinstance(first, Number | Moments) and isinstance(second, Number | Moments):
        return max(first.low, second.low) <= min(first.high, second.high)
    return not (isinstance(first, Listed) and isinstance(second, Listed)) or not {*first.options}.isdisjoint(second.options)


@dataclass(frozen=True)
class Truth(Scalar):
    """A condition as a column: true, false, or NULL where it is neither.

    >>> from cloister.tables.declaring.columns import Integer
    >>> from cloister.tables.expression.expressions import Column, Compare, Literal
    >>> Truth(Compare(">", Column("age"), Literal(64))).domain({"age": Integer(0, 120)})
    Boolean(nullable=False)
    """

    stored: ClassVar[str] = "truth"

    condition: Expression

    def __post_init__(self) -> None:
        if not isinstance(self.condition, Expression):
            raise UnsupportedQuery("A condition is not supported", why="it has no comparison", instead="age > 40")
        super().__post_init__()

    def form(self, domains: Domains, within: Interval | None = None) -> Form:
        """1, 0 or NULL."""
        check_condition(self.condition, domains)
        return Listed(
            options=(False, True),
            build=lambda scope: scope.operations.truth(self.condition.condition(scope)),
            nullable=_may_be_null(self.condition, domains),
            weight=2 * self.condition.size + 1,
        )


def _may_be_null(condition: Expression, domains: Domains) -> bool:
    """Whether NULL is a group of the truth of a condition: where a column that it compares declares one, or NULL is written."""
    if isinstance(condition, IsNull):
        return False
    if isinstance(condition, Not):
        return _may_be_null(condition.part, domains)
    if isinstance(condition, And | Or):
        return any(_may_be_null(part, domains) for part in condition.parts)
    written = isinstance(condition, In) and None in condition.values
    if isinstance(condition, Compare):
        written = any(isinstance(side, Literal) and side.value is None for side in (condition.left, condition.right))
    return written or any(domains[name].nullable for name in condition.columns())


def check_condition(condition: Expression, domains: Domains) -> None:
    """Refuses a condition of unknown columns or wrong types before anything is built."""
    condition.condition(RecordingScope(domains, "duckdb"))


def _null() -> Nothing:
    return Nothing(build=lambda scope: scope.operations.nothing())


def unified(forms: Sequence[Form], what: str, choose: Choose, *, extra: int = 0, ordered: bool = False) -> Form:
    """One form for a choice among several: their common kind, with bounds that hold for each of them."""
    parts = common(forms, what)
    inherited = joined(
        tuple(part for part in parts if not isinstance(part, Nothing)), sum(part.weight for part in parts) + 1 + extra
    )
    first = next((part for part in parts if not isinstance(part, Nothing)), None)
    if first is None:
        return _null()
    if ordered and isinstance(first, Listed | Words):
        raise UnsupportedQuery(
            f"{what} is not supported", why="its parts are neither numbers nor dates", instead=f"{what}(age, 40)"
        )
    if isinstance(first, Number):
        numbers = [part for part in parts if isinstance(part, Number)]
        low, high = min(number.low for number in numbers), max(number.high for number in numbers)
        wide = bounded(low, high)

        def number_build(scope: Scope) -> Any:
            ops = scope.operations
            built = [part.at(scope, wide=wide) if isinstance(part, Number) else ops.nothing(wide=wide) for part in parts]
            return choose(scope, built)

        integer = all(number.integer for number in numbers)
        return Number(grid=first.grid, low=low, high=high, integer=integer, build=number_build, **inherited)

    def build(scope: Scope) -> Any:
        ops = scope.operations
        gone = ops.no_words() if isinstance(first, Words) else ops.nothing()
        return choose(scope, [gone if isinstance(part, Nothing) else part.build(scope) for part in parts])

    if isinstance(first, Moments):
        moments = [part for part in parts if isinstance(part, Moments)]
        ends = min(moment.low for moment in moments), max(moment.high for moment in moments)
        return Moments(unit=first.unit, low=ends[0], high=ends[1], build=build, **inherited)
    if isinstance(first, Listed):
        return Listed(options=first.options, build=build, **inherited)
    return Words(build=build, **inherited)


def common(forms: Sequence[Form], what: str) -> list[Form]:
    """The forms brought to one kind; those that are NULL stay as they are."""
    present = [form for form in forms if not isinstance(form, Nothing)]
    if any(isinstance(form, Located) for form in present):
        raise _unlike(what)
    if any(isinstance(form, Number) for form in present):
        whole = [form if isinstance(form, Nothing) else _as(form, Number, what) for form in forms]
        numbers = iter(aligned(*(form for form in whole if isinstance(form, Number))))
        return [form if isinstance(form, Nothing) else next(numbers) for form in forms]
    if any(isinstance(form, Moments) for form in present):
        moments = [form if isinstance(form, Nothing) else _as(form, Moments, what) for form in forms]
        if len({form.unit for form in moments if isinstance(form, Moments)}) > 1:
            return [to_days(form) if isinstance(form, Moments) else form for form in moments]
        return moments
    if any(isinstance(form, Words) for form in present):
        return [form if isinstance(form, Nothing) else _as(form, Words, what) for form in forms]
    lists = [form for form in present if isinstance(form, Listed)]
    if len({type(form.options[0]) for form in lists}) > 1:
        raise _unlike(what)
    options = tuple(dict.fromkeys(option for form in lists for option in form.options))
    if lists and lists[0].truths:
        return list(forms)
    place = {option: position for position, option in enumerate(options)}
    return [
        remapped(form, [place[option] for option in form.options], options) if isinstance(form, Listed) else form
        for form in forms
    ]


def _as(form: Form, kind: type[Form], what: str) -> Form:
    if isinstance(form, kind):
        return form
    if isinstance(form, Listed) and kind is Number and type(form.options[0]) is int:
        return as_number(form)
    if isinstance(form, Listed) and form.certain and len(form.options) == 1 and isinstance(form.options[0], str):
        text = form.options[0]
        if kind is Words:
            return Words(build=lambda scope: scope.operations.words(text), certain=True)
        days = read_days(text)
        if kind is Moments and days is not None:
            return Moments(unit="day", low=days, high=days, certain=True, build=lambda scope: scope.operations.whole(days))
    raise _unlike(what)


def _unlike(what: str) -> UnsupportedQuery:
    return UnsupportedQuery(
        f"{what} is not supported",
        why="its values are of different kinds",
        instead="all numbers, all dates or all texts: CAST(…)",
    )
