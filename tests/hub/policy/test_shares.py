"""The table of shares: who sees what somebody else asked, and until when."""

from __future__ import annotations

import pytest

from cloister.hub.decisions.policy import Ask, Decision, GrantFacts, Members, Object, Rules, Who, denied
from cloister.hub.decisions.policy.shares import SHARE, asleep, by_closing, let_in, not_let_in

ANA, BOB, OLGA = Who(id="ana", email="ana@x.org"), Who(id="bob", email="bob@x.org"), Who(id="olga")


def people(*grants: GrantFacts, closed: bool = False) -> Object:
    return Object(kind="data-set", id="d1", name="people", owner="olga", institution="north", grants=grants, closed=closed)


def to(*members: str, project: str = "study", revoked: bool = False) -> GrantFacts:
    given = Members(projects=frozenset({project}), people=frozenset(members) if members else None)
    return GrantFacts(id="g1", role="member", members=given, rules=Rules(actions=frozenset({"question.ask"})), revoked=revoked)


@pytest.mark.parametrize(
    ("who", "grants", "expected"),
    [
        (ANA, (to("ana"),), True),
        (ANA, (to("ana@x.org"),), True),
        (ANA, (to(),), True),
        (ANA, (to("ana", revoked=True),), True),
        (ANA, (to("bob"),), False),
        (ANA, (to("ana", project="other"),), False),
        (ANA, (), False),
        (OLGA, (), True),
        (BOB, (to("ana"), to("bob")), True),
    ],
)
def test_who_was_let_in(who: Who, grants: tuple[GrantFacts, ...], expected: bool) -> None:
    assert let_in(who, "study", people(*grants)) is expected


@pytest.mark.parametrize(
    ("who", "what", "closed", "expected"),
    [
        (ANA, SHARE, True, "closed"),
        (ANA, SHARE, False, None),
        (ANA, "release.see", True, None),
        (ANA, "release.download", True, None),
        (OLGA, SHARE, True, None),
    ],
)
def test_what_is_closed_is_shown_no_further(who: Who, what: str, closed: bool, expected: str | None) -> None:
    found = by_closing(who, what, [people(), people(closed=closed)])
    assert (found.reason if found else None) == expected
    if found:
        assert (found.allowed, found.rule, found.ask) == (
            False,
            "data-set:d1",
            Ask(role="owner", person="olga", institution="north"),
        )


def test_a_reader_hears_the_rule_and_whom_to_ask_and_no_condition_of_the_sharer() -> None:
    no = Decision(allowed=False, action=SHARE, rule="grant:g1", reason="expired", details={"moment": "2026-03-03"})
    told = asleep("ana", no)
    assert (told.allowed, told.rule, told.reason, told.ask) == (
        False,
        "grant:g1",
        "share-asleep",
        Ask(role="sharer", person="ana"),
    )
    error = denied(told, name="Ana")
    assert "2026-03-03" not in str(error)
    assert error.instead == "ask the person who shared it (Ana)"
    assert asleep("ana", None).rule == "share"


def test_who_was_not_let_in_asks_the_owner() -> None:
    told = not_let_in(people())
    assert (told.rule, told.reason, told.ask.person if told.ask else "") == ("data-set:d1", "not-let-in", "olga")
