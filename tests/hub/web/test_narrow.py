"""Pages that name long things fit into the narrowest window: a population of several words, a purpose without a blank, a share of
many digits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from cloister.hub.platform.accounts.sessions import cookie_name
from cloister.privacy import ApproxDP
from tests.hub.house import PEOPLE, Clock, House, Visitor, people_rows
from tests.hub.web.browser import accessible, browser, serve, visit  # noqa: F401
from tests.tiers import some_by_day

POPULATION = "riverside university hospital patients 2024"
LONG = "emergency_admissions_of_the_northern_hospitals_by_month_2026"
PURPOSE = "and_of_everything_that_follows_from_it_in_one_word" * 2


@dataclass
class Place:
    """A hub with long names, and who looks at it."""

    house: House
    address: str
    owner: Visitor
    analyst: Visitor
    steward: Visitor
    release: str

    def look(self, open_: Callable[..., object], who: Visitor, path: str, width: int) -> object:
        """A page, as somebody sees it who is logged in."""
        guarded = open_(self.address, width=width)
        name = cookie_name(self.house.settings)
        secret = who.client.cookies.get(name)
        guarded.context.add_cookies([{"name": name, "value": secret, "url": self.address}])  # type: ignore[attr-defined]
        return guarded.page(path)  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, serve: Callable[..., str]) -> Iterator[Place]:  # noqa: F811
    folder: Path = tmp_path_factory.mktemp("narrow")
    house = House(folder / "hub", Clock())
    owner = house.person("owner", email="olga.owner@long-department-name.university.example.org", name="Olga")
    analyst, steward = house.person("analyst"), house.person("steward")
    budget = ApproxDP("2.123456789", "0.000000123")
    data_set = house.sample_data_set(owner=owner, population=POPULATION, budget=budget)
    actions = ("dataset.see", "question.ask", "release.see", "release.share", "budget.see")
    declared = {"columns": {**PEOPLE["columns"], LONG: {"kind": "integer", "low": 0, "high": 9}}}
    rows = people_rows() | {LONG: [1] * 300}
    house.sample_data_set(LONG, owner=owner, readers=[analyst], declaration=declared, rows=rows)
    share = {"epsilon": "0.987654321", "delta": "0.0000001"}
    house.grant(data_set, analyst, by=owner, actions=actions, share=share)
    body = {"sql": "SELECT COUNT(*) AS n FROM people", "spend": "0.123456789", "purpose": PURPOSE}
    answer = house.client().post("/api/v1/questions", json=body, headers=analyst.bearer)
    assert answer.status_code == 201, answer.text
    yield Place(house, serve(house.app), owner, analyst, steward, answer.json()["id"])
    house.close()


@some_by_day("width", [360, 390, 1400], lambda width: width == 360)
@pytest.mark.parametrize(
    "which", ["budget", "own budget", "trail", "own acts", "uses", "release", "data sets", "columns", "declaration"]
)
def test_nothing_sticks_out(place: Place, visit: Callable[..., object], which: str, width: int) -> None:  # noqa: F811
    budget = f"/budgets/{POPULATION.replace(' ', '%20')}"
    who, path, word = {
        "budget": (place.owner, budget, "0.987654321"),
        "own budget": (place.analyst, budget, "0.987654321"),
        "trail": (place.steward, "/trail?purpose=EVERYTHING", PURPOSE),
        "own acts": (place.analyst, "/trail/mine", PURPOSE),
        "uses": (place.owner, "/trail/uses", PURPOSE),
        "data sets": (place.analyst, "/datasets", LONG),
        "columns": (place.analyst, f"/datasets/{LONG}", LONG),
        "declaration": (place.owner, f"/datasets/{LONG}/declaration", LONG),
        "release": (place.analyst, f"/releases/{place.release}", "0.123456789"),
    }[which]
    page = place.look(visit, who, path, width)
    assert word in page.content()  # type: ignore[attr-defined]
    accessible(page)  # type: ignore[arg-type]
