"""Who asks: from a token in the header or a cookie, on every request, straight from the database, so that what was blocked,
ended or revoked counts from the next request on."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from sqlalchemy import select, update

from cloister.hub.caller import Caller
from cloister.hub.decisions.callers import USED_EACH, caller_from, caller_of_token, must_have_second_factor, standing
from cloister.hub.ids import digest
from cloister.hub.platform.accounts.sessions import alive, cookie_name
from cloister.hub.records.accounts import Person, WebSession

if TYPE_CHECKING:
    from fastapi import Request

    from cloister.hub.hub import Hub

_OWN_TOKEN = ("/metrics",)
"""Addresses whose bearer token is not one of ours."""


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
        _touch(hub, session, now)
    caller = caller_from(stands, via="session", address=address, second_factor=row.second_factor, session=session)
    needed = person.totp is not None or must_have_second_factor(hub.settings, caller.roles)
    if needed and not row.second_factor:
        return Caller(session=session, address=address, locale=person.locale)  # half: nobody, but its forms are known
    return caller


def _touch(hub: Hub, session: str, now: datetime) -> None:
    with hub.database.begin() as db:
        db.execute(update(WebSession).where(WebSession.digest == session, WebSession.used < now).values(used=now))
