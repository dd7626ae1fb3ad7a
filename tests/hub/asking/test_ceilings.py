"""Ceilings and shares hold for questions that come at once, from threads and from processes; a repeat passes none of them."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import cloister as cl
from cloister.hub.decisions.checking import context_of
from cloister.hub.decisions.facts import facts_of
from cloister.hub.decisions.policy import MandatoryRule, Spend
from cloister.hub.services.asking.authorised import spend_for
from cloister.hub.services.asking.question_request import QuestionRequest
from cloister.hub.work.bounds import bounds_of
from cloister.privacy import ZCDP, PureDP
from tests.hub import forked
from tests.hub.asking.conftest import BY_SEX, COUNT, MAY, Stage
from tests.hub.asking.test_policy import reader, rule
from tests.hub.house import Visitor


def older(stage: Stage, number: int, who: Visitor | None = None, **more: Any) -> int:
    """Ask how many are older than so much: a question of its own for each number."""
    body = {"sql": f"{COUNT} WHERE age > {20 + number}", "spend": "0.3", **more}
    return int(stage.post("/questions", body, who).status_code)


def test_eight_questions_at_once_keep_to_the_ceiling_of_the_population(stage: Stage):
    rule(stage, epsilon_of_population="0.4")
    people = [stage.house.person("analyst") for _ in range(8)]
    for each in people:
        stage.house.grant(stage.people, each, by=stage.owner, actions=MAY)
    with ThreadPoolExecutor(8) as at_once:
        answers = list(at_once.map(lambda number: older(stage, number, people[number]), range(8)))
    assert sorted(set(answers)) in ([201, 403], [201, 409], [201, 403, 409])
    assert answers.count(201) == 1
    assert stage.spent == "ε = 0.3"


def test_eight_questions_at_once_keep_to_the_share_of_a_grant_below_the_allotment(stage: Stage):
    rea = reader(stage, share={"epsilon": "0.4"})
    stage.hub.ledger.allot("people", rea.caller.email, PureDP("0.9"), who="olga@example.org")
    with ThreadPoolExecutor(8) as at_once:
        answers = list(at_once.map(lambda number: older(stage, number, rea), range(8)))
    assert answers.count(201) == 1
    assert stage.spent == "ε = 0.3"


def test_the_most_that_a_margin_may_cost_bounds_what_a_share_is_charged_too():
    """For an answer that another paid for: the population is charged nothing."""
    people = cl.PrivateTable({"age": [30, 40, 50] * 100}, columns={"age": cl.Integer(17, 90)})
    with cl.Session({"people": people}, budget=PureDP(10)) as session:
        session.sql(COUNT, spend=5)
        bob, owner = session.on_behalf("bob"), session.on_behalf("owner")
        for most, who in (("0.06", bob), ("0.05", owner)):
            assert spend_for(who, QuestionRequest(sql=COUNT, within=50, most=most), buy=False)
        with pytest.raises(cl.InvalidParameter, match=r"at most 0\.05 may be spent"):
            spend_for(bob, QuestionRequest(sql=COUNT, within=50, most="0.05"), buy=False)


PROCESS = """
import sys
from pathlib import Path
from cloister.hub import services
from cloister.hub.hub import Hub
from cloister.hub.decisions.callers import caller_for
from cloister.hub.services.asking import QuestionRequest, ask
from cloister.hub.settings import Settings
from cloister.errors import AccessDenied, BudgetExceeded

folder, person = Path(sys.argv[1]), sys.argv[2]
done = 0
with Hub(Settings(data=folder, workers=0, tick_ms=1), services.all_services()) as hub:
    with hub.database.reading() as db:
        caller = caller_for(hub, db, person)
    print("ready", flush=True)
    for number in range(4):
        try:
            ask(hub, caller, QuestionRequest(sql=f"SELECT COUNT(*) AS n FROM people WHERE age > {20 + number}", spend="0.3"))
        except (AccessDenied, BudgetExceeded):
            continue
        done += 1
print(done)
"""


def test_two_processes_keep_to_the_ceiling(stage: Stage):
    rule(stage, epsilon_of_population="0.4")
    other = forked.python("-c", PROCESS, str(stage.house.settings.data), stage.ana.id, stdout=subprocess.PIPE)
    assert other.stdout is not None
    with other.stdout as said:
        assert said.readline() == "ready\n"
        here = [older(stage, number) for number in range(30, 34)]
        assert other.wait(300) == 0
        there = int(said.read())
    assert here.count(201) + there == 1
    assert {*here} <= {201, 403, 409}
    assert stage.spent == "ε = 0.3"


def test_the_ledger_says_no_in_the_words_of_the_rule(stage: Stage, monkeypatch: Any):
    """Where the decision was made on what was spent before another's charge, the ledger refuses, and names the rule."""
    rule(stage, epsilon_of_population="0.4")
    monkeypatch.setattr("cloister.hub.work.authorise.money_of", lambda *_: {"people": Spend()})
    stage.ask(COUNT, "0.3")
    answer = stage.post("/questions", {"sql": BY_SEX, "spend": "0.3"}).json()
    assert (answer["code"], answer["detail"]) == (
        "budget-exceeded",
        "the population would exceed the institution's ceiling of ε = 0.4",
    )
    assert answer["rule"].startswith("mandatory:")
    assert stage.spent == "ε = 0.3"


def test_a_repeat_is_given_once_the_share_is_used_up(stage: Stage):
    rea = reader(stage, share={"epsilon": "0.3"})
    stage.ask(COUNT, "0.3", rea)
    assert stage.ask(COUNT, "0.3", rea)["repeated"]
    together = {"questions": [COUNT], "spend": "0.3"}
    assert stage.post("/questions/workload", together, rea).status_code == 201
    assert stage.post("/questions/workload", {"questions": [BY_SEX, COUNT], "spend": "0.3"}, rea).status_code in (403, 409)
    assert stage.spent == "ε = 0.3"


def test_what_was_paid_for_is_given_under_rules_without_a_spend(stage: Stage):
    stage.ask(COUNT, "0.3")
    rea = reader(stage, share={"epsilon": "0.3"})
    rule(stage, epsilon_of_population="0.2")
    answer = stage.post("/questions/stored", {"sql": COUNT}, rea)
    assert answer.status_code == 201, answer.text
    assert (stage.spent, answer.json()["repeated"]) == ("ε = 0.3", True)


def test_what_is_stored_is_given_again_once_the_share_is_used_up(stage: Stage):
    rea, eve = reader(stage, share={"epsilon": "0.3"}), stage.house.person("analyst")
    stage.house.grant(stage.people, eve, by=stage.owner, actions=MAY, share={"epsilon": "0.1"})
    stage.ask(COUNT, "0.3", rea)
    stage.ask(COUNT, "0.8")
    again = stage.post("/questions/stored", {"sql": COUNT}, rea)
    assert again.status_code == 201, again.text
    refused = stage.post("/questions/stored", {"sql": COUNT}, eve)
    assert refused.status_code == 409, "she never had it, and its use debits her share"
    assert "it was charged to others, its use counts against your own share" in refused.text
    assert stage.post("/questions/stored", {"sql": COUNT, "spend": "0.1"}, eve).status_code == 201
    assert stage.post("/questions/stored", {"sql": COUNT}, eve).status_code == 201, "she had it now"
    assert stage.spent == "ε = 0.8"


def test_a_dearer_purchase_of_somebody_else_locks_no_small_share_out(stage: Stage):
    rea = reader(stage, share={"epsilon": "0.1"})
    stage.ask(COUNT, "0.9")
    assert stage.ask(COUNT, "0.1", rea)["repeated"]
    assert stage.ask(COUNT, "0.1", rea)["repeated"], "it was debited once"
    assert stage.hub.ledger.spent_by("people", rea.caller.email) == PureDP("0.1")


def test_the_ceilings_of_every_rule_that_governs_go_to_the_ledger(stage: Stage):
    for told in ({"epsilon_of_population": "3"}, {"epsilon_of_population": "2"}, {"epsilon_of_allotment": "1"}):
        rule(stage, **told)
    rule(stage, epsilon_of_population="0.1", populations=["others"])
    with stage.hub.database.reading() as db:
        facts = facts_of(stage.hub, db)
        objects = [facts.data_sets[stage.people.id]]
        from cloister.hub.decisions.checking import check_together

        context = context_of(stage.hub, stage.ana.caller, columns={stage.people.id: frozenset()})
        decisions = check_together(stage.hub, db, stage.ana.caller, "question.ask", objects, context)
        found = bounds_of(stage.hub, facts, stage.ana.caller, "question.ask", objects, decisions, context, {})
    assert sorted(str(each.most) for each in found.ceilings["people"]) == ["ε = 2", "ε = 3"]
    assert [str(each.most) for each in found.shares["people"]] == ["ε = 1"]
    assert isinstance(facts.mandatory[0], MandatoryRule)
    assert not isinstance(found.ceilings["people"][0].most, ZCDP)


def test_who_may_only_explain_is_not_told_what_is_left(stage: Stage):
    eve = stage.house.person("analyst")
    stage.house.grant(stage.people, eve, by=stage.owner, actions=["question.explain"])
    stage.ask(COUNT, "0.3")
    told = stage.post("/questions/explain", {"sql": BY_SEX, "spend": "0.1"}, eve).json()
    assert told["left"] == []
    assert stage.post("/questions/explain", {"sql": BY_SEX, "spend": "0.1"}).json()["left"] != []
    spends = stage.post("/questions/afford", {"sql": BY_SEX}, eve).json()["spends"]
    assert spends == ["0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1", "2", "5"]
