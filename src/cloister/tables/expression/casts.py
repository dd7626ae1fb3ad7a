"""CAST: from one kind to another, wherever the result follows from declarations alone.

A number becomes an integer by rounding to the nearest, halves to even, unless a `Round` within says otherwise (`query/numbers.py`
puts there what a dialect does); a truth value is 1 or 0; text is read as preparation reads it (`reading.py`), over the public
list of a category, and what is not a number, a whole one for an integer, a day or a truth value is NULL. `decimal` is `real`
under the name of the exact type: the values are the same, but engines round a decimal in another way than a double.
Whole numbers and dates have a text when there are few enough to list.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

from cloister.errors import UnsupportedQuery
from cloister.tables.expression.arithmetic import as_number, from_list
from cloister.tables.expression.computed import day_of
from cloister.tables.expression.dates import date_of, to_days
from cloister.tables.expression.forms import (
    Form,
    Interval,
    Listed,
    Located,
    Moments,
    Nothing,
    Number,
    Words,
    by_position,
    integers,
    joined,
    remapped,
)
from cloister.tables.expression.rounding import rounded, wider
from cloister.tables.expression.scalar import Domains, Scalar
from cloister.tables.expression.scope import Scope
from cloister.tables.sourcing.reading import read_days, read_number, read_truth, read_whole

KINDS = ("integer", "real", "decimal", "text", "date", "boolean")
_MOST_TEXTS = 100_000


@dataclass(frozen=True)
class Cast(Scalar):
    """x as an integer, real, decimal, text, date or boolean.

    >>> from cloister.tables.declaring.columns import Category
    >>> from cloister.tables.expression.scalars import Ref
    >>> Cast(Ref("level"), "integer").domain({"level": Category(["10", "20", "n/a"])})
    SteppedInteger(first=1, last=2, step_size=Fraction(10, 1), nullable=False)
    """

    stored: ClassVar[str] = "cast"

    x: Scalar
    kind: str

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kind not in KINDS:
            raise UnsupportedQuery(
                f"A cast to {self.kind!r} is not supported", why=f"known are {', '.join(KINDS)}", instead="CAST(x AS INTEGER)"
            )

    def form(self, domains: Domains, within: Interval | None = None) -> Form:
        """By the kind of x and the kind that is wanted."""
        x = self.x.form(domains, wider(within, Fraction(1)))
        if isinstance(x, Nothing):
            return x
        if isinstance(x, Words):
            if self.kind == "text":
                return x
            raise self._refused("its values are not declared")
        if isinstance(x, Located):
            raise self._refused("a place is shown as a cell or a region: grid(place, 500)")
        if self.kind == "text":
            return to_listed_text(x, "CAST")
        if self.kind in ("integer", "real", "decimal"):
            return self._number(x)
        return self._date(x) if self.kind == "date" else self._truth(x)

    def _number(self, x: Form) -> Number:
        if isinstance(x, Moments):
            raise self._refused("a date is not a number")
        if isinstance(x, Listed):
            if x.truths:
                number = integers(0, 1, x.build, x, weight=x.weight)
            elif isinstance(x.options[0], int):
                number = as_number(x)
            else:
                read = _read_whole if self.kind == "integer" else read_exactly
                number = from_list(x, [read(str(option)) for option in x.options], integer=False)
        else:
            number = as_number(x)
        if self.kind == "integer":
            return rounded(number, Fraction(1), "half even")
        return replace(number, integer=False)

    def _date(self, x: Form) -> Moments:
        if isinstance(x, Moments):
            return to_days(x)
        if not isinstance(x, Listed) or not isinstance(x.options[0], str):
            raise self._refused("only text can be read as a date")
        days = [read_days(option) for option in x.options]
        present = [day for day in days if day is not None] or [0]
        return Moments(unit="day", low=min(present), high=max(present), **by_position(x, days))

    def _truth(self, x: Form) -> Listed:
        if isinstance(x, Listed) and x.truths:
            return x
        if isinstance(x, Listed) and isinstance(x.options[0], str):
            truths = [read_truth(option) for option in x.options]
            return remapped(x, [None if truth is None else int(truth) for truth in truths], (False, True))
        if isinstance(x, Moments):
            raise self._refused("a date is not a truth value")
        number = as_number(x)

        def build(scope: Scope) -> Any:
            ops = scope.operations
            return ops.truth(number.build(scope) != ops.whole(0, wide=number.wide))

        return Listed(options=(False, True), build=build, **joined((x,), number.weight + 2))

    def _refused(self, why: str) -> UnsupportedQuery:
        return UnsupportedQuery(f"A cast to {self.kind} is not supported", why=why, instead="the column declared as that kind")


def _read_whole(text: str) -> Fraction | None:
    whole = read_whole(text)
    return None if whole is None else Fraction(whole)


def read_exactly(text: str) -> Fraction | None:
    """The number that preparation reads in a text, exactly: a decimal means itself."""
    whole = read_whole(text)
    if whole is not None:
        return Fraction(whole)
    number = read_number(text)
    if number is None or abs(number) > 1e30:
        return None
    return Fraction(repr(number))


def to_listed_text(form: Form, what: str) -> Listed:
    """A form as a list of texts."""
    if isinstance(form, Listed):
        if isinstance(form.options[0], str):
            return form
        texts = tuple(str(option).lower() if form.truths else str(option) for option in form.options)
        return replace(form, options=texts)
    if isinstance(form, Words):
        raise UnsupportedQuery(
            f"{what} of text is not supported", why="its values are not declared", instead="the column as cl.Category([…])"
        )
    values: Callable[[int], str]
    if isinstance(form, Number) and form.integer and not form.wide:
        low, high, step = form.low, form.high, form.grid
        values = lambda code: str(int(code * step))  # noqa: E731 - one of two small functions
    elif isinstance(form, Moments) and form.unit != "second":
        low, high, unit = form.low, form.high, form.unit
        values = lambda code: date_of(day_of(unit, code)).isoformat()  # noqa: E731
    elif isinstance(form, Moments | Located):
        raise UnsupportedQuery(
            f"{what} is not supported",
            why="it would have more texts than could be listed",
            instead="hour(at), or grid(place, 500)",
        )
    else:
        raise UnsupportedQuery(
            f"{what} is not supported", why="the text of a fraction differs between engines", instead="ROUND(x)"
        )
    if high - low >= _MOST_TEXTS:
        raise UnsupportedQuery(
            f"{what} is not supported", why=f"it makes more than {_MOST_TEXTS} texts", instead="bins, or ROUND(x, -2)"
        )

    def build(scope: Scope) -> Any:
        return form.build(scope) - scope.operations.whole(low)

    return Listed(options=tuple(values(code) for code in range(low, high + 1)), build=build, **joined((form,)))
