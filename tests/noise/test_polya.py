"""Differences of Pólya numbers: the rates of their jumps are those of the law exactly, and the draws have the law."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import stats

from cloister.noise import DiscreteLaplace, Random
from cloister.noise import polya as module
from cloister.noise.enclosure import exp_enclosure
from cloister.noise.polya import PolyaDifference, poisson_floors
from tests.noise.scripted import TwoStreams

FALSE_ALARM = 1e-7
LAWS = [(Fraction(6), Fraction(1, 3)), (Fraction(1, 2), Fraction(1, 20)), (Fraction(40, 3), Fraction(5, 6))]


@pytest.mark.parametrize(("scale", "shape"), [*LAWS, (Fraction(64), Fraction(1, 7)), (Fraction(1), Fraction(1))])
def test_the_rate_of_each_jump_is_that_of_the_law(scale: Fraction, shape: Fraction) -> None:
    """Candidates at a rational rate, thinned: for each size the product lies with r·α^k/k in an interval of 2^-180."""
    law = PolyaDifference(scale=scale, shape=shape)
    for size in range(1, 40 * (1 << law.blocks)):
        block = size.bit_length() - 1
        beyond = max(0, block - law.blocks)
        candidates = law.rate / (law.blocks + 2) * Fraction(1, 2**beyond) / 2 / 2**block
        low, high = law.chance(size, beyond)(200)
        true_low, true_high = exp_enclosure(size / scale)(220)
        assert candidates * low / 2**200 <= shape / size * true_high / 2**220
        assert candidates * high / 2**200 >= shape / size * true_low / 2**220
        assert 0 <= low <= high <= 2**200
        assert high - low <= 8


def negative_binomial(shape: Fraction, decay: Fraction, length: int) -> list[Fraction]:
    """Its probabilities over that of 0."""
    found = [Fraction(1)]
    for j in range(1, length):
        found.append(found[-1] * decay * (shape + j - 1) / j)
    return found


@pytest.mark.parametrize("parties", [2, 3, 20])
def test_jumps_at_those_rates_add_up_to_the_law_and_shapes_to_the_whole(parties: int) -> None:
    """In fractions, for a rational α: by Panjer's recursion a compound Poisson number with Σ_k (r·α^k/k)·z^k is negative
    binomial, and the sum of n of shape 1/n is geometric."""
    shape, decay, length = Fraction(1, parties), Fraction(2, 3), 40
    jumps = [Fraction(0)] + [shape * decay**k / k for k in range(1, length)]
    compound = [Fraction(1)]
    for n in range(1, length):
        compound.append(sum(k * jumps[k] * compound[n - k] for k in range(1, n + 1)) / n)
    share = negative_binomial(shape, decay, length)
    assert compound == share
    total = [Fraction(1)] + [Fraction(0)] * (length - 1)
    for _ in range(parties):
        total = [sum(total[i] * share[n - i] for i in range(n + 1)) for n in range(length)]
    assert total == [decay**n for n in range(length)]


@pytest.mark.parametrize("rate", ["1/10", "1", "64/3", "124"])
@pytest.mark.parametrize("bits", [64, 192])
def test_the_poisson_numbers_are_enclosed(rate: str, bits: int) -> None:
    lows, highs = poisson_floors(Fraction(rate), bits)
    with mpmath.workprec(600):
        mean = mpmath.mpf(Fraction(rate).numerator) / Fraction(rate).denominator
        below = mpmath.mpf(0)
        for m, (low, high) in enumerate(zip(lows, highs, strict=True)):
            below += mpmath.exp(-mean) * mean**m / mpmath.factorial(m)
            assert low <= below * 2**bits <= high
            assert high - low <= 2
    assert lows == tuple(sorted(lows))
    assert 2**bits - lows[-1] <= 1


def probabilities(law: PolyaDifference, size: int = 1 << 13) -> np.ndarray[Any, Any]:
    """P(k), on a circle that is far longer than the noise, from the transform |(1 − α)/(1 − αz)|^2r."""
    turns = 2 * np.pi * np.arange(size) / size
    transform = (1 + (np.sin(turns / 2) / math.sinh(0.5 / float(law.scale))) ** 2) ** -float(law.shape)
    return np.fft.fft(transform).real / size


def check_law(drawn: np.ndarray[Any, Any], law: PolyaDifference) -> None:
    """Pearson's chi-square over values with an expected count of at least 20, the rest together; false alarm 10⁻⁷."""
    chances = probabilities(law)
    inside = [k for k in range(-500, 501) if chances[k] * len(drawn) >= 20]
    expected = np.array([chances[k] for k in inside] + [1 - sum(chances[k] for k in inside)]) * len(drawn)
    seen = np.array([int((drawn == k).sum()) for k in inside])
    seen = np.append(seen, len(drawn) - seen.sum())
    assert len(inside) > 4
    if expected[-1] < 5:
        assert seen[-1] < 40
        seen, expected = seen[:-1], expected[:-1]
    statistic = float(((seen - expected) ** 2 / expected).sum())
    assert statistic < stats.chi2.isf(FALSE_ALARM, len(seen) - 1)


@pytest.mark.parametrize(("scale", "shape"), LAWS)
def test_draws_have_the_law(scale: Fraction, shape: Fraction) -> None:
    law = PolyaDifference(scale=scale, shape=shape)
    check_law(law.draw(60_000, Random.deterministic(3)), law)


def test_draws_in_python_ints_have_the_law() -> None:
    law = PolyaDifference(scale=Fraction(6), shape=Fraction(1, 3))
    random = Random.deterministic(4)
    check_law(np.array([law._one(random) for _ in range(20_000)]), law)


def test_a_wrong_shape_and_a_wrong_scale_are_caught() -> None:
    law = PolyaDifference(scale=Fraction(6), shape=Fraction(1, 3))
    for wrong in (PolyaDifference(scale=Fraction(6), shape=Fraction(3, 10)), PolyaDifference(scale=Fraction(7), shape=law.shape)):
        with pytest.raises(AssertionError):
            check_law(wrong.draw(60_000, Random.deterministic(3)), law)


@pytest.mark.parametrize("scale", [Fraction(6), Fraction(10**6), Fraction(1, 3)])
def test_what_floating_point_decides_integers_decide_alike(scale: Fraction) -> None:
    """With a slack of 1 every coin is decided in integers: the same words give the same noise."""
    quick = PolyaDifference(scale=scale, shape=Fraction(1, 3))
    exact = PolyaDifference(scale=scale, shape=Fraction(1, 3), slack=1.0)
    np.testing.assert_array_equal(quick.draw(400, TwoStreams(1)), exact.draw(400, TwoStreams(1)))


def test_wide_shares_add_up_to_wide_noise() -> None:
    """Of scale 10⁹, by the inequality of Dvoretzky, Kiefer & Wolfowitz: the steps are not felt."""
    random, n = Random.deterministic(5), 50_000
    share = PolyaDifference(scale=Fraction(10**9), shape=Fraction(1, 4))
    total = np.sort(sum(share.draw(n, random) for _ in range(4)) / 1e9)  # type: ignore[operator]
    below = np.where(total < 0, np.exp(np.minimum(total, 0)) / 2, 1 - np.exp(-np.maximum(total, 0)) / 2)
    far = np.abs(below - (np.arange(n) + 0.5) / n).max()
    assert far < math.sqrt(math.log(2 / FALSE_ALARM) / (2 * n))


def test_beyond_64_bits_there_are_python_ints_of_the_right_size() -> None:
    law = PolyaDifference(scale=Fraction(10**25), shape=Fraction(1, 2))
    drawn = law.draw(300, Random.deterministic(6))
    assert drawn.dtype == object
    spread = math.sqrt(sum(float(each) ** 2 for each in drawn) / 300)
    assert 0.6 < spread / math.sqrt(DiscreteLaplace(scale=10**25).variance / 2) < 1.5


def test_candidates_that_integers_decide_far_out_are_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where every block beyond J is decided in integers the law is the same."""
    monkeypatch.setattr(module, "_LAST_MACHINE", 0)
    law = PolyaDifference(scale=Fraction(6), shape=Fraction(1, 3))
    check_law(law.draw(4_000, Random.deterministic(7)).astype(np.int64), law)


def test_as_many_candidates_are_worked_on_whatever_is_drawn() -> None:
    """All calls for one number ask for the same words, save those that a block far out or an open coin asks for besides."""
    law, asked = PolyaDifference(scale=Fraction(6), shape=Fraction(1, 3)), set()

    class Counting(TwoStreams):
        __slots__ = ("seen",)

        def words(self, n: int) -> Any:
            self.seen.append(n)
            return super().words(n)

    for seed in range(50):
        random = Counting(seed)
        random.seen = []
        law.draw(1, random)
        asked.add(max(random.seen))
    assert len(asked) == 1


def test_no_number_is_no_draw() -> None:
    assert PolyaDifference(scale=Fraction(6), shape=Fraction(1, 3)).draw(0, Random.deterministic(1)).tolist() == []
