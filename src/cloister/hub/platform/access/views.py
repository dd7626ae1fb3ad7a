"""What the pages and the API show of grants, requests and rules: rows with their sentences, in the reader's language.

Grants that promise what a rule of the institution denies. The rule wins; an owner and a steward want to know.

Each grant is put to the policy itself, once without the rule and once with it, as somebody whom the grant is meant for: what is
allowed without and denied with the rule is a conflict. Whether one person misses a second factor is not.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import product
from typing import Annotated, Any

from pydantic import BaseModel, Field, PlainSerializer
from sqlalchemy import select
from sqlalchemy.orm import Session

from cloister.hub.database import Database, damaged_rows
from cloister.hub.decisions.callers import caller_for
from cloister.hub.decisions.checking import allowed, context_of
from cloister.hub.decisions.facts import Facts, read_facts
from cloister.hub.decisions.policy import (
    Context,
    Decision,
    GrantFacts,
    MandatoryRule,
    Object,
    Spend,
    Who,
    actions,
    decide,
    whom,
    words,
)
from cloister.hub.decisions.policy.actions import ANYBODY
from cloister.hub.description import read_of
from cloister.hub.hub import Hub
from cloister.hub.platform.access.drafts import grantable
from cloister.hub.platform.access.granting import state_of_grant
from cloister.hub.platform.access.names import names_in
from cloister.hub.platform.access.requests import states_of
from cloister.hub.platform.access.sentences import Gettext, GrantSentence, grant_lines, members_text, rule_lines
from cloister.hub.records.access import AccessRequest, Grant, InstitutionRule
from cloister.hub.records.accounts import Person
from cloister.hub.records.policies import Unreadable, grant_in_row, rule_in_row, wanted_in_row
from cloister.hub.web.languages import N_


def _told(lines: list[GrantSentence]) -> list[str]:
    return [f"{line.name}: {line.text or (line.moment.isoformat() if line.moment else '')}" for line in lines]


Says = Annotated[list[GrantSentence], PlainSerializer(_told)]
"""Conditions as a page shows them; programs are told each as a text."""


class GrantOut(BaseModel):
    """A grant, with its sentences."""

    id: str
    role: str
    who: str
    says: Says
    state: str
    granted_by: str
    created: datetime
    grant: dict[str, Any]
    no_account: Annotated[tuple[str, ...], Field(exclude=True)] = ()
    """Addresses that it names and nobody has here, while it holds; looked up only for someone who may see who uses the hub."""


class MessageOut(BaseModel):
    """What somebody said."""

    who: str
    text: str
    created: datetime


class RequestOut(BaseModel):
    """A request for access."""

    id: str
    data_set: str
    who: str
    institution: Annotated[str, Field(exclude=True)]
    project: str
    purpose: str
    says: Says
    state: str
    created: datetime
    decided: datetime | None
    decided_by: Annotated[str, Field(exclude=True)]
    messages: list[MessageOut] = []


class RuleOut(BaseModel):
    """A rule of the institution."""

    id: str
    title: str
    says: Says
    by: Annotated[str, Field(exclude=True)]
    created: datetime
    ended: datetime | None
    rule: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class ConflictView:
    """A grant that a rule stands against."""

    object: Object
    role: str
    who: str
    rule: str
    why: list[str]


@dataclass(frozen=True, kw_only=True)
class UnreadableView:
    """A grant, a rule, a policy or a row that is stored and can't be read."""

    title: str
    why: str


def grant_views(hub: Hub, db: Session, rows: Iterable[Grant], _: Gettext = str, *, accounts: bool = False) -> list[GrantOut]:
    """Grants with their sentences, in the order given; with `accounts`, which of their addresses nobody has."""
    found = [(row, *grant_in_row(row)) for row in rows]
    named = {each for _row, facts, _unread in found for each in facts.members.people or () if "@" in each} if accounts else set()
    nobody = named - set(db.scalars(select(Person.email).where(Person.email.in_(named)))) if named else frozenset[str]()
    names = replace(names_in(db, (facts for _row, facts, _unread in found)), zone=hub.settings.zone)
    return [
        GrantOut(
            id=row.id,
            role=row.role,
            who=members_text(facts.members, names, _) if unread is None else _("no one"),
            says=grant_lines(facts, names, _) if unread is None else [_not_read(unread, _)],
            state=state,
            granted_by=names.person(row.granted_by),
            created=row.created,
            grant=facts.to_dict(),
            no_account=tuple(sorted(nobody & (facts.members.people or frozenset()))) if state in ("active", "waiting") else (),
        )
        for row, facts, unread in found
        for state in (state_of_grant(hub, facts) if unread is None or facts.revoked else "unreadable",)
    ]


def request_views(hub: Hub, db: Session, rows: Iterable[AccessRequest], _: Gettext = str) -> list[RequestOut]:
    """Requests with what they ask for, in the order given."""
    listed = list(rows)
    found = names_in(db, people=[each for row in listed for each in (row.person, row.decided_by)])
    names = replace(found, zone=hub.settings.zone)
    places = _institutions(db, {row.person for row in listed})
    wanted, states = {row.id: wanted_in_row(row) for row in listed}, states_of(hub, db, listed)
    return [
        RequestOut(
            id=row.id,
            data_set=names.object(row.data_set),
            who=names.person(row.person),
            institution=places.get(row.person, ""),
            project=names.project(row.project) if row.project else "",
            purpose=row.purpose,
            says=[_not_read(unread, _)] if (unread := wanted[row.id][1]) else grant_lines(wanted[row.id][0], names, _),
            state=states[row.id],
            created=row.created,
            decided=row.decided,
            decided_by=names.person(row.decided_by) if row.decided_by else "",
        )
        for row in listed
    ]


def rule_views(db: Session, rows: Iterable[InstitutionRule], _: Gettext = str) -> list[RuleOut]:
    """Rules with their sentences, in the order given."""
    listed = list(rows)
    names = names_in(db, people=[row.made_by for row in listed])
    return [
        RuleOut(
            id=row.id,
            title=row.title,
            says=[*([_not_read(unread, _)] if unread else []), *rule_lines(rule, names, _)],
            by=names.person(row.made_by),
            created=row.created,
            ended=row.ended,
            rule=row.rule if isinstance(row.rule, dict) else {},
        )
        for row in listed
        for rule, unread in [rule_in_row(row)]
    ]


def conflict_views(db: Session, facts: Facts, objects: Iterable[Object], now: datetime, _: Gettext = str) -> list[ConflictView]:
    """Present grants on these objects that a rule stands against."""
    known = list(objects)
    grants = [grant for which in known for grant in which.grants]
    places = _institutions(db, {person for grant in grants for person in (grant.members.people or ())})
    names = names_in(db, grants)
    return [
        ConflictView(
            object=each.object,
            role=each.grant.role,
            who=members_text(each.grant.members, names, _),
            rule=each.rule.title,
            why=list(dict.fromkeys(words(decision, _) for decision in each.decisions)),
        )
        for each in conflicts(known, facts.mandatory, now, places)
    ]


def unreadable_views(db: Session, facts: Facts, _: Gettext = str) -> list[UnreadableView]:
    """Everything that is stored and can't be read, for anyone who looks after the hub."""
    if not facts.unreadable:
        return []
    names = names_in(db)
    kinds = {"grant": N_("A grant on {name}"), "rule": N_("The rule {name}"), "policy": N_("A policy of {name}")}
    found = []
    for each in facts.unreadable:
        name = each.about if each.kind == "rule" else names.object(each.about)
        found.append(UnreadableView(title=_(kinds[each.kind]).format(name=name), why=each.why))
    return found


def _not_read(unread: Unreadable, _: Gettext) -> GrantSentence:
    return GrantSentence(name=_("Unreadable"), text=unread.why)


def _institutions(db: Session, people: set[str]) -> dict[str, str]:
    rows = db.execute(select(Person.id, Person.institution).where(Person.id.in_(people)))
    return {row.id: row.institution for row in rows}


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

    >>> from cloister.hub.decisions.policy import Members, Rules
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
            if grant.revoked or (grant.rules.until is not None and grant.rules.until <= now):
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


def damaged_views(db: Session, _: Gettext = str) -> list[UnreadableView]:
    """Every row that can't be read."""
    why = _(N_("the row is damaged, or a later version wrote it"))
    return [UnreadableView(title=each, why=why) for each in damaged_rows(db)]


def every_unreadable_view(database: Database) -> list[tuple[str, str]]:
    """What of a hub can't be read, and why: grants, rules, policies and rows."""
    with database.reading() as db:
        return [(each.title, each.why) for each in unreadable_views(db, read_facts(db)) + damaged_views(db)]


class DecisionOut(BaseModel):
    """What somebody may do, and by which rule."""

    action: str
    title: Annotated[str, Field(exclude=True)]
    allowed: bool
    rule: str
    reason: str
    words: str
    ask: Annotated[str, Field(exclude=True)]
    narrowed: Annotated[Any, Field(exclude=True)]


def preview(
    hub: Hub,
    db: Session,
    person: Person,
    which: Object,
    *,
    purpose: str = "",
    address: str = "",
    method: str = "",
    gettext: Gettext = str,
) -> list[DecisionOut]:
    """The decision on every action that can be granted on an object, were this person to do it now: the policy answers, not a
    reading of it, by the same function on the same facts, in a context that the owner imagines. Their second factor counts as
    given where they have one.
    """
    caller = caller_for(hub, db, person.id)
    if caller is None:
        return []
    caller = replace(caller, address=address, second_factor=person.totp is not None)
    algorithm = which.id if which.kind == "algorithm" else ""
    context = context_of(hub, caller, purpose=purpose, algorithm=algorithm, method=method)
    found = []
    for name, title in grantable(which.kind):
        decision = allowed(hub, db, caller, name, which, context)
        told, asked = words(decision, gettext), whom(decision.ask, gettext)
        found.append(read_of(DecisionOut, decision, action=name, title=gettext(title), words=told, ask=asked))
    return found
