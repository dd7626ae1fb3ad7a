"""Places and moments have the same codes, cells, regions and hours on every engine, and the same as in Python."""

from __future__ import annotations

import datetime
import itertools
import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import cloister as cl
from cloister.noise import Random
from cloister.tables import prepare
from tests.engines.conftest import Loader

BOX = ("4.2", "51.9", "4.5", "52.1")
SHARED = [[4.4, 52.0], [4.4, 52.05], [4.35, 52.06], [4.3, 52.05]]
"""The border that two regions have in common."""
WEST_RING = [[4.3, 52.0], *SHARED, [4.3, 52.0]]
HOLE = [[4.45, 52.06], [4.47, 52.06], [4.46, 52.08], [4.45, 52.06]]
EAST_RING = [[4.4, 52.0], [4.5, 52.0], [4.5, 52.1], [4.3, 52.1], [4.3, 52.05], [4.35, 52.06], [4.4, 52.05], [4.4, 52.0]]
ISLANDS = [
    [[[4.21, 51.91], [4.25, 51.91], [4.23, 51.95], [4.21, 51.91]]],
    [[[4.28, 51.91], [4.3, 51.93], [4.26, 51.93], [4.28, 51.91]]],
]
REGIONS = {
    "type": "FeatureCollection",
    "features": [
        {"type": "Feature", "properties": {"name": name}, "geometry": {"type": kind, "coordinates": coordinates}}
        for name, kind, coordinates in (
            ("West", "Polygon", [WEST_RING]),
            ("East", "Polygon", [EAST_RING, HOLE]),
            ("Islands", "MultiPolygon", ISLANDS),
        )
    ],
}
ODD = [
    (None, 52.0), (4.3, None), (None, None), (float("nan"), 52.0), (float("inf"), 52.0), (0.0, 0.0), (-0.0, 0.0), (4.3, 0.0),
    (4.2, 51.9), (4.5, 52.1), (4.2000005, 51.9), (4.1999999, 52.0), (4.3, 52.1000001), (52.0, 4.3), (1e308, -1e308),
    (5e-324, 52.0),
]  # fmt: skip
"""Missing, no number, 0/0, the corners of the box and beside them, swapped, far away."""


def places(number: int) -> list[tuple[float | None, float | None]]:
    """Odd ones, corners of the regions, and points all over the box and somewhat beyond it."""
    drawn = np.random.default_rng(7)
    spread = zip(drawn.uniform(4.15, 4.55, number).tolist(), drawn.uniform(51.88, 52.12, number).tolist(), strict=True)
    corners = [(float(x), float(y)) for ring in (WEST_RING, EAST_RING, HOLE, ISLANDS[0][0]) for x, y in ring]
    return [*ODD, *corners, *spread]


TEXTS = [
    "2026-03-01", " 2026-03-01T00:00 ", "2026-03-29 02:30:00", "2026-03-31T23:59:59.999", "2026-06-30T23:59:60Z",
    "2026-03-01T01:30+02:00",
    "2026-03-01 01:30:10-05", "2026-03-01T24:00:00", "2026-02-30T10:00", "2026-03-01T10", "noon", "", "2026-03-01T10:00:00+2:00",
    "2026-03-01T01:30+02:00\n", "2026-03-01\n",
    "2025-12-31T23:30:00-01:00", "2026-03-01T00:00:00+14:00", "0001-01-01T00:00", "9999-12-31T23:59:59", None,
]  # fmt: skip
UTC = datetime.UTC
TIMES = [
    None if text is None else datetime.datetime.fromisoformat(text)
    for text in ("2026-03-29T02:30:00", "2026-10-25T02:30:00.75", "2025-12-31T23:59:59.999999", "1960-01-01T00:00:00.5", None)
]
MOMENTS = {
    "text": TEXTS,
    "timestamp": TIMES,
    "timestamptz": [None if each is None else each.replace(tzinfo=UTC) for each in TIMES],
    "date": [datetime.date(2026, 3, 1), datetime.date(1890, 1, 1), None],
}


@pytest.mark.parametrize("kind", MOMENTS)
@pytest.mark.parametrize(
    "declared", [cl.Moment("2026-01-01", "2026-12-31"), cl.Moment("1900-01-01", "2100-01-01", nullable=True)]
)
def test_a_moment_has_the_code_that_its_declaration_says(loader: Loader, kind: str, declared: cl.Moment) -> None:
    given = MOMENTS[kind]
    source = loader.load({"n": list(range(len(given))), "at": given}, {"n": "integer", "at": kind})
    with prepare(cl.PrivateTable(source, columns={"n": cl.Integer(0, 99), "at": declared}), secret="00ff") as prepared:
        rows = prepared.rows(["n", "at"])
        report = prepared.owner_report().columns["at"]
        prepared.owner_offenders()
    expected = [declared.encode(each) for each in given]
    assert dict(zip(rows["n"].tolist(), rows["at"].tolist(), strict=True)) == {
        n: declared.null_code if code is None else code for n, code in enumerate(expected)
    }
    there = sum(each is not None for each in given)
    assert (report.given, report.nulled, report.clamped) == (there, there - sum(code is not None for code in expected), 0)


@pytest.mark.parametrize("kind", ["float", "text"])
def test_a_place_has_the_code_that_its_declaration_says(loader: Loader, kind: str) -> None:
    given = places(300)
    shown = [[None if each is None else each if kind == "float" else repr(each) for each in pair] for pair in given]
    data = {"n": list(range(len(given))), "lon": [x for x, _ in shown], "lat": [y for _, y in shown]}
    source = loader.load(data, {"n": "integer", "lon": kind, "lat": kind})
    for place in (
        cl.Place(BOX, longitude="lon", latitude="lat"),
        cl.Place((-180, -90, 180, 90), longitude="lon", latitude="lat"),
    ):
        table = cl.PrivateTable(source, columns={"n": cl.Integer(0, 999), "place": place})
        with prepare(table, secret="00ff") as prepared:
            rows = prepared.rows(["n", "place"])
            report = prepared.owner_report().columns["place"]
            offenders = prepared.owner_offenders()["place"]
        expected = [place.encode(pair) for pair in given]
        assert dict(zip(rows["n"].tolist(), rows["place"].tolist(), strict=True)) == {
            n: place.null_code if code is None else code for n, code in enumerate(expected)
        }
        beyond = sum(code == place.outside for code in expected)
        there = sum(pair != (None, None) for pair in given)
        assert (report.given, report.clamped) == (there, beyond)
        assert report.nulled == there - sum(code is not None for code in expected)
        assert offenders.nulled


def winding(x: Fraction, y: Fraction, ring: list[list[float]]) -> int:
    """How often a ring goes round a point: another way to the same answer, for points on no border."""
    turns = 0
    corners = [(Fraction(str(a)), Fraction(str(b))) for a, b in ring]
    for (a, b), (c, d) in itertools.pairwise(corners):
        side = (c - a) * (y - b) - (d - b) * (x - a)
        turns += (b <= y < d and side > 0) - (d <= y < b and side < 0)
    return turns


def region_of(x: float, y: float) -> str:
    at = (Fraction(round(x * 10**6), 10**6), Fraction(round(y * 10**6), 10**6))
    for feature in REGIONS["features"]:
        geometry: Any = feature["geometry"]
        polygons = geometry["coordinates"] if geometry["type"] == "MultiPolygon" else [geometry["coordinates"]]
        for outer, *holes in polygons:
            if winding(*at, outer) and not any(winding(*at, hole) for hole in holes):
                return str(feature["properties"]["name"])
    return "outside"


def test_counts_by_region_cell_and_hour_are_the_same_on_every_engine(loader: Loader) -> None:
    drawn = np.random.default_rng(3)
    points = [(float(x), float(y)) for x, y in zip(drawn.uniform(4.15, 4.55, 400), drawn.uniform(51.88, 52.12, 400), strict=True)]
    start = datetime.datetime(2026, 3, 1)
    times = [start + datetime.timedelta(seconds=int(each)) for each in drawn.integers(0, 31 * 86_400, 400)]
    lon: list[float | None] = [x for x, _ in points]
    lat = [y for _, y in points]
    lon[:7] = [None, 0.0, float("nan"), float("inf"), 9.0, None, 0.0]
    lat[1] = lat[6] = 0.0
    kinds = {"lon": "float", "lat": "float", "at": "timestamp"}
    place = cl.Place(regions=REGIONS, longitude="lon", latitude="lat", nullable=True)
    columns = {"place": place, "at": cl.Moment("2026-03-01", "2026-03-31")}
    trips = cl.PrivateTable(loader.load({"lon": lon, "lat": lat, "at": times}, kinds), columns=columns, version="1")
    with cl.Session({"trips": trips}, budget=cl.PureDP(10**12), random=Random.deterministic(1)) as session:

        def counted(sql: str) -> dict[Any, int]:
            return {key[0] if len(key) == 1 else tuple(key): n for *key, n in session.sql(sql, spend=10**8)}

        by_region = counted("SELECT region(place) AS r, COUNT(*) AS n FROM trips GROUP BY r")
        by_cell = counted("SELECT grid(place, 2500) AS c, COUNT(*) AS n FROM trips GROUP BY c")
        by_hour = counted("SELECT hour(at) AS h, COUNT(*) AS n FROM trips GROUP BY h")
        by_day = counted("SELECT weekday(at) AS d, COUNT(*) AS n FROM trips GROUP BY d")
        both = counted("SELECT region(place) AS r, hour(at) AS h, COUNT(*) AS n FROM trips GROUP BY r, h")
        west = session.sql("SELECT COUNT(*) AS n FROM trips WHERE ST_Within(place, 'West') AND minute(at) < 30", spend=10**8)
        nearest = counted("SELECT nearest(place) AS r, COUNT(*) AS n FROM trips GROUP BY r")
        about = "SELECT COUNT(*) AS n FROM trips WHERE "
        near = session.sql(about + f"ST_DWithin(place, ST_Point({CENTRE[0]}, {CENTRE[1]}), 4000)", spend=10**8)
        far = session.sql(about + f"NOT ST_DWithin(place, ST_MakePoint({CENTRE[0]}, {CENTRE[1]}), 4000.0)", spend=10**8)
        boxed = session.sql(about + "ST_Within(place, ST_MakeEnvelope(4.3, 51.95, 4.4, 52.05))", spend=10**8)
        late = session.sql("SELECT COUNT(*) AS n FROM trips WHERE at > '2026-03-15 12:00:00'", spend=10**8)

    known = [None if place.encode((x, y)) is None else region_of(x or 0.0, y) for x, y in zip(lon, lat, strict=True)]
    hours = [time.hour for time in times]
    assert by_region == {name: known.count(name) for name in ("West", "East", "Islands", "outside", None)}
    assert min(by_region.values()) > 0
    cells = place.grid(2500)
    labels = [*cells.labels(), "outside"]
    codes = [place.encode((x, y)) for x, y in zip(lon, lat, strict=True)]
    found = Counter(None if code is None else labels[cell_of(cells, code)] for code in codes)
    assert by_cell == {label: found[label] for label in [*labels, None]}
    assert by_hour == {hour: hours.count(hour) for hour in range(24)}
    assert by_day == {day: sum(time.isoweekday() % 7 == day for time in times) for day in range(7)}
    pairs = Counter(zip(known, hours, strict=True))
    assert both == {(name, hour): pairs[name, hour] for name in by_region for hour in range(24)}
    assert west["n"][0] == sum(name == "West" and time.minute < 30 for name, time in zip(known, times, strict=True))
    placed = [place.encode((x, y)) for x, y in zip(lon, lat, strict=True)]
    inner = [place.decode(each) for each in placed if each not in (None, place.outside)]
    outer = placed.count(place.outside)
    circle = sum(metres_between(place, each, CENTRE) <= 4000 for each in inner)
    assert (near["n"][0], far["n"][0]) == (circle, len(inner) - circle + outer)
    assert 10 < circle < len(inner) - 10
    assert boxed["n"][0] == sum(4.3 <= x < 4.4 and 51.95 <= y < 52.05 for x, y in inner)
    assert sum(nearest.values()) == len(lon)
    assert (nearest["outside"], nearest[None]) == (outer, placed.count(None))
    wanted = Counter(nearest_of(place, x, y) for x, y in inner)
    assert max(abs(nearest[name] - wanted[name]) for name in ("West", "East", "Islands")) <= 1  # in floats, ends are not whole
    assert all(nearest[name] >= by_region[name] for name in ("West", "East", "Islands"))
    assert late["n"][0] == sum(time > datetime.datetime(2026, 3, 15, 12) for time in times)


def cell_of(cells: Any, code: int) -> int:
    """The cell of a code by the degrees of its point."""
    place = cells.place
    if code == place.outside:
        return len(cells)
    x, y = place.decode(code)
    across = math.floor((round(x * 10**6) - place.west) / cells.width)
    return math.floor((round(y * 10**6) - place.south) / cells.height) * int(cells.columns) + across


CENTRE = (4.35, 52.0)


def on_plane(place: Any, x: float, y: float) -> tuple[float, float]:
    """Metres from the corner of the box, not rounded."""
    middle = math.radians((place.south + place.north) / 2 / 10**6)
    return (x - place.west / 10**6) * 111_195 * math.cos(middle), (y - place.south / 10**6) * 111_195


def metres_between(place: Any, one: tuple[float, float], other: tuple[float, float]) -> float:
    """In whole metres, as SQL has it."""
    (a, b), (c, d) = (map(math.floor, on_plane(place, *each)) for each in (one, other))
    return math.hypot(a - c, b - d)


def nearest_of(place: Any, x: float, y: float) -> str:
    """By distances to segments in floats."""
    here, best = on_plane(place, x, y), (math.inf, "")
    for region in place.regions:
        if region.holds(round(x * 10**6), round(y * 10**6)):
            return str(region.name)
        for ring in region.rings:
            corners = [on_plane(place, u / 10**6, v / 10**6) for u, v in (*ring, ring[0])]
            for (a, b), (c, d) in itertools.pairwise(corners):
                square = (c - a) ** 2 + (d - b) ** 2
                along = min(max(((here[0] - a) * (c - a) + (here[1] - b) * (d - b)) / square, 0), 1)
                apart = math.hypot(here[0] - a - along * (c - a), here[1] - b - along * (d - b))
                best = min(best, (apart, region.name))
    return best[1]
