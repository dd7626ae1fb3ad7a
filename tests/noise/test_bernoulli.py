"""Coins: decided right on the edge, from bits that are known."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloister.errors import InvalidParameter
from cloister.noise.bernoulli import SLACK, bernoulli, coins
from cloister.noise.enclosure import exp_above, exp_below, exp_enclosure, lies_below, rational_enclosure
from tests.noise.scripted import Scripted

rationals = st.fractions(min_value=0, max_value=2000, max_denominator=10**9)


@given(x=rationals, bits=st.sampled_from([1, 8, 53, 64, 127, 500]))
def test_exponentials_lie_where_they_are_said_to(x: Fraction, bits: int) -> None:
    low = exp_below(x, bits)
    with mpmath.workprec(bits + 100):
        true = mpmath.exp(-mpmath.mpf(x.numerator) / x.denominator) * mpmath.mpf(2) ** bits
        assert low <= true <= low + 2
    above = exp_above(x)
    with mpmath.workprec(400):
        true = mpmath.exp(-mpmath.mpf(x.numerator) / x.denominator)
        assert true * mpmath.mpf(2) ** 200 <= mpmath.mpf(above.numerator) / above.denominator * mpmath.mpf(2) ** 200
        assert mpmath.mpf(above.numerator) / above.denominator <= true * (1 + mpmath.mpf(2) ** -180)


def test_exponentials_of_extreme_arguments() -> None:
    for x in (Fraction(1, 10**300), Fraction(10**300), Fraction(10**6)):
        assert 0 <= exp_below(x, 64) <= 1 << 64
    assert exp_below(Fraction(10**300), 64) == 0
    low, high = exp_enclosure(Fraction(1, 10**300))(64)
    assert (high, low >= (1 << 64) - 2) == (1 << 64, True)
    low = exp_below(Fraction(1), 40_000)
    with mpmath.workprec(40_100):
        assert low <= mpmath.exp(-1) * mpmath.mpf(2) ** 40_000 <= low + 2


def edge(threshold: Fraction | mpmath.mpf, bits: int) -> int:
    """The first `bits` bits of a number."""
    if isinstance(threshold, Fraction):
        return (threshold.numerator << bits) // threshold.denominator
    with mpmath.workprec(bits + 100):
        return int(mpmath.floor(threshold * mpmath.mpf(2) ** bits))


@pytest.mark.parametrize("p", [Fraction(1, 3), Fraction(2, 7), Fraction(999, 1000)])
def test_a_rational_coin_is_decided_by_the_bits_beyond_the_first(p: Fraction) -> None:
    bits = edge(p, 192)
    words = [bits >> 128, (bits >> 64) & (2**64 - 1), bits & (2**64 - 1)]
    below, above = [*words[:2], words[2] - 1], [*words[:2], words[2] + 1]
    assert bernoulli(p, 1, random=Scripted(below)).tolist() == [True]
    assert bernoulli(p, 1, random=Scripted(above)).tolist() == [False]


@pytest.mark.parametrize("x", [Fraction(1, 10**9), Fraction(1), Fraction(22, 7), Fraction(60)])
def test_an_exponential_coin_is_decided_by_the_bits_beyond_the_first(x: Fraction) -> None:
    with mpmath.workprec(400):
        bits = edge(mpmath.exp(-mpmath.mpf(x.numerator) / x.denominator), 192)
    words = [bits >> 128, (bits >> 64) & (2**64 - 1), bits & (2**64 - 1)]
    for shift, expected in ((-3, True), (3, False)):
        script = [*words[:2], words[2] + shift]
        assert coins(exp_enclosure(x), 1, Scripted(script)).tolist() == [expected]


def test_numpys_exp_is_within_what_the_proof_assumes() -> None:
    """Eight units in the last place, on a dense grid of arguments, for arrays and for scalars."""
    y = np.concatenate([np.linspace(0, 2, 6000), np.linspace(2, 60, 3000), np.geomspace(1e-18, 1, 2000)])
    computed = np.exp(-y)
    with mpmath.workprec(120):
        for argument, value in zip(y.tolist(), computed.tolist(), strict=True):
            true = mpmath.exp(-mpmath.mpf(argument))
            assert abs(value - true) <= 8 * np.spacing(value)


@given(x=st.fractions(min_value=0, max_value=3, max_denominator=10**12))
def test_the_slack_covers_the_float(x: Fraction) -> None:
    with mpmath.workprec(120):
        true = mpmath.exp(-mpmath.mpf(x.numerator) / x.denominator)
        assert abs(float(np.exp(-float(x))) - true) < SLACK / 4


def test_lazy_comparison_with_a_dyadic_number_ends() -> None:
    half = rational_enclosure(Fraction(1, 2))
    assert lies_below((1 << 63) - 1, 64, half, Scripted([]))
    assert not lies_below(1 << 63, 64, half, Scripted([]))


def test_sure_coins() -> None:
    assert bernoulli(1, 5).all()
    assert not bernoulli(0, 5).any()
    # the largest word there is, against a probability that rounds to 1 in floating point
    nearly = [2**64 - 1, 2**64 - 1, 0]
    assert coins(exp_enclosure(Fraction(1, 2**130)), 1, Scripted(nearly)).tolist() == [True]


def test_refusals() -> None:
    for p in (-1, "1.1", "nan", float("inf")):
        with pytest.raises(InvalidParameter):
            bernoulli(p, 1)
    with pytest.raises(InvalidParameter):
        bernoulli("1/2", -1)
