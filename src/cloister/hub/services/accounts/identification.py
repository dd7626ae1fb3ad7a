"""Who asks: from a token in the header or a cookie, on every request, straight from the database, so that what was blocked,
ended or revoked counts from the next request on."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, func, literal_column, select, update

from cloister.hub.caller import Caller, Via
from cloister.hub.ids import digest
from cloister.hub.problems import Unauthenticated
from cloister.hub.records.access import ProjectMember
from cloister.hub.records.accounts import ApiToken, Person, PersonRole, WebSession
from cloister.hub.services.accounts.sessions import alive, cookie_name
from cloister.hub.statements import Statement

if TYPE_CHECKING:
    from fastapi import Request
    from sqlalchemy import Row
    from sqlalchemy.orm import Session

    from cloister.hub.hub import Hub
    from cloister.hub.settings import Settings

__all__ = ["TOKEN_PREFIX", "caller_again", "caller_for", "caller_of_token", "identify", "must_have_second_factor"]

TOKEN_PREFIX = "clo_"  # noqa: S105  (not a secret: what scanners of source code look for)
_USED_EACH = timedelta(minutes=1)
_OWNERS = frozenset({"owner", "steward", "administrator"})
_OWN_TOKEN = ("/metrics",)
"""Addresses whose bearer token is not one of ours."""
_PEOPLE, _TOKENS = Person.__table__, ApiToken.__table__
_KNOWN = [_PEOPLE.c[each] for each in ("id", "email", "name", "institution", "training", "attributes", "locale", "blocked")]
_SHOWN = [_TOKENS.c[each].label(f"token_{each}") for each in ("id", "scopes", "second_factor", "expires", "revoked", "used")]
_LISTED = ","
"""Between names of roles, and between ids of projects: neither has one inside."""
_WRITTEN: Any = literal_column(f"'{_LISTED}'")
_ROLES = select(func.aggregate_strings(PersonRole.role, _WRITTEN)).where(PersonRole.person == _PEOPLE.c.id)
_PROJECTS = select(func.aggregate_strings(ProjectMember.project, _WRITTEN)).where(ProjectMember.person == _PEOPLE.c.id)
_STANDS = [_ROLES.scalar_subquery().label("roles"), _PROJECTS.scalar_subquery().label("projects")]
_BY_TOKEN = select(*_KNOWN, *_SHOWN, *_STANDS).join(_TOKENS, _PEOPLE.c.id == _TOKENS.c.person)
_OF_DIGEST = Statement(_BY_TOKEN.where(_TOKENS.c.digest == bindparam("digest")))
_OF_TOKEN = Statement(_BY_TOKEN.where(_TOKENS.c.id == bindparam("token")))
_OF_PERSON = Statement(select(*_KNOWN, *_STANDS).where(_PEOPLE.c.id == bindparam("person")))


def identify(hub: Hub, request: Request) -> Caller:
    """Who asks. A bearer token that is not good is refused; a cookie that is not good is nobody's."""
    address = str(request.state.address)
    scheme, _, value = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and request.scope["path"] not in _OWN_TOKEN:
        return caller_of_token(hub, value.strip(), address)
    secret = request.cookies.get(cookie_name(hub.settings), "")
    return _of_session(hub, digest(secret), address) if secret else Caller(address=address)


def caller_of_token(hub: Hub, token: str, address: str = "") -> Caller:
    """The person that an API token stands for; refused in the same words whatever is wrong with it."""
    now = hub.now()
    row = None
    if token.startswith(TOKEN_PREFIX):
        with hub.database.looking(once=True) as db:
            row = _one(_OF_DIGEST.rows(db, {"digest": digest(token)}))
    if row is None or not _good(row, now):
        raise Unauthenticated(
            "The API token is not valid",
            why="it is unknown, revoked or expired",
            instead="make another at /account/tokens",
        )
    roles = _listed(row.roles)
    if not row.token_second_factor and must_have_second_factor(hub.settings, roles):
        raise Unauthenticated(
            "The API token is not valid",
            why="this hub requires two-step verification of you, and the session that created the token had none",
            instead="sign in with two-step verification, and create another at /account/tokens",
        )
    if row.token_used is None or now - row.token_used >= _USED_EACH:
        with hub.database.begin() as db:
            db.execute(update(ApiToken).where(ApiToken.id == row.token_id).values(used=now))
    return _by_token(row, roles, address)


def caller_again(hub: Hub, db: Session, caller: Caller) -> Caller | None:
    """The person of a token as they stand now; None where they are blocked, or the token is revoked or expired."""
    row = _one(_OF_TOKEN.rows(db.connection(), {"token": caller.token}))
    if row is None or row.id != caller.id or not _good(row, hub.now()):
        return None
    return _by_token(row, _listed(row.roles), caller.address)


def caller_for(hub: Hub, db: Session, person: str, *, via: Via = "system") -> Caller | None:
    """A person as a caller where no request stands behind it, such as a job that runs for them; None: unknown or blocked."""
    row = _one(_OF_PERSON.rows(db.connection(), {"person": person}))
    if row is None or row.blocked:
        return None
    return _caller(row, _listed(row.roles), _listed(row.projects), via=via, scopes=None, address="", second_factor=False)


def must_have_second_factor(settings: Settings, roles: Iterable[str]) -> bool:
    """Whether people with these roles must have a second factor.

    >>> from pathlib import Path
    >>> from cloister.hub.settings import Settings
    >>> owners = Settings(data=Path("."), second_factor="owners")
    >>> must_have_second_factor(owners, {"owner"}), must_have_second_factor(owners, {"analyst"})
    (True, False)
    """
    if settings.second_factor == "everyone":
        return True
    return settings.second_factor == "owners" and not _OWNERS.isdisjoint(roles)


def _of_session(hub: Hub, session: str, address: str) -> Caller:
    now = hub.now()
    with hub.database.reading() as db:
        wanted = select(WebSession, Person).join(Person, Person.id == WebSession.person).where(WebSession.digest == session)
        found = db.execute(wanted).one_or_none()
        if found is None or not alive(hub, found[0]) or found[1].blocked:
            return Caller(address=address)
        row, person = found
        [stands] = _OF_PERSON.rows(db.connection(), {"person": person.id})
    roles = _listed(stands.roles)
    if now - row.used >= _USED_EACH:
        _touch(hub, session, now)
    needed = person.totp is not None or must_have_second_factor(hub.settings, roles)
    if needed and not row.second_factor:
        return Caller(session=session, address=address, locale=person.locale)  # half: nobody, but its forms are known
    return _caller(
        person,
        roles,
        _listed(stands.projects),
        via="session",
        scopes=None,
        address=address,
        second_factor=row.second_factor,
        session=session,
    )


def _touch(hub: Hub, session: str, now: datetime) -> None:
    with hub.database.begin() as db:
        db.execute(update(WebSession).where(WebSession.digest == session, WebSession.used < now).values(used=now))


def _listed(names: str | None) -> frozenset[str]:
    return frozenset(names.split(_LISTED)) if names else frozenset()


def _one(rows: list[Any]) -> Any | None:
    """The row of a question that has at most one."""
    return rows[0] if rows else None


def _good(row: Row[Any], now: datetime) -> bool:
    """Whether a token may be used, and its person come in."""
    return row.token_revoked is None and row.token_expires > now and not row.blocked


def _by_token(row: Row[Any], roles: frozenset[str], address: str) -> Caller:
    return _caller(
        row,
        roles,
        _listed(row.projects),
        via="token",
        scopes=frozenset(row.token_scopes),
        address=address,
        second_factor=row.token_second_factor,
        token=row.token_id,
    )


def _caller(
    person: Person | Row[Any],
    roles: frozenset[str],
    projects: frozenset[str],
    *,
    via: Via,
    scopes: frozenset[str] | None,
    address: str,
    second_factor: bool,
    session: str = "",
    token: str = "",
) -> Caller:
    return Caller(
        id=person.id,
        email=person.email,
        name=person.name,
        institution=person.institution,
        roles=roles,
        training={str(name): str(until) for name, until in person.training.items()},
        attributes={str(name): str(value) for name, value in person.attributes.items()},
        projects=projects,
        locale=person.locale,
        via=via,
        scopes=scopes,
        session=session,
        token=token,
        address=address,
        second_factor=second_factor,
    )
