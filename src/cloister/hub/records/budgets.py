"""Requests for more budget. Budgets, shares and charges themselves are the ledger's."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from cloister.hub.database import Base


class BudgetRequest(Base):
    """Somebody asks for more of a population's budget."""

    __tablename__ = "budget_request"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    population: Mapped[str] = mapped_column(ForeignKey("population.name"), index=True)
    person: Mapped[str] = mapped_column(ForeignKey("person.id"), index=True)
    project: Mapped[str] = mapped_column(String(32), default="")
    wanted: Mapped[str] = mapped_column(String(60))
    """The share asked for, in the budget's own measure, as text."""
    reason: Mapped[str] = mapped_column(default="")
    state: Mapped[str] = mapped_column(String(20), default="open")
    decided_by: Mapped[str] = mapped_column(String(32), default="")
    decided: Mapped[datetime | None] = mapped_column(default=None)
    created: Mapped[datetime]
