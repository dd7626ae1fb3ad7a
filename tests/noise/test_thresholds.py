"""Tail probabilities cut to integers, against the same sums by another library at higher precision."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.noise.thresholds import Tails

CASES = [(Fraction(1, 512), 2, 63), (Fraction(1, 128), 2, 127), (Fraction(1, 16), 1, 63), (Fraction(1, 8), 1, 127)] + [
    (rate, power, bits)
    for rate in (Fraction(7, 3), Fraction(50), Fraction(10**30))
    for power in (1, 2)
    for bits in (63, 127, 300)
]


def floors_by_mpmath(rate: Fraction, power: int, mirrored: bool, bits: int) -> list[int]:
    with mpmath.workprec(bits + 200):
        decay = mpmath.mpf(rate.numerator) / rate.denominator
        count = 2 + int(((bits + 120) / decay) ** (mpmath.mpf(1) / power))
        weights = [mpmath.exp(-decay * k**power) * (2 if mirrored and k else 1) for k in range(count)]
        total = mpmath.fsum(weights)
        floors, tail = [], total
        for weight in weights[:-1]:
            tail -= weight
            floors.append(int(mpmath.floor(tail / total * mpmath.mpf(2) ** bits)))
        return [floor for floor in floors if floor > 0]


@pytest.mark.parametrize(("rate", "power", "bits"), CASES)
@pytest.mark.parametrize("mirrored", [False, True])
def test_floors_are_the_floors(rate: Fraction, power: Any, mirrored: bool, bits: int) -> None:
    tails = Tails(rate=rate, power=power, mirrored=mirrored)
    assert list(tails.floors(bits)) == floors_by_mpmath(rate, power, mirrored, bits)


@settings(max_examples=15)
@given(rate=st.fractions(min_value=Fraction(1, 20), max_value=20), power=st.sampled_from([1, 2]), mirrored=st.booleans())
def test_floors_at_any_rate(rate: Fraction, power: Any, mirrored: bool) -> None:
    assert list(Tails(rate=rate, power=power, mirrored=mirrored).floors(63)) == floors_by_mpmath(rate, power, mirrored, 63)


def test_more_bits_only_refine() -> None:
    tails = Tails(rate=Fraction(1, 9), power=1)
    coarse, fine = tails.floors(63), tails.floors(127)
    assert [floor >> 64 for floor in fine[: len(coarse)]] == list(coarse)
    assert all(floor >> 64 == 0 for floor in fine[len(coarse) :])


def test_too_few_guard_bits_are_noticed() -> None:
    """With no room to spare the bounds can't agree, and the answer is None rather than a guess."""
    assert Tails(rate=Fraction(1, 512), power=2)._gaussian_floors(63, 20) is None
    assert Tails(rate=Fraction(1, 512), power=1)._geometric_floors(63, 8) is None
