"""What the API of accounts takes and gives. A field that is not named here is refused: nobody sets what nobody offers."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from cloister.hub.description import example
from cloister.hub.records.accounts import ApiToken
from cloister.hub.services.accounts.people import Row

Line = Annotated[str, Field(max_length=200)]
Short = Annotated[str, Field(max_length=60)]


class _Taken(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


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


class NewToken(_Taken):
    """A token to make."""

    model_config = example(name="a notebook", scopes=["question.ask", "release.see"], days=30)

    name: Annotated[str, Field(min_length=1, max_length=100)]
    scopes: Annotated[list[Short], Field(min_length=1, max_length=200)]
    days: Annotated[int, Field(ge=1, le=3650)] | None = None


class Renaming(_Taken):
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

    @classmethod
    def of(cls, row: ApiToken) -> TokenOut:
        """From the database's row."""
        return cls.model_validate(row, from_attributes=True)


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

    @classmethod
    def of(cls, row: Row) -> PersonOut:
        """From the database's row."""
        person = row.person
        return cls(
            id=person.id,
            email=person.email,
            name=person.name,
            institution=person.institution,
            roles=list(row.roles),
            training=person.training,
            attributes=person.attributes,
            blocked=person.blocked,
            second_factor=person.totp is not None,
            created=person.created,
        )


class People(BaseModel):
    """Some people; `next` is the `after` of the page that follows."""

    items: list[PersonOut]
    next: str | None


class Invitation(_Taken):
    """Somebody to invite."""

    model_config = example(email="ada@example.org", roles=["analyst"])

    email: Annotated[str, Field(min_length=3, max_length=320)]
    roles: Annotated[list[Short], Field(max_length=20)]


class Invited(BaseModel):
    """The link to hand over: the only time that it is shown."""

    email: str
    link: str


class Roles(_Taken):
    """All roles that a person is to have."""

    model_config = example(roles=["analyst", "owner"])

    roles: Annotated[list[Short], Field(max_length=20)]


class Details(_Taken):
    """What policies ask for; what is left out stays as it is."""

    model_config = example(institution="North", training={"GCP": "2030-12-31"})

    institution: Line | None = None
    training: dict[Short, Line] | None = Field(default=None, description="Certificate → its last day, such as 2027-12-31.")
    attributes: dict[Short, Line] | None = None
