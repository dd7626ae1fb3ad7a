"""The selection mechanisms: published probabilities, privacy of the exact laws, exactness near borders, and refusals."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from cloister.errors import InvalidParameter
from cloister.noise._exponentials import exp_down, exp_floors, exponents, ln_down, ln_up
from cloister.noise.enclosure import exp_below
from cloister.noise.random import Random
from cloister.noise.selection import Exponential, PermuteAndFlip, ReportNoisyMax, _exact_grid, categorical
from cloister.privacy.guarantee import PureDP

DISEASES = [50, 20, 30]  # cancer, HIV, HPV
SPORTS = [49, 25, 6, 2]
KINDS = [Exponential, PermuteAndFlip, ReportNoisyMax]


class Scripted(Random):
    """A source that hands out given words, and then deterministic ones."""

    __slots__ = ("script",)

    def __init__(self, script: list[int]) -> None:
        super().__init__()
        self.marked = True
        self.script = list(script)

    def words(self, n: int) -> np.ndarray:
        return np.array([self.script.pop(0) if self.script else 0 for _ in range(n)], dtype=np.uint64)

    def word(self) -> int:
        return int(self.words(1)[0])


@pytest.mark.parametrize(
    ("epsilon", "expected"),
    [(0, [0.333, 0.333, 0.333]), ("0.1", [0.628, 0.140, 0.231]), ("0.5", [0.993, 0.0005, 0.0067])],
)
def test_the_published_probabilities_of_three_diseases(epsilon: object, expected: list[float]) -> None:
    """With the factor ½ and not monotone. The second one is 0.6285: the source cuts where we round."""
    assert Exponential(epsilon=epsilon).probabilities(DISEASES) == pytest.approx(expected, abs=6e-4)


def test_the_popular_article_is_wrong() -> None:
    """It prints 0.124 and swaps the last two; nor do monotone utilities give its numbers."""
    assert abs(Exponential(epsilon="0.1").probabilities(DISEASES)[2] - 0.124) > 0.1
    assert Exponential(epsilon="0.1", monotone=True).probabilities(DISEASES)[0] == pytest.approx(0.844, abs=1e-3)


@pytest.mark.parametrize(("epsilon", "football"), [("0.01", 0.287), ("0.1", 0.661), (1, 0.99999)])
def test_the_published_votes_on_sports(epsilon: object, football: float) -> None:
    assert Exponential(epsilon=epsilon).probabilities(SPORTS)[0] == pytest.approx(football, abs=1e-3)


@pytest.mark.parametrize("kind", [Exponential, PermuteAndFlip])
@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("epsilon", ["0.1", "1", "3"])
def test_the_law_is_private_on_all_neighbours_of_small_utilities(kind: type, monotone: bool, epsilon: str) -> None:
    """Brute force: every pair of utilities a step apart; and the bound is nearly reached, so nothing is wasted."""
    mechanism = kind(epsilon=epsilon, monotone=monotone)
    worst = 0.0
    moves = [(0, 1), (0, -1)] if monotone else [(-1, 0, 1)]
    for base in itertools.product(range(3), repeat=3):
        one = mechanism.probabilities(list(base))
        for move in moves:
            for step in itertools.product(move, repeat=3):
                other = mechanism.probabilities([a + b for a, b in zip(base, step, strict=True)])
                worst = max(worst, float(np.abs(np.log(one / other)).max()))
    assert worst <= float(mechanism.epsilon) + 1e-9
    assert worst > 0.4 * float(mechanism.epsilon)


def test_permute_and_flip_is_never_worse_in_expectation() -> None:
    for utilities in itertools.product(range(5), repeat=3):
        best = max(utilities)
        error = [
            float(kind(epsilon=1).probabilities(list(utilities)) @ (best - np.array(utilities)))
            for kind in (Exponential, PermuteAndFlip)
        ]
        assert error[1] <= error[0] + 1e-12


def test_permute_and_flip_agrees_with_a_walk_over_all_orders() -> None:
    utilities, epsilon = [4, 1, 3, 3], 1.3
    heads = [math.exp(-epsilon * (4 - u) / 2) for u in utilities]
    law = np.zeros(4)
    for order in itertools.permutations(range(4)):
        left = 1.0
        for place in order:
            law[place] += left * heads[place] / 24
            left *= 1 - heads[place]
    assert PermuteAndFlip(epsilon="1.3").probabilities(utilities) == pytest.approx(law, abs=1e-12)


@pytest.mark.parametrize("candidates", [2, 5, 100])
@pytest.mark.parametrize("kind", [Exponential, PermuteAndFlip])
def test_the_margin_is_reached_by_the_worst_utilities(kind: type, candidates: int) -> None:
    mechanism = kind(epsilon=1)
    margin = mechanism.margin(0.95, candidates=candidates)
    step = Fraction(1, 1000)

    def failure(gap: float) -> float:
        utilities = [Fraction(0)] + [-Fraction(round(gap * 1000)) * step] * (candidates - 1)
        return 1 - float(mechanism.probabilities(utilities)[0])

    assert failure(margin + 0.01) <= 0.05 < failure(margin - 0.01)


def test_margins_at_the_edges() -> None:
    assert Exponential(epsilon=1).margin(candidates=1) == PermuteAndFlip(epsilon=1).margin(candidates=1) == 0
    assert Exponential(epsilon=0).margin(candidates=10) == PermuteAndFlip(epsilon=0).margin(candidates=10) == math.inf
    assert ReportNoisyMax(epsilon=1, noise="gumbel").margin(candidates=9) == Exponential(epsilon=1).margin(candidates=9)


@pytest.mark.parametrize("kind", KINDS)
def test_names_places_and_guarantee(kind: type) -> None:
    random = Random.deterministic(3)
    mechanism = kind(epsilon=50, sensitivity=2, monotone=True)
    assert mechanism.guarantee == PureDP(50)
    assert mechanism.release({"a": 0, "b": 100}, random=random) == "b"
    assert mechanism.release(np.array([0, 100, 7], dtype=np.int32), random=random) == 1
    assert mechanism.release([7], random=random) == 0
    assert mechanism.rate == 25


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "utilities",
    [
        [-(2**63), 2**63 - 1],
        [10**400, -(10**400)][::-1],
        [Fraction(-1, 3), Decimal("1000.5")],
        np.array([Fraction(-1, 3), Decimal("1000.5")], dtype=object),
        np.array([0, 2**64 - 1], dtype=np.uint64),
    ],
    ids=["int64 ends", "huge", "fractions", "an array of fractions", "uint64"],
)
def test_extreme_utilities(kind: type, utilities: object) -> None:
    assert kind(epsilon=1).release(utilities, random=Random.deterministic(1)) == 1


def test_laplace_noise_lies_on_a_declared_grid_whatever_the_utilities_are() -> None:
    """[0, 1] and [1/1000, 1] are neighbours with Δu = 1/1000, and have the same law but for a factor of e^ε = 1.01."""
    mechanism = ReportNoisyMax(epsilon="0.01", sensitivity="0.001")
    n, random = 200_000, Random.deterministic(1)
    worlds = ([0, 1], [Fraction(1, 1000), Fraction(1)], [Fraction(1, 1000), 1], [Fraction(0), Fraction(999, 1000)])
    shares = [1 - mechanism.sample(n, world, random=random).mean() for world in worlds]
    assert max(shares) - min(shares) < 0.012 * 0.01 + 6 * math.sqrt(2 * 0.012 / n)  # six deviations: below 10⁻⁸
    assert {"unit": mechanism.unit, "rate": mechanism.rate} == {"unit": Fraction(1, 1000), "rate": Fraction(5)}


def test_utilities_are_rounded_to_the_unit_and_the_sensitivity_grows_to_whole_units() -> None:
    mechanism = ReportNoisyMax(epsilon=1, sensitivity="0.25", unit="0.1")
    assert mechanism.sensitivity == Fraction(1, 4)
    assert mechanism.rate == 1 / (2 * Fraction(3, 10))
    assert ReportNoisyMax(epsilon=1, sensitivity="0.25", unit="0.1", monotone=True).rate == Fraction(10, 3)
    assert mechanism.margin(candidates=2) > ReportNoisyMax(epsilon=1, sensitivity="0.3", unit="0.001").margin(candidates=2)
    for written in ([Fraction(3, 10), Decimal("0.5")], [Decimal("0.3499"), Fraction(9, 20)], [Fraction(1, 4), Fraction(1, 2)]):
        drawn = [mechanism.release(written, random=Random.deterministic(seed)) for seed in range(40)]
        assert drawn == [
            mechanism.release([Fraction(3, 10), Fraction(5, 10)], random=Random.deterministic(seed)) for seed in range(40)
        ]
    assert ReportNoisyMax(epsilon=1, sensitivity="3/7").unit == Fraction(1, 7)
    for noise in ("laplace", "gumbel", "exponential"):
        assert replace(ReportNoisyMax(epsilon=1, sensitivity="3/7", noise=noise), epsilon=2).rate == Fraction(7, 3)
    for refused in ({"unit": 0}, {"unit": "0.5", "noise": "gumbel"}):
        with pytest.raises(InvalidParameter, match="unit="):
            ReportNoisyMax(epsilon=1, **refused)


@pytest.mark.parametrize("kind", [Exponential, PermuteAndFlip])
def test_a_common_denominator_changes_no_law(kind: type) -> None:
    """The same numbers, and beside them one that no coin ever takes, which makes the denominator huge."""
    plain = kind(epsilon=2).probabilities([0, 1, -1000])
    fine = kind(epsilon=2).probabilities([0, Fraction(1), -1000 - Fraction(1, 10**40)])
    assert fine.tolist() == pytest.approx(plain.tolist(), abs=1e-15)


@pytest.mark.parametrize("kind", KINDS)
def test_extreme_epsilons(kind: type) -> None:
    assert kind(epsilon="1e90").release([0, 1], random=Random.deterministic(1)) == 1
    tiny = kind(epsilon="1e-90").sample(200, [0, 1], random=Random.deterministic(1))
    assert 50 < tiny.sum() < 150


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bad", [[], [0.5, 1.0], [True, False], ["1"], [[1, 2]], [float("nan")], [Fraction(1), 0.5]])
def test_what_is_not_exact_is_refused_without_showing_it(kind: type, bad: object) -> None:
    with pytest.raises(InvalidParameter) as caught:
        kind(epsilon=1).release(bad, random=Random.deterministic(1))
    assert "nan" not in str(caught.value)
    assert "0.5" not in str(caught.value)


def test_refused_parameters() -> None:
    for bad in ({"epsilon": -1}, {"epsilon": 1, "sensitivity": 0}, {"epsilon": float("inf")}):
        with pytest.raises(InvalidParameter):
            Exponential(**bad)
    with pytest.raises(InvalidParameter):
        ReportNoisyMax(epsilon=1, noise="cauchy")  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter):
        ReportNoisyMax(epsilon=0)
    with pytest.raises(InvalidParameter):
        PermuteAndFlip(epsilon=1).probabilities(list(range(1001)))


def test_floors_enclose_the_exact_weights() -> None:
    gaps = np.array([0, 1, 2, 7, 40, 49, 51, 700, 10**6, 2**63], dtype=np.uint64)
    for rate in (Fraction(1), Fraction(1, 3), Fraction(10) ** -30, Fraction(10) ** 300, Fraction("0.69314718")):
        for bits in (10, 42, 53):
            low, high = exp_floors(gaps, rate, bits)
            for gap, a, b in zip(gaps.tolist(), low.tolist(), high.tolist(), strict=True):
                exact = exp_below(rate * gap, bits + 60) if gap else 1 << (bits + 60)
                assert a << 60 <= exact + 3
                assert exact <= b << 60
                assert b - a <= 2 + (1 << max(0, bits - 42))


def test_exponents_survive_overflow() -> None:
    gaps = np.array([0, 5], dtype=np.uint64)
    assert exponents(gaps, Fraction(10) ** 400).tolist() == [0.0, math.inf]
    assert exponents(gaps.astype(object), Fraction(10) ** 400).tolist() == [0.0, math.inf]


def test_an_undecided_coin_draws_on_until_it_is_exact() -> None:
    """The first 53 bits are those of e^(−½) itself, so only further words decide; they decide both ways."""
    gap, rate = 1, Fraction(1, 2)
    border = exp_below(rate * gap, 53)
    more = exp_below(rate * gap, 53 + 64) & (2**64 - 1)
    for word, expected in ((more - 10, 1), (more + 10, 0)):
        # words: the best candidate's coin, the border coin, the border's continuation, then which of the heads
        script = Scripted([0, border << 11, word, 1])
        assert PermuteAndFlip(epsilon=1).release([1, 0], random=script) == expected
        assert not script.script


def test_an_undecided_cell_of_the_exponential_mechanism_is_settled_exactly() -> None:
    rate = Fraction(1, 2)
    bits = 50
    low, high = exp_floors(np.array([0, 1], dtype=np.uint64), rate, bits)
    assert high[1] > low[1]
    total = int(high.sum())
    outcomes = []
    for offset in range(int(low[1]), int(high[1])):
        point = int(high[0]) + offset
        assert point < total
        truth = exp_below(rate, bits + 64)
        for word in (0, 2**64 - 1):
            expected = (offset << 64) + word < truth
            # a rejected point is followed by word 0, which chooses the best candidate
            script = Scripted([point, word, 0])
            outcomes.append((Exponential(epsilon=1).release([1, 0], random=script) == 1) == expected)
    assert outcomes
    assert all(outcomes)


def test_ties_are_split_evenly_and_impossible_candidates_never_win() -> None:
    random = Random.deterministic(11)
    for kind in KINDS:
        counts = np.bincount(kind(epsilon=40).sample(4000, [9, 9, 0], random=random), minlength=3)
        assert counts[2] == 0
        assert abs(counts[0] - 2000) < 5 * math.sqrt(1000)


def test_a_choice_for_each_row_is_the_choice_of_that_row() -> None:
    """One row takes the same words as `release`; of many, each has the law of its own utilities, and none that of another."""
    mechanism = PermuteAndFlip(epsilon="0.1")
    utilities = np.array([50, 20, -30])
    for seed in range(50):
        alone = mechanism.release(utilities, random=Random.deterministic(seed))
        assert mechanism.release_each(utilities[None, :], random=Random.deterministic(seed)).tolist() == [alone]
    expected = mechanism.probabilities(utilities)
    n = 40_000
    tables = np.where((np.arange(n) % 2 == 0)[:, None], utilities, utilities[::-1])
    found = mechanism.release_each(tables, random=Random.deterministic(5))
    for rows, law in ((found[::2], expected), (found[1::2], expected[::-1])):
        shares = np.bincount(rows, minlength=3) / (n / 2)
        assert np.abs(shares - law).max() < 6 * math.sqrt(0.25 / (n / 2))  # six deviations: false alarm below 1e-7
    far = np.array([[np.iinfo(np.int64).min, np.iinfo(np.int64).max], [3, -4]])
    assert PermuteAndFlip(epsilon=100).release_each(far, random=Random.deterministic(1)).tolist() == [1, 0]


@pytest.mark.parametrize("bad", [np.zeros((2, 2)), np.zeros(3, dtype=np.int64), np.zeros((2, 0), dtype=np.int64)])
def test_a_table_of_utilities_is_whole_numbers(bad: np.ndarray) -> None:
    with pytest.raises(InvalidParameter, match="table of whole numbers"):
        PermuteAndFlip(epsilon=1).release_each(bad)


def test_categorical_weights() -> None:
    random = Random.deterministic(1)
    drawn = categorical(["1/3", 0, "2/3"], 9000, random=random)
    counts = np.bincount(drawn, minlength=3)
    assert counts[1] == 0
    assert abs(counts[0] - 3000) < 5 * math.sqrt(2000)
    huge = categorical([10**40, 1, 10**40], 100, random=random)
    assert set(huge.tolist()) == {0, 2}
    for bad in ([0, 0], [], [-1, 2]):
        with pytest.raises(InvalidParameter):
            categorical(bad, 1, random=random)


def test_logarithms_and_exponentials_are_rounded_the_safe_way() -> None:
    import mpmath

    with mpmath.workdps(60):
        for value in (Fraction(3), Fraction(21), Fraction(1, 7), 1 + Fraction(1, 10**12), Fraction(10) ** 50):
            truth = mpmath.log(mpmath.mpf(value.numerator) / value.denominator)
            up, down = (mpmath.mpf(x.numerator) / x.denominator for x in (ln_up(value), ln_down(value)))
            assert down <= truth <= up
            assert up - down < mpmath.mpf(10) ** -23
        for x in (Fraction(1, 3), Fraction(5), Fraction(27)):
            near = exp_down(x)
            truth = mpmath.exp(mpmath.mpf(x.numerator) / x.denominator)
            below = mpmath.mpf(near.numerator) / near.denominator
            assert truth * (1 - mpmath.mpf(2) ** -60) < below <= truth


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_of_fixed_width_beside_fractions_do_not_overflow(kind: type[ReportNoisyMax]) -> None:
    """On the grid of all utilities numpy's integers, and fractions that are made of them, would wrap around in silence."""
    for wide in (np.int8(100), np.int64(2**62), np.uint64(2**63), Fraction(np.int64(2**62), np.int64(3))):
        grid, unit = _exact_grid([wide, Fraction(1, 1000)], "utilities")
        assert [int(place) * unit for place in grid.tolist()] == [
            Fraction(int(wide.numerator), int(wide.denominator)),
            Fraction(1, 1000),
        ]
        assert kind(epsilon=100).release([wide, Fraction(1, 1000)], random=Random.deterministic(1)) == 0
