"""Ceilings as the ledger is handed them: which rules govern, and that the amounts are neither above nor needlessly below."""

from __future__ import annotations

from datetime import UTC, datetime
from fractions import Fraction

import pytest

from cloister.hub.decisions.policy import Context, MandatoryRule, Object, Policy, Who, ceilings
from cloister.privacy import ZCDP, ApproxDP, Guarantee, PureDP

NOW = Context(now=datetime(2026, 3, 2, tzinfo=UTC), columns={"d1": frozenset({"age"})}, behind={"d1": frozenset({"gene"})})
PEOPLE = Object(
    kind="data-set",
    id="d1",
    institution="north",
    population="people",
    column_policies={"gene": Policy(labels=frozenset({"genetic"}))},
)


def found(rule: MandatoryRule, budget: Guarantee = PureDP(10), **more: Guarantee) -> list[tuple[str, bool, Guarantee]]:  # noqa: B008
    who = Who(id="p1", institution="south")
    told = ceilings(who, "question.ask", [PEOPLE], NOW, [rule], {"people": budget, **more})
    return [(each.population, each.of_allotment, each.most) for each in told]


def test_the_ceiling_in_the_measure_of_the_budget() -> None:
    rule = MandatoryRule(id="m1", epsilon_of_population=Fraction(1), delta=Fraction(1, 10**6))
    assert found(rule)[0] == ("people", False, PureDP(1))
    assert found(rule, ApproxDP(10, "1e-5"))[0] == ("people", False, ApproxDP(1, "1e-6"))


def test_the_largest_rho_lies_at_the_ceiling() -> None:
    rule = MandatoryRule(id="m1", epsilon_of_population=Fraction(1), delta=Fraction(1, 10**6))
    most = found(rule, ZCDP(1))[0][2]
    assert isinstance(most, ZCDP)
    assert most.delta == Fraction(1, 10**6)
    assert ZCDP(most.rho).to_approx("1e-6").epsilon <= 1
    assert ZCDP(most.rho * Fraction(1001, 1000)).to_approx("1e-6").epsilon > 1


def test_a_ceiling_that_cannot_be_compared_lets_nothing_be_charged() -> None:
    assert found(MandatoryRule(id="m1", epsilon_of_population=Fraction(1)), ZCDP(1))[0][2].rho == 0  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "told",
    [{"institution": "south"}, {"populations": frozenset({"others"})}, {"for_institutions": frozenset({"north"})}],
)
def test_a_rule_that_does_not_govern_bounds_nothing(told: dict[str, object]) -> None:
    assert found(MandatoryRule(id="m1", epsilon_of_allotment=Fraction(1), **told)) == []  # type: ignore[arg-type]


def test_a_rule_on_labels_counts_the_columns_behind_a_view_and_its_own_population_alone() -> None:
    rule = MandatoryRule(id="m1", labels=frozenset({"genetic"}), epsilon_of_allotment=Fraction(1))
    assert found(rule, others=PureDP(3)) == [("people", True, PureDP(1))]
