"""The engine: every decision is the one that the real numbers demand, on the float path, on the exact path, and on the edge."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any

import mpmath
import numpy as np
import pytest

from cloister.noise import DiscreteGaussian, DiscreteLaplace, Laplace, Random
from cloister.noise.bernoulli import SLACK
from cloister.noise.inversion import Inversion, inversion
from tests.noise.scripted import Scripted, TwoStreams

LAWS = [
    (decay, power, grid)
    for grid in ("integers", "rounded")
    for decay, power in [
        ("10", 1),
        ("1/3", 1),
        ("1/15", 1),
        ("1/1000", 1),
        ("1e-9", 1),
        ("10", 2),
        ("1/50", 2),
        ("1e-6", 2),
        ("1e-18", 2),
    ]
]
ALWAYS_EXACT: dict[str, Any] = {"slack": 2.0, "margin": 1 << 63}


@pytest.mark.parametrize(("decay", "power", "grid"), LAWS)
def test_both_paths_give_the_same_value_for_the_same_bits(decay: str, power: Any, grid: Any) -> None:
    """The exact path draws further bits, and must come to what the first 64 already decided."""
    quick = Inversion(decay=Fraction(decay), power=power, grid=grid)
    exact = Inversion(decay=Fraction(decay), power=power, grid=grid, **ALWAYS_EXACT)
    assert np.array_equal(quick._chunk(3000, TwoStreams(1)), exact._chunk(3000, TwoStreams(1)))


@pytest.mark.parametrize(("decay", "power", "grid"), LAWS)
def test_forced_ambiguity_does_draw_more_bits(decay: str, power: Any, grid: Any) -> None:
    random = TwoStreams(1)
    untouched = TwoStreams(1).singles.word()
    Inversion(decay=Fraction(decay), power=power, grid=grid)._chunk(500, random)
    assert random.singles.word() == untouched  # the quick path decided all of them
    exact = TwoStreams(1)
    Inversion(decay=Fraction(decay), power=power, grid=grid, **ALWAYS_EXACT)._chunk(500, exact)
    assert exact.singles._position >= 500


@lru_cache
def tails_by_mpmath(rate: Fraction, power: int, mirrored: bool) -> list[mpmath.mpf]:
    """P(index ≥ k) for k = 0, 1, …, to 300 bits."""
    with mpmath.workprec(400):
        decay = mpmath.mpf(rate.numerator) / rate.denominator
        last = 2 + int((300 / decay) ** (mpmath.mpf(1) / power))
        weights = [mpmath.exp(-decay * k**power) * (2 if mirrored and k else 1) for k in range(last)]
        sums = [mpmath.mpf(0)]
        for weight in reversed(weights):
            sums.append(sums[-1] + weight)
        return [partial / sums[-1] for partial in reversed(sums)]


def tail(law: Inversion, k: int) -> mpmath.mpf:
    known = tails_by_mpmath(law.tails.rate, law.power, law.tails.mirrored)
    return known[k] if k < len(known) else mpmath.mpf(0)


@pytest.mark.parametrize(("decay", "power", "grid"), LAWS)
def test_the_far_tail_is_looked_up_right(decay: str, power: Any, grid: Any) -> None:
    """Numbers as small as 63 bits hold, and smaller: the index k found for U has P(≥ k + 1) ≤ U < P(≥ k)."""
    law = Inversion(decay=Fraction(decay), power=power, grid=grid)
    with mpmath.workprec(400):
        for small in (1, 2, 3, 1000, 1 << 20, 1 << 50, (1 << 62) + 12345):
            index = int(law._lookup(np.array([small << 1], dtype=np.uint64), Scripted([77, 78]))[0])
            assert tail(law, index + 1) <= mpmath.mpf(small + 1) / 2**63
            assert mpmath.mpf(small) / 2**63 <= tail(law, index)
        script = [0, 5, 99]  # the first 127 bits are zero: U is 5 / 2^191 and a little
        index = int(law._lookup(np.array([0], dtype=np.uint64), Scripted(script))[0])
        uniform = mpmath.mpf(5 << 64 | 99) / mpmath.mpf(2) ** 255
        assert tail(law, index + 1) <= uniform < tail(law, index) or index == 0


@pytest.mark.parametrize(("decay", "power", "grid"), LAWS)
def test_on_a_threshold_the_next_bits_decide(decay: str, power: Any, grid: Any) -> None:
    law = Inversion(decay=Fraction(decay), power=power, grid=grid)
    floors = law.tails.floors(63)
    fine = law.tails.floors(191)
    for k in {1, len(floors) // 2, len(floors)} - {0}:
        below = [(fine[k - 1] >> 64) & (2**64 - 1), (fine[k - 1] & (2**64 - 1)) - 1]
        above = [below[0], below[1] + 2]
        word = np.array([floors[k - 1] << 1], dtype=np.uint64)
        inside = law._lookup(word, Scripted(below))[0]
        outside = law._lookup(word, Scripted(above))[0]
        assert (inside, outside) == (k, k - 1)


@pytest.mark.parametrize(("decay", "power", "grid"), [law for law in LAWS if law[0] in ("1/1000", "1e-9", "1e-6", "1e-18")])
def test_on_the_edge_of_the_coin_the_next_bits_decide(decay: str, power: Any, grid: Any) -> None:
    law = Inversion(decay=Fraction(decay), power=power, grid=grid)
    bits = law.block if grid == "integers" else 64
    assert bits is not None
    place, index = (1 << bits) // 3, 2
    with mpmath.workprec(500):
        share = mpmath.mpf(place) / (1 << bits)
        rate = mpmath.mpf(law.tails.rate.numerator) / law.tails.rate.denominator
        y = rate * (share if power == 1 else share * (2 * index + share))
        edge = int(mpmath.floor(mpmath.exp(-y) * mpmath.mpf(2) ** 128))
    rest = [0, 0, 0, 0, 0, 0]  # in the rounded law the place goes on with zeros: just at the edge that was computed
    for shift, expected in ((-(1 << 40), True), (1 << 40, False)):
        coin, more = (edge + shift) >> 64, (edge + shift) & (2**64 - 1)
        assert law._exact_coin(index, place, bits, coin, Scripted([more, *rest])) is expected


def test_the_float_bound_holds_with_room_to_spare() -> None:
    """|computed exp(−y) − true| stays below a quarter of the slack, for every kind of block, place and index that is drawn."""
    random = Random.deterministic(8)
    for decay, power in (("1e-3", 1), ("1/129", 1), ("1e-6", 2), ("1/20000", 2)):
        law = Inversion(decay=Fraction(decay), power=power)  # type: ignore[arg-type]
        block = law.block or 0
        index = random.below(200, 1500)
        place = random.below(1 << block, 1500)
        share = place.astype(np.float64) * 2.0**-block
        y = share * law._rate if power == 1 else share * (share + 2.0 * index) * law._rate
        computed = np.exp(-y)
        with mpmath.workprec(150):
            rate = mpmath.mpf(law.tails.rate.numerator) / law.tails.rate.denominator
            for i, p, value in zip(index.tolist(), place.tolist(), computed.tolist(), strict=True):
                exact = mpmath.mpf(p) / (1 << block)
                true = mpmath.exp(-rate * (exact if power == 1 else exact * (2 * i + exact)))
                assert abs(value - true) < SLACK / 4


def test_rounding_goes_to_the_nearest() -> None:
    """The rounded law against Fractions, blocks longer and shorter than a step alike."""
    random = Random.deterministic(8)
    for decay in ("10", "1/3", "1/15", "1e-9", "1e-14"):
        law = Inversion(decay=Fraction(decay), power=1, grid="rounded")
        assert law.block is not None
        index = random.below(100, 200)
        places = random.words(200)
        found = law._rounded_all(index, places.copy())
        for i, place, size in zip(index.tolist(), places.tolist(), found.tolist(), strict=True):
            exact = (i + Fraction(place, 1 << 64)) * Fraction(2) ** law.block
            assert size == (exact + Fraction(1, 2)).__floor__() == law._rounded_one(i, place, 64)


def test_zero_comes_from_one_side_only() -> None:
    law = Inversion(decay=Fraction(1, 1000), power=1)
    first = (1 << 64) - 2  # a large number: block 0; its last bit is the sign
    accept = 0
    assert law.draw_one(Scripted([first, 0, accept])) == 0
    assert law.draw_one(Scripted([first + 1, 0, accept, first, 5 << 57, accept])) == 5


@pytest.mark.parametrize("exponent", [-100, -50, -20, -3, 0, 3, 9, 15, 16, 18, 19, 25, 50, 100])
def test_extreme_scales(exponent: int) -> None:
    """Never an overflow, a wrong tail or a hang: sizes stay in proportion to the scale."""
    scale = Fraction(10) ** exponent
    for kind in (DiscreteLaplace, DiscreteGaussian):
        noise = kind(scale=scale)
        draws = noise.sample(300, random=Random.deterministic(1))
        largest = max(abs(draw) for draw in draws.tolist())
        assert largest < 40 * scale if exponent >= 3 else largest <= max(40 * scale, 0)
        assert exponent < 3 or largest > scale
        assert draws.dtype == (np.int64 if exponent <= 15 else object)
        released = noise.release([0, 2**63 - 1, -(2**80)], random=Random.deterministic(2))
        assert released.dtype == object
        assert all(isinstance(item, int) for item in released.tolist())
    assert np.isfinite(Laplace(scale=scale).sample(5, random=Random.deterministic(1))).all()


def test_a_tail_longer_than_int64_becomes_python_integers() -> None:
    """The one draw in 2^700 that would overflow: block number 2^12 and more, at the longest blocks of int64."""
    law = Inversion(decay=Fraction(1, 2**50), power=1)
    assert law.block == 48
    many = 5000
    object.__setattr__(law, "_guide", [np.full(1 << 13, many, dtype=np.int16)])
    draws = law._chunk(50, Random.deterministic(1))
    assert draws.dtype == object
    assert all(abs(draw) >> 48 == many for draw in draws.tolist())


def test_few_draws_and_many_have_the_same_kind() -> None:
    for n in (0, 1, 24, 25, 20_000):
        draws = inversion(decay=Fraction(1, 100), power=1).draw(n, Random.deterministic(1))
        assert draws.shape == (n,)
        assert draws.dtype == np.int64


def test_the_time_of_a_rejection_tells_nothing() -> None:
    """Whether a proposal is accepted, and how many were before it, is independent of the accepted value.

    The number of proposals for a draw, against its size: the correlation of 20,000 pairs is within 6/√20,000 of zero (p < 1e-8).
    """
    law = Inversion(decay=Fraction(1, 1000), power=1)
    pairs = []
    random = Random.deterministic(4)
    for _ in range(20_000):
        before = random._position
        size = abs(law.draw_one(random))
        pairs.append((size, (random._position - before) % 8192))
    sizes, words = np.array(pairs, dtype=float).T
    assert words.std() > 0
    assert abs(np.corrcoef(sizes, words)[0, 1]) < 6 / np.sqrt(20_000)
