"""What holds of every decision, whatever the facts: rules only take away, grants never pass what stands above, time only ends."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from ipaddress import ip_network

from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.hub.decisions.policy import (
    Context,
    GrantFacts,
    Hours,
    MandatoryRule,
    Members,
    Object,
    Part,
    Policy,
    Rules,
    Spend,
    Who,
    decide,
    decide_together,
)
from cloister.privacy.guarantee import ZCDP, ApproxDP, PureDP

START = datetime(2026, 1, 1, tzinfo=UTC)
WHAT = (
    "dataset.see",
    "dataset.grant",
    "question.explain",
    "question.ask",
    "learn.run",
    "algorithm.run",
    "release.see",
    "job.see",
)
PEOPLE, INSTITUTIONS, PROJECTS = ("ada", "bob"), ("north", "south"), ("p", "q")
METHODS = ("GaussianNB", "PCA")
COLUMNS, LABELS, PURPOSES, IDS = ("age", "sex"), ("clinical", "special"), ("research", "care"), ("d1", "d2")


def sets(names: tuple[str, ...]) -> st.SearchStrategy[frozenset[str]]:
    return st.frozensets(st.sampled_from(names))


def seldom(usual: object, strategy: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    """Mostly the usual value: with every condition drawn freely, almost nothing would be allowed, and nothing be tested."""
    return st.integers(0, 5).flatmap(lambda drawn: strategy if drawn == 5 else st.just(usual))


def maybe(strategy: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return seldom(None, strategy)


moments = st.integers(0, 40).map(lambda days: START + timedelta(hours=12 * days))
networks = st.sampled_from([(ip_network("10.0.0.0/8"),), ()])
guarantees = st.sampled_from([PureDP(1), PureDP("0.1"), ApproxDP(1, "1e-6"), ZCDP("0.1"), ZCDP(0)])
training = st.dictionaries(st.just("GCP"), moments)
parts = st.builds(Part, object=st.sampled_from(("", *IDS)), column=st.sampled_from(("", *COLUMNS)), label=st.just(""))
forbidden = st.frozensets(st.frozensets(parts, min_size=2, max_size=2), max_size=2)
whos = st.builds(
    Who,
    id=seldom("bob", st.sampled_from(("", *PEOPLE))),
    roles=seldom(frozenset({"owner", "analyst"}), sets(("owner", "analyst", "steward", "administrator"))),
    institution=st.sampled_from(INSTITUTIONS),
    projects=seldom(frozenset(PROJECTS), sets(PROJECTS)),
    training=training,
    token_scopes=maybe(sets(("question.*", "*", "dataset.see"))),
    second_factor=st.booleans(),
)
members = st.builds(
    Members,
    people=maybe(sets(PEOPLE)),
    institutions=maybe(sets(INSTITUTIONS)),
    projects=maybe(sets(PROJECTS)),
    training=seldom(frozenset(), sets(("GCP",))),
    anybody=seldom(True, st.booleans()),
)
rules = st.builds(
    Rules,
    actions=seldom(frozenset(WHAT), sets(WHAT)),
    purposes=maybe(sets(PURPOSES)),
    not_before=maybe(moments),
    until=maybe(moments),
    columns=maybe(sets(COLUMNS)),
    rows=st.sampled_from(("", "age >= 18")),
    share=maybe(guarantees),
    networks=maybe(networks),
    hours=maybe(st.just((Hours(days=(0, 1, 2, 3, 4), start=0, end=720),))),
    risk=maybe(st.sampled_from([Fraction(0), Fraction(1, 2)])),
    algorithms=maybe(sets(("a1",))),
    methods=maybe(sets(METHODS)),
    only_with=maybe(sets(IDS)),
)
grants = st.builds(
    GrantFacts, id=st.uuids().map(str), role=st.just("reader"), members=members, rules=rules, revoked=st.booleans()
)
policies = st.builds(
    Policy,
    purposes=maybe(sets(PURPOSES)),
    prohibitions=seldom(frozenset(), sets(WHAT)),
    labels=sets(LABELS),
    retention=maybe(moments),
    combinable_with=maybe(sets(IDS)),
    forbidden=seldom(frozenset(), forbidden),
)
objects = st.builds(
    Object,
    kind=st.sampled_from(("dataset", "release", "algorithm")),
    id=st.just("d1"),
    owner=seldom("ada", st.sampled_from(("", *PEOPLE))),
    institution=st.sampled_from(INSTITUTIONS),
    labels=sets(LABELS),
    population=st.sampled_from(("persons", "others")),
    columns=st.just(frozenset(COLUMNS)),
    grants=st.lists(grants, min_size=1, max_size=3).map(tuple),
    policies=st.lists(policies, max_size=1).map(tuple),
    column_policies=st.dictionaries(st.sampled_from(COLUMNS), policies, max_size=1),
)
others = st.builds(Object, kind=st.just("dataset"), id=st.just("d2"), owner=st.sampled_from(PEOPLE), labels=sets(LABELS))
contexts = st.builds(
    Context,
    now=moments,
    address=st.sampled_from(("10.0.0.1", "192.0.2.1", "")),
    purpose=seldom("research", st.sampled_from(("", *PURPOSES))),
    columns=st.dictionaries(st.sampled_from(IDS), sets(COLUMNS)),
    together=st.lists(others, max_size=1).map(tuple),
    spend=st.dictionaries(
        st.just("persons"),
        st.builds(Spend, asked=maybe(guarantees), spent=maybe(guarantees), drawn=maybe(guarantees), budget=maybe(guarantees)),
    ),
    algorithm=seldom("", st.sampled_from(("a1", "d1"))),
    method=st.sampled_from(("", *METHODS)),
    project=seldom("", st.sampled_from(PROJECTS)),
    risk=maybe(st.just(Fraction(1, 4))),
)
mandatory = st.builds(
    MandatoryRule,
    id=st.uuids().map(str),
    institution=st.sampled_from(("", *INSTITUTIONS)),
    labels=sets(LABELS),
    populations=maybe(sets(("persons",))),
    for_institutions=maybe(sets(INSTITUTIONS)),
    actions=maybe(sets(WHAT)),
    deny=seldom(False, st.booleans()),
    epsilon_of_population=maybe(st.sampled_from([Fraction(0), Fraction(1)])),
    epsilon_of_allotment=maybe(st.sampled_from([Fraction(0), Fraction(1)])),
    delta=maybe(st.just(Fraction(1, 10**6))),
    forbidden=seldom(frozenset(), forbidden),
    training=seldom(frozenset(), sets(("GCP",))),
    second_factor=seldom(False, st.booleans()),
    purposes=maybe(sets(PURPOSES)),
    networks=maybe(networks),
    methods=maybe(sets(METHODS)),
)
what = seldom("question.ask", st.sampled_from(WHAT))
several = st.lists(mandatory, max_size=2)


def within(narrow: frozenset[str] | None, wide: frozenset[str] | None) -> bool:
    return wide is None or (narrow is not None and narrow <= wide)


@given(whos, what, objects, contexts, several, mandatory)
def test_a_rule_of_the_institution_never_allows_more(
    who: Who, what: str, which: Object, context: Context, rules: list[MandatoryRule], more: MandatoryRule
) -> None:
    before = decide(who, what, which, context, rules)
    for place in range(len(rules) + 1):
        after = decide(who, what, which, context, [*rules[:place], more, *rules[place:]])
        assert before.allowed or not after.allowed
        if after.allowed and before.grant == after.grant:
            assert within(after.narrowed.columns, before.narrowed.columns)


@given(whos, what, objects, contexts, several, st.data())
def test_revoking_a_grant_never_allows_more(
    who: Who, what: str, which: Object, context: Context, rules: list[MandatoryRule], data: st.DataObject
) -> None:
    before = decide(who, what, which, context, rules)
    place = data.draw(st.integers(0, max(0, len(which.grants) - 1)))
    fewer = tuple(replace(each, revoked=True) if at == place else each for at, each in enumerate(which.grants))
    after = decide(who, what, replace(which, grants=fewer), context, rules)
    assert before.allowed or not after.allowed
    assert before.rule != "owner" or after == before
    without = decide(who, what, replace(which, grants=which.grants[:place] + which.grants[place + 1 :]), context, rules)
    assert (without.allowed, without.grant, without.narrowed) == (after.allowed, after.grant, after.narrowed)


@given(whos, what, objects, contexts, several, grants)
def test_a_grant_never_allows_what_stands_above_it_denies(
    who: Who, what: str, which: Object, context: Context, rules: list[MandatoryRule], more: GrantFacts
) -> None:
    before = decide(who, what, which, context, rules)
    after = decide(who, what, replace(which, grants=(*which.grants, more)), context, rules)
    if not before.allowed and before.rule.partition(":")[0] in ("mandatory", "policy", "role", "login", "token", "project"):
        assert after == before
    if before.allowed:
        assert after.allowed
    if after.allowed and not before.allowed:
        assert after.grant == more.id


@given(whos, what, objects, contexts, several)
def test_what_is_allowed_follows_from_one_whole_grant_the_owner_or_an_office(
    who: Who, what: str, which: Object, context: Context, rules: list[MandatoryRule]
) -> None:
    decision = decide(who, what, which, context, rules)
    if decision.allowed and decision.grant:
        (one,) = (each for each in which.grants if each.id == decision.grant)
        alone = decide(who, what, replace(which, grants=(one,)), context, rules)
        assert alone == decision
        assert decision.narrowed.rows == one.rules.rows
        assert within(decision.narrowed.columns, one.rules.columns)
        assert within(context.columns.get("d1", frozenset()), decision.narrowed.columns)
        assert decision.narrowed.until is None or context.now < decision.narrowed.until
    elif decision.allowed:
        assert decision.reason in ("owner", "overseer")
        assert decision.reason == "overseer" or which.owner == who.id != ""
    else:
        assert decision.ask is not None


@given(whos, what, objects, contexts, several, st.integers(1, 40))
def test_time_only_ends_what_was_allowed(
    who: Who, what: str, which: Object, context: Context, rules: list[MandatoryRule], later: int
) -> None:
    """Where no grant waits for its beginning or for its hours, what is allowed later was allowed before."""
    timeless = tuple(replace(each, rules=replace(each.rules, not_before=None, hours=None)) for each in which.grants)
    which = replace(which, grants=timeless)
    before = decide(who, what, which, context, rules)
    after = decide(who, what, which, replace(context, now=context.now + timedelta(hours=later)), rules)
    assert before.allowed or not after.allowed


@given(whos, what, objects, contexts, several, st.sampled_from(["columns", "risk", "purpose", "project"]))
def test_narrower_and_vaguer_contexts(
    who: Who, what: str, which: Object, context: Context, rules: list[MandatoryRule], part: str
) -> None:
    """Touching fewer columns, at a lower risk, is never refused where more was allowed."""
    before = decide(who, what, which, context, rules)
    if part == "columns":
        less = replace(context, columns={name: columns - {"age"} for name, columns in context.columns.items()})
    elif part == "risk" and context.risk is not None:
        less = replace(context, risk=context.risk / 2)
    else:
        less = context
    assert decide(who, what, which, less, rules).allowed or not before.allowed


@given(whos, what, objects, others, contexts, several)
def test_together_is_allowed_only_where_each_is(
    who: Who, what: str, first: Object, second: Object, context: Context, rules: list[MandatoryRule]
) -> None:
    found = decide_together(who, what, [first, second], context, rules)
    assert set(found) == {"d1", "d2"}
    assert len({each.allowed for each in found.values()}) == 1
    for each, other in ((first, second), (second, first)):
        alone = decide(who, what, each, replace(context, together=(other,)), rules)
        assert alone.allowed or not found[each.id].allowed


@given(whos, what, objects, contexts, several)
def test_a_decision_is_a_function_of_its_facts(
    who: Who, what: str, which: Object, context: Context, rules: list[MandatoryRule]
) -> None:
    turned = replace(which, grants=which.grants[::-1])
    first, again = decide(who, what, which, context, rules), decide(who, what, turned, context, rules)
    assert decide(who, what, which, context, rules) == first
    assert (first.allowed, first.grant, first.narrowed) == (again.allowed, again.grant, again.narrowed)


def test_the_facts_that_are_drawn_lead_to_every_kind_of_answer() -> None:
    """A property that only ever sees refusals would hold of anything."""
    seen: Counter[str] = Counter()

    @settings(max_examples=200)
    @given(whos, what, objects, contexts, several)
    def look(who: Who, what: str, which: Object, context: Context, rules: list[MandatoryRule]) -> None:
        decision = decide(who, what, which, context, rules)
        seen[f"{decision.allowed} {decision.rule.partition(':')[0]}"] += 1

    look()
    assert seen["True grant"] >= 15
    assert all(seen[each] >= 2 for each in ("True owner", "False grant", "False mandatory", "False policy", "False role")), seen
