"""Hadamard response: exact channels, the words that are used up, errors as theory says with one block and many, bad input."""

from __future__ import annotations

import json

import numpy as np
import pytest

from cloister.attacks import audit_channel
from cloister.errors import InvalidParameter
from cloister.local import HadamardResponse
from cloister.noise import Random
from tests.local.trials import BY_CELLS, trials, within_theory
from tests.local.words import Scripted


@pytest.mark.parametrize("size", [2, 3, 10, 20])
@pytest.mark.parametrize("epsilon", ["0.1", "1", "3", "5"])
def test_the_exact_channel_keeps_epsilon_and_wastes_little(epsilon: str, size: int) -> None:
    found = audit_channel(HadamardResponse(range(size), epsilon).channel())
    assert found.epsilon <= float(epsilon)
    assert found.epsilon == pytest.approx(float(epsilon), rel=1e-9)
    assert all(sum(row) == 1 for row in found.rows)


def test_a_coin_too_kind_would_be_caught() -> None:
    assert audit_channel(HadamardResponse(range(9), "1.01").channel()).contradicts(HadamardResponse(range(9), 1).guarantee)


@pytest.mark.parametrize("epsilon", ["1", "2", "4"])
def test_reports_have_the_probabilities_of_the_channel(epsilon: str) -> None:
    """2·10⁵ reports, each of at most 32 counts within 6 deviations: false alarm 1e-7."""
    oracle = HadamardResponse(range(14), epsilon)
    for place in (0, 13):
        reports = oracle.randomize(np.full(200_000, place), random=Random.deterministic(8))
        chances = np.array([float(each) for each in oracle.channel()[place]])
        counts = np.bincount(reports, minlength=len(chances))
        assert (abs(counts - 200_000 * chances) < 6 * np.sqrt(200_000 * chances * (1 - chances))).all()


def plain(oracle: HadamardResponse, place: int, words: list[int]) -> int:
    """One report by the rule as it is written, with lists of columns."""
    client = json.loads(json.dumps(oracle.client))
    b = client["order"]
    blocks = -(-client["size"] // (b - 1))
    block, row = place // (b - 1), place % (b - 1) + 1
    even = [c for c in range(b) if (c & row).bit_count() % 2 == 0]
    odd = [c for c in range(b) if (c & row).bit_count() % 2]
    top = row.bit_length() - 1

    def numbered(columns: list[int]) -> list[int]:
        return sorted(columns, key=lambda c: (c >> top + 1) << top | c & (1 << top) - 1)

    coin, inside, outside = words[0] < int(client["heads"], 16), words[1] % (b // 2), words[2] % (blocks * b - b // 2)
    if coin:
        return int(block * b + numbered(even)[inside])
    others = [block * b + c for c in numbered(odd)] + [o * b + c for o in range(blocks) if o != block for c in range(b)]
    return int(others[outside])


@pytest.mark.parametrize(("size", "epsilon"), [(100, "1"), (100, "3"), (7, "2"), (20, "5")])
def test_the_words_are_used_up_in_the_order_that_is_stated(size: int, epsilon: str) -> None:
    oracle = HadamardResponse(range(size), epsilon)
    for seed in range(40):
        words = Random.deterministic(seed).words(3).tolist()
        script, place = Scripted(words), seed * 37 % size
        assert oracle.randomize([place], random=script).tolist() == [plain(oracle, place, words)]
        assert len(script.words_used) == 3


@BY_CELLS
@pytest.mark.parametrize("epsilon", ["0.5", "1"])
def test_the_error_is_what_theory_says_with_one_block(epsilon: str, cells: int) -> None:
    oracle = HadamardResponse(range(100), epsilon)
    assert oracle.blocks == 1
    within_theory(trials(oracle, n=1_000, seed=41, cells=cells), cells)


@pytest.mark.parametrize("epsilon", ["3", "5"])
def test_the_error_is_what_theory_says_with_many_blocks(epsilon: str) -> None:
    """5·10⁴ cells: off by 3 % with probability 2e-6, at a seed that is fixed. Half of the people hold one value."""
    size, n = 50_000, 100_000
    oracle = HadamardResponse(range(size), epsilon)
    assert oracle.blocks > 5
    values = np.where(np.arange(n) % 2, 7, np.arange(n) % size)
    truth = np.bincount(values, minlength=size)
    inside = np.add.reduceat(truth, np.arange(0, size, oracle.order - 1)) / n
    variances = oracle._variance(n, truth / n, inside[np.arange(size) // (oracle.order - 1)])
    estimate = oracle.estimate(oracle.aggregate(oracle.randomize(values, random=Random.deterministic(3))))
    errors = estimate.counts - truth
    assert (errors**2 / variances).mean() == pytest.approx(1, abs=0.03)
    assert 0.944 < (abs(errors) < estimate.margin(0.95)).mean() < 0.97  # a little more: a block has a share of the reports


def test_sketches_add_up_and_bad_input_is_refused() -> None:
    oracle = HadamardResponse(["a", "b", "c", "d", "e"], 1)
    reports = oracle.randomize(["a", "b", "c", "a"] * 100, random=Random.deterministic(1))
    assert oracle.aggregate(reports[:150]) + oracle.aggregate(reports[150:]) == oracle.aggregate(reports)
    assert oracle.estimate(oracle.aggregate([])).counts.tolist() == [0.0] * 5
    for bad in ([-1], [8], [[1]], [0.5]):
        with pytest.raises(InvalidParameter, match="The reports are invalid"):
            oracle.aggregate(bad)
    with pytest.raises(InvalidParameter, match="outside the domain"):
        oracle.randomize(["f"])
    with pytest.raises(InvalidParameter, match="would not fit into memory"):
        HadamardResponse(range(1 << 27), 1)
