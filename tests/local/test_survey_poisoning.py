"""Lies about reports: how far they move an estimate at most, against attacks; and which of them are noticed."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from cloister.local import DirectEncoding, LocalHashing, RandomizedResponse, SubsetSelection, UnaryEncoding
from cloister.local.survey import Number, Several, Word
from cloister.local.survey.anomalies import bits_of_one, chi_square_tail, fits_law, within_reach
from cloister.local.survey.channels import channel_of
from cloister.local.survey.one_of import OneOfChannel
from cloister.local.survey.poisoning import reach, sway_of_coins
from cloister.noise import Random

SIZE, PEOPLE, LIARS = 12, 4000, 400
LABELS = tuple(str(place) for place in range(SIZE))
ORACLES = [
    lambda: DirectEncoding(range(SIZE), 1),
    lambda: UnaryEncoding(range(SIZE), 1),
    lambda: UnaryEncoding(range(SIZE), 1, optimized=False),
    lambda: LocalHashing(range(SIZE), 1),
    lambda: SubsetSelection(range(SIZE), 1),
]


def channels() -> list[OneOfChannel]:
    return [OneOfChannel(LABELS, 1, oracle=make()) for make in ORACLES]


def contributions(channel: OneOfChannel, report: Any) -> Any:
    """What one report adds to each estimated count."""
    row = channel.read(report)
    assert row is not None
    return channel.finding(channel.count([row])).estimate.counts


@pytest.mark.parametrize("channel", channels(), ids=lambda each: each.oracle.protocol)
def test_no_report_moves_a_count_by_more_than_the_sway(channel: OneOfChannel) -> None:
    """Against the expectation of an honest report, 1 or 0: over a thousand reports, and it is nearly reached."""
    random = Random.deterministic(1)
    added = np.array([contributions(channel, channel.report(place % SIZE, random)) for place in range(1000)])
    worst = max(float(added.max()), 1 - float(added.min()))
    assert worst <= channel.sway * (1 + 1e-9)
    assert worst > 0.95 * channel.sway


@pytest.mark.parametrize("channel", channels(), ids=lambda each: each.oracle.protocol)
def test_an_attack_by_a_tenth_stays_within_the_bound(channel: OneOfChannel) -> None:
    """The liars all send the report that adds most to the answer 0 and that honest machines do make; everybody else answers 5.
    The estimate differs from that of honest liars by no more than liars × sway (6 standard deviations allowed for noise)."""
    random = Random.deterministic(2)
    candidates = [channel.report(0, random) for _ in range(200)]
    best = max(candidates, key=lambda report: float(contributions(channel, report)[0]))
    honest = [channel.read(channel.report(5, random)) for _ in range(PEOPLE - LIARS)]
    counts = channel.count([*honest, *[channel.read(best)] * LIARS])
    moved = float(channel.finding(counts).estimate.counts[0])
    noise = channel.oracle.variance(PEOPLE) ** 0.5
    assert moved <= LIARS * channel.sway + 6 * noise
    assert moved > 0.8 * LIARS * channel.sway - 6 * noise


@pytest.mark.parametrize("channel", channels(), ids=lambda each: each.oracle.protocol)
def test_honest_reports_raise_no_alarm(channel: OneOfChannel) -> None:
    """Whatever the truth: all alike, or evenly spread. An alarm's chance is 1e-6 a test, of which these are below 20."""
    random = Random.deterministic(3)
    for places in ([0] * 3000, list(range(SIZE)) * 250):
        rows = [channel.read(channel.report(place, random)) for place in places]
        assert [test for test in channel.anomalies(channel.count(rows)) if test.alarm] == []


def test_made_up_reports_are_noticed() -> None:
    """Everybody sends the same report, or one that supports everything, or nothing: no crowd makes these."""
    random = Random.deterministic(4)
    for channel in channels():
        row = channel.read(channel.report(0, random))
        assert any(test.alarm for test in channel.anomalies(channel.count([row] * 2000))), channel.oracle.protocol
    unary = channels()[1]
    for word in (0, (1 << SIZE) - 1):
        tests = {test.test: test.alarm for test in unary.anomalies(unary.count([[word]] * 500))}
        assert tests["bits in a report"]


def test_a_tenth_of_full_rows_among_honest_ones_is_noticed() -> None:
    """Half of the bits is many: liars who set all of them stand out long before they move the shape."""
    random, unary = Random.deterministic(5), channels()[1]
    rows = [unary.read(unary.report(3, random)) for _ in range(3600)] + [[(1 << SIZE) - 1]] * 400
    assert any(test.test == "bits in a report" and test.alarm for test in unary.anomalies(unary.count(rows)))


def test_made_up_hash_functions_levels_and_numbers_are_noticed() -> None:
    hashing = channels()[3]
    assert any(test.test == "hash functions are uniform" and test.alarm for test in hashing.anomalies(hashing.count([[1]] * 500)))
    word = channel_of(Word("w", "W?", length=8), Fraction(1))
    assert all(test.alarm for test in word.anomalies(word.count([5] * 500)))
    for want in ("mean", "spread"):
        number = channel_of(Number("n", "N?", low=0, high=1, want=want), Fraction(2))
        assert any(test.alarm for test in number.anomalies(number.count([[3, 1]] * 500)))
    several = channel_of(Several("s", "S?", ["a", "b", "c"], no_answer=False), Fraction(1))
    assert any(test.alarm for test in several.anomalies(several.count([[7]] * 500)))


@pytest.mark.parametrize("want", ["mean", "spread"])
def test_honest_numbers_raise_no_alarm_and_lies_stay_within_the_bound(want: str) -> None:
    channel = channel_of(Number("n", "N?", low=0, high=10, want=want, no_answer=False), Fraction(2))
    random = Random.deterministic(6)
    honest = [channel.read(channel.report(4.0, random)) for _ in range(2000)]
    assert [test for test in channel.anomalies(channel.count(honest)) if test.alarm] == []
    truth = mean_of(channel, honest)
    worst = 0.0
    for cell in range(0, channel.mechanism._cells, 7):  # type: ignore[attr-defined]
        poisoned = mean_of(channel, [*honest[:1800], *[[cell]] * 200])
        worst = max(worst, abs(poisoned.value - truth.value))
    assert worst <= 0.1 * channel.sway + 6 * truth.variance**0.5


@pytest.mark.parametrize("most", [1, 2, 4])
def test_no_ticks_move_a_count_by_more_than_the_sway(most: int) -> None:
    channel = channel_of(Several("s", "S?", ["a", "b", "c", "d"], most=most), Fraction(1))
    added = np.array([channel.finding(channel.count([[row]])).estimate.counts for row in range(32)])
    worst = max(float(added.max()), 1 - float(added.min()))
    assert worst == pytest.approx(channel.sway)


def mean_of(channel: Any, rows: list[Any]) -> Any:
    """The mean, without the distribution that a question may ask for as well."""
    return channel.mechanism.mean(np.array(rows)[:, 0])


def test_honest_ticks_and_words_raise_no_alarm() -> None:
    random = Random.deterministic(7)
    for channel, place in (
        (channel_of(Several("s", "S?", ["a", "b", "c"]), Fraction(1)), frozenset({0, 2})),
        (channel_of(Word("w", "W?", length=8), Fraction(1)), "bern"),
    ):
        rows = [channel.read(channel.report(place, random)) for _ in range(1500)]
        assert [test for test in channel.anomalies(channel.count(rows)) if test.alarm] == []


def test_reach_is_that_of_the_coins() -> None:
    oracle = RandomizedResponse(range(2), 1)
    p = float(oracle.channel()[0][0])
    a, b = reach(oracle.variance(1), oracle.variance(1, 1.0))
    assert a == pytest.approx(p / (2 * p - 1))
    assert b == pytest.approx((1 - p) / (2 * p - 1))
    assert sway_of_coins(oracle.variance(1), oracle.variance(1, 1.0)) == pytest.approx(1 + b)


def test_p_values_are_upper_bounds() -> None:
    """Counts of honest coins at the edge of what is possible: the bound is below 1/20 in no more than a twentieth of 2,000 trials
    (6 standard deviations allowed: 0.05 + 0.03)."""
    words = Random.deterministic(8).words(2000 * 200).reshape(2000, 200)
    low = (words < np.uint64(int(0.3 * 2**64))).sum(axis=1)
    found = [within_reach(np.array([count]), 200, 0.3, 0.7, test="t").p_value for count in low.tolist()]
    assert np.mean(np.array(found) < 0.05) < 0.08


def test_chi_square_against_known_tables() -> None:
    assert chi_square_tail(10.828, 1) == pytest.approx(0.001, rel=1e-3)
    assert chi_square_tail(29.588, 10) == pytest.approx(0.001, rel=1e-3)
    assert chi_square_tail(0, 3) == 1
    assert fits_law(np.array([1, 1]), [0.5, 0.5], test="too few").p_value == 1
    assert sum(bits_of_one(12, 1 << 63, 1 << 62)) == pytest.approx(1)
