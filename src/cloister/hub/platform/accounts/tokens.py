"""API tokens: made for a purpose, shown once, kept as a digest, ended at once.

A token can do what its scopes name, its owner's roles allow, and no more; what only a person in a browser may do is no scope.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from cloister.errors import Conflict, InvalidParameter, Missing
from cloister.hub.database import older_than
from cloister.hub.decisions.callers import TOKEN_PREFIX, caller_again
from cloister.hub.decisions.policy.actions import ANYBODY, NOBODY, Action, actions
from cloister.hub.hub import Caller, Hub
from cloister.hub.ids import digest, new_id, new_secret
from cloister.hub.platform.accounts.people import clean, log_event
from cloister.hub.records.accounts import ApiToken, Person, WebSession
from cloister.hub.web.languages import N_

_MOST = 50
_ID = re.compile(r"[A-Za-z0-9_-]{22}")
_ASKING = ("question.", "dataset.see", "release.see", "release.download", "budget.see", "job.see")
PRESETS: Mapping[str, tuple[str, Callable[[str], bool]]] = {
    "ask": (N_("Run queries and read answers"), lambda name: name.startswith(_ASKING)),
    "see": (N_("Read only"), lambda name: name.endswith((".see", ".own", ".read"))),
    "all": (N_("All that your roles allow"), lambda _: True),
}
"""What a program usually needs: a title, and the scopes that belong to it."""


def scopes_for(roles: Iterable[str]) -> dict[str, Action]:
    """The actions that a token of a person with these roles may be given.

    >>> may = scopes_for({"analyst"})
    >>> "question.ask" in may, "trail.read" in may, "token.manage" in may
    (True, False, False)
    """
    held = {*roles, ANYBODY}
    return {
        name: each
        for name, each in sorted(actions().items())
        if each.by_token and NOBODY not in each.roles and not each.roles.isdisjoint(held)
    }


def make_token(
    hub: Hub, db: Session, caller: Caller, *, name: str, scopes: Iterable[str], days: int | None = None
) -> tuple[ApiToken, str]:
    """A token of the caller, and the text to show once."""
    title = clean(name, "the name", longest=100, needed=True)
    longest = hub.settings.token_days
    lasts = min(30, longest) if days is None else days
    if not 1 <= lasts <= longest:
        raise InvalidParameter("The token is invalid", why=f"it may last 1 to {longest} days", instead=f"days={longest}")
    wanted = sorted(set(scopes))
    may = scopes_for(caller.roles)
    if not wanted or any(scope not in may for scope in wanted):
        raise InvalidParameter(
            "The token is invalid",
            why="its scopes are not all actions of your roles",
            instead=f"one or more of: {', '.join(may)}",
        )
    session = db.get(WebSession, caller.session) if caller.session else None
    gone = (session is not None and session.ended) or (caller.token and caller_again(hub, db, caller) is None)
    if gone or db.get_one(Person, caller.id).blocked:  # looked up here: who was shut out a moment ago leaves no key behind
        raise Missing("The session has ended", why="it was ended meanwhile", instead="/login")
    now = hub.now()
    alive = (ApiToken.person == caller.id) & ApiToken.revoked.is_(None) & (ApiToken.expires > now)
    if (db.scalar(select(func.count()).select_from(ApiToken).where(alive)) or 0) >= _MOST:
        raise Conflict("The token was not made", why=f"you have {_MOST} already", instead="revoke one first")
    secret = TOKEN_PREFIX + new_secret()
    row = ApiToken(
        id=new_id(),
        person=caller.id,
        name=title,
        digest=digest(secret),
        scopes=wanted,
        second_factor=caller.second_factor,
        created=now,
        expires=now + timedelta(days=lasts),
    )
    db.add(row)
    log_event(hub, db, caller, "token.make", row.id, kind="token", scopes=wanted, days=lasts)
    return row, secret


def own_token(db: Session, caller: Caller, token: str) -> ApiToken:
    """A token of the caller; somebody else's is not told from none."""
    row = db.get(ApiToken, token) if _ID.fullmatch(token) else None
    if row is None or row.person != caller.id:
        raise Missing("There is no such token", why="you have none of this id", instead="/account/tokens")
    return row


def page_of_tokens(db: Session, caller: Caller, *, after: str = "", limit: int = 50) -> tuple[list[ApiToken], str]:
    """Some of the caller's tokens, the newest first, those after an id; and the id to go on after, empty at the end."""
    wanted = select(ApiToken).where(ApiToken.person == caller.id)
    if after:
        wanted = wanted.where(older_than(own_token(db, caller, after)))
    rows = list(db.scalars(wanted.order_by(ApiToken.created.desc(), ApiToken.id.desc()).limit(limit + 1)))
    return rows[:limit], rows[limit - 1].id if len(rows) > limit else ""


def rename(hub: Hub, db: Session, caller: Caller, row: ApiToken, name: str) -> None:
    """Another name for a token; what it may do and how long it lasts stay."""
    row.name = clean(name, "the name", longest=100, needed=True)
    log_event(hub, db, caller, "token.rename", row.id, kind="token")


def revoke(hub: Hub, db: Session, caller: Caller, row: ApiToken) -> None:
    """End a token: the next request with it is refused."""
    if row.revoked is None:
        row.revoked = hub.now()
        log_event(hub, db, caller, "token.revoke", row.id, kind="token")
