"""An analyst reads answers by the pages: a map, a heat map, a chart as a file; a workbook, paper, a citation."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import cloister as cl
from cloister.hub.records.declarations import declaration_of
from cloister.session.releases.chart import shape_of
from tests.hub.asking.conftest import MAY
from tests.hub.asking.test_exported import read
from tests.hub.asking.test_maps import SQUARES
from tests.hub.house import Clock, House
from tests.hub.house import Visitor as Person
from tests.hub.stories.town import CHINESE, ENGLISH, Street, Way, walked
from tests.hub.web.browser import Guarded, accessible, browser, serve, visit

__all__ = ["browser", "serve", "visit"]

TRIPS = {
    "longitude": [(4.5, 5.2)[each % 3 == 0] for each in range(300)],
    "latitude": [52.5] * 300,
    "sex": ["FMF"[each % 3] for each in range(300)],
    "ward": ["ABCDEFGH"[each % 8] for each in range(300)],
}
KINDS: dict[str, Any] = {
    "place": cl.Place(regions=SQUARES),
    "sex": cl.Category(["F", "M"]),
    "ward": cl.Category([*"ABCDEFGH"]),
}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, empty_hub: Path, serve: Any) -> Iterator[tuple[House, Person, str]]:
    folder = tmp_path_factory.mktemp("street") / "hub"
    shutil.copytree(empty_hub, folder)
    house = House(folder, Clock())
    owner, ana = house.person("owner"), house.person("analyst", name="Ana Analyst")
    declaration = declaration_of(cl.PrivateTable(TRIPS, columns=KINDS))
    trips = house.sample_data_set("trips", owner=owner, rows=TRIPS, declaration=declaration, budget=cl.PureDP(100))
    house.grant(trips, ana, by=owner, actions=MAY)
    yield house, ana, serve(house.app)
    house.close()


@pytest.fixture
def street(shared: tuple[House, Person, str], visit: Callable[..., Guarded]) -> Street:
    return Street(house=shared[0], address=shared[2], visit=visit)


@walked(CHINESE)
def test_a_map_and_a_heat_map(street: Street, shared: tuple[House, Person, str], way: Way) -> None:
    ana = shared[1]
    mapped = street.asks(ana, "SELECT region(place) AS r, COUNT(*) AS n FROM trips GROUP BY r", "5")
    reader = street.visitor(ana, way, path=f"/releases/{mapped}")
    drawn = reader.main.locator("svg.map")
    assert drawn.is_visible()
    assert drawn.locator("path").count() == len(SQUARES["features"])
    assert {each.split(":")[0] for each in drawn.locator("title").all_text_contents()} == {"West", "East"}
    both = street.asks(ana, "SELECT sex, ward, COUNT(*) AS n FROM trips GROUP BY sex, ward", "5")
    reader.type_address(f"{street.address}/releases/{both}")
    accessible(reader.page)
    heat = reader.main.locator("figure img.chart")
    assert heat.evaluate("image => image.decode().then(() => image.naturalWidth)") > 100
    assert heat.get_attribute("alt")
    assert shape_of(cl.Release.from_json(reader.saves("JSON for Cloister").decode())) == "heat"
    picture = reader.saves("Chart as %(form)s", form="SVG")
    assert picture.startswith(b"<svg")
    assert all(f">{each}<".encode() in picture for each in ("F", "M", "A", "H")), "both keys are axes"
    assert reader.saves("Chart as %(form)s", form="PNG").startswith(b"\x89PNG\r\n")


@walked(ENGLISH)
def test_an_answer_leaves_the_hub(street: Street, shared: tuple[House, Person, str], way: Way) -> None:
    """As a workbook, on paper and as a citation: each says how far the numbers may be off, and under which guarantee."""
    ana = shared[1]
    number = street.asks(ana, "SELECT sex, COUNT(*) AS n FROM trips GROUP BY sex", "0.5")
    reader = street.visitor(ana, way, path="/releases")
    reader.page.locator(f"main a[href='/releases/{number}']").click()
    reader.arrived()
    title = reader.main.locator("h1").inner_text()
    assert "trips" in title, "its title says what was asked"
    assert "sex" in title
    assert not reader.main.locator("details.fold dl").first.is_visible(), "the mechanism is folded"
    table, provenance = read(reader.saves("Excel"))
    assert table[0][0] == "sex"
    assert {row[0] for row in table[1:3]} == {"F", "M"}
    assert any("0.5" in str(cell) for row in provenance for cell in row)
    cited = reader.main.locator("#citation").inner_text()
    assert number in cited
    assert "0.5" in cited
    reader.follow("Print view")
    reader.page.emulate_media(media="print")
    assert not reader.page.locator("header.top").is_visible()
    reader.reads(title, "±", "ε = 0.5", cited.strip())
