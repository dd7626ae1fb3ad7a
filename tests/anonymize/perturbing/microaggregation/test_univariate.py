"""The exact optimum of one column, against every way to cut it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from cloister.anonymize.perturbing import best_groups, mdav
from cloister.errors import InvalidParameter

Floats = npt.NDArray[np.float64]


def within(values: Floats, groups: npt.NDArray[np.int64]) -> float:
    return float(sum(((values[groups == group] - values[groups == group].mean()) ** 2).sum() for group in set(groups.tolist())))


def least(values: Floats, k: int) -> float:
    """By every length of a last run, not only those below 2k."""
    ordered = np.sort(values)
    best = [0.0] + [np.inf] * len(ordered)
    for end in range(k, len(ordered) + 1):
        best[end] = min(best[start] + float(ordered[start:end].var() * (end - start)) for start in range(end - k + 1))
    return best[-1]


@pytest.mark.parametrize("seed", range(60))
def test_nothing_loses_less(seed: int) -> None:
    generator = np.random.default_rng(seed)
    records = int(generator.integers(1, 45))
    k = int(generator.integers(1, min(records, 7) + 1))
    values = generator.normal(size=records) if seed % 2 else generator.integers(0, 9, records).astype(float)
    groups = best_groups(values, k)
    assert np.bincount(groups).min() >= k
    assert within(values, groups) == pytest.approx(least(values, k), abs=1e-9)


def test_large_numbers_near_one_another_do_not_cancel() -> None:
    values = np.random.default_rng(1).normal(size=40)
    assert within(values, best_groups(values + 1e9, 3)) == pytest.approx(least(values, 3), rel=1e-5)


def test_never_worse_than_mdav() -> None:
    values = np.random.default_rng(2).exponential(size=2000)
    assert within(values, best_groups(values, 5)) < within(values, mdav(values, 5))


def test_small_and_refused() -> None:
    assert best_groups([], 3).tolist() == []
    assert best_groups([2.0, 1.0], 2).tolist() == [0, 0]
    assert best_groups([3.0, 1.0, 2.0], 1).tolist() == [0, 1, 2]
    with pytest.raises(InvalidParameter, match="2 records"):
        best_groups([1.0, 2.0], 3)
