"""Next points: exactly their law with its areas, ε a point whatever two places, and what a filter leaves of a journey."""

from __future__ import annotations

import copy
import csv
import gzip
import math
import os
import pickle
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import chisquare

from cloister.attacks import audit
from cloister.errors import InvalidParameter
from cloister.noise import Exponential, Random
from cloister.privacy import PureDP
from cloister.traces import GeoIndistinguishability, NextPoint, PlanarLaplace, filter_attack, filtering

Floats = npt.NDArray[np.float64]
ANCHOR = PlanarLaplace("0.02")
ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("CLOISTER_DATA", ROOT.parent / "shared" / "data")) / "mobility" / "geolife_sample.csv.gz"


def mechanism(epsilon: Any = 2, **options: Any) -> NextPoint:
    return NextPoint(epsilon, **{"reach": 100, "anchor": ANCHOR, "rings": 6, "headings": 8, **options})


def walk(points: int, pace: float, seed: int = 1) -> Floats:
    """People go on in the direction in which they went."""
    random, step, found = np.random.default_rng(seed), np.zeros(2), []
    for _ in range(points):
        step = 0.95 * step + random.normal(0, pace * math.sqrt(1 - 0.95**2), 2)
        found.append(step)
    return np.cumsum(found, axis=0)


@pytest.mark.statistical
@pytest.mark.parametrize("law", ["exponential", "piecewise"])
@pytest.mark.parametrize("place", [(3.0, 0.1), (49.0, -2.0), (400.0, 3.1)])
def test_draws_have_the_law_that_is_stated(law: Any, place: tuple[float, float]) -> None:
    """Chi-square over rings and over headings, false alarm 1e-7 each: rings by their areas."""
    polar, runs = mechanism(law=law)._polar, 40_000
    away, turned = polar.draw(*place, runs, Random.deterministic(3))
    for drawn, values, expected in (
        (away, polar.distances, polar.distance_law(np.array([place[0]]))[0]),
        (turned, polar.directions, polar.heading_law(np.array([place[1]]))[0]),
    ):
        assert expected.sum() == pytest.approx(1)
        counts = np.array([(drawn == value).sum() for value in values])
        assert chisquare(counts, expected * runs).pvalue > 1e-7


def test_the_law_of_a_cell_is_its_area_times_the_exponential_of_its_utility() -> None:
    polar = mechanism(3, share="1/3")._polar
    weights = np.array([(2 * ring + 1) * math.exp(-3 * (1 / 3) * abs(ring - 2) / (2 * 5)) for ring in range(6)])
    assert polar.distance_law(np.array([40.0]))[0] == pytest.approx(weights / weights.sum())
    turns = np.array([math.exp(-2 * min(turn, 8 - turn) / 4) for turn in range(8)])
    assert polar.heading_law(np.array([0.1]))[0] == pytest.approx(turns / turns.sum())


def loss(law: Floats) -> float:
    """The worst log-ratio of two rows in one column."""
    return float((np.log(law).max(axis=0) - np.log(law).min(axis=0)).max())


@pytest.mark.parametrize("law", ["exponential", "piecewise"])
@pytest.mark.parametrize(("epsilon", "share", "rings", "headings"), [(1, "0.5", 6, 8), (8, "0.2", 4, 36), ("0.1", "0.8", 24, 4)])
def test_no_two_true_points_are_told_apart_by_more_than_epsilon(
    law: Any, epsilon: Any, share: str, rings: int, headings: int
) -> None:
    made = mechanism(epsilon, law=law, share=share, rings=rings, headings=headings)
    told = loss(made._polar.distance_law(np.linspace(0, 150, 3001)))
    turned = loss(made._polar.heading_law(np.linspace(-math.pi, math.pi, 3001)))
    portion = float(Fraction(share)) * float(Fraction(epsilon))
    assert told <= portion * (1 + 1e-9)
    assert turned <= (float(Fraction(epsilon)) - portion) * (1 + 1e-9)
    assert told + turned > float(Fraction(epsilon)) / 2


def rings_of(made: NextPoint) -> Any:
    """Draws of the ring alone, for an audit."""

    def run(distance: float, n: int, random: Random) -> Floats:
        return made._polar.draw(distance, 0.0, n, random)[0]

    return run


@pytest.mark.statistical
@pytest.mark.parametrize("forgotten", [True, False])
def test_a_normaliser_that_is_forgotten_is_caught(forgotten: bool) -> None:
    """BROKEN: the rate ε/Δ, as if every ring had the same normaliser; two neighbours, the last released point itself and the
    rim.
    """
    made = mechanism(6, share="0.5", rings=4)
    claim = PureDP(3)
    if forgotten:
        made = copy.copy(made)
        made._polar = copy.copy(made._polar)
        made._polar.ring = Exponential(epsilon=6, sensitivity=3)  # type: ignore[attr-defined]
    found = audit(rings_of(made), 0.0, 100.0, runs=60_000, against=claim, random=Random.deterministic(2))
    assert found.contradicts(claim) == forgotten


@pytest.mark.statistical
@pytest.mark.parametrize("left_out", [True, False])
def test_a_jacobian_that_is_left_out_is_caught(left_out: bool) -> None:
    """BROKEN: rings of one weight. With next to no ε a point is uniform over the circle, so a quarter lies within half of the
    reach; without areas it is a half. An audit of the two laws as two worlds tells them apart at once.
    """
    stated = mechanism("1e-9")
    made = copy.copy(stated)
    made._polar = copy.copy(stated._polar)
    if left_out:
        made._polar.weights = np.ones(6, dtype=np.int64)  # type: ignore[attr-defined]
    inside = rings_of(made)(30.0, 20_000, Random.deterministic(1)) < 50
    expected = 0.5 if left_out else 0.25
    assert inside.mean() == pytest.approx(expected, abs=6 * math.sqrt(0.25 / 20_000))

    def world(kind: NextPoint, n: int, random: Random) -> Floats:
        return np.asarray(rings_of(kind)(30.0, n, random))

    found = audit(world, made, stated, runs=20_000, against=PureDP("0.1"), random=Random.deterministic(4))
    assert found.contradicts(PureDP("0.1")) == left_out


@pytest.mark.parametrize(("points", "anchors"), [(0, 0), (1, 1), (7, 1), (8, 2), (21, 3)])
def test_a_journey_costs_its_anchors_and_epsilon_for_each_other_point(points: int, anchors: int) -> None:
    made = mechanism("0.3", every=7)
    assert made.anchors(points).sum() == anchors
    cost = made.guarantee(points)
    assert cost.epsilon == anchors * Fraction(1, 50)
    assert cost.extra == anchors * ANCHOR.guarantee.extra + (points - anchors) * Fraction(3, 10)
    released = made.release(walk(points, 10) if points else np.empty((0, 2)), random=Random.deterministic(1))
    assert released.guarantee == cost
    assert released.anchors.tolist() == made.anchors(points).tolist()
    assert isinstance(cost, GeoIndistinguishability)


@pytest.mark.parametrize("law", ["exponential", "piecewise"])
def test_a_next_point_lies_within_reach_of_the_last_released_whatever_the_truth_does(law: Any) -> None:
    """Somebody who stands still, walks, and is suddenly in another country."""
    truth = np.concatenate([np.zeros((20, 2)), walk(20, 30), np.full((20, 2), 1e7), np.zeros((20, 2))])
    made = mechanism(law=law, every=10)
    released = made.release(truth, random=Random.deterministic(1))
    away = np.hypot(*np.diff(released.points, axis=0).T)
    assert (away[~released.anchors[1:]] <= 100 + 1e-6).all()
    assert np.isfinite(released.points).all()
    noise = np.hypot(*(released.points - truth)[released.anchors].T)
    assert noise.max() < ANCHOR.radius("0.999999")


def test_with_a_large_epsilon_the_release_is_the_journey_to_a_cell() -> None:
    truth = walk(100, 20)
    for law, epsilon in (("exponential", 5000), ("piecewise", 80)):
        made = NextPoint(epsilon, reach=100, anchor=PlanarLaplace(1), law=law, rings=64, headings=360)  # type: ignore[arg-type]
        assert np.hypot(*(made.release(truth, random=Random.deterministic(1)).points - truth).T).max() < 10
        assert made.step_error(50) < 2
        assert np.isfinite(made.release(truth[:10], random=Random.deterministic(1)).smoothed().points).all()


@pytest.mark.statistical
@pytest.mark.parametrize("law", ["exponential", "piecewise"])
@pytest.mark.parametrize("distance", [0.0, 37.0, 100.0])
@pytest.mark.parametrize("epsilon", [4, 60])
def test_the_error_of_a_step_is_that_of_its_draws(law: Any, distance: float, epsilon: int) -> None:
    """In any direction: a direction in the middle of a cell, or on a point of the grid, has another."""
    made, random, errors = mechanism(epsilon, law=law), Random.deterministic(5), []
    for heading in np.random.default_rng(5).uniform(0, 2 * np.pi, 400).tolist():
        away, turned = made._polar.draw(distance, heading, 100, random)
        errors.append(
            np.hypot(away * np.cos(turned) - distance * np.cos(heading), away * np.sin(turned) - distance * np.sin(heading))
        )
    means = np.mean(errors, axis=1)
    assert means.mean() == pytest.approx(made.step_error(distance), abs=6 * means.std() / 20 + 1e-9)


@pytest.mark.parametrize("law", ["exponential", "piecewise"])
def test_the_likelihood_of_a_place_is_the_probability_of_what_was_released(law: Any) -> None:
    made = mechanism(law=law, every=3)
    released = made.release(walk(9, 20), random=Random.deterministic(1)).points
    places = np.random.default_rng(1).normal(0, 60, (50, 2)) + released[3]
    for at in (4, 5):
        found = np.exp(made.log_likelihood(released, at, places))
        east, north = (places - released[at - 1]).T
        near = made._polar.distance_law(np.hypot(east, north))
        turn = made._polar.heading_law(np.arctan2(north, east))
        step = released[at] - released[at - 1]
        (ring,) = np.flatnonzero(np.isclose(made._polar.distances, np.hypot(*step)))
        turned = np.exp(1j * (made._polar.directions - np.arctan2(step[1], step[0])))
        (heading,) = np.flatnonzero(np.isclose(turned, 1))
        assert found == pytest.approx(near[:, ring] * turn[:, heading])
    assert made.log_likelihood(released, 3, released[3:4]).tolist() == [0.0]


def test_the_smoother_is_the_mean_over_all_walks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against every walk over a window of five by five cells, written out."""
    monkeypatch.setattr(filtering, "_ACROSS", 5)
    monkeypatch.setattr(filtering, "_NOWHERE", 1e-300)
    made = mechanism(6, every=2)
    seen = made.release(walk(3, 40), random=Random.deterministic(2)).points
    cell, pace = 8 * made.scale / 4, made.scale
    ((guess, _),) = filtering.expected_walks(seen, made, (pace,))
    middle = np.rint(filtering._moving(seen, 3, np.mean) / cell)
    window = [np.array(place) for place in product(range(-2, 3), repeat=2)]
    variance, total, sums = (pace / cell) ** 2, 0.0, np.zeros((3, 2))
    like = [np.exp(made.log_likelihood(seen, at, cell * (middle[at] + window))) for at in range(3)]

    def moved(steps: Floats) -> float:
        return float(np.prod([{0: 1 - variance, 1: variance / 2}.get(round(abs(step)), 0.0) for step in steps]))

    for chosen in product(range(25), repeat=3):
        places = np.array([middle[at] + window[place] for at, place in enumerate(chosen)])
        weight = np.prod([like[at][place] for at, place in enumerate(chosen)])
        weight *= moved(places[1] - places[0]) * moved(places[2] - places[1])
        total, sums = total + weight, sums + weight * cell * places
    assert variance < 1
    assert guess == pytest.approx(sums / total, rel=1e-4, abs=1e-3)


def test_naive_noise_comes_off_and_of_a_smoothed_journey_nearly_all_is_left() -> None:
    truth = walk(400, 6)
    naive = NextPoint(1, reach=50, anchor=ANCHOR, every=1).release(truth, random=Random.deterministic(1))
    assert naive.anchors.all()
    assert naive.attack.ratio < 0.35
    ours = NextPoint(1, reach=50, anchor=ANCHOR, every=20).release(truth, random=Random.deterministic(1))
    smoothed = ours.smoothed()
    assert smoothed.attack.ratio > 0.85
    assert smoothed.attack.before < ours.attack.before
    assert smoothed.guarantee == ours.guarantee
    assert "knows the law" in ours.attack.best
    assert "is left" in str(smoothed)
    assert "MARKED" in str(smoothed)
    assert any("knows the law" in name for name in smoothed.attack.after)


@pytest.mark.skipif(not DATA.exists(), reason="no mobility/geolife_sample.csv.gz: set CLOISTER_DATA to the folder that holds it")
def test_on_geolife_a_moving_median_leaves_27_metres_of_101() -> None:
    places = []
    with gzip.open(DATA, "rt", encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            places.append((float(row["lng"]), float(row["lat"])))
            if len(places) == 6_000:
                break
    degrees = np.array(places)
    truth = (degrees - degrees[0]) * [111_320 * math.cos(math.radians(degrees[0, 1])), 110_540]
    attack = filter_attack(truth, PlanarLaplace("0.02").release(truth, random=Random.deterministic(1)))
    assert attack.before == pytest.approx(101, abs=2)
    medians = {name: error for name, error in attack.after.items() if "median" in name}
    assert min(medians, key=medians.__getitem__) == "a moving median of 21"
    assert min(medians.values()) / attack.before == pytest.approx(0.27, abs=0.015)


def test_the_true_journey_does_not_travel_with_the_released_one() -> None:
    released = mechanism().release(walk(5, 10), random=Random.deterministic(1))
    with pytest.raises(InvalidParameter, match=r"released\.points"):
        pickle.dumps(released)
    with pytest.raises(InvalidParameter):
        copy.deepcopy(released)
    assert "5 points" in repr(released)
    assert "truth" not in repr(released)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"reach": -1}, "reach"),
        ({"reach": math.inf}, "reach"),
        ({"anchor": "0.02"}, "noise of a place"),
        ({"every": 0}, "every"),
        ({"every": True}, "every"),
        ({"rings": 65}, "rings"),
        ({"rings": 3}, "rings"),
        ({"headings": 9}, "even number"),
        ({"headings": 362}, "even number"),
        ({"share": 0}, "share"),
        ({"share": 1}, "a part of ε each"),
        ({"share": 2}, "a part of ε each"),
        ({"law": "laplace"}, "names no law"),
    ],
)
def test_what_no_law_has_is_refused(wrong: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidParameter, match=why):
        mechanism(wrong.get("epsilon", 1), **{name: value for name, value in wrong.items() if name != "epsilon"})


@pytest.mark.parametrize("points", [[[0, math.nan]], [0, 1], [[1, 2, 3]], "journey", [[0, 1e12]]])
def test_points_that_are_no_places_are_refused(points: Any) -> None:
    with pytest.raises(InvalidParameter, match="points is invalid"):
        mechanism().release(points)


def test_a_journey_of_too_many_points_and_distances_beyond_the_reach_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="more than 10,000 points"):
        mechanism().release(np.zeros((10_001, 2)))
    for wrong in (-1, 101, math.nan):
        with pytest.raises(InvalidParameter, match="between 0 and the reach"):
            mechanism().step_error(wrong)


def test_an_empty_journey_is_released_as_one() -> None:
    released = mechanism().release(np.empty((0, 2)))
    assert len(released.points) == 0
    assert released.smoothed() is released
    assert str(released).startswith("0 points")
