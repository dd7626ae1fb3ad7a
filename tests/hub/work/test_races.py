"""Questions, models and synthetic tables that run at once, under one share of one grant that is revoked and given anew meanwhile:
no share is passed, each release was charged, and what the ledger says is the sum of it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import pytest

from cloister.hub.generation import bump
from cloister.hub.platform.jobs import Workers
from cloister.hub.records.access import Grant
from cloister.hub.records.releases import StoredRelease
from cloister.hub.services.learning import fitting
from cloister.privacy import PureDP
from tests.hub.asking.conftest import COUNT, MAY, Stage
from tests.hub.house import House

SHARE = "0.3"
MODEL = {"table": "people", "method": "GaussianNB", "target": "sex", "spend": "0.08"}
TABLE = {"table": "people", "columns": ["age", "sex"], "purpose": "teaching"}
ACTIONS = {*MAY, "learn.run", "synthesise.run"}


@pytest.mark.parametrize("revokes", [False, True], ids=["standing", "revoked meanwhile"])
def test_no_share_is_passed_by_works_of_several_kinds_at_once(house: House, monkeypatch: pytest.MonkeyPatch, revokes: bool):
    for name in ("attacked", "lost"):
        monkeypatch.setattr(fitting, name, lambda *_: None)
    owner = house.person("owner", email="olga@example.org", name="Olga Owner")
    ana = house.person("analyst", email="ana@example.org", name="Ana Analyst")
    people = house.sample_data_set("people", owner=owner)
    stage = Stage(house, owner, ana, people)
    standing = [house.grant(people, ana, by=owner, actions=ACTIONS, share={"epsilon": SHARE})]
    orders: list[tuple[str, dict[str, Any]]] = [
        *(("/models", {**MODEL, "features": features}) for features in (["age"], ["pay"], ["age", "pay"])),
        *(("/synthetic-tables", {**TABLE, "method": method, "spend": "0.08"}) for method in ("pairs", "independent")),
    ]
    assert [stage.post(path, body).status_code for path, body in orders] == [202] * len(orders)
    asked = [{"sql": f"{COUNT} WHERE age > {18 + each}", "spend": "0.03"} for each in range(12)]

    def works() -> int:
        found = 0
        while Workers(stage.hub, 0).run_one():
            found += 1
        return found

    with ThreadPoolExecutor(8) as at_once:
        running = [at_once.submit(works) for _ in range(3)]
        answers = [at_once.submit(lambda body=body: stage.post("/questions", body).status_code) for body in asked]
        if revokes:
            answers[3].result()
            with stage.hub.database.begin() as db:
                for each in standing:
                    db.get_one(Grant, each).revoked = stage.hub.now()
                bump(db)
            standing = [house.grant(people, ana, by=owner, actions=ACTIONS, share={"epsilon": SHARE})]
        codes = [each.result() for each in answers]
        assert sum(each.result() for each in running) == len(orders)
    drawn = stage.hub.ledger.spent_by("people", ana.caller.email)
    assert drawn <= PureDP(SHARE)
    assert str(drawn) == stage.spent
    assert set(codes) <= {201, 400, 403, 404, 409}
    with stage.hub.database.reading() as db:
        kept = [row.cost["people"] for row in db.query(StoredRelease)]
    told = sum((_epsilon(each) for each in kept), Fraction(0))
    assert told == _epsilon(str(drawn)) or (revokes and told < _epsilon(str(drawn))), "a charge that stands has no release"
    assert len(kept) >= 3, "something was answered"


def _epsilon(told: str) -> Fraction:
    return Fraction(told.removeprefix("ε ="))
