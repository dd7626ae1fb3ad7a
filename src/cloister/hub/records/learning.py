"""The models that were learnt: what left, as it left."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from cloister.hub.database import Base

__all__ = ["LearntModel"]


class LearntModel(Base):
    """One model: its portable text and its card, what it cost, and the policy that it carries."""

    __tablename__ = "learnt_model"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    person: Mapped[str] = mapped_column(ForeignKey("person.id"), index=True)
    project: Mapped[str] = mapped_column(String(32), default="")
    title: Mapped[str] = mapped_column(String(200), default="")
    algorithm: Mapped[str] = mapped_column(String(32), default="")
    """The id of the one under which it was learnt."""
    method: Mapped[str] = mapped_column(String(60))
    data_sets: Mapped[list[str]]
    table: Mapped[str] = mapped_column(String(200))
    """The name of the data set, as it was then."""
    columns: Mapped[dict[str, Any]]
    """The features in their order under "features", each with its declaration, and the name of the target under "target"."""
    purpose: Mapped[str] = mapped_column(default="")
    cost: Mapped[dict[str, Any]]
    """Population → guarantee, as text."""
    card: Mapped[str]
    """As JSON (`Card.to_json`)."""
    body: Mapped[str]
    """The model as portable JSON (`model.to_json`)."""
    policy: Mapped[dict[str, Any]] = mapped_column(default=dict)
    created: Mapped[datetime]
