"""The one place where accounts write to the audit log."""

from __future__ import annotations

from typing import Any

from sqlalchemy.orm import Session

from cloister.hub.caller import Caller
from cloister.hub.hub import Hub
from cloister.hub.records.accounts import Person


def log_event(
    hub: Hub, db: Session, caller: Caller, action: str, person: str = "", *, kind: str = "person", **details: Any
) -> None:
    """Write that the caller did something to a person, a session or a token."""
    from cloister.hub.platform.trail import write

    write(hub, db, caller, action, kind=kind, object_id=person, **details)


def as_person(person: Person, address: str) -> Caller:
    """Somebody who has just proved who they are, before any session says so."""
    return Caller(id=person.id, email=person.email, name=person.name, institution=person.institution, address=address)
