"""Algorithms and services as objects with a policy of their own: registered by their provider, run by those to whom the provider
and the owner of the data both granted it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError

from cloister.errors import InvalidDeclaration
from cloister.hub.generation import bump
from cloister.hub.ids import new_id
from cloister.hub.policy import Decision, Object, strict
from cloister.hub.policy.strict import load
from cloister.hub.problems import Conflict
from cloister.hub.records.access import Algorithm
from cloister.hub.services.access.check import allowed, check, check_together, context_of
from cloister.hub.services.access.facts import facts_of
from cloister.hub.services.access.granting import own_algorithm
from cloister.hub.services.trail import write

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.orm import Session

    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub

__all__ = [
    "algorithms_of",
    "check_run",
    "checked_name",
    "exact_settings",
    "register_algorithm",
    "settings_of",
    "withdraw_algorithm",
]

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_LONGEST, _LARGEST = 2000, 2**53


def checked_name(text: str) -> str:
    """The name of an algorithm or a project, as it stands in addresses.

    >>> checked_name("naive-bayes")
    'naive-bayes'
    """
    if not _NAME.fullmatch(text):
        why = "a name is 1 to 63 small letters, digits, '-' and '_', a letter first"
        raise InvalidDeclaration("name was refused", why=why, instead='"naive-bayes"')
    return text


def settings_of(text: str) -> dict[str, Any]:
    """The settings of an algorithm, from JSON.

    >>> settings_of('{"rounds": 10, "rate": 0.1}')
    {'rounds': 10, 'rate': '0.1'}
    """
    return exact_settings(load(text) if text.strip() else {})


def exact_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as every database keeps them: texts, whole numbers and truth values by name; other numbers become exact texts."""
    found: dict[str, Any] = {}
    for name, value in settings.items():
        key = strict.identifier(name, "settings")
        if isinstance(value, float | Decimal):
            found[key] = str(value)
        elif isinstance(value, bool | int) and abs(value) < _LARGEST:
            found[key] = value
        else:
            found[key] = strict.text(value, f"settings.{key}")
    return found


def register_algorithm(
    db: Session, hub: Hub, caller: Caller, *, name: str, title: str, service: str, settings: Mapping[str, Any], about: str = ""
) -> Algorithm:
    """Register an algorithm of the caller's. Nobody else may see or run it before it is granted."""
    check(hub, db, caller, "algorithm.register")
    services = {each.name for each in hub.services}
    if service not in services:
        raise InvalidDeclaration("service was refused", why="this hub has none of that name", instead=", ".join(sorted(services)))
    if not title.strip() or len(title) > 200 or len(about) > _LONGEST:
        raise InvalidDeclaration("title was refused", why="it has 1 to 200 characters", instead='"Naive Bayes"')
    row = Algorithm(
        id=new_id(),
        name=checked_name(name),
        title=title.strip(),
        about=about,
        provider=caller.id,
        service=service,
        settings=dict(settings),
        created=hub.now(),
    )
    try:
        with db.begin_nested():
            db.add(row)
    except IntegrityError:
        raise Conflict("The name was refused", why="an algorithm has it already", instead="another name") from None
    bump(db)
    write(db, hub, caller, "algorithm.register", kind="algorithm", object_id=row.id, name=row.name, service=service)
    return row


def withdraw_algorithm(db: Session, hub: Hub, caller: Caller, name: str) -> Algorithm:
    """Take an algorithm away: nobody runs it from the next moment on. Its name stays taken, for the trail."""
    row, _ = own_algorithm(hub, db, caller, name)
    row.withdrawn = hub.now()
    bump(db)
    write(db, hub, caller, "algorithm.manage", kind="algorithm", object_id=row.id, name=row.name, withdrawn=True)
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


def check_run(
    hub: Hub, db: Session, caller: Caller, algorithm: Object, data: Sequence[Object], *, purpose: str = "", project: str = ""
) -> Mapping[str, Decision]:
    """Whether somebody may run an algorithm on data sets: its provider and the owner of each must have granted it.

    "U3 may run A1 on D1, and nothing else" is two grants: on A1, to run it with D1 only; on D1, to run A1 only.
    """
    context = context_of(hub, caller, purpose=purpose, project=project, algorithm=algorithm.id)
    return check_together(hub, db, caller, "algorithm.run", [algorithm, *data], context)
