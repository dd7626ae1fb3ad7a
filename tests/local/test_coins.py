"""Coins: their probabilities, the words that they use up, and what is refused."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from cloister.errors import InvalidParameter
from cloister.local.protocols.coins import (
    WORD,
    bit_rows,
    check_epsilon,
    flips,
    heads_above,
    heads_below,
    lanes_of,
    least_epsilon,
    odds_below,
)
from cloister.noise import Random
from tests.local.words import Scripted


@pytest.mark.parametrize("epsilon", ["1e-6", "0.1", "1", "5", "39.9"])
def test_odds_are_below_e_to_the_epsilon_and_near(epsilon: str) -> None:
    import mpmath

    with mpmath.workdps(80):
        truth = mpmath.exp(mpmath.mpf(epsilon))
        odds = odds_below(Fraction(epsilon))
        got = mpmath.mpf(odds.numerator) / odds.denominator
        assert got <= truth
        assert truth - got < truth * mpmath.mpf(2) ** -180


@pytest.mark.parametrize("epsilon", [0, -1, "0", "1e-7", 41, float("nan"), float("inf"), "much", True, None])
def test_an_absurd_epsilon_is_refused(epsilon: object) -> None:
    with pytest.raises(InvalidParameter):
        check_epsilon(epsilon)  # type: ignore[arg-type]


def test_a_probability_is_rounded_to_the_side_that_was_asked_for() -> None:
    third = Fraction(1, 3)
    assert Fraction(heads_below(third), WORD) < third < Fraction(heads_above(third), WORD)
    assert heads_below(Fraction(1)) == heads_above(Fraction(1)) == WORD
    assert least_epsilon(Fraction(1)) == 0.0


def test_a_coin_falls_on_heads_exactly_below_its_threshold() -> None:
    words = Scripted([4, 5, 6])
    assert flips(5, 3, words).tolist() == [True, False, False]
    assert words.left == 0


def test_the_lanes_compare_sixty_four_numbers_at_once() -> None:
    """Written again, number by number: the k-th words hold the k-th highest bits."""
    heads = heads_below(Fraction(3, 10))
    recorded = Scripted.recording(Random.deterministic(5))
    row = int(bit_rows(heads, 1, 64, recorded)[0, 0])
    numbers, decided = [0] * 64, [False] * 64
    for step, word in enumerate(recorded.words_used):
        assert not all(decided)
        for place in range(64):
            numbers[place] = numbers[place] << 1 | word >> place & 1
            decided[place] = numbers[place] != heads >> (63 - step)
    length = len(recorded.words_used)
    assert all(decided)
    assert [bool(row >> place & 1) for place in range(64)] == [number < heads >> (64 - length) for number in numbers]


def test_a_fair_coin_takes_one_word_for_sixty_four() -> None:
    recorded = Scripted.recording(Random.deterministic(1))
    bit_rows(WORD // 2, 10, 128, recorded)
    assert len(recorded.words_used) == 20


@pytest.mark.parametrize("width", [1, 63, 64, 65, 128, 130])
def test_bits_beyond_the_width_are_zero(width: int) -> None:
    rows = bit_rows(heads_below(Fraction(9, 10)), 50, width, Random.deterministic(2))
    assert rows.shape == (50, lanes_of(width))
    bits = np.unpackbits(rows.view(np.uint8), axis=1, bitorder="little")
    assert not bits[:, width:].any()
    assert bits[:, :width].any()


@pytest.mark.parametrize("share", ["1/2", "0.2689414213699951", "0.01", "0.999"])
def test_each_bit_of_a_row_is_such_a_coin(share: str) -> None:
    """Binomial with 2·10⁵·64 coins: 6 deviations, a false alarm in 5·10⁸."""
    p = float(Fraction(share))
    rows = bit_rows(heads_below(Fraction(share)), 200_000, 64, Random.deterministic(3))
    ones = np.unpackbits(rows.view(np.uint8)).sum()
    n = rows.size * 64
    assert abs(ones - n * p) < 6 * (n * p * (1 - p)) ** 0.5


def test_neighbouring_bits_are_independent() -> None:
    """The correlation of bits j and j + 1 over 10⁶ rows is within 6/√10⁶ of 0."""
    rows = bit_rows(heads_below(Fraction(1, 4)), 1_000_000, 8, Random.deterministic(4))[:, 0]
    bits = np.stack([(rows >> np.uint64(place)) & np.uint64(1) for place in range(8)]).astype(np.float64)
    correlations = np.corrcoef(bits) - np.eye(8)
    assert np.abs(correlations).max() < 6e-3
