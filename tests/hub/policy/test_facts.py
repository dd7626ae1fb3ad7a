"""Grants, rules and policies as people write them: read exactly, refused helpfully, written back equal."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from fractions import Fraction
from ipaddress import ip_network
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloister.errors import InvalidDeclaration
from cloister.hub.decisions.policy import (
    GrantFacts,
    Hours,
    MandatoryRule,
    Members,
    Part,
    Policy,
    Rules,
    actions,
)
from cloister.privacy.guarantee import ZCDP, ApproxDP, PureDP
from tests.hub.policy.world import OBJECTS, RULES, some

FULL = {
    "role": "reader",
    "members": {"people": ["bob"], "institutions": ["north"], "training": ["GCP"], "attributes": {"grade": "7"}},
    "rules": {
        "actions": ["question.ask", "algorithm.run", "learn.run"],
        "purposes": ["research"],
        "not_before": "2026-01-01",
        "until": "2026-12-31",
        "columns": ["age", " pay in € "],
        "rows": "age >= 18",
        "share": {"epsilon": "1", "delta": "1e-6"},
        "networks": ["10.0.0.0/8", "2001:db8::/32"],
        "hours": [{"days": ["friday", "monday"], "from": "08:00", "to": "24:00"}, {}],
        "risk": "0.05",
        "algorithms": ["a1"],
        "methods": ["Ridge", "PCA"],
        "only_with": ["census"],
    },
}


def test_a_full_grant_is_read_exactly() -> None:
    grant = GrantFacts.read(json.dumps(FULL), id="g1", granted_by="ada", revoked=True)
    assert (grant.id, grant.granted_by, grant.revoked, grant.role) == ("g1", "ada", True, "reader")
    assert grant.members == Members(
        people=some("bob"), institutions=some("north"), training=some("GCP"), attributes={"grade": "7"}
    )
    assert grant.rules == Rules(
        actions=some("question.ask", "algorithm.run", "learn.run"),
        purposes=some("research"),
        not_before=datetime(2026, 1, 1, tzinfo=UTC),
        until=datetime(2027, 1, 1, tzinfo=UTC),
        columns=some("age", " pay in € "),
        rows="age >= 18",
        share=ApproxDP(1, "1e-6"),
        networks=(ip_network("10.0.0.0/8"), ip_network("2001:db8::/32")),
        hours=(Hours(days=(0, 4), start=480, end=1440), Hours(days=tuple(range(7)), start=0, end=1440)),
        risk=Fraction(1, 20),
        algorithms=some("a1"),
        methods=some("PCA", "Ridge"),
        only_with=some("census"),
    )


@pytest.mark.parametrize("share", [PureDP("0.1"), ApproxDP("1/3", "1e-9"), ZCDP("0.01"), ZCDP(1, "1e-6")], ids=str)
def test_shares_keep_their_exact_value(share: Any) -> None:
    grant = GrantFacts(id="g", role="r", members=Members(anybody=True), rules=Rules(actions=some("learn.run"), share=share))
    assert GrantFacts.read(json.dumps(grant.to_dict()), id="g").rules.share == share


def test_decimals_are_the_ones_written() -> None:
    text = '{"actions": ["learn.run"], "share": {"epsilon": 0.1}, "risk": 1e-3}'
    rules = GrantFacts.read('{"role": "r", "members": {"anybody": true}, "rules": ' + text + "}", id="g").rules
    assert (rules.share, rules.risk) == (PureDP("0.1"), Fraction(1, 1000))


def test_everything_of_the_small_world_reads_back_equal() -> None:
    grants = [grant for each in OBJECTS.values() if each is not None for grant in each.grants]
    readable = [each for each in grants if all(actions()[name].grantable for name in each.rules.actions)]
    assert len(readable) >= 15
    for grant in readable:
        again = GrantFacts.read(json.dumps(grant.to_dict()), id=grant.id, granted_by=grant.granted_by, revoked=grant.revoked)
        assert again == grant
    for rules in RULES.values():
        for rule in rules:
            assert MandatoryRule.read(json.dumps(rule.to_dict()), id=rule.id) == rule
    for each in OBJECTS.values():
        for policy in () if each is None else each.policies:
            assert Policy.read(json.dumps(policy.to_dict())) == policy


def change(path: str, value: Any) -> dict[str, Any]:
    """The full grant with one place changed; a value of None takes it away."""
    copy = json.loads(json.dumps(FULL))
    *inner, last = path.split("/")
    place = copy
    for key in inner:
        place = place[key]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return copy


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        ("role", None, "it has no 'role'"),
        ("members", None, "it has no 'members'"),
        ("rules", None, "it has no 'rules'"),
        ("role", "", "a name has 1 to 200"),
        ("role", 7, "not a text"),
        ("revoked", False, "'revoked' is not known there"),
        ("id", "g2", "'id' is not known there"),
        ("granted_by", "root", "'granted_by' is not known there"),
        ("members", {}, "no one is named"),
        ("members", {"anybody": False}, "no one is named"),
        ("members", {"training": []}, "no one is named"),
        ("members", {"anybody": True, "people": ["bob"]}, "already includes"),
        ("members", {"anybody": "yes"}, "neither true nor false"),
        ("members", {"anybody": 1}, "neither true nor false"),
        ("members/people", "bob", "not a list"),
        ("members/people", {"bob": 1}, "not a list"),
        ("members/people", [["bob"]], "not a text"),
        ("members/people", ["bo\u202eb"], "printable"),
        ("members/people", ["bo\x00b"], "printable"),
        ("members/people", ["x" * 201], "a name has 1 to 200"),
        ("members/people", ["x"] * 1001, "at most 1000"),
        ("members/persons", ["bob"], "'persons' is not known there"),
        ("members/attributes", ["grade"], "not an object"),
        ("rules/actions", None, "at least one action"),
        ("rules/actions", [], "at least one action"),
        ("rules/actions", ["question.steal"], "knows no such action"),
        ("rules/actions", ["question.*"], "knows no such action"),
        ("rules/actions", ["dataset.grant"], "stays with the owner"),
        ("rules/actions", ["roles.give"], "stays with the owner"),
        ("rules/purpose", ["research"], "'purpose' is not known there"),
        ("rules/until", "2025-12-31", "not after not_before"),
        ("rules/until", "31.12.2026", "not a date"),
        ("rules/until", "2026-02-30", "not a date"),
        ("rules/until", "2026-12-31T18:00:00", "needs its offset"),
        ("rules/until", "9999-12-31", "no calendar shows it"),
        ("rules/until", 20261231, "not a date"),
        ("rules/columns", [""], "a name has 1 to 200"),
        ("rules/rows", "age >= 18\x00", "on one line"),
        ("rules/rows", "x" * 2001, "at most 2000"),
        ("rules/rows", ["age >= 18"], "on one line"),
        ("rules/share", "1", "not an object"),
        ("rules/share", {}, "neither an ε"),
        ("rules/share", {"delta": "1e-6"}, "neither an ε"),
        ("rules/share", {"epsilon": "1", "rho": "1"}, "neither an ε"),
        ("rules/share", {"epsilon": "-1"}, "must not be negative"),
        ("rules/share", {"epsilon": "one"}, "not a finite number"),
        ("rules/share", {"epsilon": True}, "not an exact number"),
        ("rules/share", {"epsilon": "1e999999999"}, "exponent"),
        ("rules/share", {"epsilon": "1", "delta": "1"}, "less than 1"),
        ("rules/networks", ["10.0.0.1/8"], "not a network"),
        ("rules/networks", ["10.0.0.0/33"], "not a network"),
        ("rules/networks", [167772160], "not a network"),
        ("rules/networks", ["anywhere"], "not a network"),
        ("rules/hours", [{"days": ["freitag"]}], "not a day of the week"),
        ("rules/hours", [{"days": [0]}], "not a day of the week"),
        ("rules/hours", [{"from": "22:00", "to": "06:00"}], "ends before it begins"),
        ("rules/hours", [{"from": "8:00"}], "not a time of day"),
        ("rules/hours", [{"from": "08:60"}], "not a time of day"),
        ("rules/hours", [{"to": "24:01"}], "not a time of day"),
        ("rules/hours", [{"from": "٠٨:00"}], "not a time of day"),
        ("rules/hours", [{"until": "18:00"}], "'until' is not known there"),
        ("rules/methods", [], "names no method"),
        ("rules/methods", "PCA", "not a list"),
        ("rules/methods", [7], "not a text"),
        ("rules/actions", ["question.ask"], "training models, which is not among the actions"),
        ("rules/risk", "5 %", "not a finite number"),
        ("rules/risk", [], "not an exact number"),
        ("rules/share/epsilon", "1/0", "not a finite number"),
    ],
)
def test_what_is_not_understood_is_refused(path: str, value: Any, told: str) -> None:
    with pytest.raises(InvalidDeclaration) as caught:
        GrantFacts.read(json.dumps(change(path, value)), id="g1")
    assert told in caught.value.why
    assert caught.value.instead


def test_an_unknown_key_lists_the_known_ones() -> None:
    with pytest.raises(InvalidDeclaration) as caught:
        GrantFacts.read(change("rules/colums", ["age"]), id="g1")
    assert "columns" in caught.value.instead
    assert "purposes" in caught.value.instead


def test_a_rule_about_methods_is_about_training() -> None:
    rule = MandatoryRule.read('{"title": "Simple models", "methods": ["Ridge", "GaussianNB"]}', id="m1")
    assert rule.methods == some("GaussianNB", "Ridge")
    assert rule.to_dict() == {"title": "Simple models", "methods": ["GaussianNB", "Ridge"]}
    narrow = {"title": "x", "actions": ["question.ask", "learn.run"], "methods": ["PCA"]}
    assert MandatoryRule.read(narrow, id="m1").methods == some("PCA")
    with pytest.raises(InvalidDeclaration, match="training models, which is not among the actions"):
        MandatoryRule.read({"title": "x", "actions": ["question.ask"], "methods": ["PCA"]}, id="m1")
    with pytest.raises(InvalidDeclaration, match="names no method"):
        MandatoryRule.read({"title": "x", "methods": []}, id="m1")


def test_running_algorithms_names_them() -> None:
    rules = {"actions": ["algorithm.run"]}
    with pytest.raises(InvalidDeclaration, match="must list the algorithms"):
        GrantFacts.read({"role": "r", "members": {"people": ["u3"]}, "rules": rules}, id="g1")
    on_algorithm = {"role": "r", "members": {"people": ["u3"]}, "rules": {**rules, "only_with": ["health"]}}
    assert GrantFacts.read(on_algorithm, id="g1").rules.only_with == some("health")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "not JSON"),
        ("[]", "named parts"),
        ('"research"', "named parts"),
        ("null", "named parts"),
        ('{"purposes": ["research"], "purposes": []}', "twice"),
        ('{"purposes": ["research"],}', "not JSON"),
        ("[" * 60_000, "not JSON"),
        ('{"labels":' + "[" * 30_000 + "]" * 30_000 + "}", ""),
        ('{"labels": ["' + "x" * 70_000 + '"]}', "longer than"),
        ('{"labels": [NaN]}', "not a finite number"),
        ('{"labels": ["\\ud800"]}', "printable"),
        ('{"retention": "0000-00-00"}', "not a date"),
        ('{"sensitivity": ""}', "not one of the levels"),
        ('{"sensitivity": ["special"]}', "not one of the levels"),
        ('{"forbidden": [[{"object": "health"}]]}', "two different parts"),
        ('{"forbidden": [[{"object": "health"}, {"object": "health"}]]}', "two different parts"),
        ('{"forbidden": [[{"object": "health"}, {}]]}', "names nothing"),
        ('{"forbidden": [{"object": "health"}]}', "not a list"),
        ('{"sources": [{"version": "1"}]}', "names no object"),
        ('{"prohibitions": ["fly"]}', "no such action"),
        ('{"given": true}', "'given' is not known there"),
    ],
)
def test_hostile_policies_are_refused(text: str, told: str) -> None:
    with pytest.raises(InvalidDeclaration) as caught:
        Policy.read(text)
    assert told in caught.value.why


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"title": "Nothing"}', "demands nothing"),
        ('{"labels": ["clinical"], "deny": false}', "demands nothing"),
        ('{"delta": "1"}', "less than 1"),
        ('{"epsilon_of_population": "-1"}', "negative"),
        ('{"actions": ["fly"], "deny": true}', "no such action"),
        ('{"id": "m2", "deny": true}', "'id' is not known there"),
        ('{"second_factor": "true"}', "neither true nor false"),
    ],
)
def test_hostile_rules_are_refused(text: str, told: str) -> None:
    with pytest.raises(InvalidDeclaration) as caught:
        MandatoryRule.read(text, id="m1")
    assert told in caught.value.why


@pytest.mark.parametrize("key", ["epsilon_of_population", "epsilon_of_allotment", "delta"])
def test_a_limit_of_nothing_is_a_demand(key: str) -> None:
    """0 equals False, and says the opposite of what an absent limit does."""
    rule = MandatoryRule.read({key: "0"}, id="m1")
    assert getattr(rule, key) == 0
    assert rule.to_keep() == {key: "0"}
    assert MandatoryRule.read({"purposes": []}, id="m1").purposes == frozenset()


def test_labels_are_compared_as_they_look_and_columns_as_they_are() -> None:
    """A label typed with a combining accent is the same label; a column spelled otherwise is another column."""
    assert Policy.read({"labels": [" e\u0301tude "]}).labels == some("\u00e9tude")
    parts = [{"object": "d", "column": "e\u0301"}, {"object": "f"}]
    assert Policy.read({"forbidden": [parts]}).forbidden == {frozenset({Part(object="d", column="e\u0301"), Part(object="f")})}


def test_an_empty_list_is_not_no_list() -> None:
    assert Policy.read('{"purposes": []}').purposes == some()
    assert Policy.read("{}").purposes is None
    assert Policy(purposes=some()).to_dict() == {"purposes": []}
    rule = MandatoryRule.read('{"networks": [], "purposes": []}', id="m1")
    assert (rule.networks, rule.purposes) == ((), some())
    assert MandatoryRule.read(rule.to_dict(), id="m1") == rule == MandatoryRule(id="m1", networks=(), purposes=some())


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
_PLACES = [f"rules/{key}" for key in FULL["rules"]] + [f"members/{key}" for key in FULL["members"]]  # type: ignore[attr-defined]


@given(st.sampled_from(_PLACES), _JSON)
def test_whatever_stands_there_is_read_or_refused(path: str, value: Any) -> None:
    """No other error ever comes out, and what is read reads back equal."""
    try:
        grant = GrantFacts.read(json.dumps(change(path, value)), id="g1")
    except InvalidDeclaration:
        return
    assert GrantFacts.read(grant.to_dict(), id="g1") == grant
