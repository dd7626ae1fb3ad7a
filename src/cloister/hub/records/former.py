"""Tables of the version before, in which models and anonymised tables lay by themselves.

Nothing writes into them any more but a process of that version. Their rows are copied into `stored_release` at each opening
(`migrations/copying.py`); the next version drops them, and this file.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from cloister.hub.database import Base


class LearntModel(Base):
    """One model."""

    __tablename__ = "learnt_model"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    person: Mapped[str] = mapped_column(ForeignKey("person.id"), index=True)
    project: Mapped[str] = mapped_column(String(32), default="")
    title: Mapped[str] = mapped_column(String(200), default="")
    algorithm: Mapped[str] = mapped_column(String(32), default="")
    method: Mapped[str] = mapped_column(String(60))
    data_sets: Mapped[list[str]]
    table: Mapped[str] = mapped_column(String(200))
    columns: Mapped[dict[str, Any]]
    """The features in their order under "features", each with its declaration, and the name of the target under "target"."""
    purpose: Mapped[str] = mapped_column(default="")
    cost: Mapped[dict[str, Any]]
    card: Mapped[str]
    body: Mapped[str]
    policy: Mapped[dict[str, Any]] = mapped_column(default=dict)
    created: Mapped[datetime]


class AnonymizedTable(Base):
    """A table that was released."""

    __tablename__ = "anonymized_table"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    person: Mapped[str] = mapped_column(ForeignKey("person.id"), index=True)
    project: Mapped[str] = mapped_column(String(32), default="")
    title: Mapped[str] = mapped_column(String(200))
    data_sets: Mapped[list[str]]
    table: Mapped[str] = mapped_column(String(200))
    made: Mapped[str] = mapped_column(String(32), default="")
    version: Mapped[str] = mapped_column(String(32), default="")
    digest: Mapped[str] = mapped_column(String(64), default="")
    purpose: Mapped[str] = mapped_column(default="")
    order: Mapped[dict[str, Any]]
    report: Mapped[dict[str, Any]]
    report_page: Mapped[str]
    certificate: Mapped[dict[str, Any]]
    certificate_page: Mapped[str]
    policy: Mapped[dict[str, Any]] = mapped_column(default=dict)
    created: Mapped[datetime]
