"""Keys with values: both forms' exact channels over all sets, unbiased counts and sums, margins that cover, words, bad input."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from cloister.attacks import audit_channel
from cloister.errors import InvalidParameter
from cloister.local import KeyValue, Sketch
from cloister.noise import Random
from tests.local.words import Scripted

HOWS = ("unary", "direct")


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize(("epsilon", "padding"), [("0.000001", 1), ("0.1", 2), ("1", 1), ("1", 3), ("5", 2)])
def test_the_channel_of_all_sets_keeps_epsilon_and_wastes_nothing(how: str, epsilon: str, padding: int) -> None:
    """All 27 sets of three keys with values at the ends, the empty one and those larger than the padding among them."""
    found = audit_channel(KeyValue(range(3), epsilon=epsilon, padding=padding, how=how).channel())
    assert found.epsilon <= float(epsilon)
    assert found.epsilon == pytest.approx(float(epsilon), rel=1e-6 if epsilon == "0.000001" else 1e-9)
    assert all(sum(row) == 1 for row in found.rows)


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("epsilon", ["0.000001", "20", "40"])
def test_the_ends_of_what_epsilon_may_be(how: str, epsilon: str) -> None:
    found = audit_channel(KeyValue(range(2), epsilon=epsilon, padding=2, how=how).channel())
    assert found.epsilon <= float(epsilon)


def test_the_probabilities_are_the_published_ones() -> None:
    """PCKV-UE with its best split: a = ½, b = 2/(e^ε + 3), p = e^ε/(e^ε + 1). PCKV-GRR: a pair that was drawn is
    padding·(e^ε − 1) + 1 times likelier than another."""
    for epsilon, padding in ((0.5, 1), (2.0, 4)):
        odds = math.exp(epsilon)
        seen, unseen, pull = KeyValue(range(9), epsilon=epsilon, padding=padding, how="unary")._sender.probabilities
        assert (float(seen), float(unseen)) == pytest.approx((0.5, 2 / (odds + 3)))
        assert float(pull) == pytest.approx(0.5 * (odds - 1) / (odds + 1))
        row = KeyValue(range(4), epsilon=epsilon, padding=padding, how="direct")._sender.law(2, 1)
        assert float(row[5] / row[0]) == pytest.approx(padding * (odds - 1) + 1)
        assert float(row[0]) == pytest.approx(1 / (8 + padding * odds))
        assert row[-1] == padding * row[0]


def test_without_the_padding_in_its_odds_the_direct_form_would_waste_what_it_has_and_with_more_it_would_lie() -> None:
    """The channel is worked out from the coins that are thrown: those of a padding of 3, for sets padded to 2, break ε."""
    honest = KeyValue(range(3), epsilon=1, padding=2, how="direct")
    greedy = KeyValue(range(3), epsilon=1, padding=3, how="direct")
    honest._sender = greedy._sender
    assert audit_channel(honest.channel()).contradicts(honest.guarantee)


@pytest.mark.parametrize("how", HOWS)
def test_reports_have_the_probabilities_of_the_channel(how: str) -> None:
    """2·10⁵ reports of one set, its number in the middle: each count within 5.5 deviations (false alarm 4e-8 each)."""
    protocol, n = KeyValue(["a", "b"], 0, 1, epsilon=1, padding=2, how=how), 200_000
    reports = protocol.randomize([{"b": 0.25}] * n, random=Random.deterministic(5))
    rows = protocol.channel()  # of the states nothing, low, high of a, then of b
    law = [(3 * low + high) / 4 for low, high in zip(rows[1], rows[2], strict=True)]
    if how == "direct":
        seen = np.bincount(reports, minlength=5)
    else:
        states = [(reports[:, 0] >> np.uint64(key) & 1) + (reports[:, 1] >> np.uint64(key) & 1) for key in (0, 1)]
        seen = np.bincount((3 * states[0] + states[1]).astype(np.int64), minlength=9)
    expected = n * np.array(law, dtype=float)
    assert (abs(seen - expected) < 5.5 * np.sqrt(expected)).all()


VALUES = (2.0, 10.0, 6.0, 7.0)
"""Of the first three keys of four; nobody has the last one."""


def crowd(n: int, padding: int) -> npt.NDArray[np.float64]:
    """Half have the first key, half the second, and a quarter the third as well, where the padding lets them."""
    rows = np.full((n, 4), np.nan)
    rows[::2, 0], rows[1::2, 1] = VALUES[0], VALUES[1]
    if padding > 1:
        rows[::4, 2] = VALUES[2]
    return rows


@pytest.mark.statistical
@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize(("epsilon", "padding"), [(1, 1), (2, 2), (5, 3)])
def test_counts_and_sums_are_unbiased_errors_are_the_formulas_and_margins_cover(how: str, epsilon: int, padding: int) -> None:
    """600 surveys of 1,200 people at a fixed seed. Means of errors within 5.5 deviations; squares of four counts each within 20 %
    (5.5 deviations of 2,400 squares: 16 %); margins cover at least 95 % less 5.5 deviations, and are on average at most
    40 % wider than the normal law's."""
    protocol, n, runs = KeyValue(range(4), 0, 10, epsilon, padding=padding, how=how), 1_200, 600
    people, random = crowd(n, padding), Random.deterministic(6)
    truth = (~np.isnan(people)).sum(axis=0)
    expected = np.array([protocol.variance(n, count / n) for count in truth])
    errors, sums, counted, covered, margins = [], [], [], [], []
    for _ in range(runs):
        found = protocol.estimate(protocol.aggregate(protocol.randomize(people, random=random)))
        errors.append(found.counts.counts - truth)
        sums.append(found.sums - truth * VALUES)
        margins.append(found.counts.margin(0.95))
        counted.append(abs(errors[-1]) <= margins[-1])
        covered.append(abs(found.means - VALUES) <= found.margin(0.95))
    scaled = np.stack(errors) / np.sqrt(expected)
    assert abs(scaled.mean(axis=0)).max() < 5.5 / math.sqrt(runs)
    assert (scaled**2).mean() == pytest.approx(1, abs=0.2)
    assert (abs(np.mean(sums, axis=0)) < 5.5 * np.std(sums, axis=0) / math.sqrt(runs)).all()
    assert np.mean(counted) > 0.92
    assert np.mean(margins / (1.96 * np.sqrt(expected))) < 1.4
    assert np.mean(covered, axis=0).min() > 0.90


@pytest.mark.statistical
@pytest.mark.parametrize("how", HOWS)
def test_the_error_of_a_mean_is_as_stated(how: str) -> None:
    """400 surveys of 4,000 people, a third of whom have the key: 400 squares within 40 % (5.5 deviations of √(2/400))."""
    protocol, n, runs = KeyValue(range(6), 0, 10, 3, padding=2, how=how), 4_000, 400
    people, random = np.full((n, 6), np.nan), Random.deterministic(7)
    people[: n // 3, 1] = 7
    means = [protocol.estimate(protocol.aggregate(protocol.randomize(people, random=random))).means[1] for _ in range(runs)]
    stated = protocol.mean_variance(n, (n // 3) / n, 7)
    assert np.mean((np.array(means) - 7) ** 2) / stated == pytest.approx(1, abs=0.4)
    assert protocol.mean_variance(n, 0.3) >= protocol.mean_variance(n, 0.3, 7)


def test_the_form_that_errs_less_is_chosen() -> None:
    assert [KeyValue(range(1000), epsilon=2, padding=padding).how for padding in (1, 3, 10)] == ["unary", "unary", "direct"]
    for size, padding in ((5, 1), (50, 1), (50, 4), (1000, 2), (1000, 10)):
        forms = {how: KeyValue(range(size), epsilon=1, padding=padding, how=how) for how in HOWS}
        errors = {how: form.mean_variance(1, 1e-6, 1.0) for how, form in forms.items()}
        assert KeyValue(range(size), epsilon=1, padding=padding).how == min(errors, key=lambda how: errors[how])


def test_who_has_more_keys_than_the_padding_counts_for_less() -> None:
    """With clip, three keys of a padding of 2: each is told with chance 1/3, so counts as 2/3 (within 6 deviations)."""
    protocol, n = KeyValue(range(3), 0, 1, 3, padding=2), 40_000
    rows = np.ones((n, 3))
    with pytest.raises(InvalidParameter, match="more than padding=2"):
        protocol.randomize(rows)
    found = protocol.estimate(protocol.aggregate(protocol.randomize(rows, clip=True, random=Random.deterministic(8))))
    assert (abs(found.counts.counts - n * 2 / 3) < 6 * np.sqrt(found.counts.variances)).all()


def test_mappings_and_rows_are_the_same_people_and_their_order_does_not_matter() -> None:
    protocol = KeyValue(["a", "b", "c"], 0, 1, 1, padding=3)
    mappings = [{"c": 1, "a": 0.5}, {}, {"b": 0}]
    rows = np.array([[0.5, np.nan, 1], [np.nan] * 3, [np.nan, 0, np.nan]])
    both = [protocol.randomize(people, random=Random.deterministic(9)) for people in (mappings, rows)]
    assert (both[0] == both[1]).all()
    assert (protocol.randomize([{"a": 0.5, "c": 1}, *mappings[1:]], random=Random.deterministic(9)) == both[0]).all()


def plain_row(protocol: KeyValue, pairs: dict[int, int], words: list[int]) -> tuple[list[int], int]:
    """A "unary" report as the class says it is made, by plain loops, for at most 64 keys and numbers at the ends."""
    drawn = iter(words)
    sender: Any = protocol._sender
    slot = next(drawn) % max(protocol.padding, len(pairs))
    place, end = sorted(pairs.items())[slot] if slot < len(pairs) else (-1, 0)
    next(drawn)  # the coin that brings a number to an end
    used = 2

    def row(heads: int) -> int:
        nonlocal used
        out, undecided = 0, (1 << 64) - 1
        for bit in range(63, (heads & -heads).bit_length() - 2, -1):
            word = next(drawn)
            used += 1
            if heads >> bit & 1:
                out |= undecided & ~word
                undecided &= word
            else:
                undecided &= ~word
            if not undecided:
                break
        return out & ((1 << len(protocol.keys)) - 1)

    told = row(sender._rise)
    kept = next(drawn) < 1 << 63
    high = row(1 << 63)
    true = next(drawn) < sender._true
    if place >= 0:
        told = told & ~(1 << place) | kept << place
        high = high & ~(1 << place) | (end if true else 1 - end) << place
    return [told, told & high], used + 2


@pytest.mark.parametrize("pairs", [{}, {0: 1}, {1: 0, 4: 1}, {0: 0, 2: 1, 3: 1}])
def test_words_are_used_up_in_the_order_that_is_stated(pairs: dict[int, int]) -> None:
    protocol = KeyValue(range(5), 0, 1, "1.5", padding=2, how="unary")
    for seed in range(20):
        words = Random.deterministic(seed).words(300).tolist()
        script = Scripted(words)
        report = protocol.randomize([pairs], clip=True, random=script)
        expected, used = plain_row(protocol, pairs, words)
        assert report.tolist() == [expected]
        assert len(script.words_used) == used


@pytest.mark.parametrize("how", HOWS)
def test_sketches_add_up_and_travel(how: str) -> None:
    protocol = KeyValue(range(70), 0, 1, 1, padding=1, how=how)
    reports = protocol.randomize([{3: 0.5}, {}, {69: 1}] * 100, random=Random.deterministic(1))
    whole = protocol.aggregate(reports)
    assert protocol.valid(reports).all()
    assert protocol.aggregate(reports[:150]) + Sketch.from_json(protocol.aggregate(reports[150:]).to_json()) == whole
    assert protocol.aggregate([]) + whole == whole
    other = KeyValue(range(70), 0, 1, 1, padding=2, how=how)
    assert other.key != protocol.key
    with pytest.raises(InvalidParameter, match="another protocol, list of keys"):
        other.estimate(whole)
    nothing = protocol.estimate(protocol.aggregate([]))
    assert (nothing.counts.counts == 0).all()
    assert (nothing.margin(0.95) >= 0.5).all()
    assert len(nothing) == 70


def test_bad_input_is_refused_with_its_own_message_that_holds_no_value() -> None:
    protocol = KeyValue(["a", "b"], 0, 10, 1, padding=1, how="unary")
    for people, said in (
        ([{"x": 1}], "outside the domain"),
        ([{"a": 11.5}], "outside of the declared interval"),
        ([{"a": math.nan}], "NaN"),
        ([{"a": math.inf}], "outside of the declared interval"),
        ([{"a": "11.5 of ten"}], "invalid"),
        ([{"a": None}], "invalid"),
        ([["a", 1]], "no mapping"),
        ({"a": 1}, "not a list of mappings"),
        ("a", "not a list of mappings"),
        (np.zeros((2, 3)), "not rows of 2 numbers"),
        (np.zeros(3), "not rows of 2 numbers"),
        (np.array([[11.5, np.nan]]), "outside of the declared interval"),
        ([{"a": 1, "b": 2}], "more than padding=1"),
    ):
        with pytest.raises(InvalidParameter, match=said) as refused:
            protocol.randomize(people)
        assert "11.5" not in str(refused.value)
    assert protocol.randomize([]).shape == (0, 2)
    assert protocol.randomize([{}, {"a": 99}], clip=True).shape == (2, 2)
    for reports in ([[4, 0]], [[1, 2]], [[-1, 0]], [[1, -1]], [[1]], [3], [[0.5, 0.5]]):
        with pytest.raises(InvalidParameter, match="The reports are invalid"):
            protocol.aggregate(reports)
    cells = KeyValue(["a", "b"], 0, 10, 1, padding=1, how="direct")
    for garbage in ([5], [-1], [[1]], [0.5]):
        with pytest.raises(InvalidParameter, match="The reports are invalid"):
            cells.aggregate(garbage)
    for padding in (0, 3, True, 1.5):
        with pytest.raises(InvalidParameter, match="padding"):
            KeyValue(["a", "b"], padding=padding)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="two forms"):
        KeyValue(["a", "b"], padding=1, how="both")
    with pytest.raises(InvalidParameter, match="nobody has the key"):
        protocol.mean_variance(10, 0.0)
    with pytest.raises(InvalidParameter, match="too many sets"):
        KeyValue(range(5), padding=1).channel()


def test_report_sizes_and_the_promise() -> None:
    assert KeyValue(range(130), padding=1, how="unary").randomize(np.full((3, 130), np.nan)).shape == (3, 6)
    assert KeyValue(range(130), padding=1, how="direct").report_size == 9
    assert KeyValue(range(5), epsilon="0.3", padding=1).guarantee.epsilon == Fraction(3, 10)
