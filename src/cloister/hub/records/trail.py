"""The audit log: who did what to which, when, why, and at what cost; and what was noticed about it."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from cloister.hub.database import Base, Identified


class AuditLine(Base):
    """One act. The chain of hashes runs through all lines; the hash covers every column but itself."""

    __tablename__ = "trail"
    __table_args__ = (Index("ix_trail_person_number", "person", "number"),)

    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    when: Mapped[datetime] = mapped_column("moment", index=True)
    person: Mapped[str] = mapped_column(String(32))
    """Empty: nobody, or the hub itself."""
    action: Mapped[str] = mapped_column(String(60), index=True)
    kind: Mapped[str] = mapped_column(String(40), default="")
    object: Mapped[str] = mapped_column(String(200), default="", index=True)
    purpose: Mapped[str] = mapped_column(default="")
    cost: Mapped[dict[str, Any]] = mapped_column(default=dict)
    outcome: Mapped[str] = mapped_column(String(20), default="done")
    """done, denied, failed."""
    details: Mapped[dict[str, Any]] = mapped_column(default=dict)
    hash: Mapped[str] = mapped_column(String(64))


class AuditAbout(Base):
    """The objects that a line is about, to find it by: its own, and the data sets whose ids its details name; each by its kind
    and its id ("data-set:…", "population:…"), since things of two kinds may have one name. It follows from the lines, and is
    compared with them when the audit log is verified."""

    __tablename__ = "trail_about"

    object: Mapped[str] = mapped_column(String(200), primary_key=True)
    number: Mapped[int] = mapped_column(ForeignKey("trail.number"), primary_key=True, index=True)


class AuditHead(Base):
    """One row, locked by whoever writes the next line: the end of the chain."""

    __tablename__ = "trail_head"

    id: Mapped[int] = mapped_column(primary_key=True)
    number: Mapped[int] = mapped_column(default=0)
    hash: Mapped[str] = mapped_column(String(64), default="")


class Alert(Identified):
    """Something about somebody's behaviour that a steward should look at."""

    __tablename__ = "alert"

    person: Mapped[str] = mapped_column(ForeignKey("person.id"), index=True)
    kind: Mapped[str] = mapped_column(String(40))
    about: Mapped[dict[str, Any]]
    created: Mapped[datetime]
    seen_by: Mapped[str] = mapped_column(String(32), default="")
    seen: Mapped[datetime | None] = mapped_column(default=None)
