"""Rounding to a grid is exact, and moves neighbours apart by no more than the guarantee accounts for."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloister.errors import InvalidParameter
from cloister.noise.grid import default_step, l1_on_grid, l2_squared_on_grid, root_above, times_step, to_grid

steps = st.fractions(min_value=Fraction(1, 10**6), max_value=1000, max_denominator=10**6).filter(lambda step: step > 0)
reals = st.floats(allow_nan=False, allow_infinity=False)
fractions = st.fractions(min_value=-(10**6), max_value=10**6, max_denominator=10**4)


@given(values=st.lists(reals, min_size=1, max_size=6), step=steps)
def test_floats_are_rounded_as_the_rationals_they_are(values: list[float], step: Fraction) -> None:
    expected = [math.floor(Fraction(value) / step + Fraction(1, 2)) for value in values]
    assert to_grid(np.array(values), step).tolist() == expected
    assert to_grid(values, step).tolist() == expected


@given(k=st.integers(min_value=-(2**40), max_value=2**40), step=steps, ulps=st.integers(min_value=-3, max_value=3))
def test_floats_next_to_a_tie_are_rounded_right(k: int, step: Fraction, ulps: int) -> None:
    value = float((k + Fraction(1, 2)) * step)
    value += ulps * math.ulp(value)
    assert to_grid(np.array([value]), step).tolist() == [math.floor(Fraction(value) / step + Fraction(1, 2))]


def test_other_kinds_of_numbers() -> None:
    mixed = [1, Fraction(1, 3), Decimal("0.5"), np.float32(2.5), np.int8(3)]
    assert to_grid(mixed, Fraction(1, 2)).tolist() == [2, 1, 1, 5, 6]
    assert to_grid(np.array([1, 2], dtype=np.int16), Fraction(1, 4)).tolist() == [4, 8]
    assert to_grid([], Fraction(1)).shape == (0,)
    for wrong in (["1"], [True], np.array(["a"]), [float("nan")], np.array([np.inf]), [None], np.array([1j])):
        with pytest.raises(InvalidParameter):
            to_grid(wrong, Fraction(1))


@given(left=st.lists(fractions, min_size=3, max_size=3), move=st.lists(fractions, min_size=3, max_size=3), step=steps)
def test_neighbours_stay_within_the_accounted_distance(left: list[Fraction], move: list[Fraction], step: Fraction) -> None:
    right = [a + b for a, b in zip(left, move, strict=True)]
    apart = [int(a) - int(b) for a, b in zip(to_grid(left, step), to_grid(right, step), strict=True)]
    moved = sum(1 for b in move if b)
    l1, l2_squared = sum(map(abs, move)), sum((b * b for b in move), Fraction(0))
    if moved:
        assert sum(map(abs, apart)) * step <= l1_on_grid(l1, step, moved)
        assert sum(a * a for a in apart) * step**2 <= l2_squared_on_grid(l2_squared, step, moved)


@given(step=steps, reach=st.fractions(min_value=Fraction(1, 1000), max_value=1000).filter(lambda reach: reach > 0))
def test_one_coordinate_reaches_its_bound(step: Fraction, reach: Fraction) -> None:
    """⌈reach/step⌉ steps are attained: the account is not only safe but exact."""
    start = step / 2 - reach % step if reach % step else step / 2
    apart = int(to_grid([start + reach], step)[0]) - int(to_grid([start - Fraction(1, 10**30)], step)[0])
    assert apart * step <= l1_on_grid(reach + Fraction(1, 10**30), step, 1)
    low = step / 2 - Fraction(1, 10**30)
    furthest = int(to_grid([low + reach + Fraction(2, 10**30)], step)[0]) - int(to_grid([low], step)[0])
    assert furthest >= reach / step


@given(reach=fractions.filter(lambda x: x > 0), scale=fractions.filter(lambda x: x > 0))
def test_the_default_step_divides_the_sensitivity(reach: Fraction, scale: Fraction) -> None:
    step = default_step(scale, reach)
    ratio = reach / step
    assert ratio.denominator == 1
    assert ratio.numerator & (ratio.numerator - 1) == 0
    assert step <= scale / 2**20 or step == reach <= scale / 2**20
    assert ratio == 1 or 2 * step > scale / 2**20
    assert l1_on_grid(reach, step, 1) == reach
    assert l2_squared_on_grid(reach**2, step, 1) == reach**2


@given(x=st.fractions(min_value=0, max_value=10**20))
def test_roots_are_from_above(x: Fraction) -> None:
    root = root_above(x)
    assert root**2 >= x
    assert root**2 <= x * (1 + Fraction(1, 2**150))


def test_multiples_are_the_nearest_floats() -> None:
    assert times_step(np.array([1, 3, -7]), Fraction(1, 10)).tolist() == [0.1, 0.3, -0.7]
    assert times_step(np.array([3, 2**62 + 1]), Fraction(1, 8)).tolist() == [0.375, float(Fraction(2**62 + 1, 8))]
    assert times_step(np.array([10**400, 1], dtype=object), Fraction(1)).tolist() == [math.inf, 1.0]
