"""Intervals and grids: the coin to the grid, exactly; what a grid may be."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from cloister.errors import InvalidParameter
from cloister.local import CircularPiecewise, Piecewise
from cloister.local.numbers.interval import FINEST, Interval
from tests.local.words import Scripted


@pytest.mark.parametrize("steps", [1, 8, 1000, FINEST])
@pytest.mark.parametrize("value", [0.0, 1e-12, 0.1, 0.3333, 0.5, 0.999999, 1.0])
def test_the_coin_to_the_grid_keeps_the_mean_exactly(steps: int, value: float) -> None:
    """The word just below the coin's heads goes up, the next one does not: heads are (value·steps − point)·2⁶⁴, in the doubles
    of the position."""
    interval = Interval.of(0, 1)
    position = Fraction(value * steps)
    point = position.numerator // position.denominator
    heads = int((position - point) * 2**64)
    words = [w for w in (heads - 1, heads) if 0 <= w < 2**64]
    places = interval.places(np.full(len(words), value), steps, Scripted(words)).tolist()
    assert places == [point + (word < heads) for word in words]
    assert abs(point + Fraction(heads, 2**64) - Fraction(value) * steps) < Fraction(steps, 2**50)


def test_the_ends_are_points() -> None:
    interval = Interval.of("-0.3", "0.7")
    for word in (0, 2**64 - 1):
        assert interval.places(np.array([-0.3, 0.7]), 1024, Scripted([word, word])).tolist() == [0, 1024]


@pytest.mark.parametrize("grid", [0, -4, 1.5, True, FINEST + 1, "8"])
def test_bad_grids(grid: object) -> None:
    with pytest.raises(InvalidParameter, match="grid="):
        Piecewise(0, 1, 1, grid=grid)  # type: ignore[arg-type]


def test_a_circle_needs_four_points() -> None:
    with pytest.raises(InvalidParameter, match="from 4"):
        CircularPiecewise(0, 1, 1, grid=3)


def test_what_counts_as_numbers() -> None:
    interval = Interval.of(0, 1)
    assert interval.checked(np.array([0, 1], dtype=np.int8)).tolist() == [[0.0], [1.0]]
    assert interval.checked([Fraction(1, 4), 1, 0.5]).tolist() == [[0.25], [1.0], [0.5]]
    assert interval.checked(each for each in (0.5, 1)).tolist() == [[0.5], [1.0]]
    assert interval.checked(np.array([0.5], dtype=np.float32)).dtype == np.float64
    for wrong in (np.array(["a"]), np.array([1j]), np.array([True]), {"a": 1}, b"12"):
        with pytest.raises(InvalidParameter, match="list of numbers"):
            interval.checked(wrong)
