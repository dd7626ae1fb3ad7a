"""Columns of places and moments: what is refused when they are declared, and what follows from public facts alone."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import cloister as cl
from cloister.noise import Random
from cloister.tables import prepare
from cloister.tables.declaring.plain import domain_of
from cloister.tables.declaring.regions import MOST_CORNERS, MOST_REGIONS, Region, regions_of
from cloister.tables.expression.lanes import lane
from cloister.tables.expression.scalars import GridCell, Lattice, Ref, RegionOf, Within

BOX = ("4.2", "51.9", "4.5", "52.1")
SQUARE = [[4.3, 52.0], [4.4, 52.0], [4.4, 52.1], [4.3, 52.1], [4.3, 52.0]]


def geojson(*rings: Any, names: Sequence[Any] = ("Delft", "Leiden", "Gouda"), **further: Any) -> dict[str, Any]:
    features = [
        {"type": "Feature", "properties": {"name": name}, "geometry": {"type": "Polygon", "coordinates": [ring]}}
        for name, ring in zip(names, rings, strict=False)
    ]
    return {"type": "FeatureCollection", "features": features, **further}


def circle(corners: int, radius: float = 0.1) -> list[list[float]]:
    angles = [2 * math.pi * corner / corners for corner in range(corners)]
    ring = [[4.5 + radius * math.cos(angle), 52.0 + radius * math.sin(angle)] for angle in angles]
    return [*ring, ring[0]]


@pytest.mark.parametrize(
    ("box", "why"),
    [
        ((4.5, 51.9, 4.2, 52.1), "west is not less than east"),
        ((170, 51.9, -170, 52.1), "no box reaches over the 180th meridian"),
        ((4.2, 52.1, 4.5, 51.9), "south is not less than north"),
        ((4.2, 51.9, 4.2, 52.1), "west is not less than east"),
        ((-34, 150, -33, 151.5), "its longitude must come first"),
        ((84_000, 446_000, 87_000, 449_000), "not in degrees"),
        ((4.2, 51.9, 4.5), "a box is four numbers"),
        ("4.2 51.9 4.5 52.1", "a box is four numbers"),
        ((4.2, 51.9, float("nan"), 52.1), "finite"),
        ((10**400, 51.9, 4.5, 52.1), "not in degrees"),
        (("a", 51.9, 4.5, 52.1), "number"),
        ((4.2000001, 51.9, 4.5, 52.1), "more than six decimals"),
    ],
)
def test_a_wrong_box_is_refused_by_what_is_wrong_with_it(box: Any, why: str) -> None:
    with pytest.raises(cl.InvalidDeclaration, match=why):
        cl.Place(box)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (geojson([[52.0, 104.3], [52.0, 104.4], [52.1, 104.4], [52.0, 104.3]]), "its longitude must come first"),
        (geojson([[84_000, 446_000], [85_000, 446_000], [85_000, 447_000], [84_000, 446_000]]), "not in degrees"),
        (geojson(SQUARE, crs={"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::28992"}}), "coordinate system"),
        (geojson(SQUARE, SQUARE, names=("Delft", "Delft")), "name of two regions"),
        (geojson(SQUARE, names=("outside",)), "what places in no region are called"),
        (geojson(SQUARE, names=(None,)), "no property 'name'"),
        (geojson(SQUARE, names=("a\u202eb",)), "no property 'name'"),
        (geojson(SQUARE[:-1]), "not closed"),
        (geojson([[4.3, 52.0], [4.4, 52.0], [4.3, 52.0]]), "not closed"),
        (geojson([[4.3, 52.0], [4.4, 52.0], [4.35, 52.0], [4.3, 52.0]]), "has no area"),
        (geojson([[4.3, 52.0], [4.4, 52.1], [4.4, 52.0], [4.3, 52.1], [4.3, 52.0]]), "no area|crosses itself"),
        (geojson([[4.3, 52.0], [4.4, 52.1], [4.4, 52.0], [4.3, 52.2], [4.3, 52.0]]), "crosses itself"),
        (geojson([[4.3, 52.0], [4.4, float("nan")], [4.4, 52.1], [4.3, 52.0]]), "not two numbers"),
        (geojson([[4.3, 10**400], [4.4, 52.0], [4.4, 52.1], [4.3, 10**400]]), "not two numbers"),
        (geojson([[4.3, True], [4.4, 52.0], [4.4, 52.1], [4.3, True]]), "not two numbers"),
        (geojson("ring"), "not lists of rings"),
        (geojson(circle(MOST_CORNERS + 1)), "corners"),
        (geojson(*[SQUARE] * (MOST_REGIONS + 1), names=[str(n) for n in range(MOST_REGIONS + 1)]), "more than 500 regions"),
        (geojson([[4.3, 52.0]] * 200_001), "more than 200,000 corners"),
        ({"type": "FeatureCollection", "features": []}, "has no features"),
        ({"type": "FeatureCollection", "features": ["Delft"]}, "no property 'name'"),
        ({"type": "Feature"}, "not a FeatureCollection"),
        ("{", "not JSON"),
        ('{"type": ' + "[" * 100_000, "not JSON"),
        ("nowhere.geojson", "no such file as 'nowhere.geojson'"),
        (7, "not a path"),
    ],
)  # fmt: skip
def test_wrong_regions_are_refused_by_what_is_wrong_with_them(given: Any, why: str) -> None:
    with pytest.raises(cl.InvalidDeclaration, match=why):
        cl.Place(regions=given)


def test_a_point_or_a_line_is_no_region() -> None:
    collection = geojson(SQUARE)
    collection["features"][0]["geometry"] = {"type": "Point", "coordinates": [4.3, 52.0]}
    with pytest.raises(cl.InvalidDeclaration, match="neither a Polygon nor a MultiPolygon"):
        cl.Place(regions=collection)


def test_regions_come_from_a_file_a_text_or_a_mapping(tmp_path: Path) -> None:
    path = tmp_path / "districts.geojson"
    path.write_text(json.dumps(geojson(SQUARE)), encoding="utf-8")
    found = {regions_of(given) for given in (path, str(path), path.read_text(encoding="utf-8"), geojson(SQUARE))}
    corners = ((4_300_000, 52_000_000), (4_400_000, 52_000_000), (4_400_000, 52_100_000), (4_300_000, 52_100_000))
    assert found == {(Region("Delft", (corners,)),)}
    path.write_bytes(b" " * 20_000_001)
    with pytest.raises(cl.InvalidDeclaration, match="larger than 20 MB"):
        regions_of(path)


def test_corners_on_a_straight_border_are_left_out_before_they_are_counted() -> None:
    side = [[4.3 + number / 10**5, 52.0] for number in range(5_000)]
    [region] = regions_of(geojson([*side, [4.35, 52.1], [4.3, 52.1], [4.3, 52.0]]))
    assert sum(map(len, region.rings)) == 4


@pytest.mark.parametrize(
    ("low", "high", "why"),
    [
        ("2026-02-30", "2026-03-31", "low is not a moment"),
        ("2026-01-01", "noon", "high is not a moment"),
        ("2026-01-01", None, "high is not a moment"),
        ("2026-01-02", "2026-01-01", "above the upper"),
        ("2026-01-01T10:00", "2026-01-01T09:59:59", "above the upper"),
    ],
)
def test_a_wrong_moment_is_refused(low: Any, high: Any, why: str) -> None:
    with pytest.raises(cl.InvalidDeclaration, match=why):
        cl.Moment(low, high)


@pytest.mark.parametrize("unit", ["s", "ms"])
@pytest.mark.parametrize("domain", [cl.Moment("1970-01-01", "1970-01-02"), cl.Date("1970-01-01", "1970-01-02")])
def test_one_moment_beyond_what_the_engine_counts_fails_nobodys_question(unit: str, domain: Any) -> None:
    """It is NULL. Were it cast as others are, the whole table would fail, and so tell of the one row."""
    far = pa.table({"at": pa.array([2**62 if unit == "ms" else 10**15, 0], type=pa.timestamp(unit))})
    with prepare(cl.PrivateTable(far, columns={"at": domain}), secret="00ff") as prepared:
        assert prepared.rows(["at"])["at"].tolist() == [domain.null_code, 0]
        assert prepared.owner_report().rows == 2
        prepared.owner_offenders()


def test_a_place_as_plain_data_is_the_same_place(tmp_path: Path) -> None:
    regions = geojson(SQUARE, circle(5), names=("Delft", "Leiden"))
    for place in (cl.Place(BOX, longitude="lon", latitude="lat", nullable=True), cl.Place(regions=regions)):
        assert domain_of("home", json.loads(json.dumps(place.describe())), table="trips") == place
    moment = cl.Moment("2026-01-01", "2026-03-31")
    assert domain_of("at", moment.describe(), table="trips") == moment
    (tmp_path / "districts.geojson").write_text(json.dumps(regions))
    declared = {"kind": "place", "regions": "districts.geojson", "longitude": "lon", "latitude": "lat"}
    assert domain_of("home", declared, table="trips", folder=tmp_path) == cl.Place(
        regions=regions, longitude="lon", latitude="lat"
    )


@pytest.mark.parametrize(
    ("declared", "why"),
    [
        ({"regions": "districts.geojson"}, "are a file, and none is read here"),
        ({"regions": [["a", [[[0, 0], [9, 9]]]], 3]}, "not names with rings"),
        ({"regions": [["a", [[[0.5, 0], [9, 0], [9, 9]]]]]}, "whole millionths"),
        ({"regions": [["a", [[[10**9, 0], [9, 0], [9, 9]]]]]}, "whole millionths"),
        ({"regions": [["a", [[[0, 0], [9, 0], [9, 9]]]]], "box": [0, 0, 1, 1]}, "is not that of its regions"),
        ({"box": BOX, "regions": geojson(SQUARE)}, "a box or regions"),
        ({"box": BOX, "longitude": 3}, "with no texts"),
        ({"box": BOX, "step": 3}, "means nothing"),
        ({}, "a box or regions"),
    ],
)
def test_a_wrong_place_in_plain_data_is_refused(declared: dict[str, Any], why: str) -> None:
    with pytest.raises(cl.InvalidDeclaration, match=why):
        domain_of("home", {"kind": "place", **declared}, table="trips")


def test_a_place_names_columns_of_degrees() -> None:
    data = {"lon": [4.3], "lat": [52.0], "day": ["2026-01-01"], "yes": [True]}
    with pytest.raises(cl.UnknownColumn, match="Column 'longitude' is unknown"):
        cl.PrivateTable(data, columns={"place": cl.Place(BOX)})
    with pytest.raises(cl.InvalidDeclaration, match="truth values"):
        cl.PrivateTable(pl.DataFrame(data), columns={"place": cl.Place(BOX, longitude="yes", latitude="lat")})
    with pytest.raises(cl.InvalidDeclaration, match="the column of the latitude, too"):
        cl.Place(BOX, longitude="lat", latitude="lat")
    with pytest.raises(cl.InvalidDeclaration, match="a box or regions"):
        cl.Place()
    with pytest.raises(cl.InvalidDeclaration, match="a box or regions"):
        cl.Place(BOX, regions=geojson(SQUARE))
    with pytest.raises(cl.InvalidDeclaration, match="not read"):
        cl.PublicTable(data, columns={"place": cl.Place(BOX, longitude="lon", latitude="lat")})
    with pytest.raises(cl.InvalidDeclaration, match="declared moment"):
        cl.PrivateTable(pl.DataFrame(data), columns={"yes": cl.Moment("2026-01-01", "2026-01-31")})


def test_every_side_of_a_cell_is_as_long_as_it_is_asked_for() -> None:
    cells = cl.Place(BOX).grid(500)
    feature = cells.geojson()["features"][len(cells) // 2]
    (west, south), _, (east, north), *_ = feature["geometry"]["coordinates"][0]
    metres = 6_371_009 * math.pi / 180
    assert (north - south) * metres == pytest.approx(500, rel=0.001)
    assert (east - west) * metres * math.cos(math.radians(52.0)) == pytest.approx(500, rel=0.001)
    assert feature["properties"]["name"] == cells.labels()[len(cells) // 2]
    assert len(set(cells.labels())) == len(cells)


def test_a_grid_of_too_many_cells_is_refused_with_the_line_to_write() -> None:
    place = cl.Place((3, 50, 8, 54))
    with pytest.raises(cl.UnsupportedQuery, match=r"each of up to 65,536 gets noise") as refusal:
        place.grid(100)
    assert refusal.value.instead == "grid(place, 2000)"
    assert len(place.grid(2000)) <= 65_536 < len(place.grid(1000 * 2)) * 4
    world = cl.Place((-180, -90, 180, 90))
    with pytest.raises(cl.UnsupportedQuery) as refusal:
        world.grid(1)
    assert len(world.grid(int(refusal.value.instead[12:-1]))) <= 65_536


class Codes:
    """A scope of codes in arrays."""

    def __init__(self, domains: Any, codes: Any) -> None:
        from cloister.tables.expression.lanes import LaneOperations

        self.domains, self.codes, self.operations = domains, codes, LaneOperations()

    def code(self, name: str) -> Any:
        return self.codes[name]

    def plain(self) -> Any:
        return self


def test_cells_and_regions_without_an_engine_are_the_same() -> None:
    place = cl.Place(regions=geojson(SQUARE, circle(40)))
    drawn = np.random.default_rng(5)
    points = list(zip(drawn.uniform(4.2, 4.7, 500).tolist(), drawn.uniform(51.85, 52.15, 500).tolist(), strict=True))
    codes = np.array([place.encode(point) for point in points] + [place.outside, 0])
    null = np.zeros(len(codes), dtype=bool)
    null[-1] = True
    scope: Any = Codes({"place": place}, {"place": lane(codes, null)})
    x = Ref("place")
    parts = (x, Lattice("column", x), Lattice("row", x))
    region, delft, cell = (scalar.code(scope) for scalar in (RegionOf(*parts), Within(*parts, "Delft"), GridCell(x, 2000)))  # type: ignore[arg-type]
    for number, code in enumerate(codes[:-1].tolist()):
        at = place.decode(code)
        inside = at != "outside"
        column, row = divmod(code, place.rows)
        holds = [inside and each.holds(place.west + column, place.south + row) for each in place.regions]
        assert region.values[number] == (holds.index(True) if True in holds else 2)
        assert delft.values[number] == holds[0]
    assert all(lane_.null.tolist() == null.tolist() for lane_ in (region, delft, cell))
    assert cell.values[-2] == len(place.grid(2000))
    assert 0 < np.count_nonzero(region.values == 1) < 400


def trips(extra: int = 0) -> cl.PrivateTable:
    """Sixty people with up to three rows each, one more where `extra` rows are hers."""
    drawn = np.random.default_rng(11)
    who = [f"p{number % 60}" for number in range(170)] + ["new"] * extra
    lon = [*drawn.uniform(4.2, 4.5, 170).tolist(), 4.31, 9.0, 4.45][: len(who)]
    lat = [*drawn.uniform(51.9, 52.1, 170).tolist(), 52.01, 52.0, 52.05][: len(who)]
    at = [f"2026-01-{1 + number % 28:02d}T{number % 24:02d}:15:00" for number in range(170)] + ["2026-01-03T05:00:00"] * extra
    columns = {"place": cl.Place(BOX, longitude="lon", latitude="lat"), "at": cl.Moment("2026-01-01", "2026-01-31")}
    data = {"who": who, "lon": lon, "lat": lat, "at": at}
    return cl.PrivateTable(data, columns=columns, unit="who", max_rows=3, population="town", version=f"v{extra}")


@pytest.mark.parametrize("extra", [1, 2, 3])
def test_neighbours_differ_by_as_much_as_the_plan_says(extra: int) -> None:
    """A person more changes cells by one for each row that counts: 3 in all, which is what the noise is scaled to."""
    sql = "SELECT grid(place, 5000) AS cell, hour(at) AS hour, COUNT(*) AS n FROM trips GROUP BY cell, hour"
    counts = []
    for table in (trips(), trips(extra)):
        with cl.Session({"trips": table}, budget=cl.PureDP(10**12), random=Random.deterministic(1)) as session:
            plan = session.explain(sql, spend=1)
            counts.append(session.sql(sql, spend=10**9)["n"])
    assert np.abs(counts[1] - counts[0]).sum() == extra
    assert "L1 ≤ 3, L2² ≤ 9" in str(plan)
    assert "scale 3" in str(plan)


def test_the_shape_of_an_answer_and_its_plan_follow_from_declarations_alone() -> None:
    sql = "SELECT grid(place, 5000) AS cell, hour(at) AS hour, COUNT(*) AS n FROM trips WHERE weekday(at) = 1 GROUP BY cell, hour"
    nobody = {"who": ["a"], "lon": [None], "lat": [0.0], "at": ["never"]}
    empty = cl.PrivateTable(
        {**nobody, "lon": [float("nan")]}, columns=trips().columns, unit="who", max_rows=3, population="town", version="v0"
    )
    shapes, plans = [], []
    for table in (trips(), empty):
        with cl.Session({"trips": table}, budget=cl.PureDP(100), random=Random.deterministic(1)) as session:
            plans.append(str(session.explain(sql, spend=1)))
            answer = session.sql(sql, spend=1).to_arrow()
            shapes.append((answer.schema, answer["cell"].to_pylist(), answer["hour"].to_pylist()))
    assert plans[0] == plans[1]
    assert shapes[0] == shapes[1]
    assert len(shapes[0][1]) == (len(cl.Place(BOX).grid(5000)) + 1) * 24


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SELECT place, COUNT(*) FROM trips GROUP BY place", "more values than there could be groups"),
        ("SELECT at, COUNT(*) FROM trips GROUP BY at", "more values than there could be groups"),
        ("SELECT AVG(place) FROM trips", "has no mean"),
        ("SELECT SUM(at) FROM trips", "has no sum"),
        ("SELECT MEDIAN(place) FROM trips", "has no order"),
        ("SELECT place + 1 AS x, COUNT(*) FROM trips GROUP BY x", "a place and not a number"),
        ("SELECT COALESCE(place, place) AS x, COUNT(*) FROM trips GROUP BY x", "different kinds"),
        ("SELECT UPPER(place) AS x, COUNT(*) FROM trips GROUP BY x", "more texts than could be listed"),
        ("SELECT CAST(place AS TEXT) AS x, COUNT(*) FROM trips GROUP BY x", "shown as a cell or a region"),
        ("SELECT CAST(at AS TEXT) AS x, COUNT(*) FROM trips GROUP BY x", "more texts than could be listed"),
        ("SELECT COUNT(*) FROM trips WHERE place = '4.3 52.0'", "a place is not compared"),
        ("SELECT COUNT(*) FROM trips WHERE at > '2026'", "a moment is compared with one"),
        ("SELECT at + INTERVAL '1' DAY AS x, COUNT(*) FROM trips GROUP BY x", "only days are shifted"),
        ("SELECT hour(CAST(at AS DATE)) AS x, COUNT(*) FROM trips GROUP BY x", "no time of day"),
        ("SELECT region(place) AS x, COUNT(*) FROM trips GROUP BY x", "a box and no regions"),
        ("SELECT COUNT(*) FROM trips WHERE ST_Within(place, 'Delft')", "a box and no regions"),
        ("SELECT COUNT(*) FROM trips WHERE ST_Within(place)", "the name of a declared region"),
        ("SELECT COUNT(*) FROM trips WHERE ST_Within(at, 'Delft')", "not a place"),
        ("SELECT COUNT(*) FROM trips WHERE ST_DWithin(place, 500)", "a place, a point and a constant number"),
        ("SELECT COUNT(*) FROM trips WHERE ST_DWithin(place, ST_Point(4.3, 'x'), 500)", "constant numbers"),
        ("SELECT COUNT(*) FROM trips WHERE ST_DWithin(place, ST_Point(52.0, 104.3), 500)", "they may be swapped"),
        ("SELECT COUNT(*) FROM trips WHERE ST_DWithin(place, ST_Point(4.3, 52.0), 0)", "1 to 20,000,000 metres"),
        ("SELECT COUNT(*) FROM trips WHERE ST_DWithin(at, ST_Point(4.3, 52.0), 500)", "not a place"),
        ("SELECT COUNT(*) FROM trips WHERE ST_Within(place, ST_MakeEnvelope(4.3, 52.0, 4.4))", "constant numbers"),
        ("SELECT COUNT(*) FROM trips WHERE ST_Within(place, ST_MakeEnvelope(4.4, 52.0, 4.3, 52.1))", "west is not less"),
        ("SELECT ST_Point(4.3, 52.0) AS x, COUNT(*) FROM trips GROUP BY x", "within ST_DWITHIN"),
        ("SELECT nearest(place) AS x, COUNT(*) FROM trips GROUP BY x", "a box and no regions"),
        ("SELECT nearest(place, 1) AS x, COUNT(*) FROM trips GROUP BY x", "it takes a place"),
        ("SELECT grid(at, 500) AS x, COUNT(*) FROM trips GROUP BY x", "not a place"),
        ("SELECT grid(place, 'x') AS x, COUNT(*) FROM trips GROUP BY x", "a constant number of metres"),
        ("SELECT grid(place) AS x, COUNT(*) FROM trips GROUP BY x", "a constant number of metres"),
        ("SELECT grid(place, 0) AS x, COUNT(*) FROM trips GROUP BY x", "1 to 20,000,000 metres"),
        ("SELECT grid(place, 1) AS x, COUNT(*) FROM trips GROUP BY x", "noise of its own"),
        ("SELECT region(place, 1) AS x, COUNT(*) FROM trips GROUP BY x", "it takes a place"),
        ("SELECT weekday() AS x, COUNT(*) FROM trips GROUP BY x", "it takes a day"),
    ],
)
def test_what_makes_no_sense_of_a_place_or_moment_is_refused_by_name_and_costs_nothing(sql: str, why: str) -> None:
    with cl.Session({"trips": trips()}, budget=cl.PureDP(1)) as session:
        with pytest.raises(cl.CloisterError, match=why) as refusal:
            session.sql(sql, spend=1)
        assert session.spent == cl.PureDP(0)
    assert refusal.value.instead


def test_a_region_that_is_not_declared_is_refused_with_one_that_is() -> None:
    place = cl.Place(regions=geojson(SQUARE), longitude="lon", latitude="lat")
    table = cl.PrivateTable({"lon": [4.35], "lat": [52.05]}, columns={"place": place})
    with cl.Session({"trips": table}, budget=cl.PureDP(1)) as session, pytest.raises(cl.UnsupportedQuery) as refusal:
        session.sql("SELECT COUNT(*) FROM trips WHERE ST_Within(place, 'Paris')", spend=1)
    assert "declared are 'Delft'" in refusal.value.why


def test_weekday_counts_as_its_dialect_does() -> None:
    with cl.Session({"trips": trips()}, budget=cl.PureDP(10**12), random=Random.deterministic(1)) as session:
        plain = session.sql("SELECT weekday(at) AS d, COUNT(*) AS n FROM trips GROUP BY d", spend=10**9)["n"].tolist()
        spark = session.sql("SELECT weekday(at) AS d, COUNT(*) AS n FROM trips GROUP BY d", spend=10**9, dialect="spark")["n"]
    assert spark.tolist() == plain[1:] + plain[:1]


def test_a_place_within_a_person_has_no_least_and_a_moment_has() -> None:
    with cl.Session({"trips": trips()}, budget=cl.PureDP(10**12), random=Random.deterministic(1)) as session:
        with pytest.raises(cl.UnsupportedQuery, match="no order of its own"):
            session.sql("SELECT COUNT(*) FROM (SELECT who, MIN(place) AS p FROM trips GROUP BY who) AS t", spend=1)
        sql = "SELECT hour(first) AS h, COUNT(*) AS n FROM (SELECT who, MIN(at) AS first FROM trips GROUP BY who) AS t GROUP BY h"
        assert session.sql(sql, spend=10**9)["n"].sum() == 60


@pytest.mark.parametrize(
    "at",
    [
        [datetime(2026, 3, 1, 9, 30), None, date(2026, 3, 2)],
        [datetime(2026, 3, 1, 11, 30, tzinfo=timezone(timedelta(hours=2))), None, datetime(2026, 3, 2, tzinfo=UTC)],
        np.array(["2026-03-01T09:30", "NaT", "2026-03-02T00:00"], dtype="datetime64[s]"),
    ],
    ids=["moments and days", "zones", "numpy"],
)
def test_moments_in_lists_keep_their_hours(at: Any) -> None:
    tables = {
        "r": cl.PrivateTable({"at": at}, {"at": cl.Moment("2026-03-01", "2026-03-03", nullable=True)}),
        "d": cl.PrivateTable({"at": at}, {"at": cl.Date("2026-03-01", "2026-03-02", nullable=True)}),
    }
    with cl.Session(tables, budget=cl.PureDP(1000)) as session:
        hours = session.sql("SELECT hour(at) AS h, COUNT(*) AS n FROM r GROUP BY hour(at)", spend=100).to_pydict()
        days = session.sql("SELECT at, COUNT(*) AS n FROM d GROUP BY at", spend=100).to_pydict()
    assert {hour: n for hour, n in zip(hours["h"], hours["n"], strict=True) if n} == {0: 1, 9: 1, None: 1}
    assert days["n"] == [1, 1, 1]
