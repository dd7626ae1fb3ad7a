"""Questions that are kept, dashboards of their answers, and the keys under which requests were answered."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from cloister.hub.database import Base, Identified


class SavedQuestion(Identified):
    """A question with a name, to ask again."""

    __tablename__ = "saved_question"

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


class Dashboard(Identified):
    """A page of answers that somebody arranged; in a project, for its members too."""

    __tablename__ = "dashboard"

    person: Mapped[str] = mapped_column(ForeignKey("person.id"), index=True)
    project: Mapped[str] = mapped_column(String(32), default="")
    title: Mapped[str] = mapped_column(String(200))
    layout: Mapped[dict[str, Any]] = mapped_column(default=dict)
    """`parts`, in their order: each the id of a release under "release", and what is shown of it under "shows"."""
    created: Mapped[datetime]
    refreshed: Mapped[datetime | None] = mapped_column(default=None)


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
