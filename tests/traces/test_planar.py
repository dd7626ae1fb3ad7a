"""Planar Laplace: exactly its law on the lattice, ε a metre after clamping, and a grid that is cut off first is caught."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import binom, chisquare

from cloister.errors import InvalidParameter, NotConvertible
from cloister.ledger import Ledger
from cloister.noise import Random
from cloister.privacy import PureDP
from cloister.traces import GeoIndistinguishability, PermanentReports, PlanarLaplace, planar

Floats = npt.NDArray[np.float64]


def law(rate: float, half: int) -> Floats:
    """P(z) on a square of the lattice, of the law on all of it: what lies outside has a probability below 1e-12."""
    side = np.arange(-half, half + 1)
    weights = np.exp(-rate * np.hypot(side[:, None], side[None, :]))
    assert 2 * math.pi * (1 + rate * half) * math.exp(-rate * half) / rate**2 < 1e-12 * weights.sum()
    return np.asarray(weights / weights.sum())


def counted(draws: npt.NDArray[np.int64], half: int) -> Floats:
    inside = (np.abs(draws) <= half).all(axis=1)
    cells = (draws[inside] + half) @ np.array([2 * half + 1, 1])
    return np.bincount(cells, minlength=(2 * half + 1) ** 2).astype(float)


@pytest.mark.statistical
@pytest.mark.parametrize("exactly", [False, True])
@pytest.mark.parametrize("rate", ["0.25", "1"])
def test_draws_have_the_law_of_the_infinite_lattice(rate: str, exactly: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chi-square over all cells with 20 expected draws or more, and the rest together; false alarm 1e-7 each. `exactly` sends
    every coin down the path of integer bounds.
    """
    runs = 4_000 if exactly else 200_000
    if exactly:
        monkeypatch.setattr(planar, "_SLACK", 2.0)
    half = math.ceil(40 / float(rate))
    draws = PlanarLaplace(rate).sample(runs, random=Random.deterministic(7))
    expected, seen = law(float(rate), half).ravel() * runs, counted(draws, half)
    often = expected >= 20
    observed = np.append(seen[often], runs - seen[often].sum())
    wanted = np.append(expected[often], runs - expected[often].sum())
    assert chisquare(observed, wanted).pvalue > 1e-7


def test_the_bounds_of_a_coin_hold_its_probability_and_come_together() -> None:
    import mpmath

    context = mpmath.MPContext()
    context.dps = 80
    for i, j, rate in ((1, 0, Fraction(1, 3)), (3, 3, Fraction(2)), (-40, 41, Fraction(1, 7)), (10**6, 1, Fraction(1, 10**5))):
        exact = context.exp(
            -context.mpf(rate.numerator) / rate.denominator
            * (context.sqrt(i * i + j * j) - context.mpf(408) / 577 * (abs(i) + abs(j)))
        )  # fmt: skip
        for bits in (64, 128, 200):
            low, high = planar._kept_enclosure(i, j, rate)(bits)
            assert low <= exact * 2**bits <= high <= low + 6
    assert planar._kept_enclosure(0, 0, Fraction(1))(64) == (2**64, 2**64)


@pytest.mark.statistical
def test_radius_and_mean_error_are_those_of_the_draws() -> None:
    mechanism = PlanarLaplace("0.02", step=1)
    away = np.hypot(*mechanism.sample(100_000, random=Random.deterministic(2)).T)
    assert away.mean() == pytest.approx(mechanism.mean_error, rel=0.02)
    for confidence in (0.5, 0.95, 0.999):
        inside = int((away <= mechanism.radius(confidence)).sum())
        assert binom.cdf(inside, away.size, confidence) > 1e-8
        assert inside / away.size < confidence + 0.03


@pytest.mark.parametrize("rate", ["0.05", "0.3", "1"])
def test_a_radius_holds_on_a_coarse_lattice_too_and_the_rounding_of_the_place_is_in_it(rate: str) -> None:
    half = math.ceil(50 / float(rate))
    side, probability = np.arange(-half, half + 1), law(float(rate), half)
    away = np.hypot(side[:, None], side[None, :])
    mechanism = PlanarLaplace(rate)
    assert abs(float((away * probability).sum()) - mechanism.mean_error) < 1 - math.sqrt(0.5)
    for confidence in (0.05, 0.5, 0.95, 0.9999):
        assert probability[away <= mechanism.radius(confidence) - math.sqrt(0.5)].sum() >= confidence


def test_two_places_on_two_sides_of_a_lattice_line_are_told_apart_within_the_guarantee() -> None:
    """By the whole law of the reports: the rounding of places to the lattice is part of what a report costs."""
    half, close = 60, ([[0.49, 0.49]], [[0.51, 0.51]])
    mechanism, probability = PlanarLaplace(1), law(1.0, 60)
    (left,), (right,) = (planar.nearest(np.array(place), mechanism.step) for place in close)
    assert (left.tolist(), right.tolist()) == ([0, 0], [1, 1])
    seen = slice(half - 9, half + 10), slice(half - 10, half + 9)
    told = float(np.log(probability[seen[0], seen[0]] / probability[seen[1], seen[1]]).max())
    distance = math.dist(close[0][0], close[1][0])
    promised = mechanism.guarantee
    assert told > 40 * float(promised.epsilon) * distance
    assert told <= float(promised.epsilon) * distance + float(promised.extra)
    assert told <= promised.within(Fraction(1, 10)).epsilon


def test_a_cell_of_permanent_reports_is_part_of_what_a_report_costs() -> None:
    """Two people a metre apart, one on each side of the line between two cells: their reports are those of two middles."""
    phone = PermanentReports(PlanarLaplace("0.01"), size=200)
    phone.report(199.5, 100.0)
    assert float(phone.guarantee.extra) >= 0.01 * 200
    before = phone.guarantee
    phone.report(200.5, 100.0)
    assert phone.guarantee == before + before


@pytest.mark.parametrize("step", ["0.1", "0.3", "7/3", "0.001", "250"])
def test_a_place_goes_to_the_lattice_point_that_is_nearest_exactly(step: str) -> None:
    """Against rational arithmetic, at places that floating point can't tell from the line between two lattice points."""
    exact = Fraction(step)
    middles = [float((index + Fraction(1, 2)) * exact) for index in (0, 1, 2, -1, -7, 10**6, int(10**9 / exact) - 1)]
    places = np.array([[np.nextafter(x, x + way), x] for x in middles for way in (-1, 1)])
    found = planar.nearest(places, exact)
    for place, point in zip(places.ravel().tolist(), found.ravel().tolist(), strict=True):
        assert abs(Fraction(place) - point * exact) <= exact / 2


@pytest.mark.parametrize("size", [0, -1, math.nan, 10**7])
def test_a_cell_of_no_size_is_refused(size: Any) -> None:
    with pytest.raises(InvalidParameter):
        PermanentReports(PlanarLaplace(1), size=size)


def test_a_prior_without_the_nearest_place_gives_numbers() -> None:
    mechanism = PlanarLaplace(1)
    assert mechanism.remap([[0.0, 0.0]], places=[[0.0, 0.0], [5000.0, 0.0]], weights=[0, 1]).tolist() == [[5000.0, 0.0]]
    for weights in ([1, math.inf], [math.nan, 1], [0, 0], [-1, 2]):
        with pytest.raises(InvalidParameter, match="weights is invalid"):
            mechanism.remap([[0.0, 0.0]], places=[[0.0, 0.0], [5.0, 0.0]], weights=weights)


def loss(channel: Floats, places: npt.NDArray[np.int64]) -> float:
    """The largest log-ratio of two places' laws over their distance: the ε a step that a channel really has."""
    with np.errstate(divide="ignore"):
        logs = np.log(channel)
    return max(
        float(np.abs(logs[a] - logs[b]).max() / np.hypot(*(places[a] - places[b]))) for a in range(len(places)) for b in range(a)
    )


def test_clamped_after_the_draw_a_report_costs_epsilon_and_cut_off_before_it_up_to_twice_as_much() -> None:
    """Exactly, by their whole laws, on a region of nine by nine steps. The broken twin draws on the region alone: its normaliser
    differs from place to place.
    """
    rate, half, size = 0.2, 200, 9
    places = np.array([(x, y) for x in range(size) for y in range(size)])
    infinite = law(rate, half)
    clamped, cut = [], []
    for x, y in places:
        rows = np.clip(np.arange(-half, half + 1) + x, 0, size - 1)
        columns = np.clip(np.arange(-half, half + 1) + y, 0, size - 1)
        cells = np.zeros((size, size))
        np.add.at(cells, (rows[:, None], columns[None, :]), infinite)
        clamped.append(cells.ravel())
        weights = np.exp(-rate * np.hypot(places[:, 0] - x, places[:, 1] - y))
        cut.append(weights / weights.sum())
    assert loss(np.array(clamped), places) <= rate * (1 + 1e-9)
    assert 1.2 * rate < loss(np.array(cut), places) <= 2 * rate


def test_a_report_is_the_lattice_point_and_its_noise_then_clamped() -> None:
    mechanism = PlanarLaplace("0.01", step=5, box=((0, 0), (1000, 1000)))
    points = np.random.default_rng(1).uniform(0, 1000, (500, 2))
    reports = mechanism.release(points, random=Random.deterministic(3))
    noise = mechanism.sample(500, random=Random.deterministic(3))
    assert np.array_equal(reports, np.clip((np.rint(points / 5) + noise) * 5, 0, 1000))
    assert (np.hypot(*(reports - points).T) > 0).all()


def test_a_rate_adds_up_with_its_own_kind_alone_and_no_ledger_takes_it() -> None:
    rate = GeoIndistinguishability("0.01")
    assert rate + rate == rate * 2 == GeoIndistinguishability("0.02")
    assert rate <= rate * 2
    with pytest.raises(InvalidParameter):
        rate * Fraction(1, 2)  # type: ignore[operator]
    assert rate.within(1000) == PureDP(10)
    rounded = GeoIndistinguishability("0.01", extra="0.5")
    assert rounded * 2 == rounded + rounded == GeoIndistinguishability("0.02", extra=1)
    assert rounded.within(1000) == PureDP("10.5")
    assert rate <= rounded
    assert not rounded <= rate * 2
    for wrong in (lambda: rate + PureDP(1), lambda: PureDP(1) + rate):
        with pytest.raises(NotConvertible, match="until a diameter is declared"):
            wrong()
    ledger = Ledger()
    ledger.open("people", PureDP(100), who="owner")
    with pytest.raises(InvalidParameter):
        ledger.reserve({"people": rate}, who="ada", what="a place")  # type: ignore[dict-item]


def test_a_place_is_reported_once_whoever_asks_how_often() -> None:
    phone = PermanentReports(PlanarLaplace("0.01"), size=100)
    reports = {phone.report(x, 250.0) for x in np.linspace(201, 299, 40) for _ in range(5)}
    assert len(reports) == 1
    assert phone.guarantee.epsilon == Fraction("0.01")
    phone.report(-1.0, 250.0)
    assert set(phone.kept) == {(2, 2), (-1, 2)}
    assert phone.guarantee.epsilon == Fraction("0.02")


def test_noise_drawn_again_for_one_place_averages_out_and_a_permanent_report_does_not() -> None:
    """The broken twin: home is reported afresh every evening of a year."""
    mechanism, home = PlanarLaplace("0.01"), [4050.0, 2050.0]
    fresh = mechanism.release([home] * 365, random=Random.deterministic(1)).mean(axis=0)
    phone, random = PermanentReports(mechanism, size=100), Random.deterministic(1)
    kept = np.mean([phone.report(*home, random=random) for _ in range(365)], axis=0)
    assert math.dist(fresh, home) < 40
    assert math.dist(kept, home) > 100


def test_a_remap_by_the_right_prior_brings_reports_closer() -> None:
    random = np.random.default_rng(4)
    places = random.uniform(0, 3000, (40, 2))
    weights = random.dirichlet(np.full(40, 0.3))
    truth = places[random.choice(40, 600, p=weights)]
    mechanism = PlanarLaplace("0.005")
    reports = mechanism.release(truth, random=Random.deterministic(5))
    moved = mechanism.remap(reports, places, weights)
    assert np.mean((moved - truth) ** 2) < 0.6 * np.mean((reports - truth) ** 2)


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 0},
        {"epsilon": -1},
        {"epsilon": 1, "step": 0},
        {"epsilon": 1000, "step": "1e-12"},
        {"epsilon": "1e-400", "step": "1e400"},
        {"epsilon": 1, "step": 60},
        {"epsilon": 100},
        {"epsilon": "1e-12"},
        {"epsilon": 1, "box": ((0, 0), (0, 5))},
        {"epsilon": 1, "box": (1, 2)},
    ],
)
def test_what_is_declared_wrongly_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        PlanarLaplace(**wrong)


@pytest.mark.parametrize(
    "points",
    [
        *([1.0, 2.0], [[1.0]], [[math.nan, 0.0]], [[math.inf, 0.0]], [["a", "b"]], [[1e12, 0.0]], None, [[10**400, 0]]),
        *(np.array([["2026-01-01"] * 2], dtype="datetime64[D]"), np.ones((1, 2)) * 1j),
        np.ma.MaskedArray([[1.0, 2.0]], mask=[[False, True]]),
    ],
    ids=lambda points: type(points).__name__,
)
def test_points_that_are_none_are_refused(points: Any) -> None:
    with pytest.raises(InvalidParameter, match="two finite numbers"):
        PlanarLaplace(1).release(points)
