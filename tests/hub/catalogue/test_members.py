"""Whose budget it is: one member of a population may be a household or a group, and every page says to whom it is promised."""

from __future__ import annotations

from typing import Any

import pytest

from cloister.hub.records.catalogue import DataSet, Population
from cloister.privacy import PureDP
from tests.hub.catalogue.world import FORM, VISITS, Sender, World, rows_of, text_of

VISITED: dict[str, Any] = {
    "columns": {"cost": {"kind": "integer", "low": 0, "high": 100}},
    "unit": "patient",
    "max_rows": 3,
}
SENT = {**VISITED, "columns": {"cost": {**VISITED["columns"]["cost"], "reason": "the price list"}}}


def homes(world: World, unit: str = "household", **more: object) -> DataSet:
    given = {"declaration": VISITED, "source": [VISITS], "population": "homes", "unit": unit, "people": 5000, "listed": True}
    return world.register(name="visits", **given | more)


@pytest.mark.parametrize(
    ("unit", "promised", "rows"),
    [
        ("household", "A household as a whole", "identifies the household of a row"),
        ("group", "A group as a whole", "identifies the group of a row"),
        ("person", "Each person:", "identifies the person of a row"),
    ],
)
def test_every_page_says_who_is_protected(world: World, ada: Sender, unit: str, promised: str, rows: str) -> None:
    homes(world, unit)
    bob = world.somebody("bob@example.org", "analyst")
    for reader in (ada, bob):
        page = text_of(reader.get("/datasets/visits").text)
        assert promised in page
        assert rows in page
        assert reader.api("GET", "/datasets/visits").json()["members"] == unit
    page = text_of(ada.get("/populations/homes").text)
    assert ("For a family of four" in page) == (unit == "person")
    assert ("protected as a whole" in page) == (unit != "person")
    title = {"household": "Households", "group": "Groups", "person": "People"}[unit]
    assert f"{title} with more than 3 rows" in text_of(ada.get("/datasets/visits/reading").text)
    assert "Owner of the budget" in page
    assert "It uses the budget of this population" in text_of(ada.get("/datasets/visits/manage").text)
    assert ada.api("GET", "/populations/homes").json()["unit"] == unit


def test_another_table_of_the_population_is_of_the_same_members(world: World, ada: Sender) -> None:
    homes(world)
    world.register(name="people", population="homes", budget=None, source=[rows_of("homes")])
    assert "Each row is one household." in text_of(ada.get("/datasets/people").text)
    number = ada.arrival(rows_of("more"))
    form = {**FORM, "name": "more", "population": "homes", "population_new": "", "unit": ""}
    assert ada.declare(number, **form).status_code == 303
    assert "Protected unit household" in text_of(ada.get(f"/register/{number}/review").text)
    assert ada.post(f"/register/{number}/open", f"/register/{number}/review").status_code == 303
    [row] = world.rows(Population)
    assert row.unit == "household"


@pytest.mark.parametrize("unit", ["person", "group"])
def test_a_budget_promised_to_households_is_not_one_of_others(world: World, ada: Sender, unit: str) -> None:
    homes(world)
    number = ada.arrival(rows_of("more"))
    form = {**FORM, "name": "more", "population": "homes", "population_new": "", "unit": unit}
    ada.declare(number, **form)
    answer = ada.post(f"/register/{number}/open", f"/register/{number}/review")
    assert answer.status_code == 422
    assert "one member of that population is a household" in text_of(answer.text)
    assert [each.name for each in world.rows(DataSet)] == ["visits"]


def test_where_nothing_is_said_a_member_is_a_person(world: World, ada: Sender) -> None:
    upload = ada.upload(VISITS).json()["id"]
    body = {"upload": upload, "name": "visits", "title": "Visits", **SENT, "population": "homes", "budget": {"epsilon": "1"}}
    assert ada.api("POST", "/datasets", json=body).json()["members"] == "person"
    assert world.rows(Population)[0].unit == "person"
    again = {
        **body,
        "upload": ada.upload(rows_of("x")).json()["id"],
        "name": "people",
        "unit": None,
        "max_rows": None,
        "budget": None,
    }
    again["columns"] = {"age": {"kind": "integer", "low": 17, "high": 90, "reason": "the register"}}
    assert ada.api("POST", "/datasets", json={**again, "members": "group"}).status_code == 422
    assert ada.api("POST", "/datasets", json={**again, "members": "person"}).status_code == 201


def test_windows_keep_the_members_of_the_first(world: World, ada: Sender) -> None:
    upload = ada.upload(b"home,day\n" + b"h1,2026-01-02\nh1,2026-05-06\n").json()["id"]
    body = {
        "upload": upload,
        "name": "bills",
        "title": "Bills",
        "columns": {"day": {"kind": "date"}},
        "unit": "home",
        "max_rows": 1,
    }
    body |= {"population": "homes", "members": "household", "budget": {"epsilon": "1"}}
    body |= {"every": "quarter", "window": "2026-Q1", "date_column": "day"}
    assert ada.api("POST", "/datasets", json=body).status_code == 201
    assert ada.api("POST", "/datasets/bills_2026_q1/windows", json={}).json()["members"] == "household"
    assert {row.unit for row in world.rows(Population)} == {"household"}
    page = text_of(ada.get("/populations/homes%202026-Q2").text).replace("\xa0", " ")
    assert "This population is the window 2026-Q2" in page
    assert "In all 2 windows: ε = 2" in page
    assert ada.api("POST", "/datasets/bills_2026_q2/windows", json={}).status_code == 201
    assert ada.api("DELETE", "/datasets/bills_2026_q2").status_code in (200, 204)
    page = text_of(ada.get("/populations/homes%202026-Q1").text).replace("\xa0", " ")
    assert "In all 3 windows: ε = 3" in page, "what was spent in a deleted one stays spent"
    assert world.hub.ledger.budget("homes 2026-Q2") == PureDP(1)
