"""Single sign-on as the hub sees it: a browser leaves for the identity provider, and somebody comes back.

What left is remembered in the database and bound to the browser by a cookie; it counts once. A known subject is signed in. One
that is new becomes a person, if the provider has verified their address and nobody here has it: an address alone never opens an
account that is there; its owner signs in and connects it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from fastapi import Request
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from cloister.errors import AccessDenied, Conflict, Missing
from cloister.hub.decisions.policy.actions import OFFERED_ROLES
from cloister.hub.hub import Caller, Hub
from cloister.hub.ids import digest, new_secret, same
from cloister.hub.platform.accounts import sessions
from cloister.hub.platform.accounts.links import still_good, unused
from cloister.hub.platform.accounts.log_in import Entered
from cloister.hub.platform.accounts.oidc import Identity, Provider
from cloister.hub.platform.accounts.parts import parts_of
from cloister.hub.platform.accounts.people import add_person, as_person, log_event
from cloister.hub.records.accounts import OneTimeLink, Person, SignOn, folded, person_of_address
from cloister.hub.settings import listed
from cloister.printable import UNPRINTABLE

COOKIE = "cloister_sign_on"
"""Binds a visit to the provider to the browser that left."""
_LASTS = timedelta(minutes=10)
_BACK = "/login/sso/callback"
_LONGEST = 4000


@dataclass(frozen=True, kw_only=True)
class Returned:
    """Somebody came back: signed in, or (`entered` is None) connected to the account that they are signed in to."""

    entered: Entered | None
    back: str


def leave(hub: Hub, caller: Caller, back: str) -> tuple[str, str]:
    """Where to send the browser, and the secret for its cookie."""
    provider = _provider(hub)
    state, nonce, verifier, browser = (new_secret() for _ in range(4))
    address = provider.address(back=hub.settings.origin + _BACK, state=state, nonce=nonce, verifier=verifier)
    with hub.database.begin() as db:
        db.add(
            SignOn(
                digest=digest(state),
                browser=digest(browser),
                person=caller.id,
                nonce=nonce,
                verifier=verifier,
                back=back,
                expires=hub.now() + _LASTS,
            )
        )
    return address, browser


def come_back(hub: Hub, request: Request, caller: Caller, given: Mapping[str, str]) -> Returned:
    """Take the provider's answer: everything about it must fit what left from this browser."""
    provider = _provider(hub)
    visit = _visit(hub, given.get("state", ""), request.cookies.get(COOKIE, ""))
    provider.check_answer(given.get("iss"))
    if visit.person != caller.id:
        raise _refused("another person is signed in now than when it began")
    code = given.get("code", "")
    if not code or "error" in given or len(code) > _LONGEST:
        raise _refused("the identity provider denied it")
    who = provider.identity(code=code, back=hub.settings.origin + _BACK, verifier=visit.verifier, nonce=visit.nonce)
    with hub.database.begin() as db:
        if visit.person:
            _connect(hub, db, caller, who)
            return Returned(entered=None, back=visit.back)
        person = db.scalar(select(Person).where(Person.subject == who.subject))
        if person is None:
            person = _new_person(hub, db, who, caller.address)
        if person.blocked:
            raise _refused("the account is closed")
        secret = sessions.begin(hub, db, person.id, request)
        log_event(hub, db, as_person(person, caller.address), "session.begin", person.id, by="sign-on")
        return Returned(entered=Entered(secret=secret, email=person.email), back=visit.back)


def _visit(hub: Hub, state: str, browser: str) -> SignOn:
    """What left with this state, used up by this whatever comes of it."""
    with hub.database.begin() as db:
        row = db.get(SignOn, digest(state), with_for_update=True)
        if row is not None:
            db.delete(row)
    if row is None or row.expires <= hub.now() or not same(row.browser, digest(browser)):
        raise _refused("it did not begin in this browser, took too long, or was done before")
    return row


def _connect(hub: Hub, db: Session, caller: Caller, who: Identity) -> None:
    """The person who is signed in may come by single sign-on from now on."""
    holder = db.scalar(select(Person.id).where(Person.subject == who.subject))
    if holder not in (None, caller.id):
        raise Conflict("The accounts were not connected", why="another person here has this identity", instead="/account")
    db.execute(update(Person).where(Person.id == caller.id).values(subject=who.subject))
    log_event(hub, db, caller, "sign-on.connect", caller.id)


def _new_person(hub: Hub, db: Session, who: Identity, address: str) -> Person:
    """Somebody who comes for the first time: with the roles of their invitation, else with those of the setting."""
    if not who.verified or not who.email:
        raise _refused("the identity provider has not verified the e-mail address")
    email = folded(who.email)
    if person_of_address(db, email) is not None:
        raise Conflict(
            "Single sign-on failed",
            why="an account with this e-mail address is here already",
            instead="sign in with its password, and connect the two at /account",
        )
    wanted = select(OneTimeLink).where(unused(hub.now()), OneTimeLink.kind == "invitation", OneTimeLink.email == email)
    invited = db.scalar(wanted.with_for_update())
    if invited is not None and still_good(db, invited):
        invited.used = hub.now()
        roles, by = tuple(invited.roles), invited.made_by
    else:
        roles, by = tuple(role for role in listed(hub.settings.oidc_roles) if role in OFFERED_ROLES), ""
        if not roles:
            raise _refused("accounts are created by invitation only")
    name = " ".join(UNPRINTABLE.sub(" ", who.name).split())[:200]
    person = add_person(hub, db, email=email, name=name or email.partition("@")[0], roles=roles, given_by=by)
    person.subject = who.subject
    db.flush()
    log_event(hub, db, as_person(person, address), "people.join", person.id, by="sign-on", roles=list(roles))
    return person


def _provider(hub: Hub) -> Provider:
    provider = parts_of(hub).provider
    if provider is None:
        raise Missing("There is no single sign-on here", why="the hub has no identity provider", instead="/login")
    return provider


def _refused(why: str) -> AccessDenied:
    return AccessDenied("Single sign-on failed", why=why, instead="/login")
