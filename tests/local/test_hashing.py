"""Local hashing: exact channels, the words that are used up, errors as theory says, large domains, sketches, bad input."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from cloister.attacks import audit_channel
from cloister.errors import InvalidParameter
from cloister.local import LocalHashing, Sketch
from cloister.noise import Random
from tests.local.trials import BY_CELLS, trials, within_theory
from tests.local.words import Scripted


@pytest.mark.parametrize("buckets", [2, 3, 4, 7, 8])
@pytest.mark.parametrize("epsilon", ["0.1", "1", "5"])
def test_the_exact_channel_keeps_epsilon_and_wastes_little(epsilon: str, buckets: int) -> None:
    found = audit_channel(LocalHashing(range(10), epsilon, buckets=buckets).channel())
    assert found.epsilon <= float(epsilon)
    assert found.epsilon == pytest.approx(float(epsilon), rel=1e-9)
    assert all(sum(row) == 1 for row in found.rows)


def test_a_coin_too_kind_would_be_caught() -> None:
    oracle = LocalHashing(range(9), "1.01")
    assert audit_channel(oracle.channel()).contradicts(LocalHashing(range(9), 1).guarantee)


@pytest.mark.parametrize("buckets", [2, 3, 4])
def test_reports_have_the_probabilities_of_the_channel(buckets: int) -> None:
    """2·10⁵ reports, each of at most 84 counts within 6 deviations: false alarm 2e-7."""
    oracle = LocalHashing(range(9), 1, buckets=buckets)
    reports = oracle.randomize(np.full(200_000, 5), random=Random.deterministic(7))
    chances = np.array([float(each) for each in oracle.channel()[5]])
    counts = np.bincount(reports, minlength=len(chances))
    assert (abs(counts - 200_000 * chances) < 6 * np.sqrt(200_000 * chances * (1 - chances))).all()


def times(a: int, b: int, size: int, polynomial: int) -> int:
    """A product of digits by the rule as it is written."""
    if not polynomial:
        return a * b % size
    result = 0
    while b:
        result ^= a if b & 1 else 0
        a, b = a << 1, b >> 1
        a ^= polynomial if a >= size else 0
    return result


def plain(oracle: LocalHashing, place: int, words: list[int]) -> int:
    """One report by the rule as it is written, on Python's integers: what the browser's twin does."""
    client = json.loads(json.dumps(oracle.client))
    g, m, polynomial = client["field"], client["digits"], client["polynomial"]
    functions: int = (g**m - 1) // (g - 1)
    number, coin, other = words[0] % functions, words[1] < int(client["heads"], 16), words[2] % (g - 1)
    after = max(j for j in range(m) if (g**j - 1) // (g - 1) <= number)
    vector: int = g**after + number - (g**after - 1) // (g - 1)
    hash_ = 0
    for j in range(m):
        product = times(vector // g**j % g, place // g**j % g, g, polynomial)
        hash_ = hash_ ^ product if polynomial else (hash_ + product) % g
    return int(number * g + (hash_ if coin else other + (other >= hash_)))


@pytest.mark.parametrize(("size", "buckets"), [(100, 2), (100, 3), (100, 4), (5000, 8), (5000, 53), (50, 53)])
def test_the_words_are_used_up_in_the_order_that_is_stated(size: int, buckets: int) -> None:
    oracle = LocalHashing(range(size), "1.5", buckets=buckets)
    for seed in range(30):
        words = Random.deterministic(seed).words(3).tolist()
        script, place = Scripted(words), seed * 37 % size
        assert oracle.randomize([place], random=script).tolist() == [plain(oracle, place, words)]
        assert len(script.words_used) == 3


def test_the_best_field_is_near_the_textbooks_optimum() -> None:
    for epsilon in (0.5, 1, 2, 4):
        odds = math.exp(epsilon)
        optimum = 4 * odds / (odds - 1) ** 2
        assert 0.99 * optimum < LocalHashing(range(1000), epsilon).variance(1) < 1.02 * optimum
        binary = ((odds + 1) / (odds - 1)) ** 2
        assert LocalHashing(range(1000), epsilon, optimized=False).variance(1) == pytest.approx(binary, rel=2e-3)
    assert LocalHashing(range(1000), 1).buckets == 4
    assert LocalHashing(range(4), 3).buckets == 4  # one function: direct encoding


@BY_CELLS
@pytest.mark.parametrize(("epsilon", "buckets"), [("0.5", None), ("1", None), ("3", None), ("1", 2), ("1", 5)])
def test_the_error_is_what_theory_says(epsilon: str, buckets: int | None, cells: int) -> None:
    within_theory(trials(LocalHashing(range(70), epsilon, buckets=buckets), n=1_000, seed=31, cells=cells), cells)


@pytest.mark.parametrize("epsilon", ["1", "4"])
def test_a_domain_of_many_values_is_estimated_at_once(epsilon: str) -> None:
    """10⁵ cells: the mean of squares is off by 3 % with probability 2e-11."""
    size, n = 100_000, 200_000
    oracle = LocalHashing(range(size), epsilon)
    values = np.arange(n) ** 2 % size
    estimate = oracle.estimate(oracle.aggregate(oracle.randomize(values, random=Random.deterministic(5))))
    errors = estimate.counts - np.bincount(values, minlength=size)
    assert (errors**2).mean() / oracle.variance(n, 1 / size) == pytest.approx(1, abs=0.03)
    assert (abs(errors) < estimate.margin(0.95)).mean() == pytest.approx(0.95, abs=0.005)


@pytest.mark.slow
def test_a_million_values_and_people() -> None:
    size = n = 1_000_000
    for epsilon in ("0.5", "1", "4"):
        oracle = LocalHashing(range(size), epsilon)
        values = np.arange(n) ** 2 % size
        estimate = oracle.estimate(oracle.aggregate(oracle.randomize(values, random=Random.deterministic(5))))
        errors = estimate.counts - np.bincount(values, minlength=size)
        assert (errors**2).mean() / oracle.variance(n, 1e-6) == pytest.approx(1, abs=0.01)


def test_sketches_add_up_and_travel() -> None:
    oracle = LocalHashing(["a", "b", "c", "d", "e"], 1)
    reports = oracle.randomize(["a", "b", "c", "a"] * 100, random=Random.deterministic(1))
    whole = oracle.aggregate(reports)
    assert oracle.aggregate(reports[:150]) + Sketch.from_json(oracle.aggregate(reports[150:]).to_json()) == whole
    assert oracle.aggregate([]) + whole == whole
    assert oracle.estimate(oracle.aggregate([])).counts.tolist() == [0.0] * 5
    with pytest.raises(InvalidParameter, match="different protocols"):
        _ = whole + LocalHashing(["a", "b", "c", "d", "e"], 1, optimized=False).aggregate([])


def test_bad_input_is_refused_with_its_own_message() -> None:
    oracle = LocalHashing(range(5), 1)
    for reports in ([-1], [10**6], [[1]], [0.5], ["a"]):
        with pytest.raises(InvalidParameter, match="The reports are invalid"):
            oracle.aggregate(reports)
    with pytest.raises(InvalidParameter, match="outside the domain"):
        oracle.randomize([5])
    with pytest.raises(InvalidParameter, match="neither a prime nor a power of two"):
        LocalHashing(range(5), 1, buckets=6)
    for buckets in (1, True, 2.0):
        with pytest.raises(InvalidParameter, match="two values at least"):
            LocalHashing(range(5), 1, buckets=buckets)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="no table is as small"):
        LocalHashing(range(1000), 1, cells=10)
    with pytest.raises(InvalidParameter, match="whole number of cells"):
        LocalHashing(range(1000), 1, cells="many")  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="would not fit into memory"):
        LocalHashing(range(1 << 27), 1)
    with pytest.raises(InvalidParameter, match="too many reports to list"):
        LocalHashing(range(1000), 1).channel()
