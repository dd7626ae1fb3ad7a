"""Direct encoding and randomised response: exact channels, errors as theory says, the book's examples, bad input."""

from __future__ import annotations

import csv
import gzip
import math
import tracemalloc
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from cloister.attacks import audit_channel
from cloister.errors import InvalidParameter
from cloister.local import DirectEncoding, HistogramEncoding, RandomizedResponse, Sketch, UnaryEncoding
from cloister.local.frequency.domain import domain_of
from cloister.noise import Random
from tests.local.trials import BY_CELLS, trials, within_theory
from tests.local.words import Scripted

ADULT = Path(__file__).resolve().parents[3] / "shared" / "data" / "adult" / "adult_train.csv.gz"
EPSILONS = ["0.000001", "0.1", "1", "5", "40"]


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("size", [2, 3, 17])
def test_the_exact_channel_keeps_epsilon_and_wastes_little(epsilon: str, size: int) -> None:
    found = audit_channel(DirectEncoding(range(size), epsilon).channel())
    claimed = float(epsilon)
    assert found.epsilon <= claimed
    assert found.epsilon == pytest.approx(claimed, rel=1e-2 if claimed == 40 else 1e-9)  # e⁻⁴⁰ is 78 chances of 2⁶⁴ only
    assert all(sum(row) == 1 for row in found.rows)


def test_a_domain_of_millions_costs_nothing_whatever_the_kind_of_its_values() -> None:
    domain = domain_of(range(0, 4_000_000, 2))
    tracemalloc.start()
    assert domain.places([4.0, True - 1, Fraction(6)]).tolist() == domain.places(np.array([4.0, 0.0, 6.0])).tolist() == [2, 0, 3]
    for outside in (3, 4.5, -2.0, math.nan, math.inf, None, "4", [4], b"4", 4_000_000.0, "no"):
        with pytest.raises(InvalidParameter, match="outside the domain"):
            domain.places([4.0, outside])
    assert tracemalloc.get_traced_memory()[1] < 10**6
    tracemalloc.stop()


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_randomised_response_is_warners(epsilon: str) -> None:
    channel = RandomizedResponse(epsilon=epsilon).channel()
    (no, yes), _ = channel
    assert no + yes == 1
    assert audit_channel(channel).epsilon <= float(epsilon)
    assert float(no) == pytest.approx(1 / (1 + math.exp(-float(epsilon))), rel=1e-15)


def test_the_variance_is_the_formula() -> None:
    for epsilon, of_four, of_many in ((0.5, 8.67, 303.3), (1, 1.598, 43.60), (2, 0.230, 3.27), (4, 0.0197, 0.063)):
        assert DirectEncoding(range(4), epsilon).variance(1) == pytest.approx(of_four, rel=3e-3)
        assert DirectEncoding(range(128), epsilon).variance(1) == pytest.approx(of_many, rel=1e-2)
        odds = math.exp(epsilon)
        assert RandomizedResponse(epsilon=epsilon).variance(7) == pytest.approx(7 * odds / (odds - 1) ** 2)


@BY_CELLS
@pytest.mark.parametrize("epsilon", ["0.5", "3"])
def test_the_error_is_what_theory_says(epsilon: str, cells: int) -> None:
    within_theory(trials(DirectEncoding(range(40), epsilon), n=2_000, seed=11, cells=cells), cells)


@BY_CELLS
def test_the_error_of_yes_and_no_is_what_theory_says(cells: int) -> None:
    within_theory(trials(RandomizedResponse(epsilon=1), n=400, seed=12, cells=2 * cells), cells)  # a "no" mirrors a "yes"


def test_the_words_are_used_up_in_the_order_that_is_stated() -> None:
    oracle = DirectEncoding(["a", "b", "c", "d"], 1)
    heads = int(oracle.client["heads"], 16)
    assert oracle.randomize(["c"], random=Scripted([heads - 1, 0])).tolist() == [2]
    assert oracle.randomize(["c"], random=Scripted([heads, 3])).tolist() == [0]  # 3 mod 3: the first of the others
    assert oracle.randomize(["c"], random=Scripted([heads, 5])).tolist() == [3]  # the others of c are a, b, d
    pair = RandomizedResponse(["no", "yes"], 1)
    limit = int(pair.client["heads"], 16)
    assert [int(pair.randomize(["yes"], random=Scripted([word]))[0]) for word in (limit - 1, limit)] == [1, 0]


def test_a_lie_is_each_of_the_other_values_alike() -> None:
    """2·10⁵ reports of one value, each count within 5.5 deviations: false alarm 2e-7."""
    oracle = DirectEncoding(range(5), 1)
    counts = np.bincount(oracle.randomize(np.full(200_000, 3), random=Random.deterministic(5)), minlength=5)
    row = [float(each) for each in oracle.channel()[3]]
    deviations = np.sqrt(200_000 * np.array(row) * (1 - np.array(row)))
    assert (abs(counts - 200_000 * np.array(row)) < 5.5 * deviations).all()


def test_sketches_add_up_and_travel() -> None:
    oracle = DirectEncoding(["a", "b", "c"], 1)
    reports = oracle.randomize(["a", "b", "c", "a"] * 100, random=Random.deterministic(1))
    whole = oracle.aggregate(reports)
    parts = oracle.aggregate(reports[:150]) + Sketch.from_json(oracle.aggregate(reports[150:]).to_json())
    assert parts == whole
    assert oracle.aggregate([]) + whole == whole
    with pytest.raises(InvalidParameter, match="different protocols"):
        _ = whole + DirectEncoding(["a", "b", "c"], 2).aggregate([0])


@pytest.mark.parametrize(
    ("domain", "epsilon", "said"),
    [
        (["a", "b"], 0, "greater than 0"),
        (["a", "b"], 41, "nearly every report would be the truth"),
        (["a", "b"], "nan", "not a finite number"),
        (["a"], 1, "fewer than two values"),
        (["a", "a"], 1, "listed twice"),
        (["a", float("nan")], 1, "NaN is not a value"),
        ("ab", 1, "a text is not a list"),
    ],
)
def test_a_bad_oracle_is_refused_with_its_own_message(domain: object, epsilon: object, said: str) -> None:
    with pytest.raises(InvalidParameter, match=said):
        DirectEncoding(domain, epsilon)  # type: ignore[arg-type]


def test_bad_values_and_reports_are_refused_without_being_shown() -> None:
    oracle = DirectEncoding(["a", "b", "c"], 1)
    for value in ("secret", None, float("nan"), ["a"]):
        with pytest.raises(InvalidParameter, match="outside the domain") as refused:
            oracle.randomize([value])
        assert "secret" not in str(refused.value)
    with pytest.raises(InvalidParameter, match="outside the domain"):
        DirectEncoding(range(-5, 5), 1).randomize(np.array([2**64 - 3], dtype=np.uint64))  # −3, if it were read as signed
    for reports in ([3], [-1], [[0, 1]], [0.5], ["a"]):
        with pytest.raises(InvalidParameter, match="The reports are invalid"):
            oracle.aggregate(reports)
    with pytest.raises(InvalidParameter, match="has two answers"):
        RandomizedResponse(["a", "b", "c"])
    with pytest.raises(InvalidParameter, match="too many reports to list"):
        DirectEncoding(range(65), 1).channel()


def column(name: str) -> list[str]:
    with gzip.open(ADULT, "rt", newline="") as lines:
        return [row[name] for row in csv.DictReader(lines)]


adult = pytest.mark.skipif(not ADULT.exists(), reason="the Adult data are not beside this checkout")


def holds_the_truth(oracle: DirectEncoding | UnaryEncoding | HistogramEncoding, values: list[object], seed: int) -> None:
    """All of a table's cells within 99.9999 % margins."""
    found = oracle.estimate(oracle.aggregate(oracle.randomize(values, random=Random.deterministic(seed))))
    counted = Counter(values)
    truth = np.array([counted[value] for value in oracle.domain.values])
    assert (abs(found.counts - truth) < found.margin("0.999999")).all()
    assert found.consistent().counts.sum() == pytest.approx(len(values))
    assert found.consistent().counts.min() >= 0


@adult
def test_the_books_count_of_those_above_fifty() -> None:
    """6,460 of 32,561 are older than 50; with ε = ln 3 some 11,400 say yes, and the estimate is 6,460 within ±340 or so: like the
    6,599 of the book."""
    answers = [int(age) > 50 for age in column("age")]
    oracle = RandomizedResponse(epsilon=Fraction(109861, 100_000))
    reports = oracle.randomize(answers, random=Random.deterministic(1))
    estimate = oracle.estimate(oracle.aggregate(reports))
    assert sum(answers) == 6_460
    assert 11_000 < int(reports.sum()) < 11_750
    assert 280 < estimate.margin(0.95)[1] < 320
    assert abs(estimate.counts[1] - 6_460) < estimate.margin("0.999999")[1]


@adult
def test_the_books_table_of_occupations() -> None:
    occupations = column("occupation")
    holds_the_truth(DirectEncoding(sorted(set(occupations)), 5), list(occupations), seed=2)


@adult
def test_the_books_histogram_of_ages() -> None:
    """Decades from 10 to 100, summed and by a threshold."""
    decades: list[object] = [int(age) // 10 * 10 for age in column("age")]
    for threshold in (None, True, "0.25"):
        holds_the_truth(HistogramEncoding(range(10, 101, 10), 5, threshold=threshold), decades, seed=3)


@adult
def test_the_books_table_of_races() -> None:
    races = column("race")
    counted = Counter(races)
    domain = ["Other", "Amer-Indian-Eskimo", "Asian-Pac-Islander", "Black", "White"]
    assert [counted[each] for each in domain] == [271, 311, 1_039, 3_124, 27_816]
    for optimized in (True, False):
        holds_the_truth(UnaryEncoding(domain, 5, optimized=optimized), list(races), seed=4)


def test_texts_of_arrow_are_answers() -> None:
    """They were refused as outside the domain."""
    oracle = DirectEncoding(["a", "😀"], epsilon=30)
    found = oracle.estimate(oracle.aggregate(oracle.randomize(pa.array(["😀", "a", "😀"]), random=Random.deterministic(1))))
    assert found.counts.round().tolist() == [1, 2]
