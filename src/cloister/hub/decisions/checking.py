"""The second gate: may this person do this to that object, in this context? Denials say the rule and whom to ask."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from zoneinfo import ZoneInfo

from sqlalchemy.orm import Session

from cloister.errors import AccessDenied, Missing
from cloister.hub.decisions.facts import Facts, facts_of, inside, project_of, who_of
from cloister.hub.decisions.policy import Context, Decision, Object, Spend, actions, decide, decide_together, denied
from cloister.hub.hub import Caller, Hub
from cloister.hub.records.accounts import Person


def context_of(
    hub: Hub,
    caller: Caller,
    *,
    purpose: str = "",
    columns: Mapping[str, frozenset[str]] | None = None,
    spend: Mapping[str, Spend] | None = None,
    algorithm: str = "",
    project: str = "",
    risk: Fraction | None = None,
    behind: Mapping[str, frozenset[str]] | None = None,
    method: str = "",
) -> Context:
    """When, from where, for what and with what a caller acts."""
    return Context(
        now=hub.now().astimezone(ZoneInfo(hub.settings.zone)),
        address=caller.address,
        purpose=purpose,
        columns=columns or {},
        spend=spend or {},
        algorithm=algorithm,
        project=project,
        risk=risk,
        behind=behind or {},
        method=method,
    )


def allowed(
    hub: Hub, db: Session, caller: Caller, action: str, which: Object | None = None, context: Context | None = None
) -> Decision:
    """The decision, whatever it is."""
    facts, given = facts_of(hub, db), context or context_of(hub, caller)
    seen = None if which is None else _seen(which, action, given)
    return decide(who_of(caller, facts), action, seen, given, facts.mandatory)


def check(
    hub: Hub, db: Session, caller: Caller, action: str, which: Object | None = None, context: Context | None = None
) -> Decision:
    """The decision where it is a yes; a no is raised as `AccessDenied`, with its rule."""
    decision = allowed(hub, db, caller, action, which, context)
    if not decision.allowed:
        raise refusal_of(db, decision)
    return decision


def check_together(
    hub: Hub, db: Session, caller: Caller, action: str, objects: Sequence[Object], context: Context, facts: Facts | None = None
) -> Mapping[str, Decision]:
    """One act on several objects at once, by object: each must allow it beside all the others; and where an algorithm does it,
    its provider must have granted that beside all of them.

    "U3 may run A1 on D1, and nothing else" is two grants: on A1, to run it with D1 only; on D1, to run A1 only.
    """
    facts = facts or facts_of(hub, db)
    if context.algorithm and (actions()[action].as_algorithm or actions()[action].by_algorithm):
        which = facts.algorithms.get(context.algorithm)
        if which is None:
            raise no_algorithm()
        check(hub, db, caller, "algorithm.run", which, replace(context, together=tuple(objects)))
    decisions = allowed_together(hub, db, caller, action, objects, context, facts)
    for each in decisions.values():
        if not each.allowed:
            raise refusal_of(db, each)
    return decisions


def allowed_together(
    hub: Hub, db: Session, caller: Caller, action: str, objects: Sequence[Object], context: Context, facts: Facts | None = None
) -> Mapping[str, Decision]:
    """The decisions on one act on several objects at once, by object, whatever they are."""
    facts = facts or facts_of(hub, db)
    seen = [_seen(each, action, context) for each in objects] if context.project else objects
    return decide_together(who_of(caller, facts), action, seen, context, facts.mandatory)


def own_project(hub: Hub, db: Session, caller: Caller, named: str, *, closed: bool = False) -> str:
    """The id of a project that somebody is in, from its name or its id; empty for none. `closed`: a closed one, too."""
    facts = facts_of(hub, db)
    project, mine = project_of(facts, caller, named), caller.projects if closed else caller.projects & facts.projects.keys()
    if project and project not in mine:
        raise Missing("There is no such project", why="it does not exist, or you are not a member of it", instead="/projects")
    return project


def no_algorithm() -> Missing:
    """An algorithm that is not there, was withdrawn, or may not be seen: which of these, nobody is told."""
    return Missing("There is no such algorithm", why="it does not exist, or is not open to you", instead="/algorithms")


def _seen(which: Object, action: str, context: Context) -> Object:
    """What reads data inside a project does so by what was granted to the project, not by what the person may besides."""
    return inside(which, context.project) if context.project and actions()[action].data else which


def refusal_of(db: Session, decision: Decision) -> AccessDenied:
    """A no as the error that leaves, with the rule, and the name of whom to ask."""
    person = db.get(Person, decision.ask.person) if decision.ask is not None and decision.ask.person else None
    error = denied(decision, name="" if person is None else person.name)
    error.rule = decision.rule
    return error
