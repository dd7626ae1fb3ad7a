"""From what a person writes to an exact number, and back to a float that never promises too much."""

from __future__ import annotations

import math
import sys
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloister.errors import CloisterError, InvalidParameter
from cloister.privacy import (
    ZCDP,
    ApproxDP,
    PureDP,
    exact,
    exact_nonnegative,
    exact_positive,
    exact_probability,
    float_down,
    float_up,
    fraction_up,
    text_of,
)
from cloister.privacy.rational import plain_number, reads_back, shown

NASTY = [
    math.nan, math.inf, -math.inf, "nan", "inf", "-inf", "", " ", "abc", "1,5", "1e401", "1e-401", "1e99999999999", "1/0", "0x10",
    "１", "٣", "½", "1e５", "1" * 2001, "1" * 400 + "e1", "0." + "3" * 1999,
    "--1", "1e", "e5", None, [], b"1", 1j, True, False, np.bool_(True), np.array([1.0]),
    np.float64("nan"), object(), Decimal("NaN"), Decimal("Infinity"), Decimal("sNaN"), Decimal("1e-9999"), float("1e309"),
]  # fmt: skip


def str_or_long(value: object) -> str:
    return "huge" if isinstance(value, int | Fraction) and abs(value.numerator) + value.denominator > 10**9 else repr(value)


@pytest.mark.parametrize("value", NASTY, ids=lambda value: "an object" if type(value) is object else repr(value))
@pytest.mark.parametrize(
    "read", [exact, exact_positive, exact_nonnegative, exact_probability, PureDP, ZCDP, lambda v: ApproxDP(1, v)]
)
def test_what_is_no_exact_number_is_refused_with_a_message(read: Any, value: Any) -> None:
    with pytest.raises(InvalidParameter) as refusal:
        read(value)
    assert refusal.value.why
    assert refusal.value.instead


@pytest.mark.parametrize(
    "value", [-1, "-0.1", -0.5, Fraction(-1, 3), Decimal(-1), -(10**6000), Fraction(-1, 10**6000)], ids=str_or_long
)
@pytest.mark.parametrize("read", [exact_nonnegative, exact_positive, exact_probability, PureDP, ZCDP])
def test_negatives_are_refused(read: Any, value: Any) -> None:
    with pytest.raises(InvalidParameter):
        read(value)


@pytest.mark.parametrize("value", [1, "1", 1.5, 10**6000], ids=str_or_long)
def test_a_delta_of_one_or_more_is_refused(value: Any) -> None:
    with pytest.raises(InvalidParameter):
        ApproxDP(1, value)


def test_zero_is_not_positive() -> None:
    with pytest.raises(InvalidParameter):
        exact_positive(0)


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        (0.1, Fraction(1, 10)),
        ("0.1", Fraction(1, 10)),
        (" 1/3 ", Fraction(1, 3)),
        (Decimal("0.10"), Fraction(1, 10)),
        (1e-300, Fraction(1, 10**300)),
        (5e-324, Fraction(5, 10**324)),
        (np.float64(0.1), Fraction(1, 10)),
        (np.float32(0.1), Fraction(1, 10)),
        (np.int64(7), Fraction(7)),
        (np.uint8(7), Fraction(7)),
        (-0.0, Fraction(0)),
        ("1e-6", Fraction(1, 10**6)),
        ("1_000", Fraction(1000)),
    ],
)
def test_a_number_means_what_is_written(value: Any, meant: Fraction) -> None:
    assert exact(value) == meant


def test_a_tenth_ten_times_is_one() -> None:
    assert sum((exact(0.1) for _ in range(10)), Fraction(0)) == 1


@given(st.fractions())
def test_floats_bracket_the_number_and_are_neighbours(value: Fraction) -> None:
    low, high = float_down(value), float_up(value)
    assert Fraction(low) <= value <= Fraction(high)
    assert high == low or high == math.nextafter(low, math.inf)


@pytest.mark.parametrize("sign", [1, -1])
def test_beyond_the_floats_the_directions_still_hold(sign: int) -> None:
    far = Fraction(sign * 10**400)
    assert float_up(far) == (math.inf if sign > 0 else -sys.float_info.max)
    assert float_down(far) == (sys.float_info.max if sign > 0 else -math.inf)


def test_below_the_floats_the_directions_still_hold() -> None:
    assert float_up(Fraction(1, 10**400)) == 5e-324
    assert float_down(Fraction(1, 10**400)) == 0


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(1, 17))
def test_fraction_up_is_short_and_never_below(value: float, digits: int) -> None:
    found = fraction_up(value, digits)
    assert found >= Fraction(value)
    assert abs(found - Fraction(value)) <= abs(Fraction(value)) * Fraction(10) ** (2 - digits)


@given(st.fractions())
def test_text_is_faithful(value: Fraction) -> None:
    assert exact(text_of(value)) == value


@pytest.mark.parametrize(
    "text",
    ["1e400", "1e-400", "-1e400", "9" * 396 + "e400", "0." + "3" * 393 + "e-400", "0." + "7" * 398, "1" * 1968 + "/1073741824"],
    ids=lambda text: f"{text[:6]}{text[-6:]}",
)
def test_what_is_read_is_written_so_that_it_reads_back(text: str) -> None:
    """A number that is kept as its text must not be lost by that: a hub that can't read a rule answers nobody."""
    number = exact(text)
    assert reads_back(number)
    assert exact(text_of(number)) == number


_DIGITS = st.text("0123456789", min_size=1, max_size=400)


@given(_DIGITS, st.sampled_from(["", ".", "/"]), _DIGITS, st.none() | st.integers(-400, 400))
def test_every_text_that_is_accepted_reads_back(before: str, between: str, after: str, exponent: int | None) -> None:
    text = before + (between and between + after) + ("" if exponent is None else f"e{exponent}")
    with suppress(InvalidParameter):
        number = exact(text)
        assert exact(text_of(number)) == number


def test_a_number_beyond_the_floats_is_shown_and_kept_exactly() -> None:
    assert plain_number("1" * 400 + "/7") == Fraction(int("1" * 400), 7)
    assert (shown(Fraction(10**400)), shown("1" * 100)) == ("…", "'" + "1" * 56 + "…")


def test_what_was_computed_and_is_too_long_is_told_apart() -> None:
    assert not reads_back(Fraction(10**2000))
    assert not reads_back(Fraction(1, 3**6000))
    assert reads_back(Fraction(10**1999))


@given(st.text(max_size=20))
def test_any_text_is_a_number_or_a_refusal(text: str) -> None:
    with suppress(CloisterError):
        assert isinstance(exact(text), Fraction)


def test_fractions_of_numpys_integers_are_made_of_pythons() -> None:
    """Sums and products of the others wrap around in silence, and with them a charge."""
    narrow = Fraction(np.int32(1), np.int32(2**30))
    for value in (narrow, np.int64(2**62), Fraction(np.int64(2**62))):
        found = exact(value)
        assert type(found.numerator) is type(found.denominator) is int
    assert (PureDP(narrow) + PureDP(Fraction(np.int32(1), np.int32(2**30 - 1)))).epsilon == Fraction(
        2**31 - 1, 2**30 * (2**30 - 1)
    )


@pytest.mark.parametrize(("typed", "instead"), [("0,1", "0.1"), (" ，25", "0.25"), ("1,0000", "1.0000")])
def test_a_decimal_comma_is_named_and_a_comma_between_thousands_is_not_taken_for_one(typed: str, instead: str) -> None:
    with pytest.raises(InvalidParameter, match="decimal comma") as found:
        exact(typed, "spend")
    assert found.value.instead == f'spend="{instead}"'
    with pytest.raises(InvalidParameter, match="not a finite number"):
        exact("1,000")
