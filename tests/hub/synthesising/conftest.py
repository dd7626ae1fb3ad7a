"""Somebody who may make synthetic tables of a data set of three hundred people, and ways to order one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy import select

from cloister.hub.hub import Hub
from cloister.hub.platform.jobs import Workers
from cloister.hub.records.catalogue import DataSet
from cloister.hub.records.trail import AuditLine
from tests.hub.house import House, Visitor

MAY = ("dataset.see", "synthesise.run", "release.see", "release.download", "release.share", "budget.see")
ORDER: dict[str, Any] = {"table": "people", "columns": ["age", "sex"], "spend": "0.25", "purpose": "teaching"}


@dataclass
class Stage:
    """A house, an owner, an analyst, and a data set between them."""

    house: House
    owner: Visitor
    ana: Visitor
    people: DataSet
    grant: str

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

    def order(self, who: Visitor | None = None, **changed: Any) -> Any:
        """Order a table."""
        return self.post("/synthetic-tables", {**ORDER, **changed}, who)

    def run(self, who: Visitor | None = None, **changed: Any) -> dict[str, Any]:
        """Order a table, and let a worker make it: its job."""
        answer = self.order(who, **changed)
        assert answer.status_code == 202, answer.text
        assert Workers(self.hub, 0).run_one()
        told: dict[str, Any] = self.get(f"/jobs/{answer.json()['job']}", who).json()
        return told

    def made(self, who: Visitor | None = None, **changed: Any) -> str:
        """The id of a table that was made."""
        told = self.run(who, **changed)
        assert told["state"] == "done", told
        number: str = told["result"]["synthetic"]
        return number

    def entries(self, action: str = "synthesise.run") -> list[AuditLine]:
        """What the audit log says."""
        with self.hub.database.reading() as db:
            return list(db.scalars(select(AuditLine).where(AuditLine.action == action).order_by(AuditLine.number)).all())


@pytest.fixture
def stage(house: House) -> Stage:
    owner = house.person("owner", email="olga@example.org", name="Olga Owner")
    ana = house.person("analyst", email="ana@example.org", name="Ana Analyst")
    people = house.sample_data_set("people", owner=owner)
    return Stage(house, owner, ana, people, house.grant(people, ana, by=owner, actions=MAY))
