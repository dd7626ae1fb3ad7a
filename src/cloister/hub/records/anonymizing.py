"""Anonymised tables: what was tried for the owner's eyes, and what was released."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ForeignKey, String, delete
from sqlalchemy.orm import Mapped, Session, mapped_column

from cloister.hub.database import Base

__all__ = ["TRIAL_KEPT", "AnonymizedTable", "Trial", "forget_trials"]

TRIAL_KEPT = timedelta(days=7)
"""How long a trial is kept: it holds values of rows, and another costs nothing but time."""


class Trial(Base):
    """What was tried on a data set before a release: exact, computed from its rows, and shown to its owner alone."""

    __tablename__ = "anonymizing_trial"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    person: Mapped[str] = mapped_column(ForeignKey("person.id"), index=True)
    data_set: Mapped[str] = mapped_column(String(32), index=True)
    order: Mapped[dict[str, Any]]
    """What was asked for, but the hierarchies."""
    wrapped: Mapped[bytes]
    """The frontier and the hierarchies as JSON, wrapped by the master key: they hold values of rows."""
    created: Mapped[datetime]

    @property
    def about(self) -> str:
        """What its secret is bound to."""
        return f"trial {self.id} of data set {self.data_set}"


class AnonymizedTable(Base):
    """A table that was released: its rows are a data set of their own; here are its report and its certificate."""

    __tablename__ = "anonymized_table"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    person: Mapped[str] = mapped_column(ForeignKey("person.id"), index=True)
    project: Mapped[str] = mapped_column(String(32), default="")
    """Always empty: an owner releases for nobody else. What derives from data has one (`hub/releases/derived.py`)."""
    title: Mapped[str] = mapped_column(String(200))
    data_sets: Mapped[list[str]]
    """Of which data set it was made."""
    table: Mapped[str] = mapped_column(String(200))
    """The name of that data set, as it was then."""
    made: Mapped[str] = mapped_column(String(32), default="")
    """The data set that its rows became."""
    version: Mapped[str] = mapped_column(String(32), default="")
    """The version of that data set which holds them: report and certificate are about this one, and about no other."""
    digest: Mapped[str] = mapped_column(String(64), default="")
    """Of that version, as the table store checks it."""
    purpose: Mapped[str] = mapped_column(default="")
    order: Mapped[dict[str, Any]]
    report: Mapped[dict[str, Any]]
    report_page: Mapped[str]
    certificate: Mapped[dict[str, Any]]
    certificate_page: Mapped[str]
    policy: Mapped[dict[str, Any]] = mapped_column(default=dict)
    created: Mapped[datetime]


def forget_trials(db: Session, now: datetime) -> None:
    """Delete the trials that were kept long enough."""
    db.execute(delete(Trial).where(Trial.created < now - TRIAL_KEPT))
