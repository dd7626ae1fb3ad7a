"""Conditions and computed columns without an engine agree with DuckDB, and say which groups a condition leaves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cloister.tables import (
    And,
    Between,
    Boolean,
    Category,
    Column,
    Compare,
    Date,
    In,
    Integer,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    Real,
    Text,
)
from cloister.tables.expression import scalars as s
from cloister.tables.expression.evaluate import allowed_codes, evaluate, image

from .scalar_rows import COLUMNS, Rows, nasty, prepared_rows


@pytest.fixture(scope="module")
def rows() -> Any:
    with prepared_rows(nasty(), COLUMNS) as prepared:
        yield Rows(prepared)


NUMBERS = [None, -6, -5, 0, 3, 10, 11, "2.25", "3.1", 2**62 - 2, 10**30]
OPS = ["=", "!=", "<", "<=", ">", ">="]
PATTERNS = ["%a%", "_", "%", "", "a%_", "\\", "%\\%", "%e\u0301%", "%a%x", "${x}", "%_%_%"]


def exact(value: Any) -> Any:
    from fractions import Fraction

    return Fraction(value) if isinstance(value, str) else value


def a_condition() -> st.SearchStrategy[Any]:
    numeric = st.sampled_from(["a", "b", "huge", "r", "o", "n"]).map(Column)
    dates = st.sampled_from(["d", "e"]).map(Column)
    days = st.sampled_from([None, "2019-12-31", "2020-02-29", "0001-01-01", "9999-12-31"])
    texts = st.sampled_from([None, "a", "B", "🎉", "zz", "${x}", "\\", ""])
    few, others = (st.sampled_from(names).map(Column) for names in (["a", "b", "r", "n"], ["a", "b", "o"]))
    ops, words = st.sampled_from(OPS), st.sampled_from(["c", "w"])
    few_numbers = st.lists(st.sampled_from([None, 0, 3, 10, 30]), min_size=1, max_size=4)
    leaves = st.one_of(
        st.builds(Compare, ops, numeric, st.sampled_from(NUMBERS).map(exact).map(Literal)),
        st.builds(Compare, ops, few, others),
        st.builds(Compare, ops, dates, days.map(Literal)),
        st.builds(Compare, ops, dates, dates),
        st.builds(Compare, st.sampled_from(["=", "!="]), words.map(Column), texts.map(Literal)),
        st.builds(In, words, st.lists(texts, min_size=1, max_size=4)),
        st.builds(In, st.sampled_from(["a", "level", "huge"]), few_numbers),
        st.builds(Between, st.just("a"), st.integers(-7, 4), st.integers(-2, 12)),
        st.builds(Like, words, st.sampled_from(PATTERNS)),
        st.builds(IsNull, st.sampled_from(list(COLUMNS))),
        st.just(Column("t")),
        st.sampled_from([True, False, None]).map(Literal),
    )
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            inner.map(Not), st.tuples(inner, inner).map(lambda p: And(*p)), st.tuples(inner, inner).map(lambda p: Or(*p))
        ),
        max_leaves=5,
    )


@given(st.lists(a_condition(), min_size=4, max_size=8))
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_conditions_agree_with_the_engine(rows: Rows, conditions: list[Any]) -> None:
    for condition, codes in zip(conditions, rows.computed([s.Truth(condition) for condition in conditions]), strict=True):
        expected = [None if code is None else bool(code) for code in codes]
        assert evaluate(condition, rows.domains, rows.codes).tolist() == expected, condition


@pytest.mark.parametrize(
    ("domain", "conditions", "kept"),
    [
        (Integer(17, 90), [Compare("<", Column("x"), Literal(20))], [17, 18, 19]),
        (Integer(17, 90), [Between("x", 20, 22), Not(In("x", [21]))], [20, 22]),
        (Integer(17, 90), [IsNull("x")], []),
        (Integer(17, 90), [Literal(True), In("x", [30, 5])], [30]),
        (Real(0, 1, step="0.25"), [Compare(">", Column("x"), Literal(0.5))], [0.75, 1.0]),
        (Category(["F", "M", "X"]), [Compare("!=", Column("x"), Literal("M"))], ["F", "X"]),
        (Category(["F", "M", "X"]), [Like("x", "%")], ["F", "M", "X"]),
        (Boolean(), [Column("x")], [True]),
    ],
)
def test_allowed_codes_are_the_values_for_which_all_conditions_hold(domain: Any, conditions: list[Any], kept: list[Any]) -> None:
    mask = allowed_codes("x", domain, conditions)
    assert mask is not None
    assert len(mask) == domain.size + 1
    assert [value for value, keeps in zip(domain.values(), mask[:-1], strict=True) if keeps] == kept


def test_rows_without_a_value_stay_where_the_condition_is_true_of_them() -> None:
    for condition, stays in ((IsNull("x"), True), (Not(IsNull("x")), False), (Compare(">", Column("x"), Literal(0)), False)):
        assert allowed_codes("x", Integer(0, 3, nullable=True), [condition])[-1] == stays
    assert allowed_codes("x", Integer(0, 3), [])[-1]


def test_a_domain_that_is_not_declared_or_too_large_is_not_walked() -> None:
    assert allowed_codes("x", Text(), [IsNull("x")]) is None
    assert allowed_codes("x", Integer(0, 10**6), [IsNull("x")]) is None
    assert image(s.Negate(s.Ref("x")), {"x": Integer(0, 10**6)}, "x") is None


def test_the_image_of_a_key_expression() -> None:
    domains = {"x": Integer(-3, 3), "y": Integer(0, 1), "d": Date("2019-11-15", "2020-02-10"), "n": Integer(0, 2, nullable=True)}
    square = s.Multiply(s.Ref("x"), s.Ref("x"))
    assert image(square, domains, "x").tolist() == [0, 1, 4, 9, 10]
    mask = allowed_codes("x", domains["x"], [Compare(">", Column("x"), Literal(1))])
    assert image(square, domains, "x", mask).tolist() == [4, 9]
    months = image(s.DateTrunc("month", s.Ref("d")), domains, "d", allowed_codes("d", domains["d"], [Not(IsNull("d"))]))
    assert [s.DateTrunc("month", s.Ref("d")).domain(domains).decode(code).month for code in months] == [11, 12, 1, 2]
    assert image(s.Add(s.Ref("x"), s.Ref("y")), domains, "x") is None
    assert image(s.Ln(s.Ref("x")), domains, "x") is None
    assert image(s.Coalesce((s.Ref("n"), s.Const(9))), domains, "n").tolist() == [0, 1, 2, 9]
    bands = s.Case(((Compare("<", Column("x"), Literal(0)), s.Const("low")),), s.Const("high"))
    assert image(bands, domains, "x").tolist() == [0, 1]


def test_numbers_beyond_64_bits_are_exact() -> None:
    huge = Integer(-(2**62) + 2, 2**62 - 2)
    codes = {"x": np.array([2**62 - 2, -(2**62) + 2, None], dtype=object)}
    sign = s.Sign(s.Subtract(s.Multiply(s.Ref("x"), s.Const(2**40)), s.Multiply(s.Ref("x"), s.Const(2**40 - 1))))
    assert evaluate(sign, {"x": huge}, codes).tolist() == [1, -1, None]
