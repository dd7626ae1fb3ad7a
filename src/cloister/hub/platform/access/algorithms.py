"""Algorithms and services as objects with a policy of their own: registered by their provider, run by those to whom the provider
and the owner of the data both granted it.

An algorithm is a service of the hub with settings: what a request under it says besides. The service says which settings it
understands (`Service.algorithm`), and takes its requests under them (`named_algorithm`); without any settings, the algorithm is
the service itself. Whether somebody may run it is asked wherever the context names it (`checking.py`).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from cloister.errors import Conflict, InvalidDeclaration, InvalidParameter
from cloister.hub.decisions.checking import allowed, check, context_of, no_algorithm
from cloister.hub.decisions.facts import facts_of, who_of
from cloister.hub.decisions.policy import actions, decide, strict
from cloister.hub.decisions.policy.strict import load
from cloister.hub.generation import bump
from cloister.hub.hub import Caller, Hub
from cloister.hub.ids import new_id
from cloister.hub.platform.access.granting import own_algorithm
from cloister.hub.platform.trail import of_algorithm, write
from cloister.hub.records.access import Algorithm, GuestReview
from cloister.hub.records.accounts import Person
from cloister.hub.records.trail import AuditLine

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_LONGEST, _LARGEST = 2000, 2**53
_MOST_RUNS = 50
_PROGRAMS = ("code", "tests", "proof", "licence")
"""Settings of several lines."""


def checked_name(text: str) -> str:
    """The name of an algorithm or a project, as it stands in addresses.

    >>> checked_name("naive-bayes")
    'naive-bayes'
    """
    if not _NAME.fullmatch(text):
        why = "a name is 1 to 63 small letters, digits, '-' and '_', a letter first"
        raise InvalidDeclaration("name is invalid", why=why, instead='"naive-bayes"')
    return text


def settings_of(text: str, **programs: str) -> dict[str, Any]:
    """The settings of an algorithm, from JSON, and its code, tests, proof and licence, where it has some.

    >>> settings_of('{"rounds": 10, "rate": 0.1}')
    {'rounds': 10, 'rate': '0.1'}
    """
    found = load(text, "settings", '{"inputs": ["age"]}') if text.strip() else {}
    return exact_settings({**found, **{name: each for name, each in programs.items() if each.strip()}})


def exact_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as every database keeps them: texts, whole numbers and truth values, lists of them, and one level of them under a
    name; other numbers become exact texts.

    >>> exact_settings({"method": "Ridge", "parameters": {"alpha": 0.5}})
    {'method': 'Ridge', 'parameters': {'alpha': '0.5'}}
    """
    found: dict[str, Any] = {}
    for name, value in settings.items():
        key = strict.identifier(name, "settings")
        place = f"settings.{key}"
        if key in _PROGRAMS:
            found[key] = strict.program(value, place)
        elif isinstance(value, Mapping):
            found[key] = {strict.identifier(inner, place): _exact(each, f"{place}.{inner}") for inner, each in value.items()}
        else:
            found[key] = _exact(value, place)
    return found


def _exact(value: Any, place: str) -> Any:
    if isinstance(value, list):
        return strict.items(value, place, _simple)
    return _simple(value, place)


def _simple(value: Any, place: str) -> Any:
    if isinstance(value, float | Decimal):
        return str(value)
    if isinstance(value, bool | int) and abs(value) < _LARGEST:
        return value
    return strict.text(value, place)


def register_algorithm(
    hub: Hub,
    db: Session,
    caller: Caller,
    *,
    name: str,
    title: str,
    service: str,
    settings: Mapping[str, Any],
    about: str = "",
    version_of: str = "",
) -> Algorithm:
    """Register an algorithm of the caller's. Nobody else may see or run it before it is granted: so too a new version of one,
    which is an algorithm of its own, since a grant and an approval are for one text."""
    check(hub, db, caller, "algorithm.register")
    package, version = ("", 1) if not version_of else _next_version(hub, db, caller, version_of, service)
    services = {each.name: each.algorithm for each in hub.services if each.algorithm is not None}
    if service not in services:
        raise InvalidDeclaration(
            "service is invalid", why="this hub has none of that name that runs algorithms", instead=", ".join(sorted(services))
        )
    services[service](settings)
    if not title.strip() or len(title) > 200 or len(about) > _LONGEST:
        raise InvalidDeclaration("title is invalid", why="it has 1 to 200 characters", instead='"Naive Bayes"')
    row = Algorithm(
        id=new_id(),
        name=checked_name(name),
        title=title.strip(),
        about=about,
        provider=caller.id,
        service=service,
        package=package,
        version=version,
        settings=dict(settings),
        created=hub.now(),
    )
    try:
        with db.begin_nested():
            db.add(row)
    except IntegrityError:
        raise Conflict("The name is taken", why="an algorithm has it already", instead="another name") from None
    bump(db)
    write(hub, db, caller, "algorithm.register", kind="algorithm", object_id=row.id, name=row.name, service=service)
    return row


def _next_version(hub: Hub, db: Session, caller: Caller, name: str, service: str) -> tuple[str, int]:
    """The package of an algorithm of one's own, and the number of its next version."""
    row, _ = own_algorithm(hub, db, caller, name)
    if row.service != service:
        raise InvalidDeclaration("service is invalid", why="a version runs where the first one does", instead=f'"{row.service}"')
    package = row.package or row.name
    return package, versions_of(db, package)[0].version + 1


def next_version(db: Session, caller: Caller, name: str) -> tuple[Algorithm | None, str]:
    """The newest version of one's own package of that name, if there is one, and what the next one is called: `middle-2`."""
    newest = next((each for each in versions_of(db, name) if each.provider == caller.id), None)
    return newest, name if newest is None else f"{newest.package or newest.name}-{newest.version + 1}"


def versions_of(db: Session, package: str) -> list[Algorithm]:
    """Every version of a package, the newest first."""
    wanted = select(Algorithm).where((Algorithm.package == package) | (Algorithm.name == package))
    return list(db.scalars(wanted.order_by(Algorithm.version.desc())))


def withdraw_algorithm(hub: Hub, db: Session, caller: Caller, name: str) -> Algorithm:
    """Take an algorithm away: nobody runs it from the next moment on. Its name stays taken, for the audit log."""
    row, _ = own_algorithm(hub, db, caller, name)
    row.withdrawn = hub.now()
    bump(db)
    write(hub, db, caller, "algorithm.manage", kind="algorithm", object_id=row.id, name=row.name, withdrawn=True)
    return row


def algorithms_of(hub: Hub, db: Session, caller: Caller) -> list[Algorithm]:
    """The algorithms that a person may see, by name; their own withdrawn ones too."""
    facts = facts_of(hub, db)
    rows = db.scalars(select(Algorithm).order_by(Algorithm.name))
    return [
        row
        for row in rows
        if row.provider == caller.id
        or (row.id in facts.algorithms and allowed(hub, db, caller, "algorithm.see", facts.algorithms[row.id]).allowed)
    ]


def named_algorithm(hub: Hub, db: Session, caller: Caller, name: str, service: str) -> Algorithm:
    """The algorithm that a request to a service names, by its name or its id. One that was withdrawn, or that this person may
    not see, is missing. Whether they may run it on the data is another question, which `check_together` asks."""
    facts = facts_of(hub, db)
    which = next((each for each in facts.algorithms.values() if name in (each.id, each.name)), None)
    who = replace(who_of(caller, facts), token_scopes=None)  # anyone may know that it exists, whatever the token was made for
    if which is None or not decide(who, "algorithm.see", which, context_of(hub, caller), facts.mandatory).allowed:
        raise no_algorithm()
    row = db.get_one(Algorithm, which.id)
    if row.service != service:
        raise InvalidParameter(
            f"The algorithm {row.name!r} is invalid", why="it belongs to another service", instead=f"an algorithm of {service}"
        )
    return row


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run of an algorithm as its provider sees it: when, of which kind, for what, by whose institution, on which data set
    where they may know of it; never a value, and never who."""

    number: str
    """Of the release, where one was kept."""
    when: datetime
    action: str
    purpose: str
    institution: str
    data_sets: tuple[str, ...]


def runs_of(hub: Hub, db: Session, caller: Caller, row: Algorithm) -> list[Run]:
    """The newest runs of an algorithm of one's own."""
    wanted = select(AuditLine, Person.institution).outerjoin(Person, Person.id == AuditLine.person)
    wanted = wanted.where(of_algorithm(row.id), *_ran())
    lines = db.execute(wanted.order_by(AuditLine.number.desc()).limit(_MOST_RUNS))
    known = _known_sets(hub, db, caller)
    return [
        Run(
            number=line.object if line.kind == "algorithm-result" else "",
            when=line.when,
            action=line.action,
            purpose=line.purpose,
            institution=institution or "",
            data_sets=tuple(known[each] for each in line.details.get("data_sets", ()) if each in known),
        )
        for line, institution in lines
    ]


@dataclass(frozen=True)
class Standing:
    """How a review of one's algorithm stands at a data set that one knows of."""

    data_set: str
    approvals: int
    stopped: bool


def reviews_of(hub: Hub, db: Session, caller: Caller, row: Algorithm) -> list[Standing]:
    """Where an algorithm of one's own is reviewed, by name; who approved it, and why it was stopped, is for its reviewers."""
    found = list(db.scalars(select(GuestReview).where(GuestReview.algorithm == row.id)))
    known = _known_sets(hub, db, caller) if found else {}
    standing = [
        Standing(known[each.data_set], len(each.approvals or ()), each.stopped is not None)
        for each in found
        if each.data_set in known
    ]
    return sorted(standing, key=lambda each: each.data_set)


def _known_sets(hub: Hub, db: Session, caller: Caller) -> dict[str, str]:
    """The names of the data sets that one knows of, by id."""
    sets = facts_of(hub, db).data_sets.values()
    return {each.id: each.name for each in sets if allowed(hub, db, caller, "dataset.see", each).allowed}


def count_runs(db: Session, row: Algorithm) -> int:
    """How often an algorithm ran: what a provider may be paid by, and all that a number tells."""
    lines = select(func.count()).select_from(AuditLine)
    return db.scalar(lines.where(of_algorithm(row.id), *_ran())) or 0


def _ran() -> tuple[ColumnElement[bool], ...]:
    by = [name for name, action in actions().items() if action.by_algorithm or action.as_algorithm]
    return AuditLine.outcome == "done", AuditLine.action.in_(by)


def under(db: Session, name: str, *, known: bool = True) -> dict[str, str]:
    """What a line of the audit log says of the algorithm that a request named: its id, or as it was named to whom it is not
    `known`, since they read their own lines; nothing for none."""
    if not name or not known:
        return {"algorithm": name} if name else {}
    row = db.scalar(select(Algorithm).where((Algorithm.id == name) | (Algorithm.name == name)))
    return {"algorithm": name if row is None else row.id}


def contradicted(row: Algorithm, what: str, instead: str) -> InvalidParameter:
    """The refusal of a request that says something else than the algorithm under which it is made."""
    return InvalidParameter(
        what, why=f"the algorithm {row.name!r} says otherwise: a run under it uses its settings", instead=instead
    )
