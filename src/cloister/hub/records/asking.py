"""Questions that are kept, and the releases that left."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from cloister.hub.database import Base

__all__ = ["Idempotency", "ProjectShare", "ReleaseShare", "SavedQuestion", "StoredRelease"]


class SavedQuestion(Base):
    """A question with a name, to ask again."""

    __tablename__ = "saved_question"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    person: Mapped[str] = mapped_column(ForeignKey("person.id"), index=True)
    project: Mapped[str] = mapped_column(String(32), default="")
    title: Mapped[str] = mapped_column(String(200))
    sql: Mapped[str]
    spend: Mapped[str] = mapped_column(String(100), default="")
    within: Mapped[float | None] = mapped_column(default=None)
    purpose: Mapped[str] = mapped_column(default="")
    dialect: Mapped[str] = mapped_column(String(40), default="")
    algorithm: Mapped[str] = mapped_column(String(32), default="")
    """The id of the one under which it is asked."""
    created: Mapped[datetime]


class StoredRelease(Base):
    """What left, as it left: the bytes of the answer, what it cost, and the policy that it carries."""

    __tablename__ = "stored_release"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    person: Mapped[str] = mapped_column(ForeignKey("person.id"), index=True)
    project: Mapped[str] = mapped_column(String(32), default="", index=True)
    kind: Mapped[str] = mapped_column(String(20), default="sql")
    title: Mapped[str] = mapped_column(String(200), default="")
    sql: Mapped[str] = mapped_column(default="")
    purpose: Mapped[str] = mapped_column(default="")
    data_sets: Mapped[list[str]]
    cost: Mapped[dict[str, Any]]
    """Population → guarantee, as text."""
    digest: Mapped[str] = mapped_column(String(64), default="", index=True)
    """Of the plan."""
    body: Mapped[bytes]
    """The release as JSON (`Release.to_json`)."""
    policy: Mapped[dict[str, Any]] = mapped_column(default=dict)
    created: Mapped[datetime]
    withdrawn: Mapped[datetime | None] = mapped_column(default=None)
    algorithm: Mapped[str] = mapped_column(String(32), default="")
    """The id of the one under which it was asked."""


class ReleaseShare(Base):
    """An e-mail address to which a release was shown: whoever has it here, now or later. Nobody is looked up."""

    __tablename__ = "release_share"

    release: Mapped[str] = mapped_column(ForeignKey("stored_release.id"), primary_key=True)
    email: Mapped[str] = mapped_column(String(254), primary_key=True)
    shared: Mapped[datetime]


class ProjectShare(Base):
    """A project whose members were shown somebody's release."""

    __tablename__ = "project_share"

    release: Mapped[str] = mapped_column(ForeignKey("stored_release.id"), primary_key=True)
    project: Mapped[str] = mapped_column(ForeignKey("project.id"), primary_key=True)
    shared: Mapped[datetime]


class Idempotency(Base):
    """A key of a client, what it was used for, and what was answered: the same key never draws or charges twice.

    A key is one in the whole hub: somebody else's is as taken as one's own that was used for another request.
    """

    __tablename__ = "idempotency"

    key: Mapped[str] = mapped_column(String(200), primary_key=True)
    person: Mapped[str] = mapped_column(ForeignKey("person.id"))
    request: Mapped[str] = mapped_column(String(64))
    """A digest of the path and the body."""
    status: Mapped[int | None] = mapped_column(default=None)
    """None while the first request is being answered."""
    response: Mapped[bytes | None] = mapped_column(default=None)
    created: Mapped[datetime]
