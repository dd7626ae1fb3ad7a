"""The API of accounts: who asks, one's own tokens, and people.

What changes who may do what is for a person in a browser, never for a token (`Action.by_token`); such a request comes with the
session's cookie and the token against forgery that /me tells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, Path, Query, Request

from cloister.hub.caller import PersonDep
from cloister.hub.guard import needs
from cloister.hub.hub import HubDep
from cloister.hub.records.people import folded, person_by_id
from cloister.hub.services.accounts import links, people, sessions, tokens
from cloister.hub.services.accounts.api_models import (
    Details,
    Invitation,
    Invited,
    Me,
    NewToken,
    People,
    PersonOut,
    Renaming,
    Roles,
    TokenMade,
    TokenOut,
    Tokens,
)
from cloister.hub.services.accounts.people import Row
from cloister.hub.web.forms import token_of, written_here

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

After = Annotated[str, Query(max_length=32, pattern=r"^[A-Za-z0-9_-]*$", description="The `next` of the page before.")]
Limit = Annotated[int, Query(ge=1, le=200)]
Search = Annotated[str, Query(max_length=200)]
Id = Annotated[str, Path(max_length=64)]


_WRITTEN = Depends(written_here)


def routes(router: APIRouter) -> None:
    """Add them."""

    @router.get(
        "/me",
        dependencies=[needs("public.read")],
        summary="Get the caller",
        response_description="Who you are signed in as, with roles and the token against forgery",
    )
    def me(request: Request, caller: PersonDep) -> Me:
        return Me(
            id=caller.id,
            email=caller.email,
            name=caller.name,
            institution=caller.institution,
            roles=sorted(caller.roles),
            projects=sorted(caller.projects),
            training=dict(caller.training),
            attributes=dict(caller.attributes),
            via=caller.via,
            scopes=None if caller.scopes is None else sorted(caller.scopes),
            csrf=token_of(request) if caller.via == "session" else "",
        )

    _tokens(router)
    _people(router)


def _tokens(router: APIRouter) -> None:
    own = needs("token.manage")

    @router.get(
        "/tokens", dependencies=[own], summary="List your API tokens", response_description="Your API tokens, the newest first"
    )
    def listed(hub: HubDep, caller: PersonDep, after: After = "", limit: Limit = 50) -> Tokens:
        with hub.database.reading() as db:
            rows, more = tokens.page_of_tokens(db, caller, after=after, limit=limit)
        return Tokens(items=[TokenOut.of(row) for row in rows], next=more or None)

    @router.post(
        "/tokens",
        dependencies=[own, _WRITTEN],
        status_code=201,
        summary="Create an API token",
        response_description="The API token; its secret is shown only here",
    )
    def make(hub: HubDep, caller: PersonDep, body: NewToken) -> TokenMade:
        with hub.database.begin() as db:
            row, secret = tokens.make_token(db, hub, caller, name=body.name, scopes=body.scopes, days=body.days)
        return TokenMade(**TokenOut.of(row).model_dump(), token=secret)

    @router.get(
        "/tokens/{token}",
        dependencies=[own],
        summary="Get one of your API tokens",
        response_description="The API token, without its secret",
    )
    def one(hub: HubDep, caller: PersonDep, token: Id) -> TokenOut:
        with hub.database.reading() as db:
            return TokenOut.of(tokens.own_token(db, caller, token))

    @router.patch(
        "/tokens/{token}",
        dependencies=[own, _WRITTEN],
        summary="Rename an API token",
        response_description="The API token under its new name",
    )
    def rename(hub: HubDep, caller: PersonDep, token: Id, body: Renaming) -> TokenOut:
        with hub.database.begin() as db:
            row = tokens.own_token(db, caller, token)
            tokens.rename(db, hub, caller, row, body.name)
        return TokenOut.of(row)

    @router.delete(
        "/tokens/{token}",
        dependencies=[own, _WRITTEN],
        summary="Revoke an API token",
        response_description="The revoked API token",
    )
    def revoke(hub: HubDep, caller: PersonDep, token: Id) -> TokenOut:
        with hub.database.begin() as db:
            row = tokens.own_token(db, caller, token)
            tokens.revoke(db, hub, caller, row)
        return TokenOut.of(row)


def _people(router: APIRouter) -> None:
    see, invite_, block_, roles_ = (needs(each) for each in ("people.see", "people.invite", "people.block", "roles.give"))

    @router.get("/people", dependencies=[see], summary="List people", response_description="The people, by e-mail address")
    def everybody(hub: HubDep, search: Search = "", after: After = "", limit: Limit = 50) -> People:
        with hub.database.reading() as db:
            rows, more = people.page_of_people(db, search=search, after=after, limit=limit)
        return People(items=[PersonOut.of(row) for row in rows], next=more or None)

    @router.post(
        "/people/invitations",
        dependencies=[invite_, _WRITTEN],
        status_code=201,
        summary="Invite a person",
        response_description="The link to hand over, shown only here",
    )
    def invite(hub: HubDep, caller: PersonDep, body: Invitation) -> Invited:
        with hub.database.begin() as db:
            link = links.invite(db, hub, caller, email=body.email, roles=body.roles)
        return Invited(email=folded(body.email), link=link)

    @router.get("/people/{person}", dependencies=[see], summary="Get a person", response_description="The person")
    def somebody(hub: HubDep, person: Id) -> PersonOut:
        with hub.database.reading() as db:
            return _shown(db, person)

    @router.patch(
        "/people/{person}",
        dependencies=[roles_, _WRITTEN],
        summary="Update a person",
        response_description="The person, with institution, training and attributes",
    )
    def describe(hub: HubDep, caller: PersonDep, person: Id, body: Details) -> PersonOut:
        with hub.database.begin() as db:
            found = person_by_id(db, person)
            people.describe(
                db, hub, caller, found, institution=body.institution, training=body.training, attributes=body.attributes
            )
            return _shown(db, person)

    @router.put(
        "/people/{person}/roles",
        dependencies=[roles_, _WRITTEN],
        summary="Set the roles of a person",
        response_description="The person with exactly these roles",
    )
    def give(hub: HubDep, caller: PersonDep, person: Id, body: Roles) -> PersonOut:
        with hub.database.begin() as db:
            if people.set_roles(db, hub, caller, person_by_id(db, person), body.roles) and person == caller.id:
                sessions.end(db, caller.session)
            return _shown(db, person)

    @router.post(
        "/people/{person}/block",
        dependencies=[block_, _WRITTEN],
        summary="Block a person",
        response_description="The blocked person",
    )
    def block(hub: HubDep, caller: PersonDep, person: Id) -> PersonOut:
        with hub.database.begin() as db:
            people.block(db, hub, caller, person_by_id(db, person))
            return _shown(db, person)

    @router.post(
        "/people/{person}/unblock",
        dependencies=[block_, _WRITTEN],
        summary="Unblock a person",
        response_description="The unblocked person",
    )
    def unblock(hub: HubDep, caller: PersonDep, person: Id) -> PersonOut:
        with hub.database.begin() as db:
            people.unblock(db, hub, caller, person_by_id(db, person))
            return _shown(db, person)


def _shown(db: Session, person: str) -> PersonOut:
    found = person_by_id(db, person)
    return PersonOut.of(Row(person=found, roles=people.roles_of(db, found.id)))
