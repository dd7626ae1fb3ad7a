"""Links that work once: made here, handed over by hand (the hub sends no mail), kept as digests.

Looking at a link does not use it, since programs look at links too; the form behind it does. A link works only while whoever made
it may still make it: who is blocked, or has lost the role, has left no door open.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, delete, select, update
from sqlalchemy.orm import Session

from cloister.errors import AccessDenied, Conflict, Missing
from cloister.hub.decisions.policy.actions import ADMINISTRATOR, STEWARD, actions
from cloister.hub.hub import Caller, Hub
from cloister.hub.ids import digest, new_secret, same
from cloister.hub.platform.accounts.people import check_roles, log_event, roles_of
from cloister.hub.records.accounts import OneTimeLink, Person, folded, person_of_address

_LASTS = {"first": timedelta(days=7), "invitation": timedelta(days=14), "password": timedelta(days=1), "login": timedelta(days=1)}
_MADE_BY = {"invitation": "people.invite", "password": "people.block"}
"""What somebody must be able to do for links that they made to work."""


@dataclass(frozen=True, kw_only=True)
class OpenLink:
    """An invitation that nobody has taken up yet; its name is good for withdrawing it and nothing else."""

    name: str
    email: str
    roles: tuple[str, ...]
    made_by: str
    created: datetime
    expires: datetime


def first_link(hub: Hub) -> str | None:
    """The link that makes the first administrator of a new hub, in the place of any earlier one; None where there are people."""
    with hub.database.begin() as db:
        if _anybody(db):
            return None
        db.execute(delete(OneTimeLink).where(OneTimeLink.kind == "first"))
        return _make(hub, db, "first", roles=(ADMINISTRATOR,))


def login_link(hub: Hub, address: str) -> str:
    """A link that signs a person in, for a demonstration. No page and no address of the API makes one."""
    with hub.database.begin() as db:
        person = person_of_address(db, address)
        if person is None:
            raise Missing("The link was not made", why="no one here has this e-mail address", instead="add_person(…)")
        return _make(hub, db, "login", address=person.email)


def invite(hub: Hub, db: Session, caller: Caller, *, email: str, roles: Iterable[str]) -> str:
    """Invite somebody with roles that the caller may give: the link to hand over. A new invitation replaces an open one."""
    known = folded(email)
    given = check_roles(roles, caller)
    if person_of_address(db, known) is not None:
        raise Conflict("The invitation was not made", why="this person is here already", instead="give them the role at /people")
    log_event(hub, db, caller, "people.invite", kind="invitation", roles=list(given))  # first: of two at once one waits here
    db.execute(delete(OneTimeLink).where(unused(hub.now()), OneTimeLink.kind == "invitation", OneTimeLink.email == known))
    return _make(hub, db, "invitation", address=known, roles=given, made_by=caller.id)


def password_link(hub: Hub, db: Session, caller: Caller, person: Person) -> str:
    """A link by which a person sets a new password; an earlier one stops working. They are told (`notices.py`), and of one's own
    acts nobody is: so a person with a password changes it by that."""
    if person.id == caller.id and person.password is not None:
        raise AccessDenied("The link was not made", why="your own is changed with the current one", instead="/account/password")
    if person.blocked:
        raise Conflict("The link was not made", why="the person is blocked", instead="unblock them first")
    log_event(hub, db, caller, "people.password-link", person.id)  # first: as above
    db.execute(delete(OneTimeLink).where(OneTimeLink.kind == "password", OneTimeLink.email == person.email))
    return _make(hub, db, "password", address=person.email, made_by=caller.id)


def look(hub: Hub, db: Session, secret: str) -> OneTimeLink:
    """The link of a secret, while it works."""
    row = db.get(OneTimeLink, digest(secret))
    if row is None or row.used is not None or row.expires <= hub.now() or not still_good(db, row):
        raise Missing(
            "The link does not work", why="it was used, has expired, or was replaced", instead="ask an administrator for another"
        )
    return row


def still_good(db: Session, row: OneTimeLink) -> bool:
    """Whether whoever made a link may still make it. What the hub itself made (`made_by` empty) stays good; the link of the first
    administrator while there is nobody.
    """
    if row.kind == "first":
        return not _anybody(db)
    if not row.made_by:
        return True
    maker = db.get(Person, row.made_by)
    action = _MADE_BY.get(row.kind)
    if maker is None or maker.blocked or action is None:
        return False
    roles = set(roles_of(db, maker.id))
    governs = bool({ADMINISTRATOR, STEWARD} & set(row.roles))
    return not actions()[action].roles.isdisjoint(roles) and (ADMINISTRATOR in roles or not governs)


def use(hub: Hub, db: Session, secret: str) -> OneTimeLink:
    """The link of a secret, used up by this."""
    db.execute(update(OneTimeLink).where(OneTimeLink.digest == digest(secret)).values(digest=digest(secret)))  # locks the row
    row = look(hub, db, secret)
    row.used = hub.now()
    return row


def open_invitations(hub: Hub, db: Session) -> list[OpenLink]:
    """Invitations that nobody has taken up, the newest first."""
    wanted = select(OneTimeLink).where(unused(hub.now()), OneTimeLink.kind == "invitation").order_by(OneTimeLink.created.desc())
    return [
        OpenLink(
            name=_name(hub, row.digest),
            email=row.email,
            roles=tuple(row.roles),
            made_by=row.made_by,
            created=row.created,
            expires=row.expires,
        )
        for row in db.scalars(wanted)
        if still_good(db, row)
    ]


def withdraw(hub: Hub, db: Session, caller: Caller, name: str) -> None:
    """Take an open invitation back."""
    for row in db.scalars(select(OneTimeLink).where(unused(hub.now()), OneTimeLink.kind == "invitation")).all():
        if same(_name(hub, row.digest), name):
            db.delete(row)
            log_event(hub, db, caller, "people.withdraw-invitation", kind="invitation")
            return
    raise Missing("There is no such invitation", why="it was taken up, withdrawn, or has expired", instead="/people")


def _make(hub: Hub, db: Session, kind: str, *, address: str = "", roles: tuple[str, ...] = (), made_by: str = "") -> str:
    secret, now = new_secret(), hub.now()
    db.add(
        OneTimeLink(
            digest=digest(secret),
            kind=kind,
            email=address,
            roles=list(roles),
            made_by=made_by,
            created=now,
            expires=now + _LASTS[kind],
        )
    )
    return f"{hub.settings.origin}/link/{secret}"


def unused(now: datetime) -> ColumnElement[bool]:
    """The condition on links that nobody has used, and that have not expired."""
    return OneTimeLink.used.is_(None) & (OneTimeLink.expires > now)


def _anybody(db: Session) -> bool:
    return db.scalar(select(Person.id).limit(1)) is not None


def _name(hub: Hub, link: str) -> str:
    return hub.keys.sign("link name", link)[:22]
