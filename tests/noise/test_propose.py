"""Propose-test-release: distances by brute force, the exact probabilities of passing, the release."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from cloister.errors import InvalidParameter
from cloister.noise.propose import ProposeTestRelease, median_distance
from cloister.noise.random import Random
from cloister.noise.smooth import clamped, lower_median
from cloister.privacy.guarantee import ApproxDP

LOWER, UPPER, MOST = 0, 3, 9
TABLES = [rows for n in range(MOST + 1) for rows in itertools.combinations_with_replacement(range(LOWER, UPPER + 1), n)]


def median(rows: tuple[int, ...]) -> int:
    return lower_median(clamped(list(rows), LOWER, UPPER))


def neighbours(rows: tuple[int, ...]) -> set[tuple[int, ...]]:
    removed = {rows[:i] + rows[i + 1 :] for i in range(len(rows))}
    added = {tuple(sorted((*rows, value))) for value in range(LOWER, UPPER + 1)}
    return removed | added


@pytest.mark.parametrize("proposed", [1, 2])
def test_distances_are_those_of_brute_force(proposed: int) -> None:
    local = {rows: max(abs(median(rows) - median(other)) for other in neighbours(rows)) for rows in TABLES}
    bad = {rows for rows, value in local.items() if value > proposed}
    for start in (rows for rows in TABLES if len(rows) <= MOST // 2):
        seen, edge, distance = {start}, {start}, 0
        while not seen & bad:
            edge = {other for rows in edge for other in neighbours(rows)} - seen
            seen |= edge
            distance += 1
        assert median_distance(clamped(list(start), LOWER, UPPER), proposed) == distance, start


def test_the_distance_moves_by_one_at_most() -> None:
    for rows in (rows for rows in TABLES if len(rows) < 6):
        for other in neighbours(rows):
            for proposed in (1, 2, 3):
                moved = [median_distance(clamped(list(table), LOWER, UPPER), proposed) for table in (rows, other)]
                assert abs(moved[0] - moved[1]) <= 1


@pytest.mark.parametrize(("epsilon", "delta"), [("0.1", "1e-9"), ("2", "1e-6"), ("30", "0.1"), ("1", "0.9")])
def test_at_distance_zero_the_chance_of_a_release_is_at_most_delta(epsilon: str, delta: str) -> None:
    mechanism = ProposeTestRelease(epsilon=epsilon, delta=delta, proposed=1)
    alpha = math.exp(-float(mechanism.epsilon) / 2)
    passing = alpha ** (mechanism.cutoff + 1) / (1 + alpha)
    assert passing <= float(delta) * (1 + 1e-12)
    assert 1 - mechanism.refusal(0) == pytest.approx(passing, abs=1e-12)
    assert mechanism.guarantee == ApproxDP(epsilon, delta)


def test_refusals_have_the_stated_probability() -> None:
    mechanism = ProposeTestRelease(epsilon=2, delta="1e-3", proposed=1)
    random = Random.deterministic(7)
    for distance in (mechanism.cutoff - 1, mechanism.cutoff + 2):
        refused = sum(mechanism.release(0, distance=distance, random=random) is None for _ in range(4000)) / 4000
        chance = mechanism.refusal(distance)
        assert abs(refused - chance) < 5.5 * math.sqrt(chance * (1 - chance) / 4000)
    alpha = math.exp(-1)
    k = np.arange(-200, mechanism.cutoff - 3)
    assert mechanism.refusal(4) == pytest.approx(float(((1 - alpha) / (1 + alpha) * alpha ** np.abs(k)).sum()))


def test_the_median_is_released_where_data_are_dense_and_refused_where_they_are_not() -> None:
    random = Random.deterministic(1)
    mechanism = ProposeTestRelease(epsilon=2, delta="1e-6", proposed=1)
    dense = sorted(list(range(400, 600)) * 20)
    released = mechanism.release_median(dense, lower=0, upper=1000, random=random)
    assert released is not None
    assert abs(released - 499) < 30
    assert mechanism.release_median([0] * 50 + [1000] * 50, lower=0, upper=1000, random=random) is None
    assert mechanism.variance == mechanism.release_noise.variance


@pytest.mark.parametrize("bad", [{"delta": 0}, {"epsilon": 0}, {"proposed": 0}, {"proposed": 0.5}])
def test_refused_parameters(bad: dict[str, object]) -> None:
    with pytest.raises(InvalidParameter):
        ProposeTestRelease(**{"epsilon": 1, "delta": "1e-6", "proposed": 1, **bad})


def test_values_must_be_whole() -> None:
    with pytest.raises(InvalidParameter):
        ProposeTestRelease(epsilon=1, delta="1e-6", proposed=1).release(0.5, distance=3)  # type: ignore[arg-type]
