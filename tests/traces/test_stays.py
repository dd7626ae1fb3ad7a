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
from cloister.noise import Random
from cloister.traces import PlanarLaplace, filter_attack, stay_points
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
    ("places", "middle"),
    [
        ([[0.0, 179.9999], [0.0, -179.9999], [0.0, 179.9999]], (0.0, 180 - 0.0001 / 3)),
        ([[89.9999, 0.0], [89.9999, 120.0], [89.9999, -120.0]], (90.0, None)),
        ([[-33.9, 18.4], [-33.9001, 18.4001], [-33.9, 18.4]], (-33.9 - 0.0001 / 3, 18.4 + 0.0001 / 3)),
    ],
)
def test_the_place_of_a_stay_is_among_its_points_at_the_date_line_and_at_the_poles(places: Any, middle: Any) -> None:
    ((latitude, longitude),) = stay_points([0, 900, 1800], places).place
    assert latitude == pytest.approx(middle[0], abs=1e-6)
    assert middle[1] is None or longitude == pytest.approx(middle[1], abs=1e-6)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_of_numpy_are_taken_in_any_unit(unit: str) -> None:
    times = np.array(["2020-01-01T00:00", "2020-01-01T00:20"], dtype=f"datetime64[{unit}]")
    assert len(stay_points(times, [[0, 0], [0, 0]], duration=1200)) == 1
    assert len(stay_points(times - times[0], [[0, 0], [0, 0]], duration=1200)) == 1
    assert len(stay_points(times - times[0], [[0, 0], [0, 0]], duration=1201)) == 0


@pytest.mark.parametrize(
    ("times", "places", "why"),
    [
        ([0, 1], [[0, 0]], "two numbers for each time"),
        ([0], [0], "two numbers for each time"),
        (["a"], [[0, 0]], "missing or infinite"),
        ([["2020-01-01"]], [[0, 0]], "two numbers for each time"),
        ([0, np.nan], [[0, 0], [0, 0]], "missing or infinite"),
        ([0, 1], [[0, 0], [np.inf, 0]], "missing or infinite"),
        ([1, 0], [[0, 0], [0, 0]], "go backwards"),
        (np.array(["NaT", "2020-01-01"], dtype="datetime64[s]"), [[0, 0], [0, 0]], "missing or infinite"),
        ([0, 1], [[116.3, 40.0], [116.3, 40.0]], "latitude"),
        ([0, 1], [[40.0, 116.3], [40.0, 1163.0]], "latitude"),
    ],
)
def test_points_out_of_order_or_missing_are_refused(times: Any, places: Any, why: str) -> None:
    with pytest.raises(InvalidParameter, match=why):
        stay_points(times, places)


@pytest.mark.parametrize("wrong", ["200", None, -1, float("nan")])
def test_a_distance_and_a_duration_are_numbers_above_0(wrong: Any) -> None:
    for how in ({"distance": wrong}, {"duration": wrong}):
        with pytest.raises(InvalidParameter, match="above 0"):
            stay_points([0, 900], [[0, 0], [0, 0]], **how)
    numbers: dict[str, Any] = {"distance": np.int32(200), "duration": np.float32(900)}
    assert len(stay_points([0, 900], [[0, 0], [0, 0]], **numbers)) == 1


def test_times_may_be_texts_and_a_leap_second_is_the_last_of_its_minute() -> None:
    for begin in ("2016-12-31T23:30:00", "2017-01-01T00:30:00+01:00"):
        for end in ("2016-12-31T23:59:60Z", "2017-01-01T00:59:60+01:00", "2016-12-31T23:59:59"):
            found = stay_points([begin, end], [[0, 0]] * 2)
            assert (found.begin.tolist(), found.end.tolist()) == ([1_483_227_000.0], [1_483_228_799.0])


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


def test_a_smoother_that_foresees_the_direction_takes_off_more_where_people_drive() -> None:
    """A car that turns slowly, 75 m a point: means and random walks lag in each curve."""
    headings = np.random.default_rng(1).normal(0, 0.05, 2000).cumsum()
    truth = 75 * np.stack([np.cos(headings), np.sin(headings)], axis=1).cumsum(axis=0)
    noisy = PlanarLaplace("0.02").release(truth, random=Random.deterministic(1))
    attack = filter_attack(truth, noisy, epsilon=0.02)
    others = {name: error for name, error in attack.after.items() if "direction" not in name}
    assert attack.after[attack.best] < 0.9 * min(others.values())


@pytest.mark.parametrize("wrong", [{"epsilon": 0}, {"epsilon": -1}, {"epsilon": np.nan}, {"speed": -1}, {"speed": np.inf}])
def test_an_attacker_knows_numbers(wrong: Any) -> None:
    with pytest.raises(InvalidParameter):
        filter_attack([[0, 0], [1, 1], [2, 2]], [[0, 0], [1, 1], [2, 3]], **wrong)


def test_a_trace_with_a_place_missing_is_refused_and_not_called_safe() -> None:
    for missing in (np.nan, np.inf):
        with pytest.raises(InvalidParameter, match="finite"):
            filter_attack([[0, 0], [1, 1], [2, 2]], [[0, 0], [missing, 1], [2, 2]])


@pytest.mark.parametrize("direction", [False, True])
@pytest.mark.parametrize("points", [1, 2, 3, 40])
def test_smoothers_give_numbers_for_short_traces_and_for_people_who_stand_still(points: int, direction: bool) -> None:
    seen = walk(points, 5)
    for moved in (0.0, 1e-30, 1.0, 1e30):
        assert np.isfinite(smoothed(seen, moved, np.ones(points), direction=direction)).all()


def test_the_kalman_smoother_solves_its_equations() -> None:
    seen, noise, moved = walk(40, 5), np.random.default_rng(1).uniform(1, 9, 40), 2.0
    pull = np.diff(np.eye(40), axis=0)
    for direction in (False, True):
        system = np.diag(1 / noise) + pull.T @ pull / moved
        assert smoothed(seen, moved, noise, direction=direction) == pytest.approx(np.linalg.solve(system, seen / noise[:, None]))
        pull = np.diff(np.eye(40), n=2, axis=0)
    assert smoothed(seen[:1], moved, noise[:1]) == pytest.approx(seen[:1])


def test_short_and_broken_traces() -> None:
    assert filter_attack([[0, 0]], [[3, 4]]).before == 5
    assert filter_attack([[0, 0]], [[0, 0]]).ratio == 1
    assert "is left" in str(filter_attack([[0, 0], [1, 1]], [[3, 4], [1, 1]]))
    for wrong in (([[0, 0]], [[0, 0], [1, 1]]), ([], []), ([0, 1], [0, 1])):
        with pytest.raises(InvalidParameter, match="same number of rows"):
            filter_attack(*wrong)
