"""People, what proves who they are, and the links by which they come in."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from cloister.hub.database import Base


class Person(Base):
    """Somebody with a place in the hub. Nobody is deleted, since the audit log names them; anyone who leaves is blocked."""

    __tablename__ = "person"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    email: Mapped[str] = mapped_column(String(320), unique=True)
    """As it is compared: case-folded."""
    name: Mapped[str] = mapped_column(String(200))
    institution: Mapped[str] = mapped_column(String(200), default="")
    password: Mapped[str | None] = mapped_column(String(300), default=None)
    """An Argon2id hash."""
    totp: Mapped[bytes | None] = mapped_column(default=None)
    """The second factor's secret, wrapped."""
    totp_step: Mapped[int] = mapped_column(default=0)
    """The last time step whose code was used: no code counts twice."""
    subject: Mapped[str | None] = mapped_column(String(500), default=None, unique=True)
    """Issuer and subject at the identity provider."""
    training: Mapped[dict[str, Any]] = mapped_column(default=dict)
    attributes: Mapped[dict[str, Any]] = mapped_column(default=dict)
    locale: Mapped[str] = mapped_column(String(10), default="")
    blocked: Mapped[bool] = mapped_column(default=False)
    created: Mapped[datetime]


class PersonRole(Base):
    """A role that a person has."""

    __tablename__ = "person_role"

    person: Mapped[str] = mapped_column(ForeignKey("person.id"), primary_key=True)
    role: Mapped[str] = mapped_column(String(40), primary_key=True)
    given_by: Mapped[str] = mapped_column(String(32), default="")
    given: Mapped[datetime]


class WebSession(Base):
    """A session of a browser. The cookie holds a secret, this row its digest."""

    __tablename__ = "web_session"

    digest: Mapped[str] = mapped_column(String(64), primary_key=True)
    person: Mapped[str] = mapped_column(ForeignKey("person.id"), index=True)
    created: Mapped[datetime]
    used: Mapped[datetime]
    expires: Mapped[datetime]
    ended: Mapped[bool] = mapped_column(default=False)
    second_factor: Mapped[bool] = mapped_column(default=False)
    setup: Mapped[bytes | None] = mapped_column(default=None)
    """The secret of a second factor that is being set up, wrapped."""
    address: Mapped[str] = mapped_column(String(64), default="")
    agent: Mapped[str] = mapped_column(String(200), default="")


class ApiToken(Base):
    """A key for programs: shown once, kept as a digest."""

    __tablename__ = "api_token"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    person: Mapped[str] = mapped_column(ForeignKey("person.id"), index=True)
    name: Mapped[str] = mapped_column(String(200))
    digest: Mapped[str] = mapped_column(String(64), unique=True)
    scopes: Mapped[list[str]]
    second_factor: Mapped[bool] = mapped_column(default=False)
    """Whether the session that made it had a second factor."""
    created: Mapped[datetime]
    expires: Mapped[datetime]
    revoked: Mapped[datetime | None] = mapped_column(default=None)
    used: Mapped[datetime | None] = mapped_column(default=None)


class OneTimeLink(Base):
    """A link that works once: the first administrator's, an invitation, a new password."""

    __tablename__ = "one_time_link"

    digest: Mapped[str] = mapped_column(String(64), primary_key=True)
    kind: Mapped[str] = mapped_column(String(20))
    """"first", "invitation", "password", or "login" for a demonstration."""
    email: Mapped[str] = mapped_column(String(320), default="")
    roles: Mapped[list[str]]
    made_by: Mapped[str] = mapped_column(String(32), default="")
    created: Mapped[datetime]
    expires: Mapped[datetime]
    used: Mapped[datetime | None] = mapped_column(default=None)


class Attempts(Base):
    """Failed attempts to sign in, by account and by address, for throttling."""

    __tablename__ = "attempts"

    subject: Mapped[str] = mapped_column(String(100), primary_key=True)
    """A digest of the account's name, or of the network."""
    failures: Mapped[int] = mapped_column(default=0)
    until: Mapped[datetime | None] = mapped_column(default=None)
    last: Mapped[datetime]


class RecoveryCode(Base):
    """A code that stands in for a lost second factor, once."""

    __tablename__ = "recovery_code"

    digest: Mapped[str] = mapped_column(String(64), primary_key=True)
    """Keyed by the hub, and bound to the person."""
    person: Mapped[str] = mapped_column(ForeignKey("person.id"), index=True)
    created: Mapped[datetime]
    used: Mapped[datetime | None] = mapped_column(default=None)


class SignOn(Base):
    """A visit to the identity provider that has not come back yet."""

    __tablename__ = "sign_on"

    digest: Mapped[str] = mapped_column(String(64), primary_key=True)
    """Of the state that the provider gives back."""
    browser: Mapped[str] = mapped_column(String(64))
    """A digest of the cookie of the browser that left."""
    person: Mapped[str] = mapped_column(String(32), default="")
    """Who connects the account that they are signed in to; empty: somebody who signs in."""
    nonce: Mapped[str] = mapped_column(String(64))
    verifier: Mapped[str] = mapped_column(String(64))
    back: Mapped[str] = mapped_column(String(500), default="/")
    expires: Mapped[datetime]
