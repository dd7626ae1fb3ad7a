"""Declarations of columns: what they refuse, and the codes that they give."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloister.errors import InvalidDeclaration, InvalidParameter
from cloister.tables import Boolean, Category, Date, Domain, Integer, Real, Text
from cloister.tables.sourcing.reading import read_days

EVERY = [
    Integer(17, 90),
    Integer(-(2**62) + 2, 2**62 - 2, nullable=True),
    Real(0, 500_000, step=1),
    Real("-0.5", "0.5", step="1/7", nullable=True),
    Category(["F", "M"]),
    Category([3, 1, 2], nullable=True),
    Category([True, False]),
    Date("1900-01-01", "2026-12-31"),
    Boolean(nullable=True),
]

WRONG: list[tuple[Any, str]] = [
    (lambda: Integer(90, 17), "above"),
    (lambda: Integer("a", 3), "finite"),  # type: ignore[arg-type]
    (lambda: Integer(0, math.inf), "finite"),  # type: ignore[arg-type]
    (lambda: Integer(0, None), "missing"),  # type: ignore[arg-type]
    (lambda: Integer(True, 3), "truth"),
    (lambda: Integer(0, 2.5), "whole"),  # type: ignore[arg-type]
    (lambda: Integer(0, 2**63), "beyond"),
    (lambda: Integer(0, 9, nullable=1), "True or False"),  # type: ignore[arg-type]
    (lambda: Real(1, 0), "above"),
    (lambda: Real(1, 1), "empty"),
    (lambda: Real(0, 1, step=0), "greater"),
    (lambda: Real(0, 1, step="-0.1"), "greater"),
    (lambda: Real(0, 1, step="0.3"), "divide"),
    (lambda: Real(0, math.nan), "finite"),
    (lambda: Real(0, 10**16, step="0.1"), "2\\^49"),
    (lambda: Real(0, 10**151), "1e150"),
    (lambda: Real(0, "1e-120", step="1e-121"), "step"),
    (lambda: Category([]), "no category"),
    (lambda: Category(["a", None]), "NULL"),  # type: ignore[list-item]
    (lambda: Category([1.0, math.nan]), "cannot be|NULL"),  # type: ignore[list-item]
    (lambda: Category(["a", "a"]), "twice"),
    (lambda: Category(["1", 1]), "different types"),
    (lambda: Category([1, True]), "different types"),
    (lambda: Category("abc"), "must be a list"),
    (lambda: Category(["a\0"]), "NUL"),
    (lambda: Category([2**60]), "beyond"),
    (lambda: Category([b"x"]), "bytes"),  # type: ignore[list-item]
    (lambda: Date("2020-01-02", "2020-01-01"), "above"),
    (lambda: Date("2020-13-01", "2021-01-01"), "not a day"),
    (lambda: Date("2020-01-01", None), "not a day"),  # type: ignore[arg-type]
    (lambda: Boolean(nullable="yes"), "True or False"),  # type: ignore[arg-type]
    (lambda: Text(nullable=None), "True or False"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("declare", "why"), WRONG)
def test_a_wrong_declaration_is_refused_with_its_own_reason(declare: Any, why: str) -> None:
    with pytest.raises(InvalidDeclaration, match=why):
        declare()


@pytest.mark.parametrize("domain", EVERY, ids=repr)
def test_codes_are_within_their_bounds_and_decode(domain: Domain) -> None:
    assert domain.size == domain.high_code - domain.low_code + 1
    assert domain.null_code == domain.high_code + 1
    for code in {domain.low_code, domain.high_code, (domain.low_code + domain.high_code) // 2}:
        assert domain.encode(domain.decode(code)) == code
    for nothing in (None, float("nan"), float("inf"), "", "perhaps", b"1", [1], object()):
        assert domain.encode(nothing) is None
    assert json.loads(json.dumps(domain.describe())) == domain.describe()
    assert eval(repr(domain)) == domain
    assert hash(domain) == hash(eval(repr(domain)))


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2026-02-03T01:30+02:00", "2026-02-02"),
        (" 2026-02-03 22:30:59.5-0200", "2026-02-03"),
        ("2026-02-03 22:30:59.5-02", "2026-02-04"),
        ("2026-02-03T01:30Z", "2026-02-03"),
        ("0001-01-01T00:00+14:00", "0001-01-01"),
    ],
)
def test_a_text_with_a_zone_is_of_its_day_in_utc_as_the_time_is(text: str, day: str) -> None:
    assert read_days(text) == (datetime.date.fromisoformat(day) - datetime.date(1970, 1, 1)).days


@pytest.mark.parametrize(
    ("wrong", "line"),
    [
        (lambda: Date("2021-01-01", "2020-01-01"), 'cl.Date("2020-01-01", "2021-01-01")'),
        (lambda: Real(0, float("inf")), "cl.Real(0, 100)"),
        (lambda: Integer(9, 1), "cl.Integer(1, 9)"),
    ],
)
def test_the_line_to_write_instead_can_be_written(wrong: Callable[[], object], line: str) -> None:
    with pytest.raises(InvalidDeclaration) as refusal:
        wrong()
    assert refusal.value.instead == line


@pytest.mark.parametrize("domain", [Integer(17, 90), Category([3, 1, 2]), Date("2020-02-27", "2020-03-01"), Boolean()], ids=repr)
def test_values_are_in_declared_order(domain: Domain) -> None:
    assert [domain.encode(value) for value in domain.values()] == list(range(domain.low_code, domain.high_code + 1))


def test_numbers_are_clamped_and_never_fail() -> None:
    age = Integer(17, 90)
    for value, code in {
        39: 39,
        10**400: 90,
        -(10**400): 17,
        38.5: 39,
        38.4999: 38,
        Decimal("39"): 39,
        Fraction(77, 2): 39,
        "1e400": 90,
    }.items():
        assert age.encode(value) == code
    for scalar in (np.int8(39), np.float32(39), np.uint64(2**63)):
        assert age.encode(scalar) in (39, 90)
    assert age.encode(True) is None


@given(st.integers() | st.floats() | st.decimals() | st.text())
def test_every_number_has_a_code_within_bounds_or_none(value: Any) -> None:
    for domain in (Integer(-5, 10**15), Real(-1, 1), Real(0, 3, step="1/3")):
        code = domain.encode(value)
        assert code is None or domain.low_code <= code <= domain.high_code


@given(st.fractions(0, 1000))
def test_rounding_to_the_step_is_to_the_nearest(value: Fraction) -> None:
    domain = Real(0, 1000, step="0.01")
    code = domain.encode(float(value))
    assert code is not None
    assert abs(Fraction(code, 100) - Fraction(float(value))) <= Fraction(1, 200) + Fraction(1, 10**9)


def test_the_default_step_follows_from_the_bounds_alone() -> None:
    assert Real(0, 1).step == Fraction(1, 10**6)
    assert Real(0, 500_000).step == Fraction(1, 10)
    assert Real("0.0000005", "1.0000005").step == Fraction(1, 10**7)
    third = Real(0, "1/3")
    assert third.step == Fraction(1, 3) / 2**20
    shifted = Real("0.3", "1.3", step=1)
    assert (shifted.origin, shifted.low_code, shifted.high_code) == (Fraction("0.3"), 0, 1)


def test_days_and_times() -> None:
    day = Date("1900-01-01", "2026-12-31")
    late = datetime.datetime(2020, 1, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
    assert day.decode(day.encode(late) or 0) == datetime.date(2019, 12, 31)
    assert day.encode(np.datetime64("1970-01-02")) == 1
    assert day.encode("1800-01-01") == day.low_code


def test_a_category_of_truth_values_is_no_category_of_numbers() -> None:
    assert Category([1, 2]).encode(True) is None
    assert Category([True]).encode(1) == 0
    assert Category([1, 2]).encode("2") == 1
    assert Category([1, 2]).encode(1.5) is None
    assert Category(["1"]).encode(1) == 0, "as a table reads a list of whole numbers"


def test_text_has_no_codes() -> None:
    assert Text().size is None
    for ask in (lambda: Text().low_code, lambda: Text().values(), lambda: Text().decode(0), lambda: Text().null_code):
        with pytest.raises(InvalidParameter, match="not declared"):
            ask()
