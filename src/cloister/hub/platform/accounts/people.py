"""The people of a hub: found, added, given roles, blocked. The audit log has every change and who made it."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from sqlalchemy import delete, func, or_, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from cloister.errors import AccessDenied, Conflict, InvalidParameter
from cloister.hub.decisions.policy.actions import ADMINISTRATOR, OFFERED_ROLES, ROLES, STEWARD
from cloister.hub.hub import Caller, Hub
from cloister.hub.ids import new_id
from cloister.hub.platform.accounts import sessions
from cloister.hub.records.accounts import ApiToken, OneTimeLink, Person, PersonRole, folded, person_by_id
from cloister.printable import is_printable

_LONGEST_LIST = 200


def log_event(
    hub: Hub, db: Session, caller: Caller, action: str, person: str = "", *, kind: str = "person", **details: Any
) -> None:
    """Write that the caller did something to a person, a session or a token: the one place where accounts write to the log."""
    from cloister.hub.platform.trail import write

    write(hub, db, caller, action, kind=kind, object_id=person, **details)


def as_person(person: Person, address: str) -> Caller:
    """Somebody who has just proved who they are, before any session says so."""
    return Caller(id=person.id, email=person.email, name=person.name, institution=person.institution, address=address)


@dataclass(frozen=True, kw_only=True)
class Row:
    """A person with their roles, as lists show them."""

    person: Person
    roles: tuple[str, ...]


def clean(text: str, title: str, *, longest: int = 200, needed: bool = False) -> str:
    """A line of text that people typed: no control characters, not too long.

    >>> clean("  Ada   Lovelace ", "the name")
    'Ada Lovelace'
    """
    line = " ".join(text.split())
    if not is_printable(line) or len(line) > longest:
        raise InvalidParameter(
            f"{title.capitalize()} is invalid", why=f"it is one line of at most {longest} characters", instead="a shorter line"
        )
    if needed and not line:
        raise InvalidParameter(f"{title.capitalize()} is invalid", why="it is empty", instead=f"a value for {title}")
    return line


def roles_of(db: Session, person: str) -> tuple[str, ...]:
    """A person's roles, in order."""
    return tuple(db.scalars(select(PersonRole.role).where(PersonRole.person == person).order_by(PersonRole.role)))


def check_roles(roles: Iterable[str], giver: Caller | None = None, had: Iterable[str] = ()) -> tuple[str, ...]:
    """Roles that exist and that the giver may give; only an administrator makes administrators and stewards. Whoever has a role
    that is not given any more keeps it.

    >>> check_roles(["owner", "analyst", "owner"])
    ('analyst', 'owner')
    """
    wanted = tuple(sorted(set(roles)))
    unknown = [role for role in wanted if role not in ROLES]
    if unknown:
        raise InvalidParameter("The roles are invalid", why="one of them is unknown", instead=", ".join(OFFERED_ROLES))
    if giver is not None and not set(wanted) <= {*OFFERED_ROLES, *had}:
        raise InvalidParameter(
            "The roles are invalid", why="with one of them nothing can be done yet", instead=", ".join(OFFERED_ROLES)
        )
    if giver is not None and not giver.has(ADMINISTRATOR) and {ADMINISTRATOR, STEWARD} & set(wanted):
        raise AccessDenied(
            "The role was denied", why="only an administrator makes administrators and stewards", instead="ask an administrator"
        )
    return wanted


def add_person(
    hub: Hub,
    db: Session,
    *,
    email: str,
    name: str,
    roles: Iterable[str] = (),
    institution: str = "",
    password: str | None = None,
    given_by: str = "",
) -> Person:
    """Add a person. `password` is a hash (`Hasher.hash`); None: they come by a link or by single sign-on."""
    known = folded(email)
    if db.scalar(select(Person.id).where(Person.email == known)) is not None:
        raise _here_already()
    now = hub.now()
    person = Person(
        id=new_id(),
        email=known,
        name=clean(name, "the name", needed=True),
        institution=clean(institution, "the institution"),
        password=password,
        training={},
        attributes={},
        created=now,
    )
    db.add(person)
    try:
        db.flush()
    except IntegrityError:  # another process was as quick
        raise _here_already() from None
    db.add_all(PersonRole(person=person.id, role=role, given_by=given_by, given=now) for role in check_roles(roles))
    db.flush()
    return person


def set_roles(hub: Hub, db: Session, caller: Caller, person: Person, roles: Iterable[str]) -> bool:
    """Give a person exactly these roles; whether anything changed. What they are signed in to ends, since it may now do other
    things, and so do open links that they made where a role is taken; the last administrator stays one.
    """
    had = set(roles_of(db, person.id))
    wanted = set(check_roles(roles, caller, had))
    if wanted == had:
        return False
    if ADMINISTRATOR in had - wanted:
        _keep_one_administrator(db, person)
    now = hub.now()
    db.execute(delete(PersonRole).where(PersonRole.person == person.id, PersonRole.role.in_(had - wanted)))
    db.add_all(PersonRole(person=person.id, role=role, given_by=caller.id, given=now) for role in sorted(wanted - had))
    sessions.end_all(db, person.id, but=caller.session if caller.id == person.id else "")
    if had - wanted:
        _end_links(db, person)
    log_event(hub, db, caller, "roles.give", person.id, given=sorted(wanted - had), taken=sorted(had - wanted))
    return True


def block(hub: Hub, db: Session, caller: Caller, person: Person) -> None:
    """Keep a person out, at once: their sessions and the links by or for them end, their tokens are revoked."""
    _keep_one_administrator(db, person)
    person.blocked = True
    sessions.end_all(db, person.id)
    revoke_tokens(hub, db, person)
    _end_links(db, person)
    log_event(hub, db, caller, "people.block", person.id)


def revoke_tokens(hub: Hub, db: Session, person: Person) -> int:
    """End all API tokens of a person; how many those were."""
    mine = (ApiToken.person == person.id) & ApiToken.revoked.is_(None)
    ended = db.scalars(update(ApiToken).where(mine).values(revoked=hub.now()).returning(ApiToken.id)).all()
    return len(ended)


def unblock(hub: Hub, db: Session, caller: Caller, person: Person) -> None:
    """Let a person in again; tokens stay revoked."""
    person.blocked = False
    log_event(hub, db, caller, "people.unblock", person.id)


def describe(
    hub: Hub,
    db: Session,
    caller: Caller,
    person: Person,
    *,
    institution: str | None = None,
    training: Mapping[str, str] | None = None,
    attributes: Mapping[str, str] | None = None,
) -> None:
    """Say of a person what policies ask for: institution, certificates (name → last day) and attributes."""
    before = (person.institution, person.training, person.attributes)
    if institution is not None:
        person.institution = clean(institution, "the institution")
    if training is not None:
        person.training = _few(training, _day)
    if attributes is not None:
        person.attributes = _few(attributes, lambda value: clean(value, "the attribute"))
    if (person.institution, person.training, person.attributes) != before:
        log_event(hub, db, caller, "people.describe", person.id)


def page_of_people(db: Session, *, search: str = "", after: str = "", limit: int = 50) -> tuple[list[Row], str]:
    """Some people in the order of their addresses, those after an id; and the id to go on after, empty at the end."""
    wanted = select(Person).order_by(Person.email).limit(min(limit, _LONGEST_LIST) + 1)
    words = clean(search[:200], "the search").lower()
    if words:
        like = "%" + re.sub(r"([\\%_])", r"\\\1", words) + "%"
        columns = (func.lower(Person.name), Person.email, func.lower(Person.institution))
        wanted = wanted.where(or_(*(column.like(like, escape="\\") for column in columns)))
    if after:
        wanted = wanted.where(Person.email > person_by_id(db, after).email)
    people = list(db.scalars(wanted))
    more = len(people) > limit
    people = people[:limit]
    roles: dict[str, list[str]] = {person.id: [] for person in people}
    held = select(PersonRole.person, PersonRole.role).where(PersonRole.person.in_(roles)).order_by(PersonRole.role)
    for owner, role in db.execute(held):
        roles[owner].append(role)
    return [Row(person=person, roles=tuple(roles[person.id])) for person in people], people[-1].id if more else ""


def _end_links(db: Session, person: Person) -> None:
    """What a person made that still could be used, and what was made for them to come in by."""
    theirs = (OneTimeLink.made_by == person.id) | ((OneTimeLink.kind == "password") & (OneTimeLink.email == person.email))
    db.execute(delete(OneTimeLink).where(theirs, OneTimeLink.used.is_(None)))


def _keep_one_administrator(db: Session, person: Person) -> None:
    """Refuse what would leave the hub with nobody to administer it. The rows are locked, so that two cannot go at once."""
    held = select(PersonRole.person).where(PersonRole.role == ADMINISTRATOR).order_by(PersonRole.person).with_for_update()
    others = [each for each in db.scalars(held).all() if each != person.id]
    working = db.scalar(select(func.count()).select_from(Person).where(Person.id.in_(others), ~Person.blocked))
    if not working and not person.blocked and ADMINISTRATOR in roles_of(db, person.id):
        raise Conflict(
            "The last administrator stays one", why="no one could administer the hub", instead="make another administrator first"
        )


def _here_already() -> Conflict:
    return Conflict("The person was not added", why="another person here has this e-mail address", instead="another address")


def _few(values: Mapping[str, str], read: Callable[[str], str]) -> dict[str, str]:
    if len(values) > 50:
        raise InvalidParameter("The list is invalid", why="it has more than 50 entries", instead="fewer")
    found = {clean(name, "the name of an entry", longest=60, needed=True): read(value) for name, value in values.items()}
    if len(found) < len(values):
        raise InvalidParameter("The list is invalid", why="a name is in it twice", instead="GCP = 2027-12-31")
    return found


def _day(text: str) -> str:
    try:
        return date.fromisoformat(text.strip()).isoformat()
    except ValueError:
        raise InvalidParameter("The certificate is invalid", why="its last day is not a date", instead="2027-12-31") from None
