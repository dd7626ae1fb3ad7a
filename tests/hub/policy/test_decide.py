"""How far a yes reaches, what is asked together, and contexts that leave things out."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from cloister.hub.decisions.policy import Narrowed, Object, Part, Policy, Source, decide, decide_together, in_scope
from cloister.privacy.guarantee import PureDP
from tests.hub.policy.world import CONTEXTS, OBJECTS, PEOPLE, RULES, beside, some


@pytest.mark.parametrize(
    ("who", "what", "which", "context", "narrowed"),
    [
        ("ada", "question.ask", "health", "research", Narrowed()),
        ("carl", "question.ask", "health", "age", Narrowed(columns=some("age", "sex"))),
        ("carl", "question.ask", "health", "quality", Narrowed(columns=some("age", "sex", "diagnosis"), rows="age >= 18")),
        ("bob", "question.ask", "limited", "research", Narrowed(until=datetime(2026, 12, 31, tzinfo=UTC))),
        ("gcp", "question.ask", "limited", "research", Narrowed(share=PureDP(1))),
        ("gcp", "learn.run", "health", "research", Narrowed(until=PEOPLE["gcp"].training["GCP"])),
        ("ada", "question.ask", "given", "research", Narrowed(until=datetime(2027, 1, 1, tzinfo=UTC))),
        ("ada", "question.ask", "genes", "research", Narrowed(columns=some("age", "sex", "diagnosis"))),
        ("carl", "question.ask", "genes", "research", Narrowed(columns=some("age", "sex"))),
    ],
)
def test_how_far_a_yes_reaches(who: str, what: str, which: str, context: str, narrowed: Narrowed) -> None:
    decision = decide(PEOPLE[who], what, OBJECTS[which], CONTEXTS[context])
    assert decision.allowed
    assert decision.narrowed == narrowed


def test_a_labelled_column_is_closed_to_whoever_the_institution_denies_its_label() -> None:
    rules = RULES["clinical"]
    genetics = replace(CONTEXTS["genetics"], columns={})
    assert decide(PEOPLE["ada"], "question.ask", OBJECTS["genes"], genetics, rules).narrowed.columns == some(
        "age", "sex", "diagnosis"
    )
    assert decide(PEOPLE["ada:both"], "question.ask", OBJECTS["genes"], genetics, rules).narrowed.columns is None


def test_the_widest_of_several_grants_is_chosen_until_the_columns_are_known() -> None:
    health = OBJECTS["health"]
    assert health is not None
    either = tuple(replace(each, rules=replace(each.rules, purposes=None)) for each in health.grants)
    open_to_carl = replace(health, grants=either)
    assert decide(PEOPLE["carl"], "question.ask", open_to_carl, CONTEXTS["research"]).grant == "g-narrow"
    assert decide(PEOPLE["carl"], "question.ask", open_to_carl, CONTEXTS["diagnosis"]).grant == "g-wide"


def test_of_a_source_whose_columns_are_not_known_all_count() -> None:
    pair = frozenset({Part(object="health", column="diagnosis"), Part(object="census", column="postcode")})
    context = beside("census", census=some("postcode"))
    for columns, allowed in (((), False), (("diagnosis",), False), (("age",), True)):
        policy = Policy(forbidden=frozenset({pair}), sources=frozenset({Source(object="health", columns=columns)}))
        table = Object(kind="dataset", id="t1", owner="ada", columns=some("x"), policies=(policy,))
        assert decide(PEOPLE["ada"], "question.ask", table, context).allowed is allowed


def test_one_refusal_refuses_all_that_was_asked_together() -> None:
    health, limited, census = (OBJECTS[name] for name in ("health", "limited", "census"))
    assert health is not None
    assert limited is not None
    assert census is not None
    ada, research = PEOPLE["ada"], CONTEXTS["research"]
    assert all(each.allowed for each in decide_together(ada, "question.ask", [health, limited], research).values())
    found = decide_together(ada, "question.ask", [health, census], research)
    assert [(each.allowed, each.reason, each.ask.person) for each in found.values() if each.ask] == [
        (False, "no-grant", "odo")
    ] * 2
    assert decide_together(ada, "question.ask", [], research) == {}


@pytest.mark.parametrize(
    ("action", "scopes", "inside"),
    [
        ("question.ask", {"question.ask"}, True),
        ("question.ask", {"question.*"}, True),
        ("question.ask", {"*"}, True),
        ("questions.ask", {"question.*"}, False),
        ("question.ask", {"question"}, False),
        ("question.ask", {"question.as"}, False),
        ("question.ask", {"q*"}, False),
        ("question.ask", {"**", "?", ".*.*"}, False),
        ("question.ask", {""}, False),
        ("question.ask", set(), False),
    ],
)
def test_scopes(action: str, scopes: set[str], inside: bool) -> None:
    assert in_scope(action, frozenset(scopes)) is inside


@pytest.mark.parametrize(
    "text", ["", "10.1.2.3 ", "10.1.2", "10.1.2.3/8", "010.1.2.3", "0x0a010203", "localhost", "\x00", "１０.1.2.3"]
)
def test_what_is_no_address_is_inside_no_network(text: str) -> None:
    context = replace(CONTEXTS["inside"], address=text)
    decision = decide(PEOPLE["carl"], "question.ask", OBJECTS["limited"], context)
    assert (decision.allowed, decision.reason) == (False, "network")
