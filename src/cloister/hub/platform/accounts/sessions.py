"""Sign-ins of browsers: begun, made again, ended; and who asks, on every request straight from the database, so that what was
blocked, ended or revoked counts from the next request on. The cookie holds a secret of 256 bits, the database its digest.

A sign-in whose second factor is still missing is *half*: it names nobody, and is good for the second step alone.
The secret changes whenever what it may do changes: at the sign-in, at the second factor, with the password, with the roles.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from fastapi import Request
from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session
from starlette.responses import Response

from cloister.errors import Missing
from cloister.hub.decisions.callers import USED_EACH, caller_from, caller_of_token, must_have_second_factor, standing
from cloister.hub.hub import Caller, Hub
from cloister.hub.ids import digest, new_secret, same
from cloister.hub.records.accounts import Attempts, Person, SignOn, WebSession
from cloister.hub.settings import Settings
from cloister.hub.web.forms import keep_cookie

_AGENT = 200
_ADDRESS = 64
_KEPT, _ATTEMPTS_KEPT = timedelta(days=30), timedelta(days=2)
_OWN_TOKEN = ("/metrics",)
"""Addresses whose bearer token is not one of ours."""


@dataclass(frozen=True, kw_only=True)
class Listed:
    """A session, as its owner sees it. Its name is derived from the digest, and is good for ending it and nothing else."""

    name: str
    created: datetime
    used: datetime
    address: str
    agent: str
    second_factor: bool
    mine: bool


def cookie_name(settings: Settings) -> str:
    """The cookie's name; where there is TLS, with the prefix by which browsers refuse one from another host or a plain page.

    >>> from pathlib import Path
    >>> from cloister.hub.settings import Settings
    >>> cookie_name(Settings(data=Path("."))), cookie_name(Settings(data=Path("."), address="https://hub.example.org"))
    ('cloister', '__Host-cloister')
    """
    return "__Host-cloister" if settings.secure else "cloister"


def identify(hub: Hub, request: Request) -> Caller:
    """Who asks. A bearer token that is not good is refused; with a cookie that is not good, nobody asks."""
    address = str(request.state.address)
    scheme, _, value = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and request.scope["path"] not in _OWN_TOKEN:
        return caller_of_token(hub, value.strip(), address)
    secret = request.cookies.get(cookie_name(hub.settings), "")
    return _of_session(hub, digest(secret), address) if secret else Caller(address=address)


def _of_session(hub: Hub, session: str, address: str) -> Caller:
    now = hub.now()
    with hub.database.reading() as db:
        wanted = select(WebSession, Person).join(Person, Person.id == WebSession.person).where(WebSession.digest == session)
        found = db.execute(wanted).one_or_none()
        if found is None or not alive(hub, found[0]) or found[1].blocked:
            return Caller(address=address)
        row, person = found
        stands = standing(db, person.id)
    assert stands is not None
    if now - row.used >= USED_EACH:
        with hub.database.begin() as db:
            db.execute(update(WebSession).where(WebSession.digest == session, WebSession.used < now).values(used=now))
    caller = caller_from(stands, via="session", address=address, second_factor=row.second_factor, session=session)
    needed = person.totp is not None or must_have_second_factor(hub.settings, caller.roles)
    if needed and not row.second_factor:
        return Caller(session=session, address=address, locale=person.locale)  # half: nobody, but its forms are known
    return caller


def give_cookie(response: Response, hub: Hub, secret: str) -> None:
    """Give the browser its secret. It goes when the browser closes, or when the session ends."""
    keep_cookie(hub, response, cookie_name(hub.settings), secret)


def forget_cookie(response: Response, hub: Hub) -> None:
    """Have the browser forget its secret."""
    response.delete_cookie(cookie_name(hub.settings), path="/", httponly=True, samesite="lax", secure=hub.settings.secure)


def begin(hub: Hub, db: Session, person: str, request: Request, *, second_factor: bool = False) -> str:
    """Begin a session, and end the one that the browser had: the secret for its cookie."""
    before = request.cookies.get(cookie_name(hub.settings))
    if before:
        end(db, digest(before))
    now = hub.now()
    secret = new_secret()
    db.add(
        WebSession(
            digest=digest(secret),
            person=person,
            created=now,
            used=now,
            expires=now + timedelta(hours=hub.settings.session_hours),
            second_factor=second_factor,
            address=str(request.state.address)[:_ADDRESS],
            agent=request.headers.get("user-agent", "")[:_AGENT],
        )
    )
    return secret


def renew(hub: Hub, db: Session, old: str, *, second_factor: bool | None = None) -> str:
    """Another secret for a session that goes on; the old one ends. The session lasts no longer for that."""
    row = db.get(WebSession, old, with_for_update=True)
    if row is None or row.ended:
        raise Missing("The session has ended", why="it was ended meanwhile", instead="/login")
    secret = new_secret()
    db.add(
        WebSession(
            digest=digest(secret),
            person=row.person,
            created=row.created,
            used=hub.now(),
            expires=row.expires,
            second_factor=row.second_factor if second_factor is None else second_factor,
            address=row.address,
            agent=row.agent,
        )
    )
    row.ended = True
    row.setup = None
    return secret


def alive(hub: Hub, row: WebSession) -> bool:
    """Whether a session still counts."""
    now = hub.now()
    idle = timedelta(minutes=hub.settings.idle_minutes)
    return not row.ended and row.created <= now + timedelta(minutes=5) and now < row.expires and now - row.used <= idle


def end(db: Session, session: str) -> None:
    """End the session of a digest."""
    db.execute(update(WebSession).where(WebSession.digest == session).values(ended=True, setup=None))


def end_all(db: Session, person: str, *, but: str = "") -> None:
    """End all sessions of a person, except perhaps the one that they are using."""
    mine = (WebSession.person == person) & (WebSession.digest != but)
    db.execute(update(WebSession).where(mine).values(ended=True, setup=None))


def listed(hub: Hub, db: Session, person: str, mine: str) -> list[Listed]:
    """The sessions of a person that still count, the latest used first."""
    rows = db.scalars(select(WebSession).where(WebSession.person == person, ~WebSession.ended).order_by(WebSession.used.desc()))
    return [
        Listed(
            name=_name(hub, row.digest),
            created=row.created,
            used=row.used,
            address=row.address,
            agent=row.agent,
            second_factor=row.second_factor,
            mine=row.digest == mine,
        )
        for row in rows
        if alive(hub, row)
    ]


def end_named(hub: Hub, db: Session, person: str, name: str) -> str:
    """End one of the person's own sessions by the name in their list; the digest of the one that ended."""
    own = select(WebSession.digest).where(WebSession.person == person, ~WebSession.ended)
    for each in db.scalars(own).all():
        if same(_name(hub, each), name):
            end(db, each)
            return each
    raise Missing("There is no such session", why="it has ended, or is not yours", instead="/account/sessions")


def sweep(hub: Hub) -> None:
    """Forget sessions and attempts of long ago, and visits to the identity provider that never came back."""
    now = hub.now()
    with hub.database.begin() as db:
        db.execute(delete(WebSession).where(WebSession.expires < now - _KEPT))
        db.execute(delete(SignOn).where(SignOn.expires < now))
        db.execute(delete(Attempts).where(Attempts.last < now - _ATTEMPTS_KEPT))


def _name(hub: Hub, session: str) -> str:
    return hub.keys.sign("session name", session)[:22]
