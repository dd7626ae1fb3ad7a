"""Unary encodings: exact channels, the words that they use up, errors as theory says, sketches, bad input."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest

from cloister.attacks import audit, audit_channel
from cloister.errors import InvalidParameter
from cloister.local import Sketch, UnaryEncoding
from cloister.local.frequency.packed import unpacked
from cloister.noise import Random
from tests.local.trials import BY_CELLS, trials, within_theory
from tests.local.words import Scripted

WORD = 1 << 64


@pytest.mark.parametrize("optimized", [True, False])
@pytest.mark.parametrize("epsilon", ["0.000001", "0.1", "1", "5", "40"])
def test_the_exact_channel_keeps_epsilon_and_wastes_little(epsilon: str, optimized: bool) -> None:
    found = audit_channel(UnaryEncoding(range(4), epsilon, optimized=optimized).channel())
    claimed = float(epsilon)
    assert found.epsilon <= claimed
    assert found.epsilon == pytest.approx(claimed, rel=1e-2 if claimed == 40 else 1e-9)  # e⁻⁴⁰ is 78 chances of 2⁶⁴ only
    assert all(sum(row) == 1 for row in found.rows)


def test_a_coin_too_kind_would_be_caught() -> None:
    """The channel is worked out from the coins that are thrown: with those of ε = 1.01, ε = 1 is contradicted."""
    oracle = UnaryEncoding(range(3), "1.01")
    assert audit_channel(oracle.channel()).contradicts(UnaryEncoding(range(3), 1).guarantee)


def test_reports_have_the_probabilities_of_the_channel() -> None:
    """2·10⁵ reports on three values, each of the 8 counts within 5.5 deviations: false alarm 3e-7."""
    for optimized in (True, False):
        oracle = UnaryEncoding(range(3), 1, optimized=optimized)
        reports = oracle.randomize(np.full(200_000, 1), random=Random.deterministic(7))[:, 0]
        chances = np.array([float(each) for each in oracle.channel()[1]])
        counts = np.bincount(reports.astype(np.int64), minlength=8)
        assert (abs(counts - 200_000 * chances) < 5.5 * np.sqrt(200_000 * chances * (1 - chances))).all()


def test_a_large_domain_audited_by_sampling_keeps_epsilon() -> None:
    """At least 0.8 of ε = 1 is found, and no more than ε (each bound is wrong with probability 1e-9)."""
    oracle = UnaryEncoding(range(100), 1)

    def two_bits(place: int, n: int, random: Random) -> object:
        return unpacked(oracle.randomize(np.full(n, place), random=random), 100)[:, [3, 70]]

    found = audit(two_bits, 3, 70, runs=200_000, random=Random.deterministic(1))
    assert not found.contradicts(oracle.guarantee)
    assert found.epsilon > 0.8


def test_the_variance_is_the_formula() -> None:
    for epsilon, symmetric, optimised in ((0.5, 15.92, 15.67), (1, 3.918, 3.683), (2, 0.921, 0.724), (4, 0.181, 0.076)):
        half, odds = math.exp(epsilon / 2), math.exp(epsilon)
        oue, sue = UnaryEncoding(range(9), epsilon), UnaryEncoding(range(9), epsilon, optimized=False)
        assert oue.variance(3) == pytest.approx(3 * 4 * odds / (odds - 1) ** 2)
        assert [sue.variance(3), sue.variance(3, 1.0)] == pytest.approx([3 * half / (half - 1) ** 2] * 2)
        assert oue.variance(1) == pytest.approx(optimised, abs=6e-3)
        assert sue.variance(1) == pytest.approx(symmetric, abs=6e-3)
        assert oue.variance(10, 0.5) - oue.variance(10) == pytest.approx(5)


@BY_CELLS
@pytest.mark.parametrize(("epsilon", "optimized"), [("0.5", True), ("3", True), ("1", False)])
def test_the_error_is_what_theory_says(epsilon: str, optimized: bool, cells: int) -> None:
    within_theory(trials(UnaryEncoding(range(70), epsilon, optimized=optimized), n=1_000, seed=21, cells=cells), cells)


def plain(oracle: UnaryEncoding, place: int, words: list[int]) -> tuple[list[int], int]:
    """One report by the rule as it is written, on Python's integers: what the browser's twin does. Also: words used."""
    client = json.loads(json.dumps(oracle.client))
    size, stay, rise = client["size"], int(client["stay"], 16), int(client["rise"], 16)
    lanes = -(-size // 64)
    coins, open_, used = [0] * lanes, [WORD - 1] * lanes, 0
    lowest = (rise & -rise).bit_length() - 1
    for bit in range(63, lowest - 1, -1):
        for lane in range(lanes):
            if open_[lane]:
                drawn, used = words[used], used + 1
                if rise >> bit & 1:
                    coins[lane] |= open_[lane] & ~drawn
                    open_[lane] &= drawn
                else:
                    open_[lane] &= ~drawn
    if size % 64:
        coins[-1] &= (1 << size % 64) - 1
    truth, used = words[used] < stay, used + 1
    mask = 1 << place % 64
    coins[place // 64] = coins[place // 64] & ~mask & (WORD - 1) | (mask if truth else 0)
    return coins, used


@pytest.mark.parametrize(("size", "optimized"), [(3, True), (64, False), (150, True), (150, False)])
def test_the_words_are_used_up_in_the_order_that_is_stated(size: int, optimized: bool) -> None:
    oracle = UnaryEncoding(range(size), "1.5", optimized=optimized)
    for seed in range(20):
        words = Random.deterministic(seed).words(400).tolist()
        script, place = Scripted(words), seed * 7 % size
        report = oracle.randomize([place], random=script)
        expected, used = plain(oracle, place, words)
        assert report.tolist() == [expected]
        assert len(script.words_used) == used


def test_sketches_add_up_and_travel() -> None:
    oracle = UnaryEncoding(["a", "b", "c"], 1)
    reports = oracle.randomize(["a", "b", "c", "a"] * 100, random=Random.deterministic(1))
    whole = oracle.aggregate(reports)
    assert oracle.aggregate(reports[:150]) + Sketch.from_json(oracle.aggregate(reports[150:]).to_json()) == whole
    assert oracle.aggregate([]) + whole == whole
    assert oracle.aggregate(reports.tolist()) == whole
    with pytest.raises(InvalidParameter, match="different protocols"):
        _ = whole + UnaryEncoding(["a", "b", "c"], 1, optimized=False).aggregate([])
    with pytest.raises(InvalidParameter, match="of another protocol"):
        UnaryEncoding(["a", "b", "c"], 2).estimate(whole)


def test_a_report_has_a_bit_for_each_value() -> None:
    oracle = UnaryEncoding(range(130), 1)
    assert oracle.report_size == 130
    assert oracle.randomize(range(130)).shape == (130, 3)
    assert oracle.randomize([]).shape == (0, 3)
    assert oracle.probabilities[0] == Fraction(1, 2)


def test_bad_input_is_refused_with_its_own_message() -> None:
    oracle = UnaryEncoding(["a", "b", "c"], 1)
    for reports in ([[8]], [[-1]], [[1, 2]], [3], [[0.5]], [["a"]]):
        with pytest.raises(InvalidParameter, match="The reports are invalid"):
            oracle.aggregate(reports)
    with pytest.raises(InvalidParameter, match="outside the domain"):
        oracle.randomize(["d"])
    with pytest.raises(InvalidParameter, match="OUE"):
        UnaryEncoding(["a", "b"], 1, optimized="yes")  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="too many reports to list"):
        UnaryEncoding(range(11), 1).channel()
    assert oracle.valid(np.array([[7], [8]], dtype=np.uint64)).tolist() == [True, False]
