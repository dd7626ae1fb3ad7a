"""Stay points against the sweep written out, and against the published counts where the data are at hand."""

from __future__ import annotations

import csv
import gzip
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister.errors import InvalidParameter
from cloister.traces import filter_attack, stay_points
from cloister.traces.filtering import smoothed

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("CLOISTER_DATA", ROOT.parent / "shared" / "data")) / "mobility" / "geolife_sample.csv.gz"


def swept(times: Any, places: Any, distance: float, duration: float) -> list[tuple[int, int]]:
    """The definition, word for word."""
    found, i = [], 0
    while i < len(times):
        j = i
        while j + 1 < len(times) and np.hypot(*(places[j + 1] - places[i])) <= distance:
            j += 1
        if times[j] - times[i] >= duration:
            found.append((i, j))
            i = j
        i += 1
    return found


@pytest.mark.parametrize("seed", range(12))
def test_stays_are_those_of_the_sweep(seed: int) -> None:
    random = np.random.default_rng(seed)
    moves = random.normal(0, 1, (1500, 2)) * random.choice([0.5, 20], (1500, 1), p=[0.8, 0.2])
    places, times = moves.cumsum(axis=0), random.exponential(30, 1500).cumsum().round()
    for distance, duration in ((20, 300), (60, 900), (5, 60), (1e6, 10)):
        found = stay_points(times, places, distance=distance, duration=duration, degrees=False)
        expected = swept(times, places, distance, duration)
        assert list(zip(found.first.tolist(), found.last.tolist(), strict=True)) == expected
        for stay, (first, last) in enumerate(expected):
            assert found.place[stay] == pytest.approx(places[first : last + 1].mean(axis=0))
            assert (found.begin[stay], found.end[stay]) == (times[first], times[last])


@pytest.mark.skipif(not DATA.exists(), reason="no mobility/geolife_sample.csv.gz: set CLOISTER_DATA to the folder that holds it")
def test_the_published_sample_has_the_published_counts() -> None:
    people: dict[str, list[tuple[str, str, str]]] = {}
    with gzip.open(DATA, "rt", encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            people.setdefault(row["uid"], []).append((row["datetime"], row["lat"], row["lng"]))
    expected = {
        (200, 20): {"001": (155, 33_102), "005": (184, 58_203)},
        (200, 30): {"001": (119, 28_415), "005": (149, 52_169)},
        (100, 10): {"001": (198, 29_167), "005": (273, 51_836)},
    }
    for uid, rows in people.items():
        times = np.array([row[0] for row in rows], dtype="datetime64[s]")
        places = np.array([row[1:] for row in rows], dtype=float)
        for (distance, minutes), counts in expected.items():
            found = stay_points(times, places, distance=distance, duration=60 * minutes)
            assert (len(found), found.points) == counts[uid]


def test_no_points_and_one_point_make_no_stay() -> None:
    assert len(stay_points([], np.empty((0, 2)))) == 0
    assert len(stay_points([0], [[40.0, 116.0]])) == 0
    assert stay_points([0, 5000], [[40.0, 116.0], [40.0, 116.0]]).points == 2


@pytest.mark.parametrize(
    ("times", "places", "why"),
    [
        ([0, 1], [[0, 0]], "two numbers for each time"),
        ([0], [0], "two numbers for each time"),
        (["a"], [[0, 0]], "two numbers for each time"),
        ([0, np.nan], [[0, 0], [0, 0]], "missing or infinite"),
        ([0, 1], [[0, 0], [np.inf, 0]], "missing or infinite"),
        ([1, 0], [[0, 0], [0, 0]], "go backwards"),
    ],
)
def test_points_out_of_order_or_missing_are_refused(times: Any, places: Any, why: str) -> None:
    with pytest.raises(InvalidParameter, match=why):
        stay_points(times, places)


def walk(steps: int, pace: float) -> Any:
    return np.random.default_rng(1).normal(0, pace, (steps, 2)).cumsum(axis=0)


def test_noise_drawn_afresh_is_taken_off_and_what_moves_with_the_person_is_not() -> None:
    truth = walk(600, 2)
    fresh = truth + np.random.default_rng(2).laplace(0, 60, truth.shape)
    shifted = truth + np.array([70.0, 70.0])
    assert filter_attack(truth, fresh, epsilon=0.02).ratio < 0.35
    assert filter_attack(truth, shifted, epsilon=0.02).ratio > 0.95


def test_the_smoother_that_knows_the_noise_beats_the_mean_on_heavy_tails() -> None:
    truth = walk(500, 3)
    noisy = truth + np.random.default_rng(3).standard_t(1.5, truth.shape) * 40
    attack = filter_attack(truth, noisy, epsilon=0.03, speed=3)
    knowing = next(error for name, error in attack.after.items() if "knows the noise" in name)
    assert knowing < min(error for name, error in attack.after.items() if "mean" in name)


def test_the_kalman_smoother_solves_its_equations() -> None:
    seen, noise, moved = walk(40, 5), np.random.default_rng(1).uniform(1, 9, 40), 2.0
    pull = np.diff(np.eye(40), axis=0)
    system = np.diag(1 / noise) + pull.T @ pull / moved
    assert smoothed(seen, moved, noise) == pytest.approx(np.linalg.solve(system, seen / noise[:, None]))
    assert smoothed(seen[:1], moved, noise[:1]) == pytest.approx(seen[:1])


def test_short_and_broken_traces() -> None:
    assert filter_attack([[0, 0]], [[3, 4]]).before == 5
    assert filter_attack([[0, 0]], [[0, 0]]).ratio == 1
    assert "is left" in str(filter_attack([[0, 0], [1, 1]], [[3, 4], [1, 1]]))
    for wrong in (([[0, 0]], [[0, 0], [1, 1]]), ([], []), ([0, 1], [0, 1])):
        with pytest.raises(InvalidParameter, match="same number of rows"):
            filter_attack(*wrong)
