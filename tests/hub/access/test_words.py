"""Grants and rules in sentences, and conflicts between them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from cloister.hub.decisions.policy import GrantFacts, MandatoryRule, Object
from cloister.hub.platform.access.names import Names
from cloister.hub.platform.access.sentences import grant_lines, members_text, rule_lines
from cloister.hub.platform.access.views import conflicts
from cloister.hub.web.languages import language_of

NAMES = Names(people={"p1": "Ada", "p2": "Bob"}, projects={"j1": "heart"}, data_sets={"d1": "health"}, algorithms={"a1": "bayes"})
NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


def made(rules: dict[str, Any], **members: Any) -> GrantFacts:
    return GrantFacts.read({"role": "r", "members": members or {"anybody": True}, "rules": rules}, id="g1")


@pytest.mark.parametrize(
    ("members", "text"),
    [
        ({"anybody": True}, "everyone who has signed in"),
        ({"people": ["p1", "p2"]}, "Ada and Bob"),
        ({"institutions": ["North", "South", "East"]}, "everyone of East, North and South"),
        ({"projects": ["j1"], "training": ["GCP"]}, "the members of the project heart, with a valid certificate: GCP"),
        ({"training": ["GCP"]}, "everyone, with a valid certificate: GCP"),
        ({"people": ["p1"], "attributes": {"ward": "7"}}, "Ada, with ward = 7"),
        ({"people": ["gone"]}, "gone"),
    ],
)
def test_who_is_in_a_grant(members: dict[str, Any], text: str) -> None:
    assert members_text(made({"actions": ["question.ask"]}, **members).members, NAMES) == text


def test_every_condition_has_its_line() -> None:
    rules = {
        "actions": ["question.ask", "algorithm.run", "learn.run"],
        "purposes": ["research", "care"],
        "not_before": "2026-01-01",
        "until": "2026-12-31",
        "hours": [{"days": ["monday"], "from": "08:00", "to": "18:00"}],
        "networks": ["10.0.0.0/8"],
        "columns": ["age"],
        "rows": "age >= 18",
        "share": {"epsilon": "0.5"},
        "risk": "0.1",
        "algorithms": ["a1"],
        "methods": ["Ridge", "GaussianNB", "of old"],
        "only_with": ["d1"],
    }
    lines = {line.name: line.text or line.moment for line in grant_lines(made(rules), NAMES)}
    assert lines == {
        "May": "Run an algorithm, Train a model, Run a query",
        "For": "care or research",
        "From": "the beginning of 2026-01-01 (UTC)",
        "Until": "the end of 2026-12-31 (UTC)",
        "Hours": "Mon 08:00–18:00 UTC",
        "Networks": "10.0.0.0/8",
        "Columns": "age",
        "Rows": "only those with age >= 18",
        "Share of the budget": "ε = 0.5 each person",
        "Risk": "at most 0.1",
        "Algorithms": "bayes",
        "Methods": "Gaussian naive Bayes, Ridge regression, of old",
        "Together with": "only health",
    }
    told = {line.name: line.text for line in grant_lines(made(rules, projects=["j1"]), NAMES)}
    assert told["Share of the budget"] == "ε = 0.5 for all members of a project together"
    nothing = {
        line.name: line.text for line in grant_lines(made({"actions": ["question.ask"], "purposes": [], "columns": []}), NAMES)
    }
    assert (nothing["For"], nothing["Columns"]) == ("no purpose", "none"), "an empty list is not the same as none"


def test_a_rule_says_where_and_what() -> None:
    rule = MandatoryRule.read(
        {
            "title": "Clinical",
            "labels": ["clinical"],
            "institution": "North",
            "populations": ["people"],
            "for_institutions": ["South"],
            "actions": ["learn.run"],
            "epsilon_of_population": "3",
            "epsilon_of_allotment": "1",
            "delta": "1e-6",
            "training": ["GCP"],
            "second_factor": True,
            "purposes": ["research"],
            "networks": ["10.0.0.0/8"],
            "forbidden": [[{"object": "d1", "column": "diagnosis"}, {"label": "genetic"}]],
        },
        id="m1",
    )
    told = [f"{line.name}: {line.text}" for line in rule_lines(rule, NAMES)]
    assert told[0] == "Where: the data of North, data labelled clinical, the population people, people of South"
    assert told[1] == "To: Train a model"
    assert told[-1] == "Never together: labelled genetic + health.diagnosis"
    assert len(told) == 10
    assert rule_lines(MandatoryRule.read({"title": "x", "deny": True}, id="m2"), NAMES)[1].text == "never allowed"


def test_sentences_follow_the_language() -> None:
    chinese = language_of("zh_CN").gettext
    lines = grant_lines(made({"actions": ["question.ask"]}), NAMES, chinese)
    assert lines[0].text == chinese("Run a query")


@pytest.mark.parametrize(
    ("rules", "members", "rule", "reason"),
    [
        ({"purposes": ["marketing"]}, {}, {"purposes": ["research"]}, "purpose"),
        ({"purposes": ["research"]}, {}, {"purposes": ["research"]}, None),
        ({"purposes": ["research", "care"]}, {}, {"purposes": ["research"]}, "purpose"),
        ({"actions": ["learn.run"], "methods": ["PCA"]}, {}, {"methods": ["Ridge"]}, "method"),
        ({"actions": ["learn.run"], "methods": ["PCA", "Ridge"]}, {}, {"methods": ["Ridge"]}, "method"),
        ({"actions": ["learn.run"], "methods": ["PCA"]}, {}, {"methods": ["PCA", "Ridge"]}, None),
        ({"actions": ["learn.run"]}, {}, {"methods": ["Ridge"]}, "method"),
        ({}, {}, {"methods": ["Ridge"]}, None),
        ({}, {}, {"training": ["GCP"]}, "training"),
        ({}, {"anybody": True, "training": ["GCP"]}, {"training": ["GCP"]}, None),
        ({}, {}, {"second_factor": True}, None),
        ({}, {}, {"deny": True, "labels": ["clinical"]}, "denied"),
        ({}, {}, {"deny": True, "labels": ["other"]}, None),
        ({}, {"institutions": ["South"]}, {"deny": True, "for_institutions": ["South"]}, "denied"),
        ({}, {"institutions": ["North"]}, {"deny": True, "for_institutions": ["South"]}, None),
        ({}, {"people": ["p1"]}, {"deny": True, "for_institutions": ["South"]}, "denied"),
        ({}, {"people": ["p2"]}, {"deny": True, "for_institutions": ["South"]}, None),
        ({"share": {"epsilon": "2"}}, {}, {"epsilon_of_allotment": "1"}, "ceiling-allotment"),
        ({"share": {"epsilon": "1"}}, {}, {"epsilon_of_allotment": "1"}, None),
        ({}, {}, {"forbidden": [[{"column": "age"}, {"column": "gene"}]]}, "combination"),
        ({"columns": ["age"]}, {}, {"forbidden": [[{"column": "age"}, {"column": "gene"}]]}, None),
        ({"networks": ["10.0.0.0/8"]}, {}, {"networks": ["10.0.0.0/8"]}, None),
        ({"networks": ["11.0.0.0/8"]}, {}, {"networks": ["10.0.0.0/8"]}, "network"),
        ({"until": "2026-01-01"}, {}, {"deny": True}, None),
        ({"hours": [{"days": ["sunday"]}]}, {}, {"deny": True}, "denied"),
        ({}, {"projects": ["j1"]}, {"deny": True}, "denied"),
    ],
)
def test_what_a_rule_denies_of_a_grant_is_found(
    rules: dict[str, Any], members: dict[str, Any], rule: dict[str, Any], reason: str | None
) -> None:
    grant = made({"actions": ["question.ask"], **rules}, **members)
    health = Object(
        kind="data-set",
        id="d1",
        name="health",
        owner="olga",
        labels=frozenset({"clinical"}),
        population="people",
        columns=frozenset({"age", "gene"}),
        grants=(grant,),
    )
    found = conflicts([health], [MandatoryRule.read({"title": "t", **rule}, id="m1")], NOW, {"p1": "South", "p2": "North"})
    assert [each.decisions[0].reason for each in found] == ([] if reason is None else [reason])
