"""Policies travel: the laws of inheriting, its one text, and what holds for something derived twice."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from cloister.hub.decisions.policy import Part, Policy, Source, decide, derived, inherit
from cloister.hub.decisions.policy.facts import SENSITIVITIES
from tests.hub.policy.world import CONTEXTS, OBJECTS, PEOPLE, beside, some

START = datetime(2026, 1, 1, tzinfo=UTC)
names = st.frozensets(st.sampled_from("abcü"), max_size=3)
parts = st.builds(Part, object=st.sampled_from("xy"), column=st.sampled_from(["", "c"]), label=st.sampled_from(["", "l"]))
policies = st.builds(
    Policy,
    purposes=st.none() | names,
    prohibitions=st.frozensets(st.sampled_from(["learn.run", "release.download"])),
    labels=names,
    consent=names,
    sensitivity=st.sampled_from(SENSITIVITIES),
    retention=st.none() | st.integers(0, 10**6).map(lambda seconds: START + timedelta(seconds=seconds)),
    combinable_with=st.none() | names,
    forbidden=st.frozensets(st.frozensets(parts, min_size=2, max_size=3), max_size=2),
    sources=st.frozensets(st.builds(Source, object=st.sampled_from("xy"), columns=st.just(("c",))), max_size=2),
)


@given(policies, policies, policies)
def test_inheriting_is_a_meet(left: Policy, middle: Policy, right: Policy) -> None:
    assert inherit([left, middle]) == inherit([middle, left])
    assert (
        inherit([inherit([left, middle]), right]) == inherit([left, inherit([middle, right])]) == inherit([left, middle, right])
    )
    assert inherit([left, left]) == left
    assert inherit([left, Policy()]) == left
    assert inherit([]) == Policy()


def at_least_as_strict(left: Policy, right: Policy) -> bool:
    """Whether everything that `right` forbids, `left` forbids too. Where they come from is not compared."""
    return replace(inherit([left, right]), sources=frozenset()) == replace(left, sources=frozenset())


@given(policies, policies)
def test_what_is_derived_is_never_freer(left: Policy, right: Policy) -> None:
    both = inherit([left, right])
    assert at_least_as_strict(both, left)
    assert at_least_as_strict(both, right)
    assert at_least_as_strict(left, left)
    assert (at_least_as_strict(left, right) and at_least_as_strict(right, left)) == (
        replace(left, sources=frozenset()) == replace(right, sources=frozenset())
    )


@given(policies, policies)
def test_the_text_reads_back_and_is_one(left: Policy, right: Policy) -> None:
    assert Policy.read(json.dumps(left.to_dict())) == left
    assert (json.dumps(left.to_dict()) == json.dumps(right.to_dict())) == (left == right)


def test_a_derived_table_carries_labels_columns_and_provenance() -> None:
    genes, clinical = OBJECTS["genes"], OBJECTS["clinical"]
    assert genes is not None
    assert clinical is not None
    found = derived([(genes, ["gene", "age"]), (clinical, ["sex"])], {"genes": "2"})
    assert found.purposes == some("genetics")
    assert found.labels == some("genetic", "clinical")
    assert found.sources == {
        Source(object="genes", version="2", columns=("age", "gene"), institution=genes.institution, population=genes.population),
        Source(object="clinical", columns=("sex",), institution="north", population="patients"),
    }
    assert derived([(genes, ["age"])]).purposes is None


def test_what_is_forbidden_of_the_source_is_forbidden_of_what_came_from_it() -> None:
    """A release of a release is still health: it may not meet the census where health may not."""
    health, census = OBJECTS["health"], OBJECTS["census"]
    assert health is not None
    assert census is not None
    pair = frozenset({Part(object="health", column="diagnosis"), Part(object="census", column="postcode")})
    guarded = replace(health, policies=(Policy(forbidden=frozenset({pair})),))
    once = replace(OBJECTS["release"], id="r2", policies=(derived([(guarded, ["diagnosis"])]),), grants=())  # type: ignore[type-var]
    twice = replace(once, id="r3", policies=(derived([(once, ["n"])]),))
    harmless = replace(once, id="r4", policies=(derived([(guarded, ["age"])]),))
    context = beside("census", census=some("postcode"))
    for release, allowed in ((once, False), (twice, False), (harmless, True)):
        decision = decide(PEOPLE["bob"], "release.see", release, context)
        assert decision.allowed is allowed, release.id
        assert allowed or decision.reason == "combination"


def test_partners_reach_through_provenance() -> None:
    alone = OBJECTS["alone"]
    assert alone is not None
    from_limited = replace(OBJECTS["census"], id="t1", policies=(Policy(sources=frozenset({Source(object="limited")})),))  # type: ignore[type-var]
    from_both = replace(
        from_limited, id="t2", policies=(Policy(sources=frozenset({Source(object="limited"), Source(object="census")})),)
    )
    research = CONTEXTS["research"]
    assert decide(PEOPLE["ada"], "question.ask", alone, replace(research, together=(from_limited,))).allowed
    refused = decide(PEOPLE["ada"], "question.ask", alone, replace(research, together=(from_both,)))
    assert (refused.allowed, refused.reason) == (False, "not-combinable")
