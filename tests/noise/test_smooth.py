"""The smooth median: local sensitivities by brute force over all small tables, smoothness between all neighbours, the release."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from cloister.errors import InvalidParameter
from cloister.noise.random import Random
from cloister.noise.smooth import SmoothMedian, clamped, local_sensitivities, lower_median
from cloister.privacy.guarantee import ApproxDP

LOWER, UPPER, MOST = 0, 3, 9


def median(rows: tuple[int, ...]) -> int:
    return lower_median(clamped(list(rows), LOWER, UPPER))


def neighbours(rows: tuple[int, ...]) -> set[tuple[int, ...]]:
    removed = {rows[:i] + rows[i + 1 :] for i in range(len(rows))}
    added = {tuple(sorted((*rows, value))) for value in range(LOWER, UPPER + 1)}
    return removed | added


TABLES = [rows for n in range(MOST + 1) for rows in itertools.combinations_with_replacement(range(LOWER, UPPER + 1), n)]


def test_the_lower_median() -> None:
    assert [median(rows) for rows in [(), (2,), (1, 3), (0, 1, 3), (1, 1, 2, 3)]] == [0, 2, 1, 1, 1]


def test_local_sensitivities_are_those_of_brute_force() -> None:
    local = {rows: max(abs(median(rows) - median(other)) for other in neighbours(rows)) for rows in TABLES}
    for start in (rows for rows in TABLES if len(rows) <= 4):
        seen, edge = {start}, {start}
        found = []
        for _ in range(len(start) + 1):
            found.append(max(local[rows] for rows in seen))
            edge = {other for rows in edge for other in neighbours(rows)} - seen
            seen |= edge
        assert local_sensitivities(clamped(list(start), LOWER, UPPER)).tolist() == found, start


@pytest.mark.parametrize("epsilon", ["0.1", "1", "4"])
def test_smooth_sensitivity_is_smooth_and_bounds_the_local_one(epsilon: str) -> None:
    mechanism = SmoothMedian(lower=LOWER, upper=UPPER, epsilon=epsilon, delta="1e-3")
    growth = Fraction(math.exp(mechanism.beta)) * (1 + Fraction(1, 2**50))
    small = [rows for rows in TABLES if len(rows) < 7]
    smooth = {rows: mechanism.smooth_sensitivity(list(rows)) for rows in TABLES}
    tight = Fraction(0)
    for rows in small:
        for other in neighbours(rows):
            assert smooth[rows] <= growth * smooth[other]
            assert abs(median(rows) - median(other)) <= smooth[rows]
            tight = max(tight, smooth[rows] / smooth[other])
    assert tight > 1 + (growth - 1) / 2


def test_beta_is_what_the_proof_needs() -> None:
    mechanism = SmoothMedian(lower=0, upper=9, epsilon=1, delta="1e-6")
    assert math.expm1(float(mechanism.beta)) * math.log(2e6) == pytest.approx(0.5, rel=1e-12)
    assert mechanism.guarantee == ApproxDP(1, "1e-6")


def test_the_laws_of_neighbours_are_close_but_for_delta() -> None:
    """Exact discrete Laplace laws for every pair of small neighbouring tables: the hockey-stick divergence is at most δ."""
    mechanism = SmoothMedian(lower=LOWER, upper=UPPER, epsilon=1, delta="0.01")
    k = np.arange(-3000, 3001)

    def law(rows: tuple[int, ...]) -> np.ndarray:
        scale = float(2 * mechanism.smooth_sensitivity(list(rows)) / mechanism.epsilon)
        return math.tanh(0.5 / scale) * np.exp(-np.abs(k - median(rows)) / scale)

    laws = {rows: law(rows) for rows in TABLES if len(rows) <= 6}
    worst = 0.0
    for rows in (rows for rows in TABLES if len(rows) <= 5):
        for other in neighbours(rows):
            for one, two in ((laws[rows], laws[other]), (laws[other], laws[rows])):
                worst = max(worst, float(np.maximum(one - math.e * two, 0).sum()))
    assert worst <= 0.01
    assert worst > 0


def test_a_release_is_near_the_median_and_within_its_bounds() -> None:
    random = Random.deterministic(2)
    mechanism = SmoothMedian(lower=0, upper=1000, epsilon=1, delta="1e-6")
    rows = list(range(1001)) * 5
    smooth = mechanism.smooth_sensitivity(rows)
    assert smooth < 50  # the global sensitivity is 1000
    inside = sum(
        abs(mechanism.release(rows, random=random) - 500) <= mechanism.margin(0.95, smooth_sensitivity=smooth) for _ in range(400)
    )
    assert inside >= 355  # 380 expected; 6 standard deviations
    assert all(0 <= mechanism.release([0, 1000], random=random) <= 1000 for _ in range(50))
    assert mechanism.release([-5, 2000, 10**30], random=random) in range(1001)
    assert mechanism.release([], random=random) in range(1001)


@pytest.mark.parametrize(
    "bad",
    [
        {"delta": 0},
        {"delta": "0.6"},
        {"epsilon": 0},
        {"epsilon": "1e-12"},
        {"lower": 5, "upper": 5},
        {"upper": 2**60},
        {"lower": 0.5},
    ],
)
def test_refused_parameters(bad: dict[str, object]) -> None:
    with pytest.raises(InvalidParameter):
        SmoothMedian(**{"lower": 0, "upper": 10, "epsilon": 1, "delta": "1e-6", **bad})


def test_rows_must_be_whole_and_stay_unseen() -> None:
    with pytest.raises(InvalidParameter) as caught:
        SmoothMedian(lower=0, upper=10, epsilon=1, delta="1e-6").release([1.25, 2.5])
    assert "1.25" not in str(caught.value)
