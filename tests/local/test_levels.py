"""People who choose their own ε: the trial in which inverse variance goes wrong, margins, the test of homogeneity, caps."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from cloister.errors import BudgetExceeded, InvalidParameter
from cloister.local import DirectEncoding, Estimate, Levels, RandomizedResponse, UnaryEncoding, spending
from cloister.local.protocols.levels import homogeneity
from cloister.noise import Random
from tests.tiers import by_day_and_night

STRICT, LAX = Fraction(1, 2), Fraction(4)


def yes_or_no() -> Levels:
    return Levels(lambda epsilon: RandomizedResponse(epsilon=epsilon), [STRICT, LAX])


def people(n: int, strict_if_yes: float, strict_if_no: float, seed: int) -> tuple[npt.NDArray[np.bool_], list[Fraction]]:
    """30 % say yes; who chooses the strict level depends on the answer."""
    generator = np.random.default_rng(seed)
    truth = np.arange(n) < 3 * n // 10
    strict = generator.random(n) < np.where(truth, strict_if_yes, strict_if_no)
    return truth, [STRICT if each else LAX for each in strict]


def test_the_sum_is_right_where_the_choice_goes_with_the_answer_and_inverse_variance_is_not() -> None:
    """Those who say yes choose the strict level four times as often. The truth is 0.300; the sum is within 5.5 of its deviations
    (false alarm 4e-8); inverse variance finds some 0.099, far below, and says ±0.003."""
    levels = yes_or_no()
    truth, chosen = people(100_000, 0.8, 0.2, seed=1)
    sketches = levels.aggregate(levels.randomize(truth.tolist(), chosen, random=Random.deterministic(1)))
    found = levels.estimate(sketches)
    share, margin = found.total.frequencies[1], 5.5 / 1.96 * found.total.margin(0.95)[1] / 100_000
    assert abs(share - 0.300) < margin < 0.025
    weighted = levels.inverse_variance(sketches, assigned_at_random=True)
    assert weighted.frequencies[1] == pytest.approx(0.099, abs=0.01)
    assert abs(weighted.frequencies[1] - 0.300) > 50 * weighted.margin(0.95)[1] / 100_000
    assert found.homogeneity is not None
    assert found.homogeneity.p_value < 1e-12
    with pytest.raises(InvalidParameter, match="may go with the answer"):
        levels.inverse_variance(sketches)


@by_day_and_night("surveys", 100, 300)
def test_where_a_lot_decides_both_are_right_and_the_weighted_one_is_better(surveys: int) -> None:
    """Means within 5.5 deviations of the truth, and margins that cover 95 % to 5.5 deviations (12 % by day, 7 % at night)."""
    levels, random = yes_or_no(), Random.deterministic(2)
    sums, weighted, covered = [], [], []
    for seed in range(surveys):
        truth, chosen = people(2_000, 0.5, 0.5, seed=seed)
        sketches = levels.aggregate(levels.randomize(truth.tolist(), chosen, random=random))
        total, better = levels.estimate(sketches).total, levels.inverse_variance(sketches, assigned_at_random=True)
        sums.append(total.counts[1])
        weighted.append(better.counts[1])
        covered.append([abs(each.counts[1] - 600) <= each.margin(0.95)[1] for each in (total, better)])
    for counts in (sums, weighted):
        assert abs(np.mean(counts) - 600) < 5.5 * np.std(counts) / np.sqrt(surveys)
    assert np.std(weighted) < 0.75 * np.std(sums)
    assert (abs(np.mean(covered, axis=0) - 0.95) < 5.5 * (0.95 * 0.05 / surveys) ** 0.5).all()


@by_day_and_night("surveys", 100, 400)
def test_the_test_of_homogeneity_seldom_cries_wolf(surveys: int) -> None:
    """With levels by lot, three values: p < 0.05 in at most 44 of 400 surveys, or 18 of 100: false alarms below 1e-6."""
    levels, random = Levels(lambda epsilon: UnaryEncoding(["a", "b", "c"], epsilon), ["0.5", 1, 2]), Random.deterministic(3)
    low = 0
    for seed in range(surveys):
        generator = np.random.default_rng(seed)
        values = generator.choice(["a", "b", "c"], size=900, p=[0.6, 0.3, 0.1]).tolist()
        chosen = generator.choice([Fraction(1, 2), Fraction(1), Fraction(2)], size=900).tolist()
        found = levels.estimate(levels.aggregate(levels.randomize(values, chosen, random=random))).homogeneity
        assert found is not None
        assert found.degrees == 2
        low += found.p_value < 0.05
    assert low <= {100: 18, 400: 44}[surveys]


def test_the_test_of_homogeneity_names_the_value_that_differs() -> None:
    def group(counts: list[float]) -> Estimate:
        return Estimate(counts=np.array(counts), n=1_000, variances=np.full(3, 100.0), values=("a", "b", "c"))

    found = homogeneity({Fraction(1): group([500, 300, 200]), Fraction(2): group([500, 100, 400])})
    assert found is not None
    assert found.value in ("b", "c")
    assert found.p_value < 1e-9
    alike = homogeneity({Fraction(1): group([500, 300, 200]), Fraction(2): group([500, 300, 200])})
    assert alike is not None
    assert (alike.statistic, alike.p_value) == (0, 1)


def test_chi_square_is_scipys() -> None:
    from scipy import stats

    from cloister.local.survey.anomalies import chi_square_tail

    for statistic, degrees in ((0.0, 1), (3.84, 1), (5.99, 2), (40.0, 3)):
        assert chi_square_tail(statistic, degrees) == pytest.approx(stats.chi2.sf(statistic, degrees), rel=1e-9)


def test_groups_are_counted_with_their_own_level() -> None:
    levels = Levels(lambda epsilon: DirectEncoding(["a", "b", "c"], epsilon), ["0.5", 1, 2])
    reports = levels.randomize(["a", "b", "a"], [1, "0.5", 1], random=Random.deterministic(1))
    assert {float(level): len(each) for level, each in reports.items()} == {0.5: 1, 1.0: 2, 2.0: 0}
    sketches = levels.aggregate(reports)
    found = levels.estimate(sketches)
    assert found.total.n == 3
    assert {level: group.n for level, group in found.groups.items()} == {Fraction(1, 2): 1, Fraction(1): 2, Fraction(2): 0}
    assert found.total.counts.tolist() == pytest.approx(sum(group.counts for group in found.groups.values()).tolist())
    half = levels.estimate({level: sketch + sketch for level, sketch in sketches.items()})
    assert half.total.counts.tolist() == pytest.approx((2 * found.total.counts).tolist())


def test_groups_that_nobody_chose_do_no_harm() -> None:
    levels = yes_or_no()
    nobody = levels.aggregate({})
    assert levels.estimate(nobody).homogeneity is None
    assert levels.estimate(nobody).total.n == levels.inverse_variance(nobody, assigned_at_random=True).n == 0
    one = levels.aggregate(levels.randomize([True] * 50, [LAX] * 50, random=Random.deterministic(1)))
    assert levels.estimate(one).homogeneity is None
    whole = levels.inverse_variance(one, assigned_at_random=True)
    assert whole.counts.tolist() == pytest.approx(levels.estimate(one).total.counts.tolist())
    assert whole.variances.tolist() == pytest.approx(levels.estimate(one).total.variances.tolist())


def test_a_very_large_level_is_odd_and_legal() -> None:
    levels = Levels(lambda epsilon: RandomizedResponse(epsilon=epsilon), [1, 40])
    sketches = levels.aggregate(levels.randomize([True] * 100, [1, 40] * 50, random=Random.deterministic(1)))
    found = levels.estimate(sketches).homogeneity
    assert found is not None
    assert 0 <= found.p_value <= 1


def test_what_a_respondent_spends_is_added_exactly_and_capped() -> None:
    assert spending({str(place): "0.1" for place in range(10)}, cap=1).epsilon == 1
    assert spending({}).epsilon == 0
    with pytest.raises(BudgetExceeded, match=r"nobody give more than ε = 1"):
        spending({str(place): "0.1" for place in range(11)}, cap=1)
    with pytest.raises(InvalidParameter, match="greater than 0"):
        spending({"a": 0})
    with pytest.raises(InvalidParameter, match="greater than 0"):
        spending({"a": 1}, cap=0)


@pytest.mark.parametrize(
    ("make", "offered", "said"),
    [
        (lambda epsilon: DirectEncoding(["a", "b"], epsilon), [], "none, or some twice"),
        (lambda epsilon: DirectEncoding(["a", "b"], epsilon), [1, "1.0"], "none, or some twice"),
        (lambda epsilon: DirectEncoding(["a", "b"], 1), [1, 2], "another ε"),
        (lambda epsilon: DirectEncoding(range(2 + int(epsilon)), epsilon), [1, 2], "different domains"),
        (lambda epsilon: DirectEncoding(["a", "b"], epsilon), [0], "greater than 0"),
    ],
)
def test_bad_levels_are_refused_with_their_own_message(make: Any, offered: list[Any], said: str) -> None:
    with pytest.raises(InvalidParameter, match=said):
        Levels(make, offered)


def test_bad_groups_are_refused_with_their_own_message() -> None:
    levels = yes_or_no()
    with pytest.raises(InvalidParameter, match=r"offered are 0.5, 4"):
        levels.randomize([True], [1])
    with pytest.raises(InvalidParameter, match="needs one level"):
        levels.randomize([True, False], [4])
    with pytest.raises(InvalidParameter, match="each level has one"):
        levels.estimate({LAX: levels.aggregate({})[LAX]})
    swapped = levels.aggregate({})
    with pytest.raises(InvalidParameter, match="of another protocol"):
        levels.estimate({STRICT: swapped[LAX], LAX: swapped[STRICT]})


@pytest.mark.parametrize(("n", "held", "levels"), [(40, 1, (1, 6)), (100, 2, (1, 8)), (4, 2, (1, 4)), (400, 150, (1, 2))])
def test_a_weighted_margin_holds_where_nobody_of_a_group_holds_the_value(n: int, held: int, levels: tuple[int, int]) -> None:
    """200 draws: a margin of 95 % misses 30 with a probability below 1e-6."""
    made, random, missed = Levels(lambda epsilon: DirectEncoding(range(2), epsilon=epsilon), levels), Random.deterministic(n), 0
    for _ in range(200):
        lot = [levels[int(each) % 2] for each in random.permutation(n)]
        sketches = made.aggregate(made.randomize([1] * held + [0] * (n - held), lot, random=random))
        estimate = made.inverse_variance(sketches, assigned_at_random=True)
        missed += bool(abs(estimate.counts[1] - held) > estimate.margin(0.95)[1])
    assert missed < 30
