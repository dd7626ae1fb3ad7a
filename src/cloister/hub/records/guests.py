"""What is known of an algorithm's code near one data set: the audit, who approved it, and whether it was stopped.

The code of an algorithm never changes under its id, so one row is about one text. What the data set declares of the columns that
it reads may change, and then audit and approvals hold no longer: `declared` says for which declaration they were given.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from cloister.hub.database import Base


class GuestReview(Base):
    """One algorithm at one data set."""

    __tablename__ = "guest_review"
    __table_args__ = (UniqueConstraint("algorithm", "data_set"),)

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    algorithm: Mapped[str] = mapped_column(ForeignKey("algorithm.id"), index=True)
    data_set: Mapped[str] = mapped_column(ForeignKey("data_set.id"), index=True)
    declared: Mapped[str] = mapped_column(String(64), default="")
    """A digest of the code and of what the data set declared when it was reviewed."""
    found: Mapped[dict[str, Any]] = mapped_column(default=dict)
    """What tests, runs on made-up rows and the audit gave; empty before."""
    approvals: Mapped[list[Any]] = mapped_column(default=list)
    """`{"person": …, "when": …}`, the first one first."""
    stopped: Mapped[datetime | None] = mapped_column(default=None)
    stopped_by: Mapped[str] = mapped_column(String(32), default="")
    """A person; empty: the hub itself, after an alert."""
    why: Mapped[str] = mapped_column(String(200), default="")
    """An English msgid, or what a person wrote."""
    created: Mapped[datetime]
