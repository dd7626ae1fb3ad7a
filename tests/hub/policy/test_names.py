"""Which populations a rule means by a name, and what names a refusal shows."""

from __future__ import annotations

from datetime import UTC, datetime
from fractions import Fraction

import pytest

from cloister.hub.decisions.policy import (
    Context,
    MandatoryRule,
    Object,
    Part,
    Policy,
    Source,
    Spend,
    Who,
    ceilings,
    decide,
    decide_together,
)
from cloister.hub.decisions.policy.mandatory import among
from cloister.privacy import PureDP

NOW = Context(now=datetime(2026, 3, 2, tzinfo=UTC))
OLGA = Who(id="olga", roles=frozenset({"owner", "analyst"}))
RULE = MandatoryRule(id="m1", populations=frozenset({"Ward"}), epsilon_of_population=Fraction(1, 2))
WARD = ["Ward", "ward", " ward", "WARD", "Ｗard", "ward 2026", "Ward 2026-Q1", "ward  2026-03", "ward 2026 2027"]


def data_set(population: str, **more: object) -> Object:
    return Object(kind="data-set", id="d1", name="visits", owner="olga", population=population, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("population", WARD)
def test_a_rule_holds_for_every_spelling_and_window(population: str) -> None:
    wanted = Context(now=NOW.now, spend={population: Spend(budget=PureDP(5))})
    decision = decide(OLGA, "dataset.register", data_set(population), wanted, [RULE])
    assert (decision.allowed, decision.rule, decision.reason) == (False, "mandatory:m1", "ceiling-population")
    [bound] = ceilings(OLGA, "question.ask", [data_set(population)], NOW, [RULE], {population: PureDP(5)})
    assert (bound.population, bound.most) == (population, PureDP("0.5"))


@pytest.mark.parametrize("population", ["wards", "ward b", "ward 26", "ward 2026-13", "ward 2026-Q5", "2026", ""])
def test_another_population_is_another(population: str) -> None:
    wanted = Context(now=NOW.now, spend={population: Spend(budget=PureDP(5))})
    assert decide(OLGA, "dataset.register", data_set(population), wanted, [RULE]).allowed
    assert ceilings(OLGA, "question.ask", [data_set(population)], NOW, [RULE], {population: PureDP(5)}) == []


def test_a_rule_on_one_window_is_on_no_other() -> None:
    names = frozenset({"ward 2026"})
    assert [among(each, names) for each in ("WARD 2026", "ward", "ward 2027")] == [True, False, False]


def test_a_forbidden_combination_shows_names_of_what_was_asked() -> None:
    pair = frozenset({frozenset({Part(object="d1", column="age"), Part(object="d2")})})
    towns = Object(kind="data-set", id="d2", name="towns", owner="olga")
    for rule, policies in ((MandatoryRule(id="m1", forbidden=pair), ()), (RULE, (Policy(forbidden=pair),))):
        both = [Object(kind="data-set", id="d1", name="visits", owner="olga", policies=policies), towns]
        found = decide_together(OLGA, "question.ask", both, NOW, [rule])["d1"]
        assert (found.reason, found.details) == ("combination", {"parts": "visits.age, towns"})
    source = Policy(sources=frozenset({Source(object="d2")}))
    made = Object(kind="data-set", id="d1", name="visits", owner="olga", policies=(source,))
    assert decide(OLGA, "question.ask", made, NOW, [MandatoryRule(id="m1", forbidden=pair)]).details == {
        "parts": "visits.age, d2"
    }


def test_a_policy_that_a_release_carries_is_asked_of_a_steward() -> None:
    own = Policy(prohibitions=frozenset({"release.see"}))
    carried = Policy(prohibitions=frozenset({"release.see"}), sources=frozenset({Source(object="d1")}))
    for policy, role, person in ((own, "owner", "olga"), (carried, "steward", "")):
        which = Object(kind="release", id="r1", owner="olga", institution="north", policies=(policy,))
        ask = decide(OLGA, "release.see", which, NOW).ask
        assert ask is not None
        assert (ask.role, ask.person, ask.institution) == (role, person, "north")
