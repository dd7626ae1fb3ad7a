"""People, by their id or their address, what proves who they are, and the links by which they come in."""

import re
import unicodedata
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, String, select
from sqlalchemy.orm import Mapped, Session, mapped_column

from cloister.errors import InvalidParameter, Missing
from cloister.hub.database import Base, Identified

_EMAIL = re.compile(r"[^\s@<>\"(),:;\\\[\]]{1,64}@[^\s@<>\"(),:;\\\[\]]{1,255}")
_ID = re.compile(r"[A-Za-z0-9_-]{1,32}")
_LONGEST_EMAIL = 320


class Person(Identified):
    """Somebody with a place in the hub. Nobody is deleted, since the audit log names them; anyone who leaves is blocked."""

    __tablename__ = "person"

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


class ApiToken(Identified):
    """A key for programs: shown once, kept as a digest."""

    __tablename__ = "api_token"

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


def folded(address: str) -> str:
    """An e-mail address as it is kept and compared: A to Z are a to z, and a letter that is written in two parts is written as
    one (NFC). Nothing else is taken for the same: ß is not ss, and ⓐ is not a, since to a mail server they are other people.

    >>> folded(" Ada@Example.ORG "), folded("Straße@Uni.de") == folded("strasse@uni.de")
    ('ada@example.org', False)
    """
    text = unicodedata.normalize("NFC", address[:_LONGEST_EMAIL].strip())
    text = "".join(letter.lower() if letter.isascii() else letter for letter in text)
    unseen = any(unicodedata.category(letter)[0] == "C" for letter in text)  # joiners too, which nobody sees in an address
    if len(address) >= _LONGEST_EMAIL or not _EMAIL.fullmatch(text) or unseen:
        raise InvalidParameter("The e-mail address is invalid", why="it is not a valid e-mail address", instead="ada@example.org")
    return text


def person_of_address(db: Session, address: str) -> Person | None:
    """The person of an e-mail address, however it is capitalised."""
    try:
        known = folded(address)
    except InvalidParameter:
        return None
    return db.scalar(select(Person).where(Person.email == known))


def person_by_id(db: Session, person: str) -> Person:
    """The person of an id."""
    found = db.get(Person, person) if _ID.fullmatch(person) else None
    if found is None:
        raise Missing("There is no such person", why="no one here has this id", instead="/people")
    return found


def names_of(db: Session, people: Iterable[str]) -> dict[str, str]:
    """Id → name, for pages that name several people."""
    wanted = {each for each in people if each}
    return {row.id: row.name for row in db.execute(select(Person.id, Person.name).where(Person.id.in_(wanted)))}
