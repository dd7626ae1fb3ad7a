"""Subset selection: exact channels, the words that are used up, errors as theory says, bad input."""

from __future__ import annotations

import json
import math
from itertools import combinations

import numpy as np
import pytest

from cloister.attacks import audit_channel
from cloister.errors import InvalidParameter
from cloister.local import SubsetSelection
from cloister.noise import Random
from tests.local.trials import BY_CELLS, trials, within_theory
from tests.local.words import Scripted


@pytest.mark.parametrize("size", [2, 3, 8, 10])
@pytest.mark.parametrize("epsilon", ["0.1", "1", "3"])
def test_the_exact_channel_keeps_epsilon_and_wastes_little(epsilon: str, size: int) -> None:
    found = audit_channel(SubsetSelection(range(size), epsilon).channel())
    assert found.epsilon <= float(epsilon)
    assert found.epsilon == pytest.approx(float(epsilon), rel=1e-9)
    assert all(sum(row) == 1 for row in found.rows)


def test_a_coin_too_kind_would_be_caught() -> None:
    assert audit_channel(SubsetSelection(range(9), "1.01").channel()).contradicts(SubsetSelection(range(9), 1).guarantee)


@pytest.mark.parametrize("epsilon", ["0.1", "1"])
def test_reports_have_the_probabilities_of_the_channel(epsilon: str) -> None:
    """2·10⁵ reports, each of at most 35 counts within 6 deviations: false alarm 1e-7."""
    oracle = SubsetSelection(range(7), epsilon)
    reports = oracle.randomize(np.full(200_000, 4), random=Random.deterministic(9))[:, 0]
    sets = [sum(1 << place for place in each) for each in combinations(range(7), oracle.picks)]
    counts = np.array([(reports == each).sum() for each in sets])
    assert counts.sum() == 200_000
    chances = np.array([float(each) for each in oracle.channel()[4]])
    assert (abs(counts - 200_000 * chances) < 6 * np.sqrt(200_000 * chances * (1 - chances))).all()


def plain(oracle: SubsetSelection, place: int, words: list[int]) -> set[int]:
    """One report by the rule as it is written."""
    client = json.loads(json.dumps(oracle.client))
    picks, others = client["picks"], client["size"] - 1
    inside = words[0] < int(client["inside"], 16)
    picked: list[int] = []
    for turn, last in enumerate(range(others - picks, others)):
        drawn = words[1 + turn] % (last + 1)
        picked.append(last if drawn in picked else drawn)
    leaves = words[1 + picks] % picks
    values = {number + (number >= place) for turn, number in enumerate(picked) if not (inside and turn == leaves)}
    return values | ({place} if inside else set())


@pytest.mark.parametrize(("size", "epsilon"), [(100, "1"), (64, "0.1"), (7, "2"), (200, "3")])
def test_the_words_are_used_up_in_the_order_that_is_stated(size: int, epsilon: str) -> None:
    oracle = SubsetSelection(range(size), epsilon)
    for seed in range(20):
        words = Random.deterministic(seed).words(oracle.picks + 2).tolist()
        script, place = Scripted(words), seed * 37 % size
        row = oracle.randomize([place], random=script)[0].tolist()
        chosen = {64 * lane + bit for lane, word in enumerate(row) for bit in range(64) if word >> bit & 1}
        assert chosen == plain(oracle, place, words)
        assert len(script.words_used) == oracle.picks + 2


def test_the_number_of_picks_is_the_best_one() -> None:
    for size, epsilon in ((20, 0.5), (100, 1), (100, 3), (5, 1)):
        odds = math.exp(epsilon)
        oracle = SubsetSelection(range(size), epsilon)

        def variance(picks: int, size: int = size, odds: float = odds) -> float:
            p = picks * odds / (picks * odds + size - picks)
            q = (p * (picks - 1) + (1 - p) * picks) / (size - 1)
            return q * (1 - q) / (p - q) ** 2

        best = min(range(1, size), key=variance)
        assert oracle.picks == best
        assert oracle.variance(1) == pytest.approx(variance(best))
        assert oracle.report_size == (math.comb(size, best) - 1).bit_length()


@BY_CELLS
@pytest.mark.parametrize("epsilon", ["0.5", "1", "3"])
def test_the_error_is_what_theory_says(epsilon: str, cells: int) -> None:
    within_theory(trials(SubsetSelection(range(70), epsilon), n=500, seed=51, cells=cells), cells)


def test_sketches_add_up_and_bad_input_is_refused() -> None:
    oracle = SubsetSelection(["a", "b", "c", "d", "e", "f"], "0.5")
    assert oracle.picks == 2
    reports = oracle.randomize(["a", "b", "c", "a"] * 100, random=Random.deterministic(1))
    assert oracle.aggregate(reports[:150]) + oracle.aggregate(reports[150:]) == oracle.aggregate(reports)
    assert oracle.randomize([]).shape == (0, 1)
    for bad in ([[7]], [[64 + 1]], [3], [[0.5]], [[-3]]):
        with pytest.raises(InvalidParameter, match="The reports are invalid"):
            oracle.aggregate(bad)
    with pytest.raises(InvalidParameter, match="outside the domain"):
        oracle.randomize(["g"])
    with pytest.raises(InvalidParameter, match="more than 65,536 values"):
        SubsetSelection(range(1_000_000), 1)
