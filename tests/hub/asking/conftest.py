"""Somebody who may ask about a data set of three hundred people, and ways to ask."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from cloister.hub.hub import Hub
from cloister.hub.records.catalogue import DataSet
from tests.hub.house import READS, House, Visitor

COUNT = "SELECT COUNT(*) AS n FROM people"
BY_SEX = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"
MAY = (*READS, "release.download", "release.share", "question.manage", "question.see")


@dataclass
class Stage:
    """A house, an owner, an analyst, and a data set between them."""

    house: House
    owner: Visitor
    ana: Visitor
    people: DataSet

    @property
    def hub(self) -> Hub:
        return self.house.hub

    @property
    def charges(self) -> list[Any]:
        """What was charged to the people."""
        return list(self.hub.ledger.charges("people"))

    @property
    def spent(self) -> str:
        """In words."""
        return str(self.hub.ledger.spent("people"))

    def post(self, path: str, body: Any, who: Visitor | None = None, **headers: str) -> Any:
        """Ask the API with a token."""
        asker = who or self.ana
        return self.house.client().post(f"/api/v1{path}", json=body, headers={**asker.bearer, **headers})

    def get(self, path: str, who: Visitor | None = None) -> Any:
        """Look, with a token."""
        return self.house.client().get(f"/api/v1{path}", headers=(who or self.ana).bearer)

    def ask(self, sql: str = COUNT, spend: str = "0.1", who: Visitor | None = None, **more: Any) -> dict[str, Any]:
        """An answer."""
        answer = self.post("/questions", {"sql": sql, "spend": spend, **more}, who)
        assert answer.status_code == 201, answer.text
        told: dict[str, Any] = answer.json()
        return told


@pytest.fixture
def stage(house: House) -> Stage:
    return stage_in(house)


def stage_in(house: House) -> Stage:
    owner = house.person("owner", email="olga@example.org", name="Olga Owner")
    ana = house.person("analyst", email="ana@example.org", name="Ana Analyst")
    people = house.sample_data_set("people", owner=owner)
    house.grant(people, ana, by=owner, actions=MAY)
    return Stage(house, owner, ana, people)
