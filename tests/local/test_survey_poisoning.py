"""Lies about reports: how far they move an estimate at most, against attacks; and which of them are noticed."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

from cloister.local import DirectEncoding, LocalHashing, RandomizedResponse, SubsetSelection, UnaryEncoding
from cloister.local.frequency.oracle import Sketch
from cloister.local.survey import Number, Results, Scale, Several, Survey, Tally, Word
from cloister.local.survey.amounts import AmountChannel
from cloister.local.survey.anomalies import bits_of_one, chi_square_tail, fits_law, within_reach
from cloister.local.survey.channels import channel_of
from cloister.local.survey.one_of import OneOfChannel
from cloister.local.survey.poisoning import reach, sway_of_coins, sway_of_ratio
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


def rows_of(channel: OneOfChannel, places: list[int], random: Random) -> list[list[int]]:
    """What is read of the reports of honest machines, all made at once."""
    rows: list[list[int]] = channel.oracle.randomize(places, random=random).reshape(len(places), -1).tolist()
    return rows


@pytest.mark.parametrize("channel", channels(), ids=lambda each: each.oracle.protocol)
def test_a_report_says_what_is_made_of_many_at_once(channel: OneOfChannel) -> None:
    for seed in range(20):
        [row] = rows_of(channel, [seed % SIZE], Random.deterministic(seed))
        assert channel.read(channel.report(seed % SIZE, Random.deterministic(seed))) == row


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
    honest = rows_of(channel, [5] * (PEOPLE - LIARS), random)
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
        rows = rows_of(channel, places, random)
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
    rows = rows_of(unary, [3] * 3600, random) + [[(1 << SIZE) - 1]] * 400
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


# Means are ratios: every report that there is, at every protocol that a page of results may show.

SCORES = (1.0, 2.0, 3.0, 4.0, None)
RATED = ("never", "once", "often", "always", "no answer")
SMALL = [
    lambda: DirectEncoding(range(5), 1),
    lambda: UnaryEncoding(range(5), 1),
    lambda: LocalHashing(range(5), 1),
    lambda: SubsetSelection(range(5), "0.05"),
]
RATIOS = [
    *[(f"scale-{make().protocol}", OneOfChannel(RATED, 1, scores=SCORES, oracle=make())) for make in SMALL],
    ("scale-all-answer", OneOfChannel(RATED[:4], 1, scores=SCORES[:4])),
    ("yes-no-scale", OneOfChannel(RATED[:2], 1, scores=SCORES[:2])),
    *[
        (f"{want}-{'optional' if optional else 'all'}-{epsilon}", AmountChannel(0, 40, epsilon, want=want, no_answer=optional))
        for want, optional, epsilon in product(["mean", "spread"], [True, False], ["0.5", 2])
    ],
]


def every_report(channel: Any) -> list[Any]:
    if isinstance(channel, AmountChannel):
        cells = range(channel.mechanism._cells)
        return [[cell, *more] for cell in cells for more in ([(0,), (1,)] if channel.answered is not None else [()])]
    size = len(channel.labels)
    if channel.oracle.protocol == "unary":
        return [[row] for row in range(1 << size)]
    if channel.oracle.protocol == "subset":
        return [[sum(1 << place for place in places)] for places in combinations(range(size), channel.oracle.picks)]
    cells = channel.oracle._lines.cells if channel.oracle.protocol == "hashing" else size
    return [[cell] for cell in range(cells)]


def parts_of(channel: Any, rows: list[Any]) -> tuple[float, float]:
    """The sum and the number of people whose ratio is the mean, as the reports say them."""
    counts = channel.count(rows)
    if isinstance(channel, AmountChannel):
        told = float(counts.n)
        if channel.answered is not None:
            told = float(
                channel.answered.estimate(Sketch(key=channel.answered.key, n=counts.n, counts=counts.parts["answered"])).counts[1]
            )
        mean = channel.mechanism.mean(Sketch(key=channel.mechanism.key, n=counts.n, counts=counts.parts["sketch"]))
        return counts.n * (mean.value - channel.middle), told
    found = channel.finding(counts).estimate.counts
    counted = [place for place, score in enumerate(channel.scores) if score is not None]
    return float(sum(channel.scores[place] * found[place] for place in counted)), float(found[counted].sum())


def honest_parts(channel: Any) -> list[tuple[float, float]]:
    """What an honest person adds on average, at the corners of what may be answered."""
    if isinstance(channel, AmountChannel):
        half = channel.mechanism.interval.span / 2
        return [(-half, 1.0), (half, 1.0), *([(0.0, 0.0)] if channel.answered is not None else [])]
    return [(0.0, 0.0) if score is None else (score, 1.0) for score in channel.scores]


@pytest.mark.parametrize(("name", "channel"), RATIOS, ids=[name for name, _ in RATIOS])
def test_crafted_reports_move_a_mean_as_far_as_is_said_and_no_farther(name: str, channel: Any) -> None:
    """Every report that there is, k times, in the place of k people with each answer, before and after: the worst of them is the
    bound. Where they can make it seem that nobody answered, the bound says so."""
    crafted = np.array([parts_of(channel, [row]) for row in every_report(channel)])
    place = np.array(honest_parts(channel))
    change = (crafted[:, None, :] - place[None, :, :]).reshape(-1, 2)
    for (total, answered), k in product([(300.0, 1000.0), (-40.0, 100.0), (2500.0, 700.0)], [1.0, 10.0, 100.0]):
        total = total if isinstance(channel, AmountChannel) else 2.5 * answered + total / 100
        least = min((answered + side * k * change[:, 1]).min() for side in (1, -1))
        worst = max(
            np.abs((total + side * k * change[:, 0]) / (answered + side * k * change[:, 1]) - total / answered).max()
            for side in (1, -1)
        )
        said = sway_of_ratio(channel.lift, total=total, answered=answered, liars=k)
        assert said == (pytest.approx(worst, rel=1e-9) if least > 0 else math.inf), (total, answered, k)


@pytest.mark.parametrize("share", [0.1, 0.3, 1.0])
def test_a_hundred_crafted_reports_among_ten_thousand(share: float) -> None:
    """A whole survey. What stands on the page holds for the lies that are best for it, also where few give an answer (noise: six
    standard deviations of what the hundred would have sent)."""
    n, k = 10_000, 100
    scale = Scale("often", "How often?", RATED[:4])
    number = Number("hours", "How many hours?", low=0, high=40)
    survey = Survey("s", "S", [scale, number], levels={"one": 1})
    random = Random.deterministic(11)
    for question, answer, none in ((scale, 2, 4), (number, 30.0, None)):
        channel: Any = survey.channel(question, survey.levels[0])
        places = [answer] * round(share * n) + [none] * (n - round(share * n))
        rows = [channel.read(channel.report(place, random)) for place in places[::10]] * 10
        tally = Tally(survey)
        tally._counts[question.name, "one"] = channel.count(rows)
        result = Results(survey, tally)[question.name]
        said = result.mean_shift(k / n)
        assert said is not None
        (total, answered), crafted = parts_of(channel, rows), [parts_of(channel, [row]) for row in every_report(channel)]
        moved = [
            abs((total + k * (t - h)) / (answered + k * (a - g)) - total / answered)
            for t, a in crafted
            for h, g in honest_parts(channel)
        ]
        assert max(moved) <= said * (1 + 1e-9)
        assert max(moved) > 0.5 * said
        if share < 1:
            assert said > 1.2 * channel.sway * k / n, "more than what the sum alone would say"
        told = result.to_dict()["one_percent_liars_mean"]
        assert told == (said if math.isfinite(said) else None)


@pytest.mark.parametrize("share", [0.1, 0.3])
@pytest.mark.parametrize("n", [400, 3000])
def test_the_interval_of_an_optional_mean_holds_however_few_answer(n: int, share: float) -> None:
    """Each of the means is shown, and none is chosen by how many seem to have answered. (A fixed generator; with another, an
    honest interval would fail once in some 10⁵ times.)"""
    channel = AmountChannel(0, 40, 2, want="mean", no_answer=True)
    random, runs = Random.deterministic(12), 250
    values = np.where(np.arange(n) < share * n, 5.0 + 10 * (np.arange(n) % 2), 20.0)
    given = (np.arange(n) < share * n).astype(int)
    truth = float(values[given == 1].mean())
    held = dict.fromkeys((0.8, 0.95, 0.99), 0)
    for _ in range(runs):
        assert channel.answered is not None
        rows = np.stack(
            [channel.mechanism.randomize(values, random=random), channel.answered.randomize(given, random=random)], axis=1
        )
        mean = channel.finding(channel.count(rows)).mean()  # type: ignore[arg-type]
        assert mean is not None
        for confidence in held:
            low, high = mean.interval(confidence)
            held[confidence] += low <= truth <= high
            margin = mean.margin(confidence) + 1e-9
            assert mean.value - margin <= low <= high <= mean.value + margin
    for confidence, count in held.items():
        assert count >= confidence * runs - 4.3 * (confidence * (1 - confidence) * runs) ** 0.5


WEIGHED = [
    DirectEncoding(range(4), 3),
    UnaryEncoding(range(4), 1),
    SubsetSelection(range(9), 1),
    LocalHashing(range(14), 1),
    LocalHashing(range(30), 2),
]


@pytest.mark.parametrize("oracle", WEIGHED, ids=lambda each: f"{each.protocol} {len(each.domain)}")
def test_the_noise_of_a_mean_is_that_of_its_counts_together(oracle: Any) -> None:
    """Estimated counts of one oracle lean against one another or together; a mean's interval knows how. Half say the first answer
    and half the last number, where the difference is largest (up to 1.7 for hashing, 1.1 for direct encoding). The samples tell
    a tenth at 5 standard deviations."""
    size, runs = len(oracle.domain), 5000
    scores = tuple(map(float, range(1, size)))
    channel = OneOfChannel(tuple(map(str, range(size))), oracle.epsilon, oracle=oracle, scores=(*scores, None))
    answers = [0, size - 2]
    random = Random.deterministic(21)
    weights = np.array([*scores, 0.0]) - (1 + size - 1) / 2 * np.array([1.0] * (size - 1) + [0.0])
    made = oracle.randomize(np.tile(answers, runs), random=random)
    found = [oracle.estimate(oracle.aggregate(made[place : place + 2])).counts @ weights for place in range(0, 2 * runs, 2)]
    truth = np.bincount(answers, minlength=size).astype(np.float64)
    noise, middle = channel._noise(truth, 2), size / 2
    said = noise[0] + noise[1] * middle + noise[2] * middle**2
    assert said == pytest.approx(float(np.var(found)), rel=5 * math.sqrt(2 / runs))


def test_a_liar_may_choose_a_level_that_nobody_else_chose() -> None:
    question = Scale("often", "How often?", RATED[:4])
    sways = []
    for levels in ({"open": 4}, {"open": 4, "careful": "0.1"}):
        survey = Survey("s", "S", [question], levels=levels)
        channel: Any = survey.channel(question, survey.level("open"))
        random = Random.deterministic(3)
        tally = Tally(survey)
        tally._counts["often", "open"] = channel.count([channel.read(channel.report(1, random)) for _ in range(500)])
        result = Results(survey, tally)["often"]
        moved = [
            parts_of(other, [row])
            for other in (survey.channel(question, each) for each in survey.levels)
            for row in every_report(other)
        ]
        mean = result.combined.mean()
        assert mean is not None
        assert mean.seen
        worst = max(
            abs((mean.total + t - h) / (mean.answered + a - g) - mean.value) for t, a in moved for h, g in honest_parts(channel)
        )
        said = result.mean_shift(1 / 500)
        assert said is not None
        assert worst <= said * (1 + 1e-9)
        sways.append(said)
    assert sways[1] > 10 * sways[0]


def test_where_nobody_can_be_seen_to_have_answered_lies_can_make_the_mean_anything() -> None:
    """It is shown within the ends until somebody is seen; that lies can change."""
    channel = AmountChannel(0, 40, 1, want="mean", no_answer=True)
    random = Random.deterministic(4)
    unseen = channel.finding(channel.count([channel.read(channel.report(None, random)) for _ in range(200)])).mean()  # type: ignore
    assert unseen is not None
    assert not unseen.seen
    assert unseen.sway(channel.lift, 1.0) == math.inf
    assert unseen.sway(channel.lift, 0.0) == 0
