"""People as callers: by an API token, by the id of a person, and the same person once more before what was made leaves; straight
from the database, so that what was blocked, ended or revoked counts from the next look on."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Row, bindparam, func, literal_column, select, update
from sqlalchemy.orm import Session

from cloister.hub.hub import Caller, Hub, Via
from cloister.hub.ids import digest
from cloister.hub.problems import Unauthenticated
from cloister.hub.records.access import ProjectMember
from cloister.hub.records.accounts import ApiToken, Person, PersonRole
from cloister.hub.settings import Settings
from cloister.hub.statements import Statement

TOKEN_PREFIX = "clo_"  # noqa: S105  (not a secret: what scanners of source code look for)
USED_EACH = timedelta(minutes=1)
_OWNERS = frozenset({"owner", "steward", "administrator"})
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


def caller_of_token(hub: Hub, token: str, address: str = "") -> Caller:
    """The person that an API token stands for; refused in the same words whatever is wrong with it."""
    now = hub.now()
    rows: list[Any] = []
    if token.startswith(TOKEN_PREFIX):
        with hub.database.looking() as db:
            rows = _OF_DIGEST.rows(db, {"digest": digest(token)})
    row = rows[0] if rows else None
    if row is None or not _good(row, now):
        raise Unauthenticated(
            "The API token is not valid", why="it is unknown, revoked or expired", instead="make another at /account/tokens"
        )
    caller = _by_token(row, address)
    if not caller.second_factor and must_have_second_factor(hub.settings, caller.roles):
        raise Unauthenticated(
            "The API token is not valid",
            why="this hub requires two-step verification of you, and the session that created the token had none",
            instead="sign in with two-step verification, and create another at /account/tokens",
        )
    if row.token_used is None or now - row.token_used >= USED_EACH:
        with hub.database.begin() as db:
            db.execute(update(ApiToken).where(ApiToken.id == row.token_id).values(used=now))
    return caller


def caller_again(hub: Hub, db: Session, caller: Caller) -> Caller | None:
    """The person of a token as they stand now; None where they are blocked, or the token is revoked or expired."""
    now, rows = hub.now(), _OF_TOKEN.rows(db.connection(), {"token": caller.token})
    row = rows[0] if rows else None
    if row is None or row.id != caller.id or not _good(row, now):
        return None
    return _by_token(row, caller.address)


def caller_for(hub: Hub, db: Session, person: str) -> Caller | None:
    """A person as a caller where no request stands behind it, such as a job that runs for them; None: unknown or blocked."""
    row = standing(db, person)
    if row is None or row.blocked:
        return None
    return caller_from(row, via="system")


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


def standing(db: Session, person: str) -> Row[Any] | None:
    """A person as they stand now, with what `caller_from` takes; None: unknown."""
    rows = _OF_PERSON.rows(db.connection(), {"person": person})
    return rows[0] if rows else None


def _listed(names: str | None) -> frozenset[str]:
    return frozenset(names.split(_LISTED)) if names else frozenset()


def _good(row: Row[Any], now: datetime) -> bool:
    """Whether a token may be used, and its person come in."""
    return row.token_revoked is None and row.token_expires > now and not row.blocked


def _by_token(row: Row[Any], address: str) -> Caller:
    scopes, second_factor = frozenset(row.token_scopes), row.token_second_factor
    return caller_from(row, via="token", scopes=scopes, address=address, second_factor=second_factor, token=row.token_id)


def caller_from(
    person: Row[Any],
    *,
    via: Via,
    scopes: frozenset[str] | None = None,
    address: str = "",
    second_factor: bool = False,
    session: str = "",
    token: str = "",
) -> Caller:
    """A person, with what `standing` found, as a caller who came in some way."""
    return Caller(
        id=person.id,
        email=person.email,
        name=person.name,
        institution=person.institution,
        roles=_listed(person.roles),
        training={str(name): str(until) for name, until in person.training.items()},
        attributes={str(name): str(value) for name, value in person.attributes.items()},
        projects=_listed(person.projects),
        locale=person.locale,
        via=via,
        scopes=scopes,
        session=session,
        token=token,
        address=address,
        second_factor=second_factor,
    )
