"""Orders of anonymised tables, and how they are sent."""

from __future__ import annotations

from typing import Any

from cloister.hub.platform.jobs import Workers
from tests.hub.house import House, Visitor

ORDER: dict[str, Any] = {
    "table": "people",
    "parts": {"age": "quasi", "sex": "quasi", "pay": "sensitive"},
    "k": 5,
    "search": "mondrian",
}
RELEASE = {**ORDER, "name": "people_public", "title": "People, safe to publish", "understood": True, "purpose": "teaching"}


def post(house: House, who: Visitor, path: str, body: Any) -> Any:
    return house.client().post(f"/api/v1{path}", json=body, headers=who.bearer)


def get(house: House, who: Visitor, path: str) -> Any:
    return house.client().get(f"/api/v1{path}", headers=who.bearer)


def run(house: House, who: Visitor, path: str, body: Any) -> dict[str, Any]:
    answer = post(house, who, path, body)
    assert answer.status_code == 202, answer.text
    assert Workers(house.hub, 0).run_one()
    told: dict[str, Any] = get(house, who, f"/jobs/{answer.json()['job']}").json()
    return told
