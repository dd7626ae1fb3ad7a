"""Computed columns on the three engines: the same fixed, nasty set, each equal to plain Python."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest

from cloister.tables import And, Column, Compare, Date, In, Integer, IsNull, Like, Literal, Not, Or
from cloister.tables.expression import scalars as s
from cloister.tables.expression.forms import Either
from tests.tables.scalar_rows import COLUMNS, HUGE, Rows, check, nasty, prepared_rows
from tests.tables.test_scalars import ON_DATES, ON_NUMBERS, UNITS

from .conftest import Loader

KINDS = {
    "row": "integer", "a": "integer", "b": "integer", "huge": "integer", "r": "float", "o": "float", "n": "integer", "c": "text",
    "code": "text", "level": "integer", "d": "text", "e": "text", "t": "boolean", "w": "text",
}  # fmt: skip


@pytest.fixture(scope="module")
def rows(loader: Loader) -> Iterator[Any]:
    with prepared_rows(loader.load(nasty(), KINDS), COLUMNS) as prepared:
        yield Rows(prepared)


def test_numbers(rows: Rows) -> None:
    refs = [s.Ref("a"), s.Ref("r"), s.Ref("huge"), s.Ref("o"), s.Ref("level"), s.Const(7), s.Const(Fraction(-1, 3))]
    check(
        rows, *(work(x, y) for work in ON_NUMBERS for x, y in zip(refs, [*refs[3:], *refs[:3]], strict=True) if fits(work(x, y)))
    )


def test_numbers_at_the_border_of_short_arithmetic(rows: Rows) -> None:
    """Where the bounds fit 32 bits, engines compute in 32: on both sides of the border the values are exact."""
    scalars = [
        scalar
        for factor in (306_783_376, 306_783_377)
        for far in [s.Multiply(s.Ref("b"), s.Const(factor))]
        for scalar in (s.Add(far, s.Ref("a")), s.Subtract(s.Ref("a"), far), s.Negate(s.Add(far, s.Ref("n"))))
    ]
    for factor in (6618, 6619):
        root = s.Add(s.Multiply(s.Ref("b"), s.Const(factor)), s.Ref("a"))
        scalars += [s.Multiply(root, root), s.Multiply(root, s.Negate(root)), s.Subtract(s.Multiply(root, root), s.Const(2**30))]
    short = [isinstance(scalar.form(COLUMNS).build, Either) for scalar in scalars]
    assert True in short
    assert False in short
    check(rows, *scalars)


def fits(scalar: s.Scalar) -> bool:
    """Whether the declarations let it through."""
    from cloister.errors import MissingBound, UnsupportedQuery

    try:
        scalar.domain(COLUMNS)
    except (UnsupportedQuery, MissingBound):
        return False
    return True


def test_dates(rows: Rows) -> None:
    check(rows, *(work(s.Ref("e"), s.Ref("d"), unit, count) for work in ON_DATES for unit in UNITS for count in (1, -13)))
    check(
        rows,
        *(
            s.DatePart(part, s.Ref(name))
            for part in ("year", "quarter", "month", "day", "dayofweek", "isodow", "dayofyear")
            for name in "de"
        ),
    )
    check(rows, *(s.DateDiff(unit, s.Ref("d"), s.DateTrunc(other, s.Ref("e"))) for unit in UNITS for other in UNITS))


def test_texts_and_casts(rows: Rows) -> None:
    c, code = s.Ref("c"), s.Ref("code")
    scalars: list[s.Scalar] = [
        s.TextFunction("upper", c), s.TextFunction("lower", c), s.TextFunction("trim", c), s.TextFunction("length", c),
        s.TextFunction("substring", c, (s.Const(0), s.Const(2))), s.TextFunction("left", code, (s.Const(1),)),
        s.TextFunction("right", code, (s.Const(1),)), s.TextFunction("replace", c, (s.Const("🎉"), s.Const("A"))),
        s.TextFunction("concat", c, (s.Const("-"), code)), s.Cast(code, "real"), s.Cast(code, "integer"),
        s.Cast(s.Ref("r"), "integer"), s.Cast(s.Ref("a"), "text"), s.Cast(s.Ref("t"), "integer"), s.Cast(s.Ref("t"), "text"),
        s.Cast(s.Ref("level"), "text"),
        s.Cast(s.Ref("d"), "text"), s.Cast(s.Ref("a"), "boolean"), s.Cast(code, "boolean"),
        s.Cast(s.Cast(s.Ref("d"), "text"), "date"),
        s.Case(((Compare("<", Column("a"), Literal(3)), s.Const("low")), (IsNull("a"), s.Const("'; \\ ${x}"))), c),
        s.Coalesce((c, s.Const("none"))), s.NullIf(c, s.Const("B")), s.TextFunction("left", s.Ref("w"), (s.Const(3),)),
        s.TextFunction("substring", s.Ref("w"), (s.Const(2), s.Const(2))), s.Clamp(s.TextFunction("length", s.Ref("w")), 0, 20),
        s.Coalesce((s.Ref("w"), s.Const("it's \\ ${none}"))), s.NullIf(s.Ref("w"), s.Const("a")),
    ]  # fmt: skip
    check(rows, *scalars)


def test_conditions_as_columns(rows: Rows) -> None:
    low, text = Compare("<", Column("a"), Literal(3)), Like("w", "%a%")
    conditions = [
        low, Not(low), And(low, IsNull("b")), Or(low, Compare("=", Column("t"), Literal(True))), In("c", ["a", "🎉", None]), text,
        Compare(">=", Column("d"), Literal("2020-02-29")), Column("t"), Compare("<", Column("a"), Column("r")), Like("c", "_"),
    ]  # fmt: skip
    for condition, codes in zip(conditions, rows.computed([s.Truth(condition) for condition in conditions]), strict=True):
        assert rows.by_arrays(s.Truth(condition)) == codes.tolist(), condition
        assert len(set(codes.tolist())) >= 2, condition


def test_roots_are_the_same_everywhere_and_logarithms_within_a_step(rows: Rows) -> None:
    x = s.Ref("huge")
    exactly = [s.Sqrt(x), s.Sqrt(s.Ref("o")), s.Sqrt(s.Divide(s.Ref("a"), s.Const(7)))]
    for scalar, codes in zip(exactly, rows.computed(exactly), strict=True):
        assert rows.by_arrays(scalar) == codes.tolist()
    nearly = [s.Ln(x), s.Ln(s.Ref("o")), s.Exp(s.Ref("a")), s.Clamp(s.Exp(x), 0, 100), s.Power(s.Ref("a"), Fraction(1, 3)),
              s.Clamp(s.Power(s.Ref("b"), Fraction(-3, 2)), 0, 5), s.Ln(s.Ref("a"))]  # fmt: skip
    for scalar, codes in zip(nearly, rows.computed(nearly), strict=True):
        for here, there in zip(rows.by_arrays(scalar), codes.tolist(), strict=True):
            assert (here is None) == (there is None)
            assert here is None or abs(here - there) <= 1
    assert not any(scalar.is_exact(COLUMNS) for scalar in nearly)


def test_every_day_of_the_calendar(loader: Loader) -> None:
    """Year, month and day as the engine says them, over all leap days, month ends and centuries."""
    days = [datetime.date(year, month, day) for year in [*range(1, 9999, 97), 1900, 2000, 2100, 9999] for month, day in
            [(1, 1), (2, 28), (3, 1), (12, 31)]]  # fmt: skip
    days += [datetime.date(year, 2, 29) for year in range(4, 9999, 4) if year % 100 or year % 400 == 0]
    columns = {"row": Integer(0, len(days)), "e": Date("0001-01-01", "9999-12-31")}
    source = loader.load({"row": list(range(len(days))), "e": days}, {"row": "integer", "e": "date"})
    with prepared_rows(source, columns) as prepared:
        rows = Rows(prepared)
        check(rows, *(s.DatePart(part, s.Ref("e")) for part in ("year", "month", "day", "dayofyear")))
        check(rows, s.DateShift(s.Ref("e"), 1, "year"), s.DateShift(s.Ref("e"), -1, "month"), s.DateTrunc("quarter", s.Ref("e")))


def test_nothing_overflows_at_the_ends_of_the_declared_range(rows: Rows) -> None:
    x = s.Ref("huge")
    assert {HUGE, -HUGE} <= set(rows.columns[3].tolist())
    y = s.Floor(s.Divide(x, s.Const(32)))  # x * y comes near 2^120
    check(rows, s.Round(s.Multiply(x, y), -20), s.Round(s.Multiply(x, s.Const(2**57)), -18), s.Clamp(s.Multiply(x, y), 0, 10))
    check(rows, s.Clamp(s.Divide(s.Multiply(x, s.Ref("a")), x), -10, 10), s.Modulo(s.Multiply(x, y), s.Const(1000)))
    check(rows, s.Sign(s.Multiply(x, y)), s.Subtract(s.Multiply(s.Sign(x), s.Const(10)), s.Sign(s.Negate(s.Multiply(y, x)))))
