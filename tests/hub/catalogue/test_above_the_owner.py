"""What an owner cannot choose: more δ than the hub's floor, another spelling of a governed population, where data come from."""

from __future__ import annotations

from typing import Any

import pytest

from cloister.hub.generation import bump
from cloister.hub.records.access import InstitutionRule
from cloister.hub.records.catalogue import DataSet, Population
from tests.hub.catalogue.test_others import body
from tests.hub.catalogue.world import Sender, World, rows_of


def ruled(world: World, **rule: Any) -> None:
    with world.hub.database.begin() as db:
        made = world.find("ada@example.org").id
        db.add(InstitutionRule(id="rule", title="Ceiling", rule=rule, made_by=made, created=world.hub.now()))
        bump(db)


def tried(ada: Sender, name: str = "people", **more: Any) -> Any:
    number = ada.upload(rows_of(name)).json()["id"]
    return ada.api("POST", "/datasets", json=body(number, name=name, **more))


@pytest.mark.parametrize("window", [{}, {"every": "year", "window": "2026"}])
def test_no_budget_is_opened_beyond_the_floor(world: World, ada: Sender, window: dict[str, str]) -> None:
    answer = tried(ada, budget={"epsilon": "2", "delta": "0.00002"}, **window)
    assert (answer.status_code, answer.json()["rule"]) == (403, "delta-floor")
    assert "δ may be at most 0.00001 here" in answer.json()["detail"]
    assert world.rows(Population) == world.rows(DataSet) == world.hub.ledger.populations() == []
    assert tried(ada, budget={"epsilon": "2", "delta": "0.00001"}, **window).status_code == 201


@pytest.mark.parametrize(
    "more",
    [
        {"population": "ward"},
        {"population": "ward "},
        {"population": "WARD"},
        {"population": "ｗａｒｄ"},
        {"population": "ward", "every": "year", "window": "2024"},
        {"population": " Ward ", "every": "month", "window": "2024-02"},
    ],
)
def test_a_population_is_governed_however_it_is_spelled(world: World, ada: Sender, more: dict[str, str]) -> None:
    ruled(world, populations=["ward"], epsilon_of_population="0.5")
    answer = tried(ada, budget={"epsilon": "5"}, **more)
    assert (answer.status_code, answer.json()["rule"]) == (403, "mandatory:rule")
    assert world.rows(Population) == []
    assert tried(ada, budget={"epsilon": "0.5"}, **more).status_code == 201


def test_each_window_has_the_ceiling_for_itself(world: World, ada: Sender) -> None:
    ruled(world, populations=["ward"], epsilon_of_population="0.5")
    every: dict[str, Any] = {"population": "ward", "every": "year", "budget": {"epsilon": "0.5"}}
    assert tried(ada, window="2024", **every).status_code == 201
    again = ada.upload(rows_of("another")).json()["id"]
    assert ada.api("POST", "/datasets/people_2024/windows", json={"upload": again}).status_code == 201
    assert sorted(each.name for each in world.rows(Population)) == ["ward 2024", "ward 2025"]


@pytest.mark.parametrize("name", ["WARD", "ｗａｒｄ"])
def test_two_populations_differ_in_more_than_spelling(world: World, ada: Sender, name: str) -> None:
    assert tried(ada, population="ward").status_code == 201
    answer = tried(ada, "others", population=name)
    assert answer.status_code == 422
    assert "there is one of this name" in answer.json()["detail"]
    assert tried(ada, "others", population="ward ", budget=None).status_code == 201, "blanks at its ends are no part of a name"
    assert [each.name for each in world.rows(Population)] == ["ward"]


def test_a_program_names_partners_as_the_page_does(world: World, ada: Sender) -> None:
    towns = world.register(name="towns", public=True, source=[b"town\nDelft\n"])
    world.somebody("eve@example.org", "owner")
    world.register("eve@example.org", name="hidden")
    for name in ("nothing", "hidden"):
        refused = tried(ada, policy={"combinable_with": ["towns", name]})
        assert (refused.status_code, name in refused.json()["detail"]) == (422, True)
    assert tried(ada, policy={"combinable_with": ["towns"]}).status_code == 201
    found = ada.api("GET", "/datasets/people").json()["policy"]
    assert found == {"combinable_with": [towns.id]}
    assert 'value="towns"' in ada.get("/datasets/people/manage").text
    assert ada.api("PATCH", "/datasets/people", json={"policy": found}).json()["policy"] == found, "what was read is taken back"
    for told in ({"policy": {"combinable_with": ["hidden"]}}, {"column_policies": {"age": {"combinable_with": ["nothing"]}}}):
        refused = ada.api("PATCH", "/datasets/people", json=told)
        assert (refused.status_code, "combinable_with is invalid" in refused.json()["title"]) == (422, True)
    ada.api("PATCH", "/datasets/people", json={"column_policies": {"age": {"combinable_with": ["towns"]}}})
    row = next(each for each in world.rows(DataSet) if each.name == "people")
    assert row.metadata_["columns"] == {"age": {"combinable_with": [towns.id]}}
    assert row.metadata_["policy"] == found


def test_where_data_come_from_is_written_by_the_hub_alone(world: World, ada: Sender) -> None:
    made_up = {"sources": [{"object": "somewhere", "institution": "north"}]}
    assert tried(ada, policy=made_up).status_code == tried(ada, column_policies={"age": made_up}).status_code == 422
    assert tried(ada).status_code == 201
    for told in ({"policy": made_up}, {"column_policies": {"age": made_up}}):
        refused = ada.api("PATCH", "/datasets/people", json=told)
        assert refused.status_code == 422
        assert "written by the hub alone" in refused.json()["detail"]
    with world.hub.database.begin() as db:
        row = db.get_one(DataSet, world.rows(DataSet)[0].id)
        row.metadata_ = {**row.metadata_, "policy": made_up, "columns": {"age": made_up}}
    changed = ada.api("PATCH", "/datasets/people", json={"policy": {"labels": ["clinical"]}, "column_policies": {}})
    assert changed.json()["policy"] == {"labels": ["clinical"], **made_up}, "what the hub wrote stays"
    assert world.rows(DataSet)[0].metadata_["columns"] == {"age": made_up}
