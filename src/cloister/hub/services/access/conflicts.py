"""Grants that promise what a rule of the institution denies. The rule wins; an owner and a steward want to know.

Each grant is put to the policy itself, once without the rule and once with it, as somebody whom the grant is meant for: what is
allowed without and denied with the rule is a conflict. Whether one person misses a second factor is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import product

from cloister.hub.policy import Context, Decision, GrantFacts, MandatoryRule, Object, Spend, Who, actions, decide
from cloister.hub.policy.actions import ANYBODY

_SOMEBODY = "somebody"


@dataclass(frozen=True, kw_only=True)
class Conflict:
    """What a grant allows and a rule denies."""

    object: Object
    grant: GrantFacts
    rule: MandatoryRule
    decisions: tuple[Decision, ...]
    """The denials, one an action."""


def conflicts(
    objects: Iterable[Object], rules: Iterable[MandatoryRule], now: datetime, institutions: Mapping[str, str] | None = None
) -> list[Conflict]:
    """Every grant that stands against a rule. `institutions`: where people belong, for grants that name people.

    >>> from cloister.hub.policy import Members, Rules
    >>> asking = Rules(actions=frozenset({"question.ask"}), purposes=frozenset({"marketing"}))
    >>> grant = GrantFacts(id="g1", role="seller", members=Members(anybody=True), rules=asking)
    >>> health = Object(kind="data-set", id="d1", name="health", grants=(grant,))
    >>> rule = MandatoryRule(id="m1", purposes=frozenset({"research"}))
    >>> moment = datetime.fromisoformat("2026-11-20T12:00:00+00:00")
    >>> [(each.grant.id, each.rule.id, each.decisions[0].reason) for each in conflicts([health], [rule], moment)]
    [('g1', 'm1', 'purpose')]
    """
    laws, found = list(rules), []
    for which in objects:
        for grant in which.grants:
            over = grant.rules.until is not None and grant.rules.until <= now
            if grant.revoked or over:
                continue
            for rule in laws:
                denials = tuple(_denials(which, grant, rule, now, institutions or {}))
                if denials:
                    found.append(Conflict(object=which, grant=grant, rule=rule, decisions=denials))
    return found


def _denials(
    which: Object, grant: GrantFacts, rule: MandatoryRule, now: datetime, institutions: Mapping[str, str]
) -> Iterable[Decision]:
    rules = grant.rules
    freed = replace(rules, hours=None, not_before=None, rows="", risk=None)
    alone = replace(which, grants=(replace(grant, rules=freed),), policies=(), column_policies={})
    for name in sorted(rules.actions):
        action = actions()[name]
        roles = action.roles - {ANYBODY}
        purposes = [""] if rules.purposes is None else sorted(rules.purposes)
        methods = sorted(rules.methods) if rules.methods is not None and action.by_method else [""]
        for purpose, method in product(purposes, methods):
            context = Context(
                now=now,
                address=str(rules.networks[0].network_address) if rules.networks else "",
                purpose=purpose,
                columns={which.id: which.columns if rules.columns is None else rules.columns},
                spend={which.population: Spend(allotment=rules.share)} if rules.share is not None else {},
                algorithm=min(rules.algorithms) if rules.algorithms else which.id if which.kind == "algorithm" else "",
                method=method,
                project=min(grant.members.projects) if grant.members.projects else "",
            )
            denial = next(
                (
                    denied
                    for who in _meant(grant, roles, now, institutions)
                    if decide(who, name, alone, context).allowed
                    and not (denied := decide(who, name, alone, context, [rule])).allowed
                ),
                None,
            )
            if denial is not None:
                yield denial
                break


def _meant(grant: GrantFacts, roles: frozenset[str], now: datetime, institutions: Mapping[str, str]) -> Iterable[Who]:
    """People for whom the grant was made: those it names, or one of each institution it names, or anybody."""
    members = grant.members
    for person in sorted(members.people) if members.people else [_SOMEBODY]:
        for institution in sorted(members.institutions) if members.institutions else [institutions.get(person, "")]:
            yield Who(
                id=person,
                roles=roles,
                institution=institution,
                projects=members.projects or frozenset(),
                training={name: now + timedelta(days=1) for name in members.training},
                attributes=members.attributes,
                second_factor=True,
            )
