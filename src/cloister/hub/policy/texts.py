"""The JSON form of grants, mandatory rules and policies, as people write it in forms and as the database keeps it.

Parsing is strict (`strict.py`), and writing gives the one canonical form: what is written reads back equal. Parts that
say nothing are left out; an empty list stays, since "no purpose" and "any purpose" are opposites.

Who keeps a text takes it from `kept_grant`, `kept_rule` and `kept_policy`, which read it back first: a text that can't be read
closes whatever it governs. What stands in for one that is stored nevertheless is `closing_rule` and `closing_policy`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from fractions import Fraction
from typing import Any

from cloister.errors import CloisterError
from cloister.hub.policy import strict
from cloister.hub.policy.actions import N_, actions
from cloister.hub.policy.facts import (
    SENSITIVITIES,
    Combination,
    GrantFacts,
    Hours,
    MandatoryRule,
    Members,
    Part,
    Policy,
    Rules,
    Source,
)
from cloister.hub.policy.texts_write import DAYS, write_grant, write_policy, write_rule
from cloister.privacy.guarantee import ZCDP, ApproxDP, Guarantee, PureDP
from cloister.privacy.rational import reads_back

__all__ = [
    "closing_policy",
    "closing_rule",
    "kept_grant",
    "kept_policy",
    "kept_rule",
    "parse_grant",
    "parse_policy",
    "parse_rule",
    "write_grant",
    "write_policy",
    "write_rule",
]

Text = str | Mapping[str, Any]
_Reader = Callable[[object, str], Any]


def parse_grant(text: Text, *, id: str, granted_by: str = "", revoked: bool = False) -> GrantFacts:  # noqa: A002
    """A grant from its JSON form; what the hub itself knows of it (its id, who gave it) comes beside.

    >>> rules = '{"actions": ["question.ask"], "share": {"epsilon": 0.1}}'
    >>> parse_grant('{"role": "reader", "members": {"people": ["bob"]}, "rules": ' + rules + "}", id="g1").rules.share
    PureDP(epsilon='0.1')
    """
    found = _parts(text, N_("the grant"), {"role": strict.name, "members": _members, "rules": _rules})
    for key in ("role", "members", "rules"):
        if key not in found:
            raise strict.wrong(N_("the grant"), f"it has no {key!r}", '{"role": …, "members": {…}, "rules": {…}}')
    return GrantFacts(id=id, granted_by=granted_by, revoked=revoked, **found)


def parse_rule(text: Text, *, id: str) -> MandatoryRule:  # noqa: A002
    """A rule of the institution from its JSON form.

    >>> parse_rule('{"title": "Ceiling", "epsilon_of_population": "3", "delta": "1e-6"}', id="m1").delta
    Fraction(1, 1000000)
    """
    found = _parts(text, N_("the rule"), _RULE)
    demands = ("deny", "epsilon_of_population", "epsilon_of_allotment", "delta", "forbidden", "training")
    more = ("second_factor", "purposes", "networks", "methods")
    if not any(found.get(key) not in (None, False, frozenset()) for key in (*demands, *more)):
        raise strict.wrong(
            "the rule", "it demands nothing", '{"title": "Clinical", "labels": ["clinical"], "second_factor": true}'
        )
    if found.get("delta", Fraction(0)) >= 1:
        raise strict.wrong("delta", "it must be less than 1", '"1e-6"')
    _about_models(found, "methods")
    return MandatoryRule(id=id, **found)


def parse_policy(text: Text) -> Policy:
    """A policy, as an owner or a provider attaches it and as a release carries it.

    >>> parse_policy('{"purposes": ["research"], "retention": "2030-12-31"}').retention.year
    2031
    """
    return Policy(**_parts(text, N_("the policy"), _POLICY))


def kept_grant(grant: GrantFacts) -> dict[str, Any]:
    """The JSON form of a grant that is about to be kept, once it was read back: what would be another grant, or none, is refused.

    >>> rules = Rules(actions=frozenset({"dataset.see"}))
    >>> kept_grant(GrantFacts(id="g1", role="reader", members=Members(anybody=True), rules=rules))["members"]
    {'anybody': True}
    """
    text = write_grant(grant)
    again = parse_grant(text, id=grant.id, granted_by=grant.granted_by, revoked=grant.revoked)
    return _same(N_("the grant"), grant, again, text)


def kept_rule(rule: MandatoryRule) -> dict[str, Any]:
    """The JSON form of a rule that is about to be kept, once it was read back.

    >>> kept_rule(MandatoryRule(id="m1", title="Clinical", second_factor=True))
    {'title': 'Clinical', 'second_factor': True}
    """
    text = write_rule(rule)
    return _same(N_("the rule"), rule, parse_rule(text, id=rule.id), text)


def kept_policy(policy: Policy) -> dict[str, Any]:
    """The JSON form of a policy that is about to be kept, once it was read back.

    >>> kept_policy(Policy(labels=frozenset({"clinical"})))
    {'labels': ['clinical']}
    """
    text = write_policy(policy)
    return _same(N_("the policy"), policy, parse_policy(text), text)


def closing_rule(text: object, *, id: str) -> MandatoryRule:  # noqa: A002
    """What stands in for a stored rule that can't be read: it denies all that the rule governs, as far as that can be read, and
    everything where it can't. Only that rules are seen and ended is never denied: so this one can be.

    >>> closing_rule({"labels": ["clinical"], "delta": "NaN"}, id="m1")
    MandatoryRule(id='m1', title='', institution='', labels=frozenset({'clinical'}), populations=None, for_institutions=None,
                  actions=None, deny=True, epsilon_of_population=None, epsilon_of_allotment=None, delta=Fraction(0, 1),
                  forbidden=frozenset(), training=frozenset(), second_factor=False, purposes=None, networks=None, methods=None)
    """
    said: Mapping[str, Any] = text if isinstance(text, Mapping) else dict.fromkeys(_CEILINGS)
    found: dict[str, Any] = {}
    for key in ("title", *_WHERE, *_CEILINGS):
        if key in said:
            try:
                found[key] = _RULE[key](said[key], key)
            except CloisterError:
                if key in _CEILINGS:
                    found[key] = Fraction(0)
    if found.get("actions") is not None:
        found["actions"] -= _NEVER_CLOSED
    return MandatoryRule(id=id, deny=True, **found)


def closing_policy() -> Policy:
    """What stands in for a stored policy that can't be read: nothing may be done with the data but to see that they are there, to
    mend the policy, and to take them away.

    >>> sorted({"question.ask", "dataset.manage"} & closing_policy().prohibitions)
    ['question.ask']
    """
    return Policy(prohibitions=frozenset(actions()) - _MENDING)


def _same(place: str, meant: object, again: object, text: dict[str, Any]) -> dict[str, Any]:
    if again != meant:
        raise strict.wrong(place, "storing it would change it", "the same in fewer or plainer words")
    return text


def _parts(value: object, place: str, readers: Mapping[str, _Reader]) -> dict[str, Any]:
    found = strict.load(value) if place.startswith("the ") else strict.mapping(value, place)  # type: ignore[arg-type]
    strict.only(found, place, list(readers))
    inside = "" if place.startswith("the ") else f"{place}."
    return {key: readers[key](each, f"{inside}{key}") for key, each in found.items()}


def _members(value: object, place: str) -> Members:
    found = _parts(value, place, _MEMBERS)
    if found.get("anybody") and any(found.get(key) is not None for key in ("people", "institutions", "projects")):
        raise strict.wrong(place, "“everyone” already includes the people listed", '{"anybody": true}')
    narrowed = any(key in found for key in ("people", "institutions", "projects"))
    if not (narrowed or found.get("anybody") or found.get("training") or found.get("attributes")):
        raise strict.wrong(place, "no one is named", '{"people": ["…"]}, or {"anybody": true}')
    return Members(**found)


def _rules(value: object, place: str) -> Rules:
    found = _parts(value, place, _RULES)
    if not found.get("actions"):
        raise strict.wrong(f"{place}.actions", "a grant allows at least one action", '["question.ask"]')
    first, last = found.get("not_before"), found.get("until")
    if first is not None and last is not None and first >= last:
        raise strict.wrong(f"{place}.until", "it is not after not_before", '"2026-12-31"')
    if "algorithm.run" in found["actions"] and not found.get("algorithms") and "only_with" not in found:
        raise strict.wrong(
            f"{place}.algorithms",
            "a grant to run algorithms must list the algorithms",
            '["…"]; on an algorithm, "only_with": ["a data set"]',
        )
    _about_models(found, f"{place}.methods")
    return Rules(**found)


def _about_models(found: Mapping[str, Any], place: str) -> None:
    """A list of methods beside actions that train no model would never be looked at."""
    named = found.get("actions")
    if "methods" in found and named is not None and not any(actions()[each].by_method for each in named):
        raise strict.wrong(place, "it is about training models, which is not among the actions", '"actions": ["learn.run"]')


def _methods(value: object, place: str) -> frozenset[str]:
    """An empty list could be meant as all and as none, so it says neither."""
    found = strict.identifiers(value, place)
    if not found:
        raise strict.wrong(place, "it names no method; without the list, all may be used", '["GaussianNB"]')
    return found


def _grantable(value: object, place: str) -> str:
    name = _action(value, place)
    if not actions()[name].grantable:
        grantable = ", ".join(each.name for each in actions().values() if each.grantable)
        raise strict.wrong(place, f"{name!r} stays with the owner", grantable)
    return name


def _action(value: object, place: str) -> str:
    name = strict.name(value, place)
    if name not in actions():
        known = ", ".join(actions())
        raise strict.wrong(place, "the hub knows no such action", known)
    return name


def _number(value: object, place: str) -> Fraction:
    """A number whose text reads back: a whole number comes from JSON with as many digits as Python reads."""
    found = strict.number(value, place)
    if not reads_back(found):
        raise strict.wrong(place, "it has too many digits to be written down", '"0.1"')
    return found


def _set(read: _Reader) -> _Reader:
    return lambda value, place: frozenset(strict.items(value, place, read))


def _tuple(read: _Reader) -> _Reader:
    return lambda value, place: tuple(strict.items(value, place, read))


def _attributes(value: object, place: str) -> dict[str, str]:
    found = strict.mapping(value, place)
    return {strict.name(key, place): strict.name(each, f"{place}.{key}") for key, each in found.items()}


def _end(value: object, place: str) -> datetime:
    return strict.moment(value, place, end=True)


def _guarantee(value: object, place: str) -> Guarantee:
    found = _parts(value, place, {"epsilon": _number, "delta": _number, "rho": _number})
    try:
        if set(found) == {"epsilon"}:
            return PureDP(found["epsilon"])
        if set(found) == {"epsilon", "delta"}:
            return ApproxDP(found["epsilon"], found["delta"])
        if set(found) in ({"rho"}, {"rho", "delta"}):
            return ZCDP(found["rho"], found.get("delta", 0))
    except CloisterError as error:
        raise strict.wrong(place, error.why, '{"epsilon": "1", "delta": "1e-6"}') from None
    raise strict.wrong(place, "it is neither an ε (with a δ) nor a ρ", '{"epsilon": "1"}, or {"rho": "0.1"}')


def _hours(value: object, place: str) -> Hours:
    found = _parts(value, place, {"days": _tuple(_day), "from": _minute, "to": _minute})
    start, end = found.get("from", 0), found.get("to", 24 * 60)
    if start >= end:
        raise strict.wrong(place, "it ends before it begins", "two entries, one until 24:00 and one from 00:00")
    return Hours(days=tuple(sorted(set(found.get("days", range(7))))), start=start, end=end)


def _day(value: object, place: str) -> int:
    if value not in DAYS:
        raise strict.wrong(place, "it is not a day of the week", ", ".join(DAYS))
    return DAYS.index(str(value))


def _minute(value: object, place: str) -> int:
    text = value if isinstance(value, str) and value.isascii() else ""
    hour, colon, minute = text.partition(":")
    if not (colon and len(text) == len("08:00") and hour.isdigit() and minute.isdigit()):
        raise strict.wrong(place, "it is not a time of day", '"08:00"')
    found = int(hour) * 60 + int(minute)
    if int(minute) > 59 or found > 24 * 60:
        raise strict.wrong(place, "it is not a time of day", '"08:00"')
    return found


def _combination(value: object, place: str) -> Combination:
    parts = strict.items(value, place, _part)
    if len(set(parts)) < 2:
        raise strict.wrong(
            place, "a combination has two different parts at least", '[{"object": "health"}, {"object": "census"}]'
        )
    return frozenset(parts)


def _part(value: object, place: str) -> Part:
    found = _parts(value, place, {"object": strict.identifier, "column": strict.identifier, "label": strict.name})
    if not found:
        raise strict.wrong(place, "it names nothing", '{"object": "health", "column": "diagnosis"}, or {"label": "clinical"}')
    return Part(**found)


def _source(value: object, place: str) -> Source:
    readers = {
        "object": strict.identifier,
        "version": strict.identifier,
        "columns": strict.identifiers,
        "behind": strict.identifiers,
        "institution": strict.name,
        "population": strict.identifier,
    }
    found = _parts(value, place, readers)
    if "object" not in found:
        raise strict.wrong(place, "it names no object", '{"object": "health"}')
    lists = {key: tuple(sorted(found.get(key, frozenset()))) for key in ("columns", "behind")}
    return Source(**{**found, **lists})


def _sensitivity(value: object, place: str) -> str:
    if value not in SENSITIVITIES[1:]:
        raise strict.wrong(place, "it is not one of the levels", ", ".join(SENSITIVITIES[1:]))
    return str(value)


_MEMBERS: Mapping[str, _Reader] = {
    "people": strict.identifiers,
    "institutions": strict.names,
    "projects": strict.identifiers,
    "training": strict.names,
    "attributes": _attributes,
    "anybody": strict.flag,
}
_RULES: Mapping[str, _Reader] = {
    "actions": _set(_grantable),
    "purposes": strict.names,
    "not_before": strict.moment,
    "until": _end,
    "columns": strict.identifiers,
    "rows": strict.text,
    "share": _guarantee,
    "networks": _tuple(strict.network),
    "hours": _tuple(_hours),
    "risk": _number,
    "algorithms": strict.identifiers,
    "methods": _methods,
    "only_with": strict.identifiers,
}
_RULE: Mapping[str, _Reader] = {
    "title": strict.text,
    "institution": strict.name,
    "labels": strict.names,
    "populations": strict.identifiers,
    "for_institutions": strict.names,
    "actions": _set(_action),
    "deny": strict.flag,
    "epsilon_of_population": _number,
    "epsilon_of_allotment": _number,
    "delta": _number,
    "forbidden": _set(_combination),
    "training": strict.names,
    "second_factor": strict.flag,
    "purposes": strict.names,
    "networks": _tuple(strict.network),
    "methods": _methods,
}
_POLICY: Mapping[str, _Reader] = {
    "purposes": strict.names,
    "prohibitions": _set(_action),
    "labels": strict.names,
    "consent": strict.names,
    "sensitivity": _sensitivity,
    "retention": _end,
    "combinable_with": strict.identifiers,
    "forbidden": _set(_combination),
    "sources": _set(_source),
}
_WHERE = ("institution", "labels", "populations", "for_institutions", "actions")
_CEILINGS = ("epsilon_of_population", "epsilon_of_allotment", "delta")
_NEVER_CLOSED = frozenset({"policy.see", "policy.write"})
_MENDING = frozenset(
    {
        "dataset.see",
        "dataset.describe",
        "dataset.manage",
        "dataset.delete",
        "dataset.grant",
        "dataset.revoke",
        "dataset.uses",
        "budget.see",
        "budget.charges",
        "contribution.see",
        "contribution.manage",
        "access.see",
        "trail.own",
        "trail.read",
    }
)
"""What is left of data whose policy can't be read. Who is let in meanwhile comes no further than anybody else."""
