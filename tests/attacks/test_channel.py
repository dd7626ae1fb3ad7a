"""Finite channels: exact ε, δ and ρ against closed forms, and against what an audit by runs finds."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloister.attacks import audit, audit_channel
from cloister.errors import InvalidParameter
from cloister.noise import Random
from cloister.privacy.guarantee import ZCDP, ApproxDP, PureDP
from tests.tiers import some_by_day

THREE_TO_ONE = [["3/4", "1/4"], ["1/4", "3/4"]]


def weights(width: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, 20), min_size=width, max_size=width).filter(any)


def channels() -> st.SearchStrategy[list[list[Fraction]]]:
    rows = st.integers(2, 5).flatmap(lambda width: st.lists(weights(width), min_size=2, max_size=4))
    return rows.map(lambda rows: [[Fraction(each, sum(row)) for each in row] for row in rows])


def test_the_ratio_is_exact() -> None:
    found = audit_channel(THREE_TO_ONE)
    assert found.ratio == 3
    assert found.epsilon == pytest.approx(math.log(3), rel=1e-15)
    assert found.contradicts(PureDP("1.0986"))
    assert not found.contradicts(PureDP("1.0987"))


def test_the_least_delta_is_the_hockey_stick_divergence() -> None:
    found = audit_channel(THREE_TO_ONE)
    for epsilon in (0, 0.3, 1, 1.2):
        assert found.delta_at(epsilon) == pytest.approx(max(0.0, 0.75 - math.exp(epsilon) * 0.25), abs=1e-15)


def test_an_output_of_one_input_only_is_no_epsilon_at_all() -> None:
    found = audit_channel([[1, 0], ["0.99", "0.01"]])
    assert found.ratio is None
    assert found.epsilon == math.inf
    assert found.contradicts(PureDP(100))
    assert found.contradicts(ApproxDP(100, "0.0099"))
    assert not found.contradicts(ApproxDP("0.1", "0.01"))
    assert found.epsilon_at("0.001") == math.inf


def test_pairs_say_who_is_a_neighbour() -> None:
    chain = [["1/2", "1/2"], ["1/4", "3/4"], ["1/8", "7/8"]]
    assert audit_channel(chain).ratio == 4
    assert audit_channel(chain, pairs=[(0, 1), (1, 2)]).ratio == 2


@given(channels())
def test_epsilon_and_delta_are_inverse(rows: list[list[Fraction]]) -> None:
    found = audit_channel(rows)
    delta = found.delta_at(1)
    if 0 < delta < 0.999:
        assert found.epsilon_at(Fraction(delta) * (1 + Fraction(1, 10**12))) <= 1 + 1e-9
    assert found.delta_at(0) == pytest.approx(
        max(float(sum(abs(a - b) for a, b in zip(p, q, strict=True))) / 2 for p in rows for q in rows)
    )


@given(channels())
def test_rho_is_below_what_the_ratio_allows(rows: list[list[Fraction]]) -> None:
    found = audit_channel(rows)
    if found.ratio is not None:
        assert found.rho <= float(PureDP(Fraction(found.epsilon)).to_zcdp().rho) * (1 + 1e-9) + 1e-12
        assert not found.contradicts(ZCDP(Fraction(found.epsilon) ** 2 / 2))


@pytest.mark.parametrize("seed", range(5))
def test_runs_never_find_more_than_arithmetic_and_not_much_less(seed: int) -> None:
    random = Random.deterministic(seed)
    rows = [1 + random.below(20, 6) for _ in range(2)]
    cumulated = [np.cumsum(row) for row in rows]

    def mechanism(data: int, n: int, random: Random) -> np.ndarray:
        return np.searchsorted(cumulated[data], random.below(int(cumulated[data][-1]), n), side="right")

    exact = audit_channel([[Fraction(int(each), int(sum(row))) for each in row] for row in rows])
    found = audit(mechanism, 0, 1, runs=200_000, random=random)
    assert 0.85 * exact.epsilon < found.epsilon <= exact.epsilon
    within = audit(mechanism, 0, 1, runs=200_000, epsilon="0.2", random=random)
    assert 0.8 * exact.delta_at("0.2") < float(within.delta) <= exact.delta_at("0.2")


NO_CHANNELS = [
    [],
    [[1]],
    [["1/2", "1/2"]],
    [["1/2", "1/2"], [1]],
    [["1/2", "1/4"], ["1/2", "1/2"]],
    [[2, -1], [1, 0]],
]


@pytest.mark.parametrize("matrix", NO_CHANNELS)
def test_what_is_no_channel_is_refused(matrix: list[list[Any]]) -> None:
    with pytest.raises(InvalidParameter):
        audit_channel(matrix)


def test_pairs_that_name_no_rows_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="pairs"):
        audit_channel(THREE_TO_ONE, pairs=[(0, 2)])


def test_zcdp_with_a_delta_of_its_own() -> None:
    found = audit_channel([["0.9", "0.1"], ["0.5", "0.5"]])
    assert not found.contradicts(ZCDP("0.3", "0.4"))
    assert found.contradicts(ZCDP("0.01", "0.01"))


def test_floats_are_taken_to_be_right_to_twelve_digits() -> None:
    p = math.e / (1 + math.e)
    found = audit_channel([[p, 1 - p], [1 - p, p]])
    assert not found.contradicts(PureDP(1))
    assert found.contradicts(PureDP("0.99999999"))


def test_a_bound_of_rho_is_none_above_the_truth_where_two_events_are_nearly_certain() -> None:
    """Sixty answers in which one half is told with 0.0005 more: ρ is at most n·ε²/2."""

    def answers(half: Fraction) -> list[Fraction]:
        return [math.comb(60, count) * half**count * (1 - half) ** (60 - count) for count in range(61)]

    half = Fraction(1, 2) + Fraction(1, 2000)
    found = audit_channel([answers(half), answers(1 - half)])
    assert 0 < found.rho < 60 * math.log(half / (1 - half)) ** 2 / 2


@some_by_day("scale", [7, 30], lambda scale: scale == 7)
def test_a_bound_of_rho_is_none_above_that_of_a_discrete_laplace_law(scale: int) -> None:
    """Which is ε²/2 at most."""
    reach = 35 * scale
    weights = [Fraction(math.exp(-abs(place) / scale)) for place in range(-reach, reach + 1)]
    left, right = [*weights, Fraction(0)], [Fraction(0), *weights]
    left[-1], right[0] = left[0], right[-1]  # the ends share what is beyond them
    rows = [[each / sum(row) for each in row] for row in (left, right)]
    assert 0 < audit_channel(rows).rho < 1 / scale**2 / 2 * 1.01
