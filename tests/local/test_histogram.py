"""Histogram encodings: what clamps, exact channels of thresholds, errors as theory says, sketches, bad input."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

from cloister.attacks import audit, audit_channel
from cloister.errors import InvalidParameter
from cloister.local import HistogramEncoding, Sketch
from cloister.local.frequency.histogram import STEPS, Summed, best_threshold
from cloister.noise import Random
from cloister.privacy import PureDP
from tests.local.trials import BY_CELLS, trials, within_theory


@pytest.mark.parametrize("epsilon", ["0.000001", "0.3", "1", "40"])
def test_the_noise_of_the_cells_keeps_epsilon_exactly(epsilon: str) -> None:
    """Two values are two cells of one, 512 steps, apart."""
    oracle = HistogramEncoding(range(3), epsilon)
    assert isinstance(oracle, Summed)
    assert oracle.noise.sensitivity == 2 * STEPS
    assert oracle.noise.guarantee == oracle.guarantee == PureDP(epsilon)


def test_cells_are_moved_to_a_public_reach_and_no_farther() -> None:
    oracle = HistogramEncoding(range(2), 1)
    assert isinstance(oracle, Summed)
    reach = int(oracle.client["reach"], 16)
    assert oracle.noise.tail(reach - STEPS) <= 2.0**-40
    assert reach < 30 * oracle.noise.scale
    reports = oracle.randomize([0] * 10_000, random=Random.deterministic(1))
    assert oracle.valid(reports).all()
    assert abs(float(reports[:, 0].mean()) - reach - STEPS) < 6 * math.sqrt(oracle.noise.variance / 10_000)


def test_noise_beyond_the_reach_is_clamped() -> None:
    """With a reach of nothing but the truth's own steps, what is beyond lands on the edges."""
    oracle = HistogramEncoding(range(2), 1)
    assert isinstance(oracle, Summed)
    oracle._reach = STEPS
    reports = oracle.randomize([0] * 1_000, random=Random.deterministic(1))
    assert oracle.valid(reports).all()
    assert {0, 2 * STEPS} <= set(reports[:, 0].tolist())


def test_summed_cells_audited_by_sampling_keep_epsilon() -> None:
    """At least 0.7 of ε = 2 is found, and no more than ε (each bound is wrong with probability 1e-9)."""
    oracle = HistogramEncoding(range(3), 2)

    def cells(place: int, n: int, random: Random) -> object:
        return oracle.randomize(np.full(n, place), random=random)[:, :2].astype(np.int64)

    apart = {"difference": lambda rows: rows[:, 0] - rows[:, 1]}
    found = audit(cells, 0, 1, runs=200_000, features=apart, random=Random.deterministic(1))
    assert not found.contradicts(oracle.guarantee)
    assert found.epsilon > 1.4


@pytest.mark.parametrize("threshold", [True, "0.25", 0, 1])
@pytest.mark.parametrize("epsilon", ["0.000001", "0.5", "5", "40"])
def test_thresholded_bits_have_the_probabilities_of_the_law_and_keep_epsilon(epsilon: str, threshold: object) -> None:
    oracle = HistogramEncoding(range(3), epsilon, threshold=threshold)  # type: ignore[arg-type]
    assert oracle.threshold is not None
    theta, half = float(oracle.threshold), float(epsilon) / 2
    p, q = 1 - math.exp((theta - 1) * half) / 2, math.exp(-theta * half) / 2
    assert [float(each) for each in oracle.probabilities] == pytest.approx([p, q], rel=1e-9)  # type: ignore[attr-defined]
    found = audit_channel(oracle.channel())
    assert found.epsilon <= float(epsilon)
    assert found.epsilon == pytest.approx(math.log(p * (1 - q) / (q * (1 - p))), rel=1e-3)


def test_the_sign_that_a_published_listing_got_wrong() -> None:
    """θ = 0.25, ε = 5: p = 0.923, not −2.26."""
    p, _ = HistogramEncoding(range(3), 5, threshold="0.25").probabilities  # type: ignore[attr-defined]
    assert float(p) == pytest.approx(0.923, abs=5e-4)


def test_thresholded_bits_are_those_of_noisy_cells() -> None:
    """Cells of the summed encoding, compared with θ in steps, give bits of the same probabilities: to 5.5 deviations (false alarm
    4e-8 each), and a 2⁻⁹th for the grid."""
    n = 100_000
    summed, theta = HistogramEncoding(range(2), 2), HistogramEncoding(range(2), 2, threshold=True)
    assert isinstance(summed, Summed)
    assert theta.threshold is not None
    reach = int(summed.client["reach"], 16)
    cells = summed.randomize([0] * n, random=Random.deterministic(3)).astype(np.int64) - reach
    bits = (cells > float(theta.threshold) * STEPS).mean(axis=0)
    for found, exact in zip(bits, theta.probabilities, strict=True):  # type: ignore[attr-defined]
        assert abs(found - float(exact)) < 5.5 * math.sqrt(0.25 / n) + 2.0**-9


def test_the_best_threshold_is_best() -> None:
    assert [float(best_threshold(epsilon)) for epsilon in ("0.5", "1", "2", "4")] == [0.56, 0.62, 0.71, 0.82]
    for epsilon in ("0.1", "1", "6"):
        best = HistogramEncoding(range(3), epsilon, threshold=True)
        assert best.threshold is not None
        least = best.variance(1)
        for other in (best.threshold - Fraction(1, 20), best.threshold + Fraction(1, 20)):
            assert least < HistogramEncoding(range(3), epsilon, threshold=other).variance(1)


def test_the_variance_of_the_sum_is_the_formula() -> None:
    for epsilon in (0.5, 1, 2, 4):
        oracle = HistogramEncoding(range(9), epsilon)
        assert oracle.variance(5) == oracle.variance(5, 1.0) == pytest.approx(40 / epsilon**2, rel=1e-4)


@BY_CELLS
def test_the_error_of_the_sum_is_what_theory_says(cells: int) -> None:
    within_theory(trials(HistogramEncoding(range(70), 1), n=100, seed=31, cells=cells), cells)


@BY_CELLS
@pytest.mark.parametrize("threshold", [True, "0.25"])
def test_the_error_of_the_threshold_is_what_theory_says(threshold: object, cells: int) -> None:
    oracle = HistogramEncoding(range(70), 2, threshold=threshold)  # type: ignore[arg-type]
    within_theory(trials(oracle, n=1_000, seed=32, cells=cells), cells)


def test_both_kinds_are_histogram_encodings_and_can_be_sent_to_other_processes() -> None:
    for threshold in (None, False, True, "0.25"):
        oracle = HistogramEncoding(["a", "b"], 1, threshold=threshold)
        assert isinstance(oracle, HistogramEncoding)
        again = pickle.loads(pickle.dumps(oracle))
        assert (again.key, again.threshold, type(again)) == (oracle.key, oracle.threshold, type(oracle))


def test_sketches_add_up_and_travel() -> None:
    for threshold in (None, True):
        oracle = HistogramEncoding(["a", "b", "c"], 1, threshold=threshold)
        reports = oracle.randomize(["a", "b", "c", "a"] * 50, random=Random.deterministic(1))
        whole = oracle.aggregate(reports)
        assert oracle.aggregate(reports[:70]) + Sketch.from_json(oracle.aggregate(reports[70:]).to_json()) == whole
        assert oracle.aggregate([]) + whole == whole


def test_bad_input_is_refused_with_its_own_message() -> None:
    for threshold in ("-0.1", "1.1", 2):
        with pytest.raises(InvalidParameter, match="between the cells' true values"):
            HistogramEncoding(range(3), 1, threshold=threshold)
    with pytest.raises(InvalidParameter, match="not a finite number"):
        HistogramEncoding(range(3), 1, threshold=float("nan"))
    oracle = HistogramEncoding(range(3), 1)
    assert isinstance(oracle, Summed)
    beyond = 2 * int(oracle.client["reach"], 16) + 1
    for reports in ([[beyond, 0, 0]], [[-1, 0, 0]], [[0, 0]], [1], [[0.5, 0, 0]]):
        with pytest.raises(InvalidParameter, match="The reports are invalid"):
            oracle.aggregate(reports)
    with pytest.raises(InvalidParameter, match="too many reports"):
        oracle.channel()
