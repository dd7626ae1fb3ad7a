"""Streams: what is declared of one, the keys of its devices, what waits for its step, and what was released."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, LargeBinary, String
from sqlalchemy.orm import Mapped, mapped_column

from cloister.hub.database import Base, Identified


class HeldStream(Identified):
    """A stream, from its opening on: nothing of what is declared changes."""

    __tablename__ = "stream"

    owner: Mapped[str] = mapped_column(ForeignKey("person.id"), index=True)
    title: Mapped[str] = mapped_column(String(200))
    declared: Mapped[dict[str, Any]]
    """The question, the columns, the clock, the spend, how many readings of a device count, and its quota an hour."""
    shown: Mapped[bool] = mapped_column(default=False)
    """Whether everybody who is signed in sees what is released."""
    taken: Mapped[int] = mapped_column(default=0)
    """How many steps are released."""
    state: Mapped[str] = mapped_column(String(20), default="open")
    """open, closed."""
    created: Mapped[datetime]


class StreamDevice(Identified):
    """A device: the digest of its key, and what it has used of its quota in the hour."""

    __tablename__ = "stream_device"

    stream: Mapped[str] = mapped_column(ForeignKey("stream.id"), index=True)
    name: Mapped[str] = mapped_column(String(100))
    person: Mapped[str] = mapped_column(String(100), default="", server_default="")
    """Whose it is: their readings count together. Empty: its own."""
    digest: Mapped[str] = mapped_column(String(64), unique=True)
    hour: Mapped[int] = mapped_column(default=0)
    used: Mapped[int] = mapped_column(default=0)
    created: Mapped[datetime]
    revoked: Mapped[datetime | None] = mapped_column(default=None)


class StreamBatch(Identified):
    """Readings that wait for a step, encrypted; gone with it."""

    __tablename__ = "stream_batch"

    stream: Mapped[str] = mapped_column(ForeignKey("stream.id"), index=True)
    arrived: Mapped[datetime] = mapped_column(index=True)
    last: Mapped[int]
    """The step that counts them."""
    body: Mapped[bytes] = mapped_column(LargeBinary())


class StreamStep(Base):
    """What was released of a step."""

    __tablename__ = "stream_step"

    stream: Mapped[str] = mapped_column(ForeignKey("stream.id"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    body: Mapped[dict[str, Any]]
