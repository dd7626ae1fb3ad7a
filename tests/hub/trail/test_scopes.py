"""Whose lines an owner sees: those about their own things, whatever else bears the same name."""

from __future__ import annotations

from tests.hub.house import House, Visitor


def details(visitor: Visitor, path: str = "/trail/uses") -> str:
    answer = visitor.client.get(f"/api/v1{path}")
    assert answer.status_code == 200, answer.text
    return answer.text


def test_a_data_set_named_like_anothers_population_shows_nothing_of_that(house: House) -> None:
    """Mallory calls a data set as Olga's population is called: what Olga says of her budget stays hers."""
    olga, mallory = house.person("owner", email="olga@example.org"), house.person("owner", email="mallory@example.org")
    house.sample_data_set("visits", owner=olga, population="patients")
    house.sample_data_set("patients", owner=mallory, population="others")
    body = {"amount": "3", "why": "the study of ward 7"}
    assert olga.client.post("/api/v1/budgets/patients/raise", json=body, headers=olga.csrf()).status_code == 200
    share = {"who": "mallory@example.org", "amount": "1"}
    assert olga.client.post("/api/v1/budgets/patients/shares", json=share, headers=olga.csrf()).status_code == 200
    assert "ward 7" in details(olga)
    assert "ward 7" not in details(mallory)
    assert "budget" not in details(mallory)
    assert "budget.raise" not in mallory.client.get("/datasets/patients/manage").text
    assert "budget.raise" not in mallory.client.get("/trail/uses").text
    assert "ward 7" not in mallory.client.get("/trail/uses/export/jsonl").text


def test_the_data_set_of_a_project_or_of_a_deleted_one_of_the_same_name_is_not_taken_for_another(house: House) -> None:
    """Names are used again; ids never."""
    olga, mallory = house.person("owner", email="olga@example.org"), house.person("owner", email="mallory@example.org")
    house.sample_data_set("visits", owner=olga)
    assert olga.client.post("/api/v1/datasets/visits/close", headers=olga.csrf()).status_code == 200
    assert olga.client.delete("/api/v1/datasets/visits", headers=olga.csrf()).status_code == 204
    assert "dataset.delete" in details(olga)
    project = {"name": "visits", "title": "Visits", "purpose": "care"}
    assert mallory.client.post("/api/v1/projects", json=project, headers=mallory.csrf()).status_code == 201
    assert "dataset.delete" not in details(mallory)
    assert details(mallory).count('"number"') == 0


def test_one_finds_ones_own_by_name(house: House) -> None:
    olga = house.person("owner")
    row = house.sample_data_set("visits", owner=olga, population="patients")
    assert olga.client.post("/api/v1/datasets/visits/close", headers=olga.csrf()).status_code == 200
    for wanted in ("visits", row.id, f"data-set:{row.id}"):
        assert "dataset.close" in details(olga, f"/trail/uses?object={wanted}"), wanted
    assert "dataset.close" not in details(olga, "/trail/uses?object=patients")
