"""What left, of every kind, in one table; to whom it was shown, and where it is published."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from cloister.hub.database import Base, Identified


class StoredRelease(Identified):
    """What left, as it left, of whatever kind: its bytes, what it cost, and the policy that it carries."""

    __tablename__ = "stored_release"

    person: Mapped[str] = mapped_column(ForeignKey("person.id"), index=True)
    project: Mapped[str] = mapped_column(String(32), default="", index=True)
    """In which it was asked for, where its members see it for that; of a kind that they see only when shown, `details` has it."""
    kind: Mapped[str] = mapped_column(String(20), default="sql")
    """The name of a `ReleaseKind`."""
    title: Mapped[str] = mapped_column(String(200), default="")
    sql: Mapped[str] = mapped_column(default="")
    purpose: Mapped[str] = mapped_column(default="")
    data_sets: Mapped[list[str]]
    cost: Mapped[dict[str, Any]]
    """Population → guarantee, as text."""
    digest: Mapped[str] = mapped_column(String(64), default="", index=True)
    """Of the plan; of rows that became a data set: of that version of it."""
    body: Mapped[bytes]
    """What its kind makes of it: of an answer, the release as JSON (`Release.to_json`)."""
    policy: Mapped[dict[str, Any]] = mapped_column(default=dict)
    created: Mapped[datetime]
    withdrawn: Mapped[datetime | None] = mapped_column(default=None)
    algorithm: Mapped[str] = mapped_column(String(32), default="")
    """The id of the one under which it was asked."""
    details: Mapped[dict[str, Any]] = mapped_column(default=dict, server_default="{}")
    """What lists and pages of its kind show besides: small, and JSON."""
    data_set: Mapped[str] = mapped_column(String(32), default="", server_default="")
    """The data set that its rows became, where they did."""

    @property
    def asked_in(self) -> str:
        """The id of the project in which it was asked for; empty: in none."""
        return self.project or str(self.details.get("project", ""))


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


class PublishedView(Base):
    """Answers that pages of other sites show in a frame, to anyone, until a moment. Each is decided on at each look."""

    __tablename__ = "published_view"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    """The last part of its address: random, and public as soon as a page frames it."""
    person: Mapped[str] = mapped_column(ForeignKey("person.id"), index=True)
    title: Mapped[str] = mapped_column(String(200))
    parts: Mapped[list[Any]]
    """In their order: each the id of a release under "release", and what is shown of it under "shows"."""
    data_sets: Mapped[list[str]]
    origins: Mapped[list[str]]
    """Of the pages that may frame it."""
    until: Mapped[datetime]
    created: Mapped[datetime]
    revoked: Mapped[datetime | None] = mapped_column(default=None)
    revoked_by: Mapped[str] = mapped_column(String(32), default="")
