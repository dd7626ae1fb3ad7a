"""The binned square root: its sensitivity against the matrix written out, its error against the square root itself."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cloister.traces.square_root import Bins, SquareRoot, square_root_energy
from tests.traces import dense

DECLARED = ((512, 3.05), (65_536, 4.60), (1_048_576, 5.48))
"""The error of the square root's last sum, for noise of scale 1 per unit of sensitivity."""


@pytest.mark.parametrize("steps", [1, 2, 31, 32, 33, 64, 100, 129, 200, 300])
def test_the_longest_column_is_the_first_and_its_length_is_what_is_charged(steps: int) -> None:
    matrix = SquareRoot(steps)
    squares = (dense.square_root(matrix) ** 2).sum(axis=0)
    assert squares.max() == squares[0] == matrix.l2_squared


def test_no_column_is_longer_where_bins_have_merged_four_times() -> None:
    """Columns of 1,000 steps around every kind of edge, against the closed form."""
    matrix = SquareRoot(1000)
    longest = 0
    for column in (0, 1, 2, 15, 16, 31, 32, 63, 64, 127, 128, 255, 256, 511, 512):
        bins, squares = Bins(matrix, np.int64), 0
        for step in range(1000):
            bins.begin_step(step)
            bins.sums[0] = int(step == column)
            squares += matrix.row(bins.sums) ** 2
        assert squares <= matrix.l2_squared
        longest = max(longest, squares)
    assert longest == matrix.l2_squared


@pytest.mark.parametrize("steps", [33, 200, 300])
def test_the_energy_is_that_of_the_inverse(steps: int) -> None:
    matrix = SquareRoot(steps)
    reads = np.tril(np.ones((steps, steps))) @ np.linalg.inv(dense.square_root(matrix)) * float(matrix.weights[0])
    assert matrix.energy(steps) == pytest.approx((reads[-1] ** 2).sum())
    assert reads.min() > -1e-9
    assert reads.max() < 1 + 1e-9


def test_weights_are_whole_fall_with_age_and_do_not_depend_on_the_machine() -> None:
    for steps in (1, 64, 4096, 2**20, 2**30):
        weights = SquareRoot(steps).weights
        assert (np.diff(weights) < 0).all()
        assert weights.min() > 0
    assert SquareRoot(64).weights[[0, 1, 2, 31, 32, 47]].tolist() == [8192, 4096, 3072, 826, 795, 576]


@pytest.mark.parametrize(("steps", "told"), DECLARED[:2])
def test_the_error_is_within_five_per_cent_of_the_square_root(steps: int, told: float) -> None:
    matrix = SquareRoot(steps)
    error = math.sqrt(matrix.l2_squared * matrix.energy(steps)) / int(matrix.weights[0])
    assert square_root_energy(steps) == pytest.approx(told, abs=0.006)
    assert error < 1.05 * square_root_energy(steps)


@pytest.mark.slow
def test_so_it_is_for_a_million_steps_and_a_horizon_of_a_milliard_costs_a_fifth() -> None:
    steps, told = DECLARED[2]
    energy, long = SquareRoot(steps).energy(steps), SquareRoot(2**30)
    error = math.sqrt(SquareRoot(steps).l2_squared * energy) / int(SquareRoot(steps).weights[0])
    assert error < 1.05 * told
    assert math.sqrt(long.l2_squared * energy) / int(long.weights[0]) < 1.2 * told
    assert SquareRoot(steps).energy_bound(steps) >= energy


def test_what_margins_are_made_of_is_no_less_than_the_energy_and_hardly_more() -> None:
    for steps in [*range(1, 140), 255, 256, 257, 511, 512, 513, 1023, 1025, 2047, 2049, 4095, 4097, 9000, 16_385]:
        matrix = SquareRoot(steps)
        exact, bound = matrix.energy(steps), matrix.energy_bound(steps)
        assert exact <= bound * (1 + 1e-3), steps  # weights are rounded; a thousandth of a variance is no step of a margin
        assert bound <= 1.02 * exact, steps


def test_sums_near_the_limit_are_multiplied_exactly() -> None:
    matrix = SquareRoot(2**30)
    sums = np.full(matrix.slots, 2**62, dtype=np.int64)
    sums[::2] *= -1
    expected = sum(weight * value for weight, value in zip(matrix.weights.tolist(), sums.tolist(), strict=True))
    assert matrix.row(sums) == expected


def test_bins_lose_nothing_and_are_few() -> None:
    matrix = SquareRoot(5000)
    bins = Bins(matrix, np.int64)
    for step in range(5000):
        bins.begin_step(step)
        bins.sums[0] = step
        assert int(bins.sums.sum()) == step * (step + 1) // 2
    assert SquareRoot(2**30).slots == 432
