"""The risk of a spend: the arithmetic of it, how a grant's limit is held against it, and how a refusal tells it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from babel import Locale
from hypothesis import given
from hypothesis import strategies as st

from cloister.hub.decisions.policy import Context, GrantFacts, Members, Object, Rules, Spend, decide, denied
from cloister.hub.decisions.policy.risk import most_within, told_risk
from cloister.hub.guidance import FAMILY, best_odds
from cloister.hub.web.formats import odds
from cloister.privacy import ZCDP, About, ApproxDP, Guarantee, PureDP, advantage
from tests.hub.policy.world import CONTEXTS, NOW, OBJECTS, PEOPLE, some

amounts = st.fractions(min_value=Fraction(1, 1000), max_value=12, max_denominator=1000)
slacks = st.sampled_from([Fraction(0), Fraction(1, 10**6), Fraction(1, 1000), Fraction(1, 50)])
guarantees = st.one_of(
    st.builds(PureDP, amounts),
    st.builds(ApproxDP, amounts, slacks),
    st.builds(ZCDP, amounts),
    st.builds(ZCDP, amounts, slacks),
)
ABOUT: tuple[About, ...] = ("presence", "value")
limits = st.sampled_from([Fraction(each, 100) for each in (3, 5, 10, 25, 50, 80, 99)])


@given(guarantees)
def test_the_risk_is_that_of_the_best_guess_as_the_pages_tell_it(guarantee: Guarantee) -> None:
    for about in ABOUT:
        for people in (1, FAMILY):
            right, told = (
                float(50 * (1 + advantage(guarantee, about=about, people=people))),
                best_odds(guarantee, about=about, people=people),
            )
            assert right <= told + 1e-6
            assert told - right < 0.11


@pytest.mark.parametrize(("epsilon", "told"), [("1", "73.2"), ("8", "99.97"), ("10", "99.996"), ("15", "99.99997")])
def test_what_is_not_certain_is_not_told_as_100_per_cent(epsilon: str, told: str) -> None:
    assert odds(best_odds(PureDP(epsilon)), Locale("en")) == told
    refused = told_risk(advantage(PureDP(epsilon)), Fraction(3, 10), advantage(PureDP(epsilon), about="value"))
    assert (refused["odds"] == "100", refused["risk"] == "1") == (False, False)


@given(guarantees, limits)
def test_an_amount_within_a_limit_is_within_it_and_nearly_the_most(guarantee: Guarantee, limit: Fraction) -> None:
    most = most_within(limit, guarantee)
    assert most is not None
    assert type(most) is type(guarantee)
    assert advantage(most) <= limit + Fraction(1, 10**12)
    if guarantee.delta == 0:
        assert advantage(most) >= limit * Fraction(998, 1000) - Fraction(1, 10**9)
    if advantage(guarantee) <= limit * Fraction(99, 100):
        assert guarantee <= most


def test_no_limit_and_no_room() -> None:
    assert most_within(Fraction(1), PureDP(1)) is None
    assert most_within(Fraction(1, 1000), ApproxDP(0, "0.5")) == ApproxDP(0, 0)
    assert advantage(PureDP(10**6)) == advantage(ZCDP(10**6)) == 1


@given(guarantees, guarantees)
def test_drawing_more_is_never_less_risk(one: Guarantee, other: Guarantee) -> None:
    if type(one) is type(other):
        assert advantage(one + other) >= max(advantage(one), advantage(other))


def asking(**more: object) -> Context:
    return replace(CONTEXTS["research"], **more)  # type: ignore[arg-type]


def held(risk: str, *, name: str = "g-limit", actions: tuple[str, ...] = ("question.ask",), **rules: object) -> Object:
    limited = OBJECTS["limited"]
    assert limited is not None
    given = Rules(actions=frozenset(actions), risk=Fraction(risk), **rules)  # type: ignore[arg-type]
    return replace(limited, grants=(GrantFacts(id=name, role="reader", members=Members(people=some("bob")), rules=given),))


@pytest.mark.parametrize(
    ("drawn", "asked", "limit", "allowed"),
    [
        (None, PureDP(1), "0.4622", True),
        (None, PureDP(1), "0.4621", False),
        (PureDP("0.5"), PureDP("0.5"), "0.4622", True),
        (PureDP("0.5"), PureDP("0.51"), "0.4622", False),
        (ApproxDP(1, 0), ApproxDP("0.001", "0.1"), "0.5163", True),
        (ApproxDP(1, 0), ApproxDP("0.001", "0.1"), "0.5162", False),
        (ZCDP("0.2"), ZCDP("0.12"), "0.41", True),
        (ZCDP("0.2"), ZCDP("0.12"), "0.39", False),
        (ApproxDP(1, "1e-6"), ZCDP("0.1"), "0.99", False),
        (PureDP(50), None, "0.1", True),
    ],
)
def test_the_limit_holds_for_all_that_is_drawn(
    drawn: Guarantee | None, asked: Guarantee | None, limit: str, *, allowed: bool
) -> None:
    """What was drawn counts with what is asked; where nothing is to be charged, nothing is added to the risk."""
    context = asking(spend={"clients": Spend(asked=asked, drawn=drawn)})
    decision = decide(PEOPLE["bob"], "question.ask", held(limit), context)
    assert (decision.allowed, decision.reason) == (allowed, "granted" if allowed else "risk")
    if allowed:
        assert decision.narrowed.risk == Fraction(limit)


def test_a_refusal_tells_the_risk_and_the_limit() -> None:
    context = asking(spend={"clients": Spend(asked=PureDP(1))})
    error = denied(decide(PEOPLE["bob"], "question.ask", held("0.3"), context))
    assert error.instead == "a smaller spend, or ask its owner"
    assert error.why == (
        "the risk would reach 0.463 (an attacker's best guess whether one person is in the data could be right in 73.2 % of "
        "cases, where a coin is in 50 %; between two values of theirs, in 88.1 %), and the grant allows at most 0.3 "
        "(rule grant:g-limit)"
    )


def test_a_risk_that_is_shown_is_never_one_that_is_allowed() -> None:
    told = told_risk(Fraction(30001, 100000), Fraction(3, 10))
    assert Fraction(told["risk"]) > Fraction(told["limit"])


def test_what_states_no_price_is_refused_until_its_risk_is_known() -> None:
    which = held("0.3", actions=("anonymize.run", "synthesise.run", "release.download", "learn.run"))
    no = decide(PEOPLE["bob"], "anonymize.run", which, asking())
    assert (no.allowed, no.reason, no.details) == (False, "risk-unknown", {"limit": "0.3"})
    assert decide(PEOPLE["bob"], "anonymize.run", which, asking(risk=Fraction(3, 10))).allowed
    assert decide(PEOPLE["bob"], "release.download", which, asking()).allowed
    for action in ("learn.run", "synthesise.run"):
        assert decide(PEOPLE["bob"], action, which, asking()).narrowed.risk == Fraction(3, 10)


def test_a_grant_without_a_limit_is_the_wider_one() -> None:
    both = held("0.3", name="g-a")
    free = replace(both.grants[0], id="g-b", rules=replace(both.grants[0].rules, risk=None))
    which = replace(both, grants=(*both.grants, free))
    found = decide(PEOPLE["bob"], "question.ask", which, asking(spend={"clients": Spend(asked=PureDP(1))}))
    assert (found.grant, found.narrowed.risk) == ("g-b", None)
    assert decide(PEOPLE["bob"], "question.ask", which, asking()).grant == "g-b"


def ended_and(*grants: GrantFacts) -> Object:
    limited = OBJECTS["limited"]
    assert limited is not None
    old = Rules(actions=some("question.ask"))
    gone = GrantFacts(id="g-gone", role="reader", members=Members(people=some("bob")), rules=old, revoked=True)
    over = GrantFacts(id="g-over", role="reader", members=Members(people=some("bob")), rules=replace(old, until=NOW))
    return replace(limited, grants=(gone, *grants, over))


@pytest.mark.parametrize(
    ("members", "rules", "reason"),
    [
        ({"training": some("GCP")}, {}, "training"),
        ({}, {"not_before": CONTEXTS["too late"].now}, "too-early"),
        ({}, {"networks": ()}, "network"),
        ({}, {"purposes": some("care")}, "purpose"),
    ],
)
def test_a_grant_that_stands_is_told_before_one_that_is_over(
    members: dict[str, object], rules: dict[str, object], reason: str
) -> None:
    """A certificate that a grant of today waits for is not hidden behind a grant that was revoked."""
    now = GrantFacts(
        id="g-now",
        role="reader",
        members=Members(people=some("bob"), **members),  # type: ignore[arg-type]
        rules=Rules(actions=some("question.ask"), **rules),  # type: ignore[arg-type]
    )
    no = decide(PEOPLE["bob"], "question.ask", ended_and(now), asking(now=NOW))
    assert (no.allowed, no.rule, no.reason) == (False, "grant:g-now", reason)
    assert decide(PEOPLE["bob"], "question.ask", ended_and(), asking(now=NOW)).reason == "expired"
