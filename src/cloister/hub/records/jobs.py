"""Long work, as it waits, runs and ends."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from cloister.hub.database import Identified


class Job(Identified):
    """One piece of work."""

    __tablename__ = "job"

    kind: Mapped[str] = mapped_column(String(60), index=True)
    person: Mapped[str] = mapped_column(ForeignKey("person.id"), index=True)
    title: Mapped[str] = mapped_column(String(200), default="")
    purpose: Mapped[str] = mapped_column(default="")
    payload: Mapped[dict[str, Any]]
    secret: Mapped[bytes | None] = mapped_column(default=None)
    """What of the payload may not lie in plain, as JSON, wrapped by the master key; none once the job has ended."""
    notes: Mapped[list[Any]] = mapped_column(default=list)
    """What its attempts have written down, each entry with the number of its attempt, for one that comes after them."""
    state: Mapped[str] = mapped_column(String(20), default="waiting", index=True)
    """waiting, running, done, failed, cancelled."""
    stage: Mapped[str] = mapped_column(String(200), default="")
    share: Mapped[float | None] = mapped_column(default=None)
    attempts: Mapped[int] = mapped_column(default=0)
    worker: Mapped[str] = mapped_column(String(100), default="")
    beat: Mapped[datetime | None] = mapped_column(default=None)
    stopping: Mapped[bool] = mapped_column(default=False)
    result: Mapped[dict[str, Any]] = mapped_column(default=dict)
    problem: Mapped[dict[str, Any]] = mapped_column(default=dict)
    created: Mapped[datetime]
    begun: Mapped[datetime | None] = mapped_column(default=None)
    ended: Mapped[datetime | None] = mapped_column(default=None)

    @property
    def about(self) -> str:
        """What its secret is bound to."""
        return f"job {self.id}"
