"""Count mean sketch and its Hadamard form: exact channels, errors as theory says, few hash functions, bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cloister.attacks import audit, audit_channel
from cloister.errors import InvalidParameter
from cloister.local import CountMeanSketch, Sketch
from cloister.local.frequency.blocks import mixed
from cloister.local.frequency.packed import unpacked
from cloister.noise import Random
from tests.local.trials import BY_CELLS, trials, within_theory


@pytest.mark.parametrize("kind", [{"buckets": 4}, {"buckets": 4, "hadamard": True}, {"buckets": 4, "hashes": 3}])
@pytest.mark.parametrize("epsilon", ["0.1", "1", "5"])
def test_the_exact_channel_keeps_epsilon_and_wastes_little(epsilon: str, kind: dict[str, Any]) -> None:
    found = audit_channel(CountMeanSketch(range(10), epsilon, **kind).channel())
    assert found.epsilon <= float(epsilon)
    assert found.epsilon == pytest.approx(float(epsilon), rel=1e-9)
    assert all(sum(row) == 1 for row in found.rows)


def test_a_coin_too_kind_would_be_caught() -> None:
    for hadamard in (True, False):
        kind = CountMeanSketch(range(9), "1.01", buckets=4, hadamard=hadamard)
        assert audit_channel(kind.channel()).contradicts(CountMeanSketch(range(9), 1).guarantee)


def test_reports_have_the_probabilities_of_the_channel() -> None:
    """2·10⁵ reports, each of at most 80 counts within 6 deviations: false alarm 2e-7."""
    for hadamard in (True, False):
        oracle = CountMeanSketch(range(9), 1, buckets=4, hadamard=hadamard)
        reports = oracle.randomize(np.full(200_000, 5), random=Random.deterministic(7)).astype(np.int64)
        numbers = reports if hadamard else reports[:, 0] * 16 + reports[:, 1]
        chances = np.array([float(each) for each in oracle.channel()[5]])
        counts = np.bincount(numbers, minlength=len(chances))
        assert (abs(counts - 200_000 * chances) < 6 * np.sqrt(200_000 * chances * (1 - chances))).all()


def test_a_wide_sketch_audited_by_sampling_keeps_epsilon() -> None:
    """One function only, so that the two buckets in question are known: at least 0.8 of ε = 1 is found, and no more than ε."""
    oracle = CountMeanSketch(range(100), 1, buckets=128)
    assert oracle.hashes == 1

    def two_bits(place: int, n: int, random: Random) -> object:
        return unpacked(np.ascontiguousarray(oracle.randomize(np.full(n, place), random=random)[:, 1:]), 128)[:, [3, 70]]

    found = audit(two_bits, 3, 70, runs=200_000, random=Random.deterministic(1))
    assert not found.contradicts(oracle.guarantee)
    assert found.epsilon > 0.8


@BY_CELLS
@pytest.mark.parametrize("kind", [{"buckets": 16}, {"buckets": 16, "hadamard": True}, {"hadamard": True}])
@pytest.mark.parametrize("epsilon", ["1", "3"])
def test_the_error_is_what_theory_says(epsilon: str, kind: dict[str, Any], cells: int) -> None:
    within_theory(trials(CountMeanSketch(range(70), epsilon, **kind), n=1_000, seed=61, cells=cells), cells)


def test_few_hash_functions_are_right_on_average_and_their_margins_wider() -> None:
    """Zipf's law on 4,000 values: collisions in 16 of 257 functions add a third to the mean square, and margins still cover."""
    size, n = 4_000, 50_000
    oracle = CountMeanSketch(range(size), 3, hadamard=True, hashes=16)
    shares = 1 / np.arange(1, size + 1)
    truth = np.floor(n * shares / shares.sum()).astype(np.int64)
    values = np.repeat(np.arange(size), truth)
    estimate = oracle.estimate(oracle.aggregate(oracle.randomize(values, random=Random.deterministic(2))))
    errors = estimate.counts - truth
    ratio = (errors**2).mean() / oracle.variance(len(values), 1 / size)
    assert 1.1 < ratio < estimate.variances.mean() / oracle.variance(len(values), 1 / size) * 1.3
    assert (abs(errors) < estimate.margin(0.95)).mean() > 0.93


@pytest.mark.parametrize("hadamard", [False, True])
def test_margins_of_few_hash_functions_cover_where_all_hold_one_value(hadamard: bool) -> None:
    """In one function in 256 a value is in the bucket of all people: with 20 functions one value in 13, by far more than the
    normal law of collisions says. A share below 0.925 of 3,200 has a chance below 1e-9 where the true one is 0.95."""
    oracle, random, inside = (
        CountMeanSketch(range(5_000), 6, hashes=20, buckets=256, hadamard=hadamard),
        Random.deterministic(3),
        [],
    )
    for held in random.below(5_000, 40).tolist():
        estimate = oracle.estimate(oracle.aggregate(oracle.randomize([held] * 20_000, random=random)))
        others = random.below(5_000, 80)
        others = others[others != held]
        inside.append(np.abs(estimate.counts[others]) <= estimate.margin(0.95)[others])
    assert np.concatenate(inside).mean() > 0.945


def test_sketches_add_up_and_travel() -> None:
    for hadamard in (True, False):
        oracle = CountMeanSketch(["a", "b", "c", "d", "e"], 1, hadamard=hadamard, buckets=2)
        reports = oracle.randomize(["a", "b", "c", "a"] * 100, random=Random.deterministic(1))
        whole = oracle.aggregate(reports)
        assert oracle.aggregate(reports[:150]) + Sketch.from_json(oracle.aggregate(reports[150:]).to_json()) == whole
        assert oracle.aggregate([]) + whole == whole
        assert oracle.estimate(oracle.aggregate([])).counts.tolist() == [0.0] * 5


def test_bad_input_is_refused_with_its_own_message() -> None:
    plain, signs = CountMeanSketch(range(9), 1, buckets=4), CountMeanSketch(range(9), 1, buckets=4, hadamard=True)
    for oracle, bad in ((plain, [[5, 1]]), (plain, [[0, 16]]), (plain, [3]), (signs, [40]), (signs, [-1]), (signs, [[1]])):
        with pytest.raises(InvalidParameter, match="The reports are invalid"):
            oracle.aggregate(bad)
    for buckets in (3, 1, 8192, True):
        with pytest.raises(InvalidParameter, match="power of two"):
            CountMeanSketch(range(9), 1, buckets=buckets)
    for hashes in (0, 6, True):
        with pytest.raises(InvalidParameter, match="5 hash functions to 4 buckets"):
            CountMeanSketch(range(9), 1, buckets=4, hashes=hashes)
    with pytest.raises(InvalidParameter, match="more than 2²⁵ cells"):
        CountMeanSketch(range(1 << 26), 1)
    with pytest.raises(InvalidParameter, match="too many reports to list"):
        CountMeanSketch(range(9), 1).channel()


def test_the_public_hash_is_one_to_one_and_spreads() -> None:
    """10⁵ consecutive numbers in 1,024 buckets: the χ² of 1,023 degrees of freedom within 6 deviations."""
    words = mixed(np.arange(100_000, dtype=np.uint64))
    assert len(set(words.tolist())) == 100_000
    counts = np.bincount((words >> np.uint64(54)).astype(np.int64), minlength=1024)
    square = ((counts - 100_000 / 1024) ** 2 / (100_000 / 1024)).sum()
    assert abs(square - 1023) < 6 * (2 * 1023) ** 0.5
