"""The API of accounts: who asks, one's own tokens, and people.

What changes who may do what is for a person in a browser, never for a token (`Action.by_token`); such a request comes with the
session's cookie and the token against forgery that /me tells.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import partial
from typing import Annotated

from fastapi import Path, Query, Request
from pydantic import BaseModel, Field
from sqlalchemy.orm import Session

from cloister.hub.database import of_each
from cloister.hub.description import Limit, Taken, example, read_of
from cloister.hub.hub import HubDep, PersonDep
from cloister.hub.platform.accounts import links, people, sessions, tokens
from cloister.hub.records.accounts import Person, folded, person_by_id
from cloister.hub.web.forms import token_of
from cloister.hub.web.routing import After, Routes

Search = Annotated[str, Query(max_length=200)]
Id = Annotated[str, Path(max_length=64)]


def add(routes: Routes) -> None:
    @routes.get("/me", "public.read", "Get the caller", "Who you are signed in as, with roles and the token against forgery")
    def me(request: Request, caller: PersonDep) -> Me:
        return read_of(
            Me,
            caller,
            roles=sorted(caller.roles),
            projects=sorted(caller.projects),
            training=dict(caller.training),
            attributes=dict(caller.attributes),
            scopes=None if caller.scopes is None else sorted(caller.scopes),
            csrf=token_of(request) if caller.via == "session" else "",
        )

    _tokens(routes)
    _people(routes)


def _tokens(routes: Routes) -> None:
    @routes.get("/tokens", "token.manage", "List your API tokens", "Your API tokens, the newest first")
    def listed(hub: HubDep, caller: PersonDep, after: After = "", limit: Limit = 50) -> Tokens:
        with hub.database.reading() as db:
            rows, more = tokens.page_of_tokens(db, caller, after=after, limit=limit)
        return Tokens(items=of_each(rows, partial(read_of, TokenOut)), next=more or None)

    @routes.post(
        "/tokens", "token.manage", "Create an API token", "The API token; its secret is shown only here", status_code=201
    )
    def make(hub: HubDep, caller: PersonDep, body: NewToken) -> TokenMade:
        with hub.database.begin() as db:
            row, secret = tokens.make_token(hub, db, caller, name=body.name, scopes=body.scopes, days=body.days)
        return read_of(TokenMade, row, token=secret)

    @routes.get("/tokens/{token}", "token.manage", "Get one of your API tokens", "The API token, without its secret")
    def one(hub: HubDep, caller: PersonDep, token: Id) -> TokenOut:
        with hub.database.reading() as db:
            return read_of(TokenOut, tokens.own_token(db, caller, token))

    @routes.patch("/tokens/{token}", "token.manage", "Rename an API token", "The API token under its new name")
    def rename(hub: HubDep, caller: PersonDep, token: Id, body: Renaming) -> TokenOut:
        with hub.database.begin() as db:
            row = tokens.own_token(db, caller, token)
            tokens.rename(hub, db, caller, row, body.name)
        return read_of(TokenOut, row)

    @routes.delete("/tokens/{token}", "token.manage", "Revoke an API token", "The revoked API token")
    def revoke(hub: HubDep, caller: PersonDep, token: Id) -> TokenOut:
        with hub.database.begin() as db:
            row = tokens.own_token(db, caller, token)
            tokens.revoke(hub, db, caller, row)
        return read_of(TokenOut, row)


def _people(routes: Routes) -> None:
    @routes.get("/people", "people.see", "List people", "The people, by e-mail address")
    def everybody(hub: HubDep, search: Search = "", after: After = "", limit: Limit = 50) -> People:
        with hub.database.reading() as db:
            rows, more = people.page_of_people(db, search=search, after=after, limit=limit)
        return People(items=[_told(row.person, row.roles) for row in rows], next=more or None)

    @routes.post(
        "/people/invitations", "people.invite", "Invite a person", "The link to hand over, shown only here", status_code=201
    )
    def invite(hub: HubDep, caller: PersonDep, body: Invitation) -> Invited:
        with hub.database.begin() as db:
            link = links.invite(hub, db, caller, email=body.email, roles=body.roles)
        return Invited(email=folded(body.email), link=link)

    @routes.get("/people/{person}", "people.see", "Get a person", "The person")
    def somebody(hub: HubDep, person: Id) -> PersonOut:
        with hub.database.reading() as db:
            return _shown(db, person)

    @routes.patch("/people/{person}", "roles.give", "Update a person", "The person, with institution, training and attributes")
    def describe(hub: HubDep, caller: PersonDep, person: Id, body: Details) -> PersonOut:
        with hub.database.begin() as db:
            found = person_by_id(db, person)
            people.describe(
                hub, db, caller, found, institution=body.institution, training=body.training, attributes=body.attributes
            )
            return _shown(db, person)

    @routes.put("/people/{person}/roles", "roles.give", "Set the roles of a person", "The person with exactly these roles")
    def give(hub: HubDep, caller: PersonDep, person: Id, body: Roles) -> PersonOut:
        with hub.database.begin() as db:
            if people.set_roles(hub, db, caller, person_by_id(db, person), body.roles) and person == caller.id:
                sessions.end(db, caller.session)
            return _shown(db, person)

    @routes.post("/people/{person}/block", "people.block", "Block a person", "The blocked person")
    def block(hub: HubDep, caller: PersonDep, person: Id) -> PersonOut:
        with hub.database.begin() as db:
            people.block(hub, db, caller, person_by_id(db, person))
            return _shown(db, person)

    @routes.post("/people/{person}/unblock", "people.block", "Unblock a person", "The unblocked person")
    def unblock(hub: HubDep, caller: PersonDep, person: Id) -> PersonOut:
        with hub.database.begin() as db:
            people.unblock(hub, db, caller, person_by_id(db, person))
            return _shown(db, person)


def _shown(db: Session, person: str) -> PersonOut:
    found = person_by_id(db, person)
    return _told(found, people.roles_of(db, found.id))


def _told(row: Person, roles: Iterable[str]) -> PersonOut:
    return read_of(PersonOut, row, roles=list(roles), second_factor=row.totp is not None)


Line = Annotated[str, Field(max_length=200)]
Short = Annotated[str, Field(max_length=60)]


class Me(BaseModel):
    """Who asks."""

    id: str
    email: str
    name: str
    institution: str
    roles: list[str]
    projects: list[str]
    training: dict[str, str]
    attributes: dict[str, str]
    via: str
    scopes: list[str] | None = Field(description="Of the API token that asks; null: everything that the person may do.")
    csrf: str = Field(description="The X-CSRF-Token that a browser's session sends with what it writes; empty for a token.")


class NewToken(Taken):
    """A token to make."""

    model_config = example(name="a notebook", scopes=["question.ask", "release.see"], days=30)

    name: Annotated[str, Field(min_length=1, max_length=100)]
    scopes: Annotated[list[Short], Field(min_length=1, max_length=200)]
    days: Annotated[int, Field(ge=1, le=3650)] | None = None


class Renaming(Taken):
    """Another name."""

    model_config = example(name="the nightly report")

    name: Annotated[str, Field(min_length=1, max_length=100)]


class TokenOut(BaseModel):
    """A token, without its secret."""

    id: str
    name: str
    scopes: list[str]
    created: datetime
    expires: datetime
    revoked: datetime | None
    used: datetime | None


class TokenMade(TokenOut):
    """A token, with its secret: the only time that it is shown."""

    token: str


class Tokens(BaseModel):
    """Some tokens; `next` is the `after` of the page that follows."""

    items: list[TokenOut]
    next: str | None


class PersonOut(BaseModel):
    """A person, as those see them who look after people."""

    id: str
    email: str
    name: str
    institution: str
    roles: list[str]
    training: dict[str, str]
    attributes: dict[str, str]
    blocked: bool
    second_factor: bool
    created: datetime


class People(BaseModel):
    """Some people; `next` is the `after` of the page that follows."""

    items: list[PersonOut]
    next: str | None


class Invitation(Taken):
    """Somebody to invite."""

    model_config = example(email="ada@example.org", roles=["analyst"])

    email: Annotated[str, Field(min_length=3, max_length=320)]
    roles: Annotated[list[Short], Field(max_length=20)]


class Invited(BaseModel):
    """The link to hand over: the only time that it is shown."""

    email: str
    link: str


class Roles(Taken):
    """All roles that a person is to have."""

    model_config = example(roles=["analyst", "owner"])

    roles: Annotated[list[Short], Field(max_length=20)]


class Details(Taken):
    """What policies ask for; what is left out stays as it is."""

    model_config = example(institution="North", training={"GCP": "2030-12-31"})

    institution: Line | None = None
    training: dict[Short, Line] | None = Field(default=None, description="Certificate → its last day, such as 2027-12-31.")
    attributes: dict[Short, Line] | None = None
