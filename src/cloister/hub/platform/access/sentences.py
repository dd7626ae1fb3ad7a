"""Grants and rules of the institution as sentences that people read: pure functions of the facts, the names and the language."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import TypeAlias

from cloister.hub.decisions.policy import Action, GrantFacts, Hours, MandatoryRule, Members, Part, actions
from cloister.hub.decisions.policy.facts import clock
from cloister.hub.decisions.policy.methods import offered
from cloister.hub.platform.access.days import day_begun
from cloister.hub.platform.access.drafts import purpose_named
from cloister.hub.platform.access.names import Names
from cloister.hub.web.languages import N_, NC_
from cloister.learn.frame.catalogue import Method
from cloister.privacy.rational import text_of

Gettext: TypeAlias = Callable[[str], str]
_DAYS = (N_("Mon"), N_("Tue"), N_("Wed"), N_("Thu"), N_("Fri"), N_("Sat"), N_("Sun"))


@dataclass(frozen=True, kw_only=True)
class GrantSentence:
    """One condition: what it is about, what it says, and the moment where it is one."""

    name: str
    text: str
    moment: datetime | None = None


def members_text(members: Members, names: Names, _: Gettext = str) -> str:
    """Who is in a grant, as the beginning of a sentence.

    >>> members_text(Members(institutions=frozenset({"North"}), training=frozenset({"GCP"})), Names())
    'everyone of North, with a valid certificate: GCP'
    """
    parts = []
    if members.anybody:
        parts.append(_("everyone who has signed in"))
    if members.people is not None:
        parts.append(_joined((names.person(each) for each in members.people), _) or _("no one"))
    if members.institutions is not None:
        parts.append(_("everyone of {names}").format(names=_joined(members.institutions, _)))
    if members.projects is not None:
        parts.append(_("the members of the project {names}").format(names=_joined(map(names.project, members.projects), _)))
    if not parts:
        parts.append(_("everyone"))
    if members.training:
        parts.append(_("with a valid certificate: {names}").format(names=", ".join(sorted(members.training))))
    if members.attributes:
        told = ", ".join(f"{name} = {value}" for name, value in sorted(members.attributes.items()))
        parts.append(_("with {names}").format(names=told))
    return ", ".join(parts)


def grant_lines(grant: GrantFacts, names: Names, _: Gettext = str) -> list[GrantSentence]:
    """What those in a grant may do, and under which conditions, one line each.

    >>> from cloister.hub.decisions.policy import Rules
    >>> rules = Rules(actions=frozenset({"question.ask"}), purposes=frozenset({"research"}), rows="age >= 18")
    >>> for line in grant_lines(GrantFacts(id="g1", role="reader", members=Members(anybody=True), rules=rules), Names()):
    ...     print(line.name, "-", line.text)
    May - Run a query
    For - research
    Rows - only those with age >= 18
    """
    rules = grant.rules
    lines = [GrantSentence(name=_("May"), text=_titles(rules.actions, actions(), _))]
    if rules.purposes is not None:
        purposes = _either((purpose_named(each, _) for each in rules.purposes), _)
        lines.append(GrantSentence(name=_("For"), text=purposes or _("no purpose")))
    if rules.not_before is not None:
        lines.append(_begins(rules.not_before, names, _))
    if rules.until is not None:
        lines.append(_ends(rules.until, names, _))
    if rules.hours is not None:
        lines.append(GrantSentence(name=_("Hours"), text="; ".join(_hours(each, names, _) for each in rules.hours)))
    if rules.networks is not None:
        lines.append(GrantSentence(name=_("Networks"), text=", ".join(str(each) for each in rules.networks)))
    return lines + [GrantSentence(name=name, text=text) for name, text in _reach(grant, names, _)]


def _begins(moment: datetime, names: Names, _: Gettext) -> GrantSentence:
    """From when a grant holds: a day where it begins with one, on the hub's clock."""
    day = day_begun(moment, names.zone)
    if day is None:
        return GrantSentence(name=_("From"), text="", moment=moment)
    return GrantSentence(name=_("From"), text=_("the beginning of {day} ({zone})").format(day=day, zone=names.zone))


def _ends(moment: datetime, names: Names, _: Gettext) -> GrantSentence:
    """Until when: a day where it ends with one."""
    day = day_begun(moment, names.zone)
    if day is None or day == date.min:
        return GrantSentence(name=_("Until"), text="", moment=moment)
    last = day - timedelta(days=1)
    return GrantSentence(name=_("Until"), text=_("the end of {day} ({zone})").format(day=last, zone=names.zone))


def rule_lines(rule: MandatoryRule, names: Names, _: Gettext = str) -> list[GrantSentence]:
    """Where a rule of the institution applies, and what it demands there.

    >>> rule = MandatoryRule(id="m1", labels=frozenset({"clinical"}), second_factor=True)
    >>> [(line.name, line.text) for line in rule_lines(rule, Names())]
    [('Where', 'data labelled clinical'), ('Requires', 'two-step verification')]
    """
    where = []
    if rule.institution:
        where.append(_("the data of {names}").format(names=rule.institution))
    if rule.labels:
        where.append(_("data labelled {names}").format(names=_either(rule.labels, _)))
    if rule.populations is not None:
        where.append(_("the population {names}").format(names=_either(rule.populations, _)))
    if rule.for_institutions is not None:
        where.append(_("people of {names}").format(names=_either(rule.for_institutions, _)))
    lines = [GrantSentence(name=_("Where"), text=", ".join(where) or _("everywhere"))]
    if rule.actions is not None:
        lines.append(GrantSentence(name=_(NC_("actions", "To")), text=_titles(rule.actions, actions(), _)))
    lines += [GrantSentence(name=_("Requires"), text=text) for text in _demands(rule, _)]
    lines += [
        GrantSentence(name=_("Never together"), text=" + ".join(_part(part, names, _) for part in sorted(each)))
        for each in sorted(rule.forbidden, key=sorted)
    ]
    return lines


def _demands(rule: MandatoryRule, _: Gettext) -> Iterable[str]:
    if rule.deny:
        yield _("never allowed")
    if rule.epsilon_of_population is not None:
        yield _("a population spends at most ε = {number}").format(number=text_of(rule.epsilon_of_population))
    if rule.epsilon_of_allotment is not None:
        yield _("no share is above ε = {number}").format(number=text_of(rule.epsilon_of_allotment))
    if rule.delta is not None:
        yield _("δ is at most {number}").format(number=text_of(rule.delta))
    if rule.purposes is not None:
        yield _("the purpose is {names}").format(names=_either((purpose_named(each, _) for each in rule.purposes), _) or "–")
    if rule.training:
        yield _("a valid certificate: {names}").format(names=", ".join(sorted(rule.training)))
    if rule.second_factor:
        yield _("two-step verification")
    if rule.methods is not None:
        yield _("a model is trained by one of these methods: {names}").format(names=_titles(rule.methods, offered(), _))
    if rule.networks is not None:
        yield _("from these networks: {names}").format(names=", ".join(str(each) for each in rule.networks) or "–")


def _reach(grant: GrantFacts, names: Names, _: Gettext) -> Iterable[tuple[str, str]]:
    rules = grant.rules
    if rules.columns is not None:
        yield _("Columns"), ", ".join(sorted(rules.columns)) or _("none")
    if rules.rows:
        yield _("Rows"), _("only those with {condition}").format(condition=rules.rows)
    if rules.share is not None:
        many = grant.members.projects is not None  # the ledger counts what they draw as one
        told = _("{number} for all members of a project together") if many else _("{number} each person")
        yield _("Share of the budget"), told.format(number=rules.share)
    if rules.risk is not None:
        yield _("Risk"), _("at most {number}").format(number=text_of(rules.risk))
    if rules.algorithms is not None:
        yield _("Algorithms"), ", ".join(sorted(map(names.object, rules.algorithms))) or _("none")
    if rules.methods is not None:
        yield _("Methods"), _titles(rules.methods, offered(), _)
    if rules.only_with is not None:
        other = ", ".join(sorted(map(names.object, rules.only_with)))
        yield _("Together with"), _("only {names}").format(names=other) if other else _("nothing else")


def _titles(names: Iterable[str], known: Mapping[str, Action | Method], _: Gettext) -> str:
    return ", ".join(_(known[name].title) if name in known else name for name in sorted(names))


def _hours(hours: Hours, names: Names, _: Gettext) -> str:
    days = _("every day") if len(hours.days) == len(_DAYS) else ", ".join(_(_DAYS[day]) for day in hours.days)
    return f"{days} {clock(hours.start)}–{clock(hours.end)} {names.zone}"  # the hub's clock, which decides (`Hours.hold`)


def _part(part: Part, names: Names, _: Gettext) -> str:
    name = ".".join(each for each in (names.object(part.object) if part.object else "", part.column) if each)
    label = _("labelled {names}").format(names=part.label) if part.label else ""
    return f"{name} ({label})" if name and label else name or label


def _joined(names: Iterable[str], _: Gettext, word: str = N_("{first} and {last}")) -> str:
    known = sorted(names)
    if len(known) < 2:
        return "".join(known)
    return _(word).format(first=", ".join(known[:-1]), last=known[-1])


def _either(names: Iterable[str], _: Gettext) -> str:
    return _joined(names, _, N_("{first} or {last}"))
