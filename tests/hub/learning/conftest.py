"""Somebody who may learn from a data set of three hundred people, and ways to order a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from cloister.hub.hub import Hub
from cloister.hub.platform.jobs import Workers
from cloister.hub.records.catalogue import DataSet
from tests.hub.house import House, Visitor

MAY = ("dataset.see", "learn.run", "release.see", "release.download", "budget.see")
ORDER: dict[str, Any] = {"table": "people", "method": "GaussianNB", "features": ["age", "pay"], "target": "sex", "spend": "0.25"}


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
    def spent(self) -> str:
        return str(self.hub.ledger.spent("people"))

    def post(self, path: str, body: Any, who: Visitor | None = None, **headers: str) -> Any:
        """Ask the API with a token."""
        return self.house.client().post(f"/api/v1{path}", json=body, headers={**(who or self.ana).bearer, **headers})

    def get(self, path: str, who: Visitor | None = None) -> Any:
        """Look, with a token."""
        return self.house.client().get(f"/api/v1{path}", headers=(who or self.ana).bearer)

    def run(self, who: Visitor | None = None, **changed: Any) -> dict[str, Any]:
        """Order a model, and let a worker run it: its job."""
        answer = self.post("/models", {**ORDER, **changed}, who)
        assert answer.status_code == 202, answer.text
        assert Workers(self.hub, 0).run_one()
        told: dict[str, Any] = self.get(f"/jobs/{answer.json()['job']}", who).json()
        return told

    def learnt(self, who: Visitor | None = None, **changed: Any) -> str:
        """The id of a model that was learnt."""
        told = self.run(who, **changed)
        assert told["state"] == "done", told
        number: str = told["result"]["model"]
        return number


@pytest.fixture
def stage(house: House) -> Stage:
    owner = house.person("owner", email="olga@example.org", name="Olga Owner")
    ana = house.person("analyst", email="ana@example.org", name="Ana Analyst")
    people = house.sample_data_set("people", owner=owner)
    house.grant(people, ana, by=owner, actions=MAY)
    return Stage(house, owner, ana, people)
