"""Facts to their JSON form: plain dictionaries and lists, sorted, exact numbers as texts, moments in UTC."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from cloister.hub.policy.facts import Combination, GrantFacts, Hours, MandatoryRule, Part, Policy, Source
from cloister.privacy.guarantee import ZCDP, ApproxDP, Guarantee
from cloister.privacy.rational import text_of

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def write_grant(grant: GrantFacts) -> dict[str, Any]:
    """The JSON form of a grant, without what the hub keeps beside it.

    >>> from cloister.hub.policy.facts import Members, Rules
    >>> rules = Rules(actions=frozenset({"dataset.see"}))
    >>> write_grant(GrantFacts(id="g1", role="reader", members=Members(anybody=True), rules=rules))
    {'role': 'reader', 'members': {'anybody': True}, 'rules': {'actions': ['dataset.see']}}
    """
    members, rules = grant.members, grant.rules
    who = {
        "people": _sorted(members.people),
        "institutions": _sorted(members.institutions),
        "projects": _sorted(members.projects),
        "training": sorted(members.training) or None,
        "attributes": dict(sorted(members.attributes.items())) or None,
        "anybody": members.anybody or None,
    }
    what = {
        "actions": sorted(rules.actions),
        "purposes": _sorted(rules.purposes),
        "not_before": _moment(rules.not_before),
        "until": _moment(rules.until),
        "columns": _sorted(rules.columns),
        "rows": rules.rows or None,
        "share": None if rules.share is None else guarantee_text(rules.share),
        "networks": None if rules.networks is None else [str(each) for each in rules.networks],
        "hours": None if rules.hours is None else [_hours(each) for each in rules.hours],
        "risk": _number(rules.risk),
        "algorithms": _sorted(rules.algorithms),
        "methods": _sorted(rules.methods),
        "only_with": _sorted(rules.only_with),
    }
    return {"role": grant.role, "members": _said(who), "rules": _said(what)}


def write_rule(rule: MandatoryRule) -> dict[str, Any]:
    """The JSON form of a rule of the institution, without its id.

    >>> write_rule(MandatoryRule(id="m1", title="Ceiling", delta=Fraction(1, 10**6)))
    {'title': 'Ceiling', 'delta': '0.000001'}
    """
    return _said(
        {
            "title": rule.title or None,
            "institution": rule.institution or None,
            "labels": sorted(rule.labels) or None,
            "populations": _sorted(rule.populations),
            "for_institutions": _sorted(rule.for_institutions),
            "actions": _sorted(rule.actions),
            "deny": rule.deny or None,
            "epsilon_of_population": _number(rule.epsilon_of_population),
            "epsilon_of_allotment": _number(rule.epsilon_of_allotment),
            "delta": _number(rule.delta),
            "forbidden": _combinations(rule.forbidden),
            "training": sorted(rule.training) or None,
            "second_factor": rule.second_factor or None,
            "purposes": _sorted(rule.purposes),
            "networks": None if rule.networks is None else [str(each) for each in rule.networks],
            "methods": _sorted(rule.methods),
        }
    )


def write_policy(policy: Policy) -> dict[str, Any]:
    """The JSON form of a policy.

    >>> write_policy(Policy(purposes=frozenset(), labels=frozenset({"clinical"})))
    {'purposes': [], 'labels': ['clinical']}
    """
    return _said(
        {
            "purposes": _sorted(policy.purposes),
            "prohibitions": sorted(policy.prohibitions) or None,
            "labels": sorted(policy.labels) or None,
            "consent": sorted(policy.consent) or None,
            "sensitivity": policy.sensitivity or None,
            "retention": _moment(policy.retention),
            "combinable_with": _sorted(policy.combinable_with),
            "forbidden": _combinations(policy.forbidden),
            "sources": [_source(each) for each in sorted(policy.sources)] or None,
        }
    )


def guarantee_text(guarantee: Guarantee) -> dict[str, str]:
    """The exact JSON form of a guarantee.

    >>> guarantee_text(ZCDP("0.1"))
    {'rho': '0.1'}
    """
    if isinstance(guarantee, ZCDP):
        slack = {"delta": text_of(guarantee.delta)} if guarantee.delta else {}
        return {"rho": text_of(guarantee.rho), **slack}
    exact = {"epsilon": text_of(guarantee.epsilon)}
    return {**exact, "delta": text_of(guarantee.delta)} if isinstance(guarantee, ApproxDP) else exact


def _said(parts: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in parts.items() if value is not None}


def _sorted(names: Iterable[str] | None) -> list[str] | None:
    return None if names is None else sorted(names)


def _number(value: Fraction | None) -> str | None:
    return None if value is None else text_of(value)


def _moment(value: datetime | None) -> str | None:
    return None if value is None else value.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _hours(hours: Hours) -> dict[str, Any]:
    begin, end = (f"{each // 60:02}:{each % 60:02}" for each in (hours.start, hours.end))
    return {"days": [DAYS[each] for each in hours.days], "from": begin, "to": end}


def _combinations(forbidden: Iterable[Combination]) -> list[list[dict[str, str]]] | None:
    return [[_part(part) for part in sorted(each)] for each in sorted(forbidden, key=sorted)] or None


def _part(part: Part) -> dict[str, str]:
    return _said({"object": part.object or None, "column": part.column or None, "label": part.label or None})


def _source(source: Source) -> dict[str, Any]:
    return _said(
        {
            "object": source.object,
            "version": source.version or None,
            "columns": list(source.columns) or None,
            "behind": list(source.behind) or None,
            "institution": source.institution or None,
            "population": source.population or None,
        }
    )
