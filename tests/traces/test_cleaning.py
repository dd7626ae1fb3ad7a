"""Points that cannot be: each kind of bad input by its own reason, as few left out as can be, and each person by itself."""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cloister as cl
from cloister.errors import CloisterError, InvalidParameter, MissingBound
from cloister.noise import Random
from cloister.traces import Journeys, clean_points, fit_journeys, stay_points, unique_in_the_crowd
from cloister.traces.cleaning import REASONS, in_order, slow_enough

BOX = (4.2, 51.9, 4.5, 52.1)
HERE = [52.0, 4.3]
KINDS: dict[str, tuple[list[Any], list[Any], list[str]]] = {
    "swapped": ([0, 60], [HERE, [4.3, 52.0]], ["", "swapped"]),
    "outside the box": ([0, 60], [HERE, [48.8, 2.3]], ["", "outside"]),
    "NaN": ([0, float("nan"), 60, None, "noon"], [HERE, HERE, [np.nan, 4.3], HERE, HERE], ["", *["missing"] * 4]),
    "infinite": ([0, float("inf"), 60], [HERE, HERE, [np.inf, 4.3]], ["", "missing", "missing"]),
    "0/0": ([0, 60], [HERE, [0, 0]], ["", "at 0/0"]),
    "out of order": ([0, 120, 60, 90, 180], [HERE] * 5, ["", "out of order", "", "", ""]),
    "a clock that runs ahead": ([0, 60, 9e8, 120, 180], [HERE] * 5, ["", "", "out of order", "", ""]),
    "another year": ([0, "1980-01-06", 60], [HERE] * 3, ["", "at another time", ""]),
    "a teleport": ([0, 60, 120, 180], [HERE, [52.001, 4.3], [52.09, 4.49], [52.002, 4.3]], ["", "", "too fast", ""]),
    "a teleport at once": ([0, 60, 120], [[52.09, 4.49], HERE, [52.001, 4.3]], ["too fast", "", ""]),
    "twice": ([0, 0, 60], [HERE, [52.05, 4.4], HERE], ["", "duplicate", ""]),
    "a leap second": (["1970-01-01T00:00:58", "1970-01-01T00:00:60", "1970-01-01T00:01:00"], [HERE] * 3, ["", "", ""]),
    "a leap second twice": (["1970-01-01T00:00:59", "1970-01-01T00:00:60"], [HERE] * 2, ["", "duplicate"]),
    "nothing": ([], [], []),
}


def test_lengths_of_time_are_times_as_they_are_where_stays_are_found() -> None:
    """NumPy's ended in a TypeError, and all points of a pandas column of them were missing."""
    lengths = np.array([0, 60, "NaT"], dtype="timedelta64[s]")
    for times in (lengths, pd.Series(lengths)):
        assert clean_points(times, [HERE] * 3).reasons.tolist() == ["", "", "missing"]


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_bad_input_goes_by_its_own_reason(kind: str) -> None:
    times, places, expected = KINDS[kind]
    found = clean_points(times, places, box=BOX, span=(0, 10**9) if "another" not in kind else (0, 100), fastest=40)
    assert found.reasons.tolist() == expected
    assert found.kept.tolist() == [place for place, reason in enumerate(expected) if not reason]
    assert found.dropped == {reason: expected.count(reason) for reason in REASONS}
    assert str(found).startswith(f"{expected.count('')} of {len(expected)} points stay")


def test_without_a_box_only_degrees_that_are_none_are_known_as_swapped() -> None:
    found = clean_points([0, 1, 2], [[116.3, 40.0], [40.0, 116.3], [95.0, 400.0]])
    assert found.reasons.tolist() == ["swapped", "", "outside"]
    assert clean_points([0, 1], [[0, 0], [1e9, 3]], degrees=False).kept.tolist() == [0, 1]


def test_each_person_by_itself_whatever_the_order_of_rows() -> None:
    random = np.random.default_rng(1)
    who = random.integers(0, 7, 400)
    times = np.arange(400.0) + np.where(random.random(400) < 0.05, 5_000, 0)
    places = random.normal(0, 30, (400, 2)) + np.where(random.random(400) < 0.05, 9_000, 0)[:, None]
    whole = clean_points(times, places, who=who, fastest=20, degrees=False)
    for person in range(7):
        mine = who == person
        alone = clean_points(times[mine], places[mine], fastest=20, degrees=False)
        assert whole.reasons[mine].tolist() == alone.reasons.tolist()
    names = clean_points(times, places, who=[f"p{each}" for each in who], fastest=20, degrees=False)
    assert names.reasons.tolist() == whole.reasons.tolist()
    assert min(whole.dropped["out of order"], whole.dropped["too fast"]) > 5


@pytest.mark.parametrize("seed", range(20))
def test_as_few_as_can_be_are_out_of_order(seed: int) -> None:
    times = np.random.default_rng(seed).integers(0, 9, 9).astype(float)
    stays = in_order(np.zeros(9, dtype=np.int64), times)
    assert (np.diff(times[stays]) >= 0).all()
    best = max(len(part) for n in range(10) for part in combinations(times, n) if all(a <= b for a, b in pairwise(part)))
    assert stays.sum() == best


@pytest.mark.parametrize("seed", range(10))
def test_nobody_who_stays_is_faster_and_honest_points_outlast_teleports(seed: int) -> None:
    random = np.random.default_rng(seed)
    honest = np.cumsum(random.uniform(-1, 1, (200, 2)), axis=0)
    jumps = random.choice(200, 20, replace=False)
    honest[jumps] += random.normal(0, 5_000, (20, 2))
    clock = np.arange(200.0)
    stays = slow_enough(np.zeros(200, dtype=np.int64), clock, honest, 2.0)
    steps = np.hypot(*np.diff(honest[stays], axis=0).T)
    assert (steps <= 2.0 * np.diff(clock[stays]) * (1 + 1e-6)).all()
    assert not stays[jumps].any()
    assert stays.sum() == 180


def test_what_stays_can_be_told_stays_of() -> None:

    times, places, _ = KINDS["0/0"]
    found = clean_points(times, places)
    assert len(stay_points(np.array(times)[found.kept], np.array(places)[found.kept])) == 0


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"places": [[1, 2, 3], [1, 2, 3]]}, "two numbers for each time"),
        ({"places": "here"}, "two numbers for each time"),
        ({"who": ["a"]}, "a person for each time"),
        ({"box": (1, 2)}, "west, south, east and north"),
        ({"box": (4.5, 51, 4.2, 52)}, "west, south, east and north"),
        ({"box": (51.9, 4.2, 52.1, 94.5)}, "the longitude comes first"),
        ({"span": (5, 1)}, "a first and a last moment"),
        ({"span": ("soon", 1)}, "a first and a last moment"),
        ({"fastest": 0}, "fastest"),
        ({"fastest": "1e400"}, "fastest"),
        ({"fastest": "1e-400"}, "fastest"),
    ],
)
def test_what_is_declared_wrongly_is_refused(wrong: dict[str, Any], why: str) -> None:
    given: dict[str, Any] = {"times": [0, 60], "places": [HERE, HERE], **wrong}
    with pytest.raises(CloisterError, match=why) as caught:
        clean_points(given.pop("times"), given.pop("places"), **given)
    assert caught.value.instead


PLACE = cl.Place(BOX, longitude="lon", latitude="lat")


def journeys(extra: dict[str, list[Any]] | None = None, **how: Any) -> Journeys:
    """Two hundred people who go from the south-west to the north-east, and whoever is added."""
    many = 200
    rows: dict[str, list[Any]] = {"who": [], "at": [], "lon": [], "lat": []}
    for person in range(many):
        rows["who"] += [f"p{person}"] * 3
        rows["at"] += ["2026-03-02T08:00:00", "2026-03-02T08:30:00", "2026-03-02T09:00:00"]
        rows["lon"] += [4.21, 4.35, 4.49]
        rows["lat"] += [51.91, 52.0, 52.09]
    for name, values in (extra or {}).items():
        rows[name] += values
    columns = {"spot": PLACE, "at": cl.Moment("2026-03-01", "2026-03-31")}
    table = cl.PrivateTable(rows, {"who": cl.Text(), **columns}, unit="who", max_rows=9)
    with cl.Session({"people": table}, budget=cl.PureDP(10**6), random=Random.deterministic(1)) as session:
        return fit_journeys(session, "people", spend=10**6, moment="at", place="spot", cells=6, zones=3, **how)


def people(lon: Any, lat: Any, at: Any = "2026-03-02T08:10:00") -> dict[str, list[Any]]:
    return {"who": [f"odd{n}" for n in range(50)], "at": [at] * 50, "lon": [lon] * 50, "lat": [lat] * 50}


@pytest.mark.parametrize(
    "odd",
    [
        people(52.0, 4.3),
        people(2.3, 48.8),
        people(float("nan"), 52.0),
        people(0.0, 0.0),
        people(4.3, 52.0, "2016-12-31T23:59:60"),
    ],
    ids=["swapped", "outside", "NaN", "0/0", "at another time"],
)
def test_places_that_are_none_count_nowhere(odd: dict[str, list[Any]]) -> None:
    expected, found = journeys(), journeys(odd)
    for name in ("begins", "ends", "detours", "zones"):
        assert np.abs(found.released[name] - expected.released[name]).max() <= 2, name
    assert found.released["begins"][0] == pytest.approx(200, abs=2)


def test_a_teleport_is_left_out_where_a_speed_is_declared_and_its_journey_stays() -> None:
    """At eight from the middle of the south-west, at a quarter past in the south-east: 20 km in a quarter of an hour and back."""
    odd = {"who": ["p0"], "at": ["2026-03-02T08:05:00"], "lon": [4.49], "lat": [51.91]}
    with_it, without = journeys(odd), journeys(odd, fastest=10)
    clean = journeys()
    assert np.abs(without.released["detours"] - clean.released["detours"]).max() <= 1
    whole = [each.released["detours"].reshape(2, -1)[:, 0].sum() for each in (with_it, clean)]  # in no bin of a detour
    assert whole[0] == whole[1] - 1


def test_drawn_places_are_degrees_within_the_box() -> None:
    frame = journeys().sample(300, random=Random.deterministic(2))
    assert frame.column_names == ["journey", "step", "lon", "lat"]
    lon, lat = (np.array(frame[name], dtype=float) for name in ("lon", "lat"))
    assert BOX[0] <= lon.min() < 4.25
    assert 4.45 < lon.max() <= BOX[2]
    assert BOX[1] <= lat.min()
    assert lat.max() <= BOX[3]


def test_a_column_that_is_no_place_is_refused() -> None:
    table = cl.PrivateTable(
        {"who": [], "at": [], "x": []}, {"who": cl.Text(), "at": cl.Integer(0, 9), "x": cl.Integer(0, 9)}, unit="who", max_rows=9
    )
    with cl.Session({"people": table}, budget=cl.PureDP(1)) as session:
        with pytest.raises(MissingBound, match="is not a place"):
            fit_journeys(session, "people", spend=1, moment="at", place="x")
        with pytest.raises(CloisterError, match="outside is invalid"):
            fit_journeys(session, "people", spend=1, moment="at", x="at", y="x", outside="clip")  # type: ignore[arg-type]
        assert str(session.spent) == "ε = 0"


def test_moments_of_arrow_are_moments() -> None:
    arrow = pytest.importorskip("pyarrow")
    times = ["2026-03-02T08:00", None, "2026-03-02T08:01"]
    places = [[52.0, 4.3]] * 3
    assert clean_points(arrow.array(times), places).kept.tolist() == clean_points(times, places).kept.tolist() == [0, 2]


def test_a_masked_place_is_missing_and_one_beyond_floats_is_refused_whoever_reads_it() -> None:
    places = np.ma.MaskedArray([[52.0, 4.0], [52.0, 5.0]], mask=[[False, False], [False, True]])
    assert str(clean_points([0, 60], places)) == "1 of 2 points stay; left out: 1 missing"
    with pytest.raises(InvalidParameter, match="missing or infinite"):
        stay_points([0, 60], places)
    with pytest.raises(InvalidParameter, match="row of finite numbers"):
        unique_in_the_crowd(["a", "b"], places)
    for read in (clean_points, stay_points, unique_in_the_crowd):
        with pytest.raises(InvalidParameter, match="places is invalid"):
            read([0], [[10**400, 0]])
