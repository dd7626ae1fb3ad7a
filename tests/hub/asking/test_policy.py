"""What the policy says to a question: ceilings, shares, views, purposes, scopes; at asking and before it."""

from __future__ import annotations

from typing import Any

import pytest

from cloister.hub.generation import bump
from cloister.hub.ids import new_id
from cloister.hub.platform.accounts import make_token
from cloister.hub.records.access import InstitutionRule
from tests.hub.asking.conftest import BY_SEX, COUNT, MAY, Stage
from tests.hub.house import Visitor


def rule(stage: Stage, **told: Any) -> None:
    with stage.hub.database.begin() as db:
        row = InstitutionRule(id=new_id(), title="A rule", rule=told, made_by=stage.owner.id, created=stage.hub.now())
        db.add(row)
        bump(db)


def reader(stage: Stage, **rules: Any) -> Visitor:
    found = stage.house.person("analyst", email="rea@example.org")
    stage.house.grant(stage.people, found, by=stage.owner, actions=MAY, **rules)
    return found


@pytest.mark.parametrize("asked", [{"spend": "0.5"}, {"within": 5}], ids=["spend", "margin"])
def test_a_ceiling_holds_for_a_spend_and_for_a_margin(stage: Stage, asked: dict[str, Any]):
    rule(stage, epsilon_of_population="0.4")
    answer = stage.post("/questions", {"sql": COUNT, **asked})
    assert (answer.status_code, answer.json()["code"]) == (403, "access-denied")
    assert "ceiling" in answer.json()["detail"]
    assert stage.charges == []
    assert stage.post("/questions", {"sql": COUNT, "within": 30}).status_code == 201


def test_a_ceiling_holds_after_a_pilot(stage: Stage):
    rule(stage, epsilon_of_population="0.4")
    answer = stage.post("/questions", {"sql": "SELECT AVG(age) AS a FROM people", "within": 0.5, "pilot": "0.1"})
    assert answer.status_code == 403
    assert stage.spent == "ε = 0.1"


def test_a_repeat_passes_no_ceiling(stage: Stage):
    stage.ask(BY_SEX, "0.5")
    rule(stage, epsilon_of_population="0.4")
    assert stage.ask(BY_SEX, "0.5")["repeated"]
    assert stage.post("/questions", {"sql": COUNT, "spend": "0.01"}).status_code == 403


def test_explaining_says_what_asking_would_be_told(stage: Stage):
    rule(stage, epsilon_of_population="0.4")
    told = stage.post("/questions/explain", {"sql": COUNT, "spend": "0.5"}).json()
    assert "ceiling" in told["denied"]
    assert stage.post("/questions/explain", {"sql": COUNT, "spend": "0.3"}).json()["denied"] is None


def test_a_share_is_drawn_on_and_not_beyond(stage: Stage):
    rea = reader(stage, share={"epsilon": "0.3"})
    stage.ask(COUNT, "0.2", rea)
    told = stage.post("/questions/explain", {"sql": BY_SEX, "spend": "0.05"}, rea).json()
    assert [(each["of_share"], each["before"]) for each in told["left"]] == [(False, "ε = 0.8"), (True, "ε = 0.1")]
    answer = stage.post("/questions", {"sql": BY_SEX, "spend": "0.2"}, rea)
    assert answer.status_code in (403, 409)
    assert stage.spent == "ε = 0.2"
    assert stage.ask(BY_SEX, "0.1", rea)["cost"] == {"people": "ε = 0.1"}


def test_a_grant_of_some_columns_and_rows_is_a_view(stage: Stage):
    rea = reader(stage, columns=["age"], rows="sex = 'F'")
    refused = stage.post("/questions", {"sql": "SELECT AVG(pay) AS p FROM people", "spend": "0.1"}, rea)
    assert refused.status_code == 403
    whole, part = stage.ask(COUNT, "0.4"), stage.ask(COUNT, "0.4", rea)
    assert part["columns"]["n"][0] < whole["columns"]["n"][0]
    assert len(stage.charges) == 2


def test_a_purpose_that_was_not_granted_is_refused_by_its_grant(stage: Stage):
    rea = reader(stage, purposes=["care"])
    assert stage.post("/questions", {"sql": COUNT, "spend": "0.1", "purpose": "sales"}, rea).status_code == 403
    assert stage.ask(COUNT, who=rea, purpose="care")["purpose"] == "care"


def test_a_token_may_do_what_its_scopes_name(stage: Stage):
    with stage.hub.database.begin() as db:
        _, asks = make_token(stage.hub, db, stage.ana.caller, name="asks", scopes=["question.ask"])
        _, explains = make_token(stage.hub, db, stage.ana.caller, name="explains", scopes=["question.explain"])

    def with_token(token: str, path: str) -> int:
        headers = {"Authorization": f"Bearer {token}"}
        answer = stage.house.client().post(f"/api/v1{path}", json={"sql": COUNT, "spend": "0.1"}, headers=headers)
        return int(answer.status_code)

    assert (with_token(explains, "/questions"), with_token(explains, "/questions/explain")) == (403, 200)
    assert stage.charges == []
    assert (with_token(asks, "/questions"), with_token(asks, "/questions/explain")) == (201, 403)


def test_a_refusal_is_a_line_of_the_trail(stage: Stage):
    rea = reader(stage, purposes=["care"])
    stage.post("/questions", {"sql": COUNT, "spend": "0.1", "purpose": "sales"}, rea)
    from sqlalchemy import select

    from cloister.hub.records.trail import AuditLine

    with stage.hub.database.reading() as db:
        line = db.scalars(select(AuditLine).order_by(AuditLine.number.desc()).limit(1)).one()
    assert (line.action, line.outcome, line.purpose, line.person) == ("question.ask", "denied", "sales", rea.id)
