"""Frequency tables: controlled rounding keeps sums, complementary suppression leaves no cell to be worked out."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from cloister.crypto import PseudoRandomFunction
from cloister.errors import InvalidParameter
from cloister.noise import Random
from cloister.query.controls import Rounding, Suppression
from cloister.query.controls.network import with_totals
from cloister.query.controls.rounding import controlled_rounding
from cloister.query.controls.suppression import intervals, suppressed

KEYED = PseudoRandomFunction(b"secret")


def tables(seed: int, number: int, largest: int, most: int = 5) -> list[np.ndarray]:
    random = Random.deterministic(seed)
    return [
        random.below(largest, (rows := 1 + random.below_one(most)) * (columns := 1 + random.below_one(most))).reshape(
            rows, columns
        )
        for _ in range(number)
    ]


@pytest.mark.parametrize("base", [3, 5, 10])
def test_controlled_rounding_is_additive_adjacent_and_leaves_multiples(base: int) -> None:
    for number, counts in enumerate(tables(base, 60, 30)):
        for table in (counts, counts[0]):
            rounded = controlled_rounding(table, base, KEYED, str(number))
            before, after = with_totals(table), with_totals(rounded)
            assert (after % base == 0).all()
            assert (abs(after - before) < base).all()
            assert (after[before % base == 0] == before[before % base == 0]).all()


def test_controlled_rounding_is_unbiased() -> None:
    """2,000 keys: a mean is off by more than 6 standard errors (base/2 each at most) once in 10⁸."""
    counts = np.array([[1, 2, 7], [3, 3, 4]])
    mean = sum(controlled_rounding(counts, 5, KEYED, str(key)) for key in range(2000)) / 2000
    assert (abs(mean - counts) < 6 * 2.5 / 2000**0.5).all()


def test_deterministic_rounding_is_not_additive_which_is_why_there_is_a_controlled_one() -> None:
    counts = np.array([2, 2, 2])
    nearest = [int(Rounding(base=5).rounded(value, 5, KEYED)) for value in counts.tolist()]
    assert sum(nearest) == 0
    assert int(Rounding(base=5).rounded(6, 5, KEYED)) == 5


def possible(counts: np.ndarray, hidden: np.ndarray, most: int) -> dict[tuple[int, ...], set[int]]:
    """Every table with the same published cells and totals, by trying them all."""
    free = [place for place in itertools.product(*map(range, counts.shape)) if hidden[place]]
    shown, found = with_totals(counts), {place: set() for place in map(tuple, np.argwhere(hidden))}
    for values in itertools.product(range(most + 1), repeat=len(free)):
        trial = counts.copy()
        for place, value in zip(free, values, strict=True):
            trial[place] = value
        full = with_totals(trial)
        if (full[~hidden] == shown[~hidden]).all():
            for place in found:
                found[place].add(int(full[place]))
    return found


def test_intervals_are_those_of_all_possible_tables() -> None:
    checked = 0
    for counts in tables(4, 120, 5, most=3):
        mask = suppressed(counts, Suppression(threshold=3).small(with_totals(counts)))
        inner = mask[:-1, :-1]
        if inner.sum() > 5 or mask[-1].any() or mask[:, -1].any():
            continue
        everything = possible(counts, mask, int(counts.sum()) if inner.sum() < 4 else 9)
        for place, (low, high) in intervals(counts, mask).items():
            checked += 1
            assert high is not None
            assert (min(everything[place]), max(everything[place])) == (low, high)
    assert checked > 20


@pytest.mark.parametrize("width", [1, 3, 10])
def test_no_suppressed_cell_can_be_worked_out(width: int) -> None:
    for counts in tables(width, 80, 12):
        small = Suppression(threshold=4).small(with_totals(counts))
        mask = suppressed(counts, small, width=width)
        assert (mask | ~small).all()
        for place, (low, high) in intervals(counts, mask).items():
            assert high is None or high - low >= (width if small[place] else 1)
            assert low <= with_totals(counts)[place]
            assert high is None or high >= with_totals(counts)[place]


def test_primary_suppression_alone_gives_the_cell_back() -> None:
    """The attack that complements stop: the row's total less the other cells."""
    counts = np.array([[20, 1, 9], [30, 40, 50]])
    mask = np.zeros((3, 4), dtype=bool)
    mask[0, 1] = True
    assert intervals(counts, mask) == {(0, 1): (1, 1)}


def test_a_cycle_that_cannot_move_protects_nothing() -> None:
    """Suppressed zeros can only grow: where every way round needs one to shrink, the cells are known."""
    counts = np.array([[1, 0], [0, 5]])
    mask = np.zeros((3, 3), dtype=bool)
    mask[:2, :2] = True
    assert intervals(counts, mask)[(0, 0)] == (0, 1)
    stuck = np.array([[0, 4], [3, 0]])
    assert intervals(stuck, mask)[(0, 0)] == (0, 3)


def test_a_table_of_one_small_cell_hides_its_totals_too() -> None:
    mask = suppressed(np.array([[2]]), Suppression(threshold=3).small(with_totals(np.array([[2]]))))
    assert mask.all()


def test_wrong_parameters_are_refused() -> None:
    for wrong in (
        lambda: Rounding(base=1),
        lambda: Rounding(kind="best"),
        lambda: Suppression(threshold=1),
        lambda: Suppression(width=0),
    ):
        with pytest.raises(InvalidParameter):
            wrong()
