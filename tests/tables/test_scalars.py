"""Computed columns: bounds from declarations, exact values, NULL for all that is undefined, refusals that name the way out."""

from __future__ import annotations

import datetime
import json
import math
from fractions import Fraction
from functools import reduce
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cloister.errors import InvalidParameter, MissingBound, UnknownColumn, UnsupportedQuery
from cloister.tables import Boolean, Category, Column, Compare, Date, Integer, IsNull, Literal
from cloister.tables.expression import scalars as s
from cloister.tables.expression.computed import Periods, Stepped, SteppedInteger

from .scalar_rows import COLUMNS, Rows, check, nasty, prepared_rows


@pytest.fixture(scope="module")
def rows() -> Any:
    with prepared_rows(nasty(), COLUMNS) as prepared:
        yield Rows(prepared)


YOUNG = Compare("<", Column("a"), Literal(3))
ON_NUMBERS = [
    s.Add, s.Subtract, s.Multiply, s.Modulo, s.Divide, s.NullIf, lambda x, y: s.Coalesce((x, y)), lambda x, y: s.LeastOf((x, y)),
    lambda x, y: s.GreatestOf((x, y)), lambda x, y: s.Add(s.Negate(x), s.Absolute(y)),
    lambda x, y: s.Multiply(s.Sign(x), s.Floor(y)),
    lambda x, y: s.Subtract(s.Ceiling(x), s.Round(y, 1)), lambda x, y: s.Round(s.Multiply(x, y), -1),
    lambda x, y: s.Subtract(s.Round(x, 1, "half even"), s.Round(y, 0, "half even")),
    lambda x, y: s.Add(s.Round(s.Multiply(x, y), -1, "half even"), s.Round(y, 0, "truncate")),
    lambda x, y: s.Add(s.Round(x, 1, "ceiling"), s.Round(y, -1, "floor")), lambda x, y: s.Round(s.Divide(x, s.Const(8)), 1),
    lambda x, y: s.Clamp(x, -3, Fraction(7, 2)),
    lambda x, y: s.Clamp(s.Divide(x, y), Fraction(-1, 3), 10**6), lambda x, y: s.Clamp(s.Round(s.Divide(x, y), 2), 0, 5),
    lambda x, y: s.Add(s.Power(x, 2), s.Power(y, 3)), lambda x, y: s.Case(((YOUNG, x), (IsNull("b"), s.Const(2))), y),
    lambda x, y: s.Case(((IsNull("a"), x), (YOUNG, y))), lambda x, y: s.Round(s.Multiply(s.Multiply(x, y), s.Ref("huge")), -9),
    lambda x, y: s.Clamp(s.Power(x, -1), -2, 2),
]  # fmt: skip
UNITS = ["day", "week", "month", "quarter", "year"]
ON_DATES = [
    lambda x, y, unit, count: s.DateTrunc(unit, x), lambda x, y, unit, count: s.DateShift(x, count, unit),
    lambda x, y, unit, count: s.Coalesce((x, y)), lambda x, y, unit, count: s.GreatestOf((x, y)),
    lambda x, y, unit, count: s.LeastOf((s.DateTrunc(unit, x), s.DateTrunc(unit, y))), lambda x, y, unit, count: s.NullIf(x, y),
    lambda x, y, unit, count: s.Case(((Compare("<", Column("a"), Literal(3)), x),), y),
]  # fmt: skip


def a_number() -> st.SearchStrategy[s.Scalar]:
    leaves = st.one_of(
        st.sampled_from([s.Ref(name) for name in ("a", "b", "huge", "r", "o", "n", "level")]),
        st.sampled_from([0, 1, -1, 7, -10, 100, Fraction(1, 3), Fraction(-5, 2), 2**62, None]).map(s.Const),
        st.builds(s.DatePart, st.sampled_from(["year", "month", "day", "dayofyear"]), st.sampled_from([s.Ref("d"), s.Ref("e")])),
        st.builds(s.DateDiff, st.sampled_from(UNITS), st.just(s.Ref("d")), st.just(s.Ref("e"))),
    )
    return st.recursive(
        leaves, lambda inner: st.builds(lambda work, x, y: work(x, y), st.sampled_from(ON_NUMBERS), inner, inner), max_leaves=5
    )


def a_date() -> st.SearchStrategy[s.Scalar]:
    leaves = st.sampled_from([s.Ref("d"), s.Ref("e"), s.Const(datetime.date(2024, 2, 29)), s.Const(None)])
    counts = st.integers(-30, 30) | st.sampled_from([100_000, -100_000])

    def more(inner: st.SearchStrategy[s.Scalar]) -> st.SearchStrategy[s.Scalar]:
        return st.builds(
            lambda work, x, y, unit, count: work(x, y, unit, count),
            st.sampled_from(ON_DATES),
            inner,
            inner,
            st.sampled_from(UNITS),
            counts,
        )

    return st.recursive(leaves, more, max_leaves=4)


def allowed(scalars: list[s.Scalar]) -> list[s.Scalar]:
    kept = []
    for scalar in scalars:
        try:
            scalar.domain(COLUMNS)
        except (UnsupportedQuery, MissingBound):
            continue
        kept.append(scalar)
    return kept


@given(st.lists(a_number(), min_size=4, max_size=8))
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
def test_numbers_are_what_the_reference_says(rows: Rows, scalars: list[s.Scalar]) -> None:
    check(rows, *allowed(scalars))


@given(st.lists(a_date(), min_size=4, max_size=8))
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
def test_dates_are_what_the_reference_says(rows: Rows, scalars: list[s.Scalar]) -> None:
    check(rows, *allowed(scalars))


A, B, HUGE_REF, D, E, C, N = (s.Ref(name) for name in ("a", "b", "huge", "d", "e", "c", "n"))


@pytest.mark.parametrize(
    ("scalar", "domain"),
    [
        (s.Multiply(A, A), Integer(0, 100)),
        (s.Multiply(A, B), Integer(-35, 70)),
        (s.Multiply(s.Const(10), B), SteppedInteger(first=0, last=7, step_size=Fraction(10))),
        (s.Multiply(s.Floor(s.Divide(A, s.Const(10))), s.Const(10)), SteppedInteger(first=-1, last=1, step_size=Fraction(10))),
        (s.Add(A, s.Const(Fraction(1, 2))), Stepped(first=-9, last=21, step_size=Fraction(1, 2))),
        (s.Subtract(s.Ref("o"), s.Const(0.1)), Stepped(first=30, last=95, step_size=Fraction(1, 10))),
        (s.Divide(A, s.Const(3)), Stepped(first=-5, last=10, step_size=Fraction(1, 3))),
        (s.Divide(s.Const(1), s.Add(B, s.Const(1))), Stepped(first=125_000_000, last=10**9, step_size=Fraction(1, 10**9))),
        (s.Modulo(HUGE_REF, s.Const(7)), Integer(-6, 6)),
        (s.Modulo(A, B), Integer(-5, 6)),
        (s.Absolute(A), Integer(0, 10)),
        (s.Sign(B), Integer(0, 1)),
        (s.LeastOf((A, s.Const(3))), Integer(-5, 3)),
        (s.LeastOf((A, B)), Integer(-5, 10)),
        (s.GreatestOf((A, s.Const(20))), Integer(20, 20)),
        (s.Coalesce((N, s.Const(9))), Integer(-3, 9)),
        (s.Coalesce((N, N)), Integer(-3, 3, nullable=True)),
        (s.Add(N, A), Integer(-8, 13, nullable=True)),
        (
            s.Case(((YOUNG, s.Const(10)), (IsNull("n"), s.Const(30)))),
            SteppedInteger(first=1, last=3, step_size=Fraction(10), nullable=True),
        ),
        (s.Case(((YOUNG, s.Const("x")),), C), Category(["x", "a", "B", "🎉", "ß", " b ", "A"])),
        (s.TextFunction("upper", C), Category(["A", "B", "🎉", "SS", " B "])),
        (s.TextFunction("length", C), Integer(1, 3)),
        (s.Cast(s.Ref("code"), "real"), Stepped(first=-6, last=200, step_size=Fraction(1, 2))),
        (s.Cast(s.Ref("r"), "integer"), Integer(-1, 2)),
        (s.Round(s.Ref("r")), Integer(-1, 3)),
        (s.Round(s.Ref("r"), 0, "truncate"), Integer(-1, 2)),
        (s.Truth(IsNull("n")), Boolean()),
        (s.Truth(Compare("<", Column("n"), Literal(0))), Boolean(nullable=True)),
        (s.DatePart("year", D), Integer(2019, 2020)),
        (s.DateTrunc("month", D), Periods("month", 2019 * 12 + 11, 2020 * 12 + 2)),
        (s.DateTrunc("day", D), Date("2019-12-30", "2020-03-05")),
        (s.DateShift(s.Const(datetime.date(2024, 1, 31)), 1, "month"), Date("2024-02-29", "2024-02-29")),
        (s.DateShift(s.DateTrunc("month", D), 1, "quarter"), Periods("month", 2020 * 12 + 2, 2020 * 12 + 5)),
        (s.DateShift(s.DateTrunc("year", D), 1, "month"), Date("2019-02-01", "2020-02-01")),
        (s.DateShift(E, 1, "year"), Date("0002-01-01", "9999-12-31")),
        (s.DateDiff("week", D, s.Const("2019-12-30")), Integer(0, 9)),
        (s.Coalesce((D, s.Const("2021-01-01"))), Date("2019-12-30", "2021-01-01")),
        (s.Power(s.Ref("r"), 2), Stepped(first=0, last=100, step_size=Fraction(1, 16))),
        (s.Clamp(HUGE_REF, 0, Fraction(1, 2)), Stepped(first=0, last=1, step_size=Fraction(1, 2))),
    ],
)
def test_bounds_follow_from_declarations(scalar: s.Scalar, domain: Any) -> None:
    assert scalar.domain(COLUMNS) == domain
    assert type(scalar.domain(COLUMNS)) is type(domain)


@pytest.mark.parametrize(
    ("scalar", "error", "says"),
    [
        (s.Divide(A, B), MissingBound, r"CLAMP\(numerator / divisor, low, high\)"),
        (s.Exp(HUGE_REF), MissingBound, r"CLAMP\(EXP\(x\), low, high\)"),
        (s.Power(A, -1), MissingBound, "CLAMP"),
        (s.Power(B, Fraction(-1, 2)), MissingBound, "CLAMP"),
        (s.TextFunction("length", s.Ref("w")), MissingBound, r"CLAMP\(LENGTH\(x\), 0, 100\)"),
        (s.Multiply(HUGE_REF, HUGE_REF), UnsupportedQuery, "ROUND"),
        (s.Multiply(HUGE_REF, A), UnsupportedQuery, "more than 2\\^62 steps"),
        (s.Add(HUGE_REF, s.Const(Fraction(1, 10**30))), UnsupportedQuery, "ROUND"),
        (s.Add(A, C), UnsupportedQuery, "'c' is text and not a number"),
        (s.Add(A, D), UnsupportedQuery, "'d' is a date"),
        (s.Add(A, s.Ref("t")), UnsupportedQuery, "CAST"),
        (s.Add(A, s.Ref("gone")), UnknownColumn, "'gone'"),
        (s.Truth(Compare("<", Column("gone"), Literal(1))), UnknownColumn, "'gone'"),
        (s.Truth(Compare("<", Column("c"), Literal(1))), UnsupportedQuery, "'c'"),
        (s.Case(((YOUNG, s.Const(1)),), s.Const("x")), UnsupportedQuery, "different kinds"),
        (s.Case(((YOUNG, C),), s.Ref("t")), UnsupportedQuery, "different kinds"),
        (s.GreatestOf((C, s.Const("x"))), UnsupportedQuery, "neither numbers nor dates"),
        (s.DatePart("year", A), UnsupportedQuery, "not a date"),
        (s.DateShift(s.Const(datetime.date(2000, 1, 1)), 9000, "year"), UnsupportedQuery, "leave the years"),
        (s.TextFunction("upper", s.Ref("w")), UnsupportedQuery, "engines differ"),
        (s.TextFunction("upper", s.Ref("r")), UnsupportedQuery, "fraction"),
        (s.Cast(s.Ref("w"), "integer"), UnsupportedQuery, "not declared"),
        (s.Cast(HUGE_REF, "text"), UnsupportedQuery, "more than 100000 texts"),
        (s.Const(None), UnsupportedQuery, "kind is not known"),
    ],
)  # fmt: skip
def test_refusals_come_from_declarations_and_say_what_to_write(scalar: s.Scalar, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        scalar.domain(COLUMNS)


def test_what_cannot_be_written_is_refused_when_it_is_written() -> None:
    for make in (
        lambda: s.Add(A, 1), lambda: s.Round(A, 99), lambda: s.DateShift(D, 10**9, "day"),
    ):  # fmt: skip
        with pytest.raises(InvalidParameter):
            make()
    for make in (
        lambda: s.Clamp(A, 3, 2), lambda: s.DatePart("century", D), lambda: s.DateTrunc("decade", D), lambda: s.Cast(A, "blob"),
        lambda: s.TextFunction("soundex", C), lambda: s.TextFunction("left", C), lambda: s.Case(()), lambda: s.Coalesce(()),
        lambda: s.Const(math.nan), lambda: s.Const("\0"), lambda: s.Power(A, 99), lambda: s.Const(datetime.datetime(2026, 1, 1)),
    ):  # fmt: skip
        with pytest.raises(UnsupportedQuery):
            make()


def test_expressions_that_grow_without_end_are_refused() -> None:
    with pytest.raises(UnsupportedQuery, match="inside one another"):
        reduce(lambda inner, _: s.Negate(inner), range(100), A)
    wide: s.Scalar = s.Ref("r")
    for _ in range(20):
        wide = s.Clamp(s.Subtract(wide, s.Const(1)), -3, 3)
    with pytest.raises(UnsupportedQuery, match="operations"):
        wide.domain(COLUMNS)


def test_a_scalar_is_hashable_and_described_as_plain_data() -> None:
    first = s.Case(((YOUNG, s.Const(1)),), s.Round(s.Ref("r"), 1))
    second = s.Case(((YOUNG, s.Const(1)),), s.Round(s.Ref("r"), 1))
    assert first == second
    assert len({first, second, s.Const(1), s.Const(True), s.Const(Fraction(1))}) == 4
    assert json.loads(json.dumps(first.describe())) == [
        "case",
        [[["compare", "<", ["column", "a"], ["literal", "number", "3"]], ["const", "integer", "1"]]],
        ["round", ["ref", "r"], 1, "half away"],
    ]
    assert s.Const("1").describe() != s.Const(1).describe()
    assert first.columns() == {"a", "r"}
    json.dumps(
        [scalar.describe() for scalar in (s.Clamp(A, 0, "0.1"), s.DateShift(D, 1, "day"), s.TextFunction("left", C, (2,)))]
    )


def test_a_computed_column_is_a_column_like_any_other(rows: Rows) -> None:
    """Periods and stepped numbers are compared as dates and numbers are; a computed column is computed from again."""
    month, third = s.DateTrunc("month", D), s.Divide(A, s.Const(3))
    domains = {"month": month.domain(COLUMNS), "third": third.domain(COLUMNS)}
    from cloister.tables.expression.evaluate import evaluate

    codes = dict(zip(domains, rows.computed([month, third]), strict=True))
    starts = [None if code is None else domains["month"].decode(code) for code in codes["month"]]
    for op, test in {"=": datetime.date.__eq__, "<": datetime.date.__lt__, ">=": datetime.date.__ge__}.items():
        for day in (datetime.date(2020, 1, 1), datetime.date(2020, 1, 2), datetime.date(2031, 1, 1)):
            found = evaluate(Compare(op, Column("month"), Literal(day.isoformat())), domains, codes).tolist()
            assert found == [None if start is None else test(start, day) for start in starts]
    found = evaluate(Compare("<", Column("third"), Literal(0.34)), domains, codes).tolist()
    assert found == [None if code is None else Fraction(code, 3) < Fraction(34, 100) for code in codes["third"]]
    with pytest.raises(UnsupportedQuery, match="periods"):
        evaluate(Compare("<", Column("month"), Column("d")), {**domains, "d": COLUMNS["d"]}, codes)
    again = evaluate(s.DatePart("month", s.Ref("month")), domains, codes).tolist()
    assert again == [None if start is None else start.month for start in starts]


def test_undefined_results_are_null(rows: Rows) -> None:
    zero = s.Const(0)
    undefined = [s.Divide(A, zero), s.Modulo(A, zero), s.Sqrt(s.Const(-1)), s.Ln(zero), s.Clamp(s.Power(zero, -1), 0, 1)]
    for column in rows.computed(undefined):
        assert set(column.tolist()) == {None}
    root, log = rows.computed([s.Sqrt(A), s.Ln(A)])
    for value, first, second in zip(rows.codes["a"], root, log, strict=True):
        assert (first is None) == (value is None or value < 0)
        assert (second is None) == (value is None or value <= 0)


def test_roots_and_logarithms_are_near_the_truth(rows: Rows) -> None:
    for scalar, truth in (
        (s.Sqrt(A), math.sqrt),
        (s.Ln(A), math.log),
        (s.Exp(A), math.exp),
        (s.Power(A, "1.5"), lambda x: x**1.5),
    ):
        domain, [codes] = scalar.domain(COLUMNS), rows.computed([scalar])
        for value, code in zip(rows.codes["a"], codes, strict=True):
            if code is not None:
                assert abs(domain.decode(code) - truth(value)) <= 0.500001 * float(domain.step)


def test_a_question_with_markers_holds_no_marker_of_a_computed_column(rows: Rows) -> None:
    """A condition inside CASE is compiled with its numbers even where a question's own conditions are compiled with markers."""
    import ibis

    from cloister.tables.expression.scope import TemplateScope

    layout = rows.prepared.layout
    table = ibis.table(layout.schema(), name="rows")
    code = s.Case(((YOUNG, s.Const(1)),), s.Const(2)).code(layout.scope(table, "duckdb", TemplateScope))
    assert "4199" not in ibis.to_sql(table.select(x=code), dialect="duckdb")


@pytest.mark.slow
@given(st.lists(a_number(), min_size=4, max_size=8))
@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
def test_many_more_numbers(rows: Rows, scalars: list[s.Scalar]) -> None:
    check(rows, *allowed(scalars))
