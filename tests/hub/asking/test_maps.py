"""The map of an answer: outlines of public cells and regions, shades of noisy numbers, nothing from elsewhere."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from sqlalchemy import select

import cloister as cl
from cloister.hub.records.catalogue import DataSet
from cloister.hub.web.languages import language_of
from cloister.hub.web.maps import MOST_AREAS, SHADES, Map, map_of, map_svg, said_beside, shaded
from cloister.noise import Random
from tests.hub.asking.conftest import MAY, Stage
from tests.hub.asking.test_dashboards import post
from tests.hub.asking.test_published import address, publish
from tests.hub.web.browser import strict

SQUARES = {
    "type": "FeatureCollection",
    "features": [
        {
            "type": "Feature",
            "properties": {"name": name},
            "geometry": {"type": "Polygon", "coordinates": [[[x, 52], [x + 1, 52], [x + 1, 53], [x, 53], [x, 52]], *holes]},
        }
        for name, x, holes in (("West", 4, []), ("East", 5, [[[5.4, 52.4], [5.6, 52.4], [5.5, 52.6], [5.4, 52.4]]]))
    ],
}


def answer(place: cl.Place, sql: str, lon: list[float], spend: str = "1000") -> cl.Release:
    table = cl.PrivateTable({"longitude": lon, "latitude": [52.5] * len(lon)}, columns={"place": place})
    with cl.Session({"t": table}, budget=cl.PureDP(10**6), random=Random.deterministic(4)) as session:
        return session.sql(sql, spend=spend)


BY_REGION = "SELECT region(place) AS r, COUNT(*) AS n FROM t GROUP BY r"
BY_CELL = "SELECT grid(place, 20000) AS c, COUNT(*) AS n FROM t GROUP BY c"


def test_a_region_is_drawn_as_it_is_declared_in_the_shade_of_its_number() -> None:
    place = cl.Place(regions=SQUARES)
    found = map_of(answer(place, BY_REGION, [4.5] * 100 + [5.2] * 30 + [9.0] * 7), 0.95, [place])
    assert found is not None
    west, east = found.areas
    assert (west.name, west.value, west.shade, east.name, east.shade) == ("West", 100, SHADES, "East", 2)
    assert found.outside == (7, found.outside and found.outside[1])
    assert (west.path.count("M"), east.path.count("M")) == (1, 2)  # a hole is a ring of its own
    numbers = [float(each) for each in re.findall(r"[\d.]+", west.path)]
    assert max(numbers[::2]) == pytest.approx(found.width / 2, abs=1)
    squeezed = np.cos(np.radians(52.5)) * 2
    assert found.width / found.height == pytest.approx(squeezed, rel=0.02)  # a degree of longitude is shorter here


def test_what_cannot_be_told_from_nothing_has_no_shade() -> None:
    place = cl.Place(regions=SQUARES)
    found = map_of(answer(place, BY_REGION, [4.5] * 3, spend="0.01"), 0.95, [place])
    assert found is not None
    assert {each.shade for each in found.areas if each.value <= each.margin} == {0}
    assert any(each.shade == 0 for each in found.areas)


def test_cells_are_drawn_from_their_names_alone_side_by_side() -> None:
    place = cl.Place((4, 52, 6, 53))
    release = answer(place, BY_CELL, np.linspace(4, 6, 50).tolist())
    found = map_of(release, 0.95, [])
    assert found is not None
    assert len(found.areas) == len(place.grid(20000)) == release.num_rows - 1
    corners = {tuple(re.findall(r"[\d.]+ [\d.]+", each.path)) for each in found.areas}
    shared = {corner for each in corners for corner in each}
    assert len(shared) < 2.2 * len(found.areas)  # neighbours have their corners in common


def test_rows_without_a_place_are_said_beside_the_map() -> None:
    place = cl.Place(regions=SQUARES, nullable=True)
    found = map_of(answer(place, BY_REGION, [4.5] * 50 + [None] * 1234), 0.95, [place])  # type: ignore[list-item]
    assert found is not None
    assert found.missing is not None
    assert found.missing[0] == 1234
    assert f"NULL: 1,234 ± {found.missing[1]:g}." in said_beside(found, language_of("en"))
    assert "NULL" in " ".join(said_beside(found, language_of("zh_CN")))


def squares(*told: tuple[float, float]) -> Map:
    """A map of squares in a row, of these numbers with their margins."""
    outlines = {str(x): [[(x, 0.0), (x + 1.0, 0.0), (x + 1.0, 1.0), (x, 1.0)]] for x in map(float, range(len(told)))}
    return shaded(outlines, dict(zip(outlines, told, strict=True)), "n")


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("told", "shades", "said"),
    [
        ([(7, 1), (3, 1)], [5, 3], ["The darkest areas have up to 7."]),
        ([(-500, 10), (100, 1)], [5, 2], ["The darkest areas have up to 100.", "Areas in ochre are below 0, down to -500."]),
        ([(-500, 10), (-7, 1), (-3, 9)], [5, 1, 0], ["Areas in ochre are below 0, down to -500."]),
        ([(NAN, NAN), (7, 1)], [0, 5], ["The darkest areas have up to 7."]),
        ([(7, 1), (NAN, NAN)], [5, 0], ["The darkest areas have up to 7."]),
        ([(INF, 1), (7, 1)], [5, 5], ["The darkest areas have up to ∞."]),
        ([(INF, NAN), (0, 0)], [0, 0], []),
        ([(3, 9), (1, 9)], [0, 0], []),
    ],
)
def test_a_shade_follows_the_size_of_a_number_that_is_known_and_its_colour_the_sign(
    told: list[tuple[float, float]], shades: list[int], said: list[str]
) -> None:
    english = language_of("en")
    for turned in (False, True):
        drawn = squares(*(told[::-1] if turned else told))
        assert [each.shade for each in drawn.areas] == (shades[::-1] if turned else shades)
        assert said_beside(drawn, english)[:-1] == said
        svg = map_svg(drawn, "n", [], english)
        below = [each for each in drawn.areas if each.shade and each.value < 0]
        assert svg.count('fill="#c08a2b"') == len(below)


def regions(stage: Stage) -> str:
    """A data set with a place, which Ana may ask and publish: an answer by region."""
    columns = {"place": {"kind": "place", "longitude": "lon", "latitude": "lat", "regions": SQUARES, "nullable": True}}
    rows = {"lon": [4.5] * 60 + [5.2] * 30 + [9.0] * 7, "lat": [52.5] * 97}
    trips = stage.house.sample_data_set("trips", owner=stage.owner, declaration={"columns": columns}, rows=rows)
    stage.house.grant(trips, stage.ana, by=stage.owner, actions=(*MAY, "release.publish"))
    return str(stage.ask("SELECT region(place) AS r, COUNT(*) AS n FROM trips GROUP BY r", "0.9")["id"])


def test_the_map_is_in_every_view_and_a_file(stage: Stage) -> None:
    number = regions(stage)
    get = stage.ana.client.get
    board = str(post(stage.ana, "/dashboards", "/dashboards", title="Trips").url.path)
    post(stage.ana, board, f"{board}/parts", release=number, shows="chart")
    shown = {"page": get(f"/releases/{number}").text, "print": get(f"/releases/{number}/print").text, "board": get(board).text}
    made = publish(stage, number, shows="chart")
    shown["frame"] = stage.house.client().get(address(made)).text
    for where, page in shown.items():
        assert page.count('<svg class="map"') == 1, where
        assert page.count("fig-area") == 2, where
        assert "<title>West: " in page, where
        assert "Outside: " in page, where
        assert "NULL: " in page, where
        strict(page)
    post(stage.ana, board, f"{board}/parts", part=number, what="table")
    assert '<svg class="map"' not in get(board).text
    assert "Map as SVG" in shown["page"]
    svg = get(f"/releases/{number}/download/map-svg")
    assert svg.headers["content-type"].startswith("image/svg+xml")
    told = [each.text for each in ET.fromstring(svg.text).iter("{http://www.w3.org/2000/svg}text")]
    assert told[0] == "Count of trips by r"
    assert "confidence; ε = 0.9" in " ".join(map(str, told))
    assert get(f"/releases/{number}/download/map-png").content.startswith(b"\x89PNG")
    assert stage.post("/questions", {"sql": "SELECT COUNT(*) AS n FROM people", "spend": "0.1"}).status_code == 201


def test_outlines_that_somebody_may_not_see_are_not_shown_to_them(stage: Stage) -> None:
    number = regions(stage)
    assert stage.ana.client.get(f"/releases/{stage.ask()['id']}/download/map-svg").status_code == 422
    with stage.hub.database.begin() as db:
        found = db.scalars(select(DataSet).where(DataSet.name == "trips")).one()
        found.declaration = {"columns": {}}
    assert '<svg class="map"' not in stage.ana.client.get(f"/releases/{number}").text
    assert stage.ana.client.get(f"/releases/{number}/download/map-png").status_code == 422


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) AS n FROM t",
        "SELECT hour, COUNT(*) AS n FROM (SELECT 1 AS hour, place FROM t) AS u GROUP BY hour",
        "SELECT region(place) AS r, grid(place, 50000) AS c, COUNT(*) AS n FROM t GROUP BY r, c",
    ],
)
def test_other_answers_have_no_map(sql: str) -> None:
    place = cl.Place(regions=SQUARES)
    assert map_of(answer(place, sql, [4.5]), 0.95, [place]) is None
    other = cl.Place(regions={**SQUARES, "features": SQUARES["features"][:1]})
    assert map_of(answer(place, BY_REGION, [4.5]), 0.95, [other]) is None
    assert map_of(answer(place, BY_REGION, [4.5]), 0.95, []) is None
    assert MOST_AREAS < 65_536
