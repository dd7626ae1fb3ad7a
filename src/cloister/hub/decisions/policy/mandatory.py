"""What stands above the owner: the institution's rules, and the policies that are attached to the data themselves.

Each function gives the first refusal, or None. A fact that is missing counts against whoever asks: a purpose that is not stated
is none of those allowed, and of an object whose touched columns are not stated all columns count as touched.

A rule says "ward". Anyone who opens a population chooses its name, so a rule has to hold however the name is spelled: letters of
another width or case, and blanks more or less, make no other population of it. A window of a data set has a population of its
own, "ward 2026-Q1". A rule on "ward" governs each of them by itself, since each has a budget of its own and the promise is per
person and window.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any

from cloister.errors import CloisterError
from cloister.hub.decisions.policy.actions import Action, actions
from cloister.hub.decisions.policy.decision import Ask, No
from cloister.hub.decisions.policy.facts import Combination, Context, MandatoryRule, Object, Part, Policy, Who
from cloister.hub.decisions.policy.strict import Network
from cloister.privacy import ZCDP, Guarantee, text_of

_WINDOW = re.compile(r"(.+) (?:\d{4}|\d{4}-q[1-4]|\d{4}-(?:0[1-9]|1[0-2]))", re.ASCII)

_CEILINGS = ("epsilon_of_population", "epsilon_of_allotment", "delta")
_NEVER_CLOSED = frozenset({"policy.see", "policy.write"})
_MENDING = frozenset(
    {
        *("dataset.see", "dataset.describe", "dataset.manage", "dataset.delete", "dataset.grant", "dataset.revoke"),
        *("dataset.uses", "budget.see", "budget.charges", "contribution.see", "contribution.manage"),
        *("access.see", "trail.own", "trail.read"),
    }
)
"""What is left of data whose policy can't be read. Who is let in meanwhile comes no further than anybody else."""


def by_institution(
    who: Who, action: Action, which: Object | None, context: Context, rules: Sequence[MandatoryRule], labels: frozenset[str]
) -> No | None:
    """The first of the institution's rules that refuses this, for an object that bears these labels.

    >>> from datetime import UTC, datetime
    >>> from cloister.hub.decisions.policy.actions import actions
    >>> rule = MandatoryRule(id="m1", labels=frozenset({"clinical"}), second_factor=True)
    >>> facts = Who(id="p1"), actions()["question.ask"], Object(kind="dataset", id="d1"), Context(now=datetime.now(UTC))
    >>> by_institution(*facts, [rule], frozenset({"clinical"})).reason, by_institution(*facts, [rule], frozenset())
    ('second-factor', None)
    """
    items: list[Touched] | None = None
    totals: list[_Total] | None = None
    for rule in rules:
        if not governs(rule, who, which, labels):
            continue
        applies = action.data if rule.actions is None else action.name in rule.actions
        found = _demanded(rule, who, action, context) if applies else None
        if found is None and context.spend and (applies or rule.actions is None):
            totals = _totals(context) if totals is None else totals
            found = _ceilings(rule, which, totals)
        if found is None and applies and which is not None and rule.forbidden:
            items = touched(action, which, context) if items is None else items
            found = combined(rule.forbidden, items, _names(which, context))
        if found is not None:
            reason, details = found
            ask = Ask(role="steward", institution=rule.institution or (which.institution if which else ""))
            return No(rule=f"mandatory:{rule.id}", reason=reason, details=details, ask=ask)
    return None


def by_policy(action: Action, which: Object, context: Context, policy: Policy, rule: str) -> No | None:
    """Why a policy that is attached to an object refuses this; who owns the object is bound by it too. A policy with sources is
    one that a release carries: then a steward is whom to ask, and not the owner, who can't change it. One that a data provider
    attached to what they gave is theirs to change.

    >>> from datetime import UTC, datetime
    >>> from cloister.hub.decisions.policy.actions import actions
    >>> policy, health = Policy(prohibitions=frozenset({"learn.run"})), Object(kind="dataset", id="d1")
    >>> by_policy(actions()["learn.run"], health, Context(now=datetime.now(UTC)), policy, "policy:d1").reason
    'prohibited'
    """
    reason, details = "", {}
    if action.name in policy.prohibitions:
        reason = "prohibited"
    elif action.data and policy.retention is not None and context.now >= policy.retention:
        reason = "retention"
    elif _wrong_purpose(policy.purposes, context, strict=action.data):
        reason, details = "purpose", {"purposes": listed(policy.purposes or frozenset())}
    else:
        forbidden = policy.forbidden
        found = combined(forbidden, touched(action, which, context), _names(which, context)) if forbidden else None
        found = found or _not_combinable(policy, which, context)
        if found is None:
            return None
        reason, details = found
    if policy.sources:  # it came with a release: whoever owns what carries it can't change it
        return No(rule=rule, reason=reason, details=details, ask=Ask(role="steward", institution=which.institution))
    if policy.given:
        return No(rule=rule, reason=reason, details=details, ask=Ask(role="provider", institution=which.institution))
    return No(rule=rule, reason=reason, details=details, ask=Ask(role="owner", person=which.owner, institution=which.institution))


def in_networks(address: str, networks: tuple[Network, ...]) -> bool:
    """Whether an address lies in one of the networks; what is no address lies in none.

    >>> from ipaddress import ip_network
    >>> [in_networks(each, (ip_network("10.0.0.0/8"),)) for each in ("10.1.2.3", "::ffff:10.1.2.3", "11.0.0.1", "", "localhost")]
    [True, True, False, False, False]
    """
    found = _address(address)
    return found is not None and any(found in network for network in networks)


def missing_training(needed: frozenset[str], who: Who, now: datetime) -> frozenset[str]:
    """The certificates that are needed and that the person does not have, or no longer.

    >>> from datetime import UTC
    >>> missing_training(frozenset({"GCP"}), Who(id="p1"), datetime.now(UTC))
    frozenset({'GCP'})
    """
    held = who.training
    return frozenset([each for each in needed if each not in held or now >= held[each]])


def governs(rule: MandatoryRule, who: Who, which: Object | None, labels: frozenset[str]) -> bool:
    """Whether a rule applies to somebody and an object that bears these labels.

    >>> governs(MandatoryRule(id="m1", institution="north"), Who(id="p1"), Object(kind="data-set", id="d1"), frozenset())
    False
    """
    if rule.for_institutions is not None and who.institution not in rule.for_institutions:
        return False
    if which is None:
        return not (rule.institution or rule.labels or rule.populations is not None)
    if rule.institution and which.institution != rule.institution:
        return False
    if rule.populations is not None and not among(which.population, rule.populations):
        return False
    return not rule.labels or bool(rule.labels & labels)


@lru_cache(maxsize=4096)
def alike(name: str) -> str:
    """A name in the one form in which names of populations are compared.

    >>> alike("WARD "), alike("ｗａｒｄ"), alike("Straße  2")
    ('ward', 'ward', 'strasse 2')
    """
    folded = unicodedata.normalize("NFKC", name).casefold()
    return " ".join(unicodedata.normalize("NFKC", folded).split())


@lru_cache(maxsize=4096)
def among(population: str, names: frozenset[str]) -> bool:
    """Whether names of a rule mean a population: by its own name, or by the one whose window it is.

    >>> [among(each, frozenset({"ward"})) for each in ("ward", "WARD", "ward 2026-Q1", "wards", "ward b", "")]
    [True, True, True, False, False, False]
    >>> among("ward", frozenset({"ward 2026-Q1"}))
    False
    """
    wanted, found = {alike(each) for each in names}, alike(population)
    while found not in wanted:
        window = _WINDOW.fullmatch(found)
        if window is None:
            return False
        found = window[1]
    return True


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
    for key in ("title", *MandatoryRule.where, *_CEILINGS):
        if key in said:
            try:
                found[key] = MandatoryRule.forms()[key].read(said[key], key)
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


_Found = tuple[str, dict[str, str]]


def _demanded(rule: MandatoryRule, who: Who, action: Action, context: Context) -> _Found | None:
    if rule.deny:
        return "denied", {}
    if rule.second_factor and not who.second_factor:
        return "second-factor", {}
    missing = missing_training(rule.training, who, context.now) if rule.training else None
    if missing:
        return "training", {"training": listed(missing)}
    if _wrong_purpose(rule.purposes, context, strict=True):
        return "purpose", {"purposes": listed(rule.purposes or frozenset())}
    if rule.networks is not None and not in_networks(context.address, rule.networks):
        return "network", {}
    if rule.methods is not None and action.by_method and context.method not in rule.methods:
        return "method", {"methods": listed(rule.methods)}
    return None


@dataclass(frozen=True, slots=True)
class _Total:
    """What a population, or a share of it, would come to; None where the guarantees do not add up."""

    population: str
    of_allotment: bool
    guarantee: Guarantee | None


def _totals(context: Context) -> list[_Total]:
    found = []
    for name, spend in context.spend.items():
        for of_allotment, before, total in ((False, spend.spent, spend.budget), (True, spend.drawn, spend.allotment)):
            if spend.asked is not None:
                found.append(_Total(name, of_allotment, _sum(before, spend.asked)))
            if total is not None:
                found.append(_Total(name, of_allotment, total))
    return found


def _sum(before: Guarantee | None, asked: Guarantee) -> Guarantee | None:
    try:
        return asked if before is None else before + asked
    except CloisterError:
        return None


def _ceilings(rule: MandatoryRule, which: Object | None, totals: Sequence[_Total]) -> _Found | None:
    """What passes a ceiling, or can't be compared with it: what can't be checked is refused."""
    if rule.epsilon_of_population is None and rule.epsilon_of_allotment is None and rule.delta is None:
        return None
    narrow = which.population if which is not None and (rule.labels or rule.institution) else ""
    for each in totals:
        if narrow and each.population != narrow:
            continue
        if rule.populations is not None and not among(each.population, rule.populations):
            continue
        if each.guarantee is None:
            return "no-ceiling", {}
        if rule.delta is not None and each.guarantee.delta > rule.delta:
            return "delta", {"delta": text_of(rule.delta)}
        ceiling = rule.epsilon_of_allotment if each.of_allotment else rule.epsilon_of_population
        if ceiling is None:
            continue
        epsilon = _epsilon_of_rho(each.guarantee, rule.delta) if isinstance(each.guarantee, ZCDP) else each.guarantee.epsilon
        if epsilon is None:
            return "no-ceiling", {}
        if epsilon > ceiling:
            return ("ceiling-allotment" if each.of_allotment else "ceiling-population"), {"ceiling": text_of(ceiling)}
    return None


@lru_cache(maxsize=1024)
def _epsilon_of_rho(guarantee: ZCDP, delta: Fraction | None) -> Fraction | None:
    """The ε of a ρ depends on the δ that the rule allows, and without one there is none."""
    try:
        return guarantee.to_approx(delta or 0).epsilon
    except CloisterError:
        return None


def _wrong_purpose(purposes: frozenset[str] | None, context: Context, *, strict: bool) -> bool:
    return purposes is not None and (strict or context.purpose != "") and context.purpose not in purposes


Touched = tuple[str, frozenset[str] | None, frozenset[str]]


def touched(action: Action, which: Object, context: Context) -> list[Touched]:
    """All that the act touches: objects asked together and what they were derived from, each with its columns (None: all) and
    its labels. What reads no rows touches only the columns that are stated.

    >>> from datetime import UTC, datetime
    >>> from cloister.hub.decisions.policy.actions import actions
    >>> touched(actions()["question.ask"], Object(kind="dataset", id="d1"), Context(now=datetime.now(UTC)))
    [('d1', None, frozenset())]
    """
    found: list[Touched] = []
    for each in (which, *context.together):
        columns = context.columns.get(each.id, (each.columns or None) if action.data else frozenset())
        if columns is not None:
            columns |= context.behind.get(each.id, frozenset())
        labels = labels_of(each, columns)
        found.append((each.id, columns, labels))
        found.extend(
            (source.object, frozenset(source.columns + source.behind) or None, labels)
            for policy in each.policies
            for source in policy.sources
        )
    return found


def labels_of(which: Object, columns: frozenset[str] | None) -> frozenset[str]:
    """The labels of an object, of what is attached to it, and of those of its columns that are touched (None: all).

    >>> labels_of(Object(kind="dataset", id="d1", column_policies={"gene": Policy(labels=frozenset({"genetic"}))}), None)
    frozenset({'genetic'})
    """
    if not which.policies and not which.column_policies:
        return which.labels
    attached = [policy.labels for policy in which.policies]
    attached += [policy.labels for name, policy in which.column_policies.items() if columns is None or name in columns]
    return which.labels.union(*attached)


def combined(
    forbidden: frozenset[Combination], items: Sequence[Touched], names: Mapping[str, str] | None = None
) -> _Found | None:
    """The first combination of which every part is touched. `names`: of the objects that are asked, by id; what they were made
    from keeps its id, since whoever asks need not know that it exists.

    >>> pair = frozenset({Part(object="health"), Part(object="census", column="postcode")})
    >>> health, census = ("health", None, frozenset()), ("census", frozenset({"age"}), frozenset())
    >>> combined(frozenset({pair}), [health, census]) is None
    True
    """
    for combination in sorted(forbidden, key=sorted) if len(forbidden) > 1 else forbidden:
        if all(_met(part, items) for part in combination):
            return "combination", {"parts": ", ".join(_shown(part, names or {}) for part in sorted(combination))}
    return None


def _met(part: Part, items: Sequence[Touched]) -> bool:
    for name, columns, labels in items:
        fits = (not part.object or part.object == name) and (not part.label or part.label in labels)
        if fits and (not part.column or columns is None or part.column in columns):
            return True
    return False


def _not_combinable(policy: Policy, which: Object, context: Context) -> _Found | None:
    if policy.combinable_with is None:
        return None
    fine = {*policy.combinable_with, which.id, *_ancestors(which)}
    for other in context.together:
        ancestors = set(_ancestors(other))
        if other.id not in fine and not (ancestors and ancestors <= fine):
            return "not-combinable", {"object": other.name or other.id}
    return None


def _ancestors(which: Object) -> Iterator[str]:
    return (source.object for policy in which.policies for source in policy.sources)


@lru_cache(maxsize=4096)
def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        found = ip_address(text)
    except ValueError:
        return None
    return (found.ipv4_mapped or found) if isinstance(found, IPv6Address) else found


def _names(which: Object, context: Context) -> dict[str, str]:
    """The names of what is asked for, which whoever asks has said."""
    return {each.id: each.name or each.id for each in (which, *context.together)}


def _shown(part: Part, names: Mapping[str, str]) -> str:
    name = ".".join(each for each in (names.get(part.object, part.object), part.column) if each)
    return f"{name} ({part.label})" if name and part.label else name or part.label


def listed(names: Iterable[str]) -> str:
    """Names as a sentence shows them.

    >>> listed({"b", "a"})
    'a, b'
    """
    return ", ".join(sorted(names))
