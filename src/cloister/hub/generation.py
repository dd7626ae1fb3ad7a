"""One number that changes with everything that decides who may ask what: data sets, grants, rules, projects, algorithms.

Each process keeps what it worked out for one generation, and looks at the number before each use; so a grant that was revoked is
gone for the next question of every process, at the price of one small read.
"""

from __future__ import annotations

from sqlalchemy import select, update
from sqlalchemy.orm import Mapped, Session, mapped_column

from cloister.hub.database import Base

__all__ = ["Generation", "bump", "generation"]


class Generation(Base):
    """The one row."""

    __tablename__ = "generation"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    number: Mapped[int] = mapped_column(default=0)


def generation(db: Session) -> int:
    """The number now."""
    return db.scalar(select(Generation.number).where(Generation.id == 1)) or 0


def bump(db: Session) -> None:
    """Say, in the transaction of a change, that there was one."""
    changed = db.execute(update(Generation).where(Generation.id == 1).values(number=Generation.number + 1))
    if changed.rowcount == 0:  # type: ignore[attr-defined]
        db.add(Generation(id=1, number=1))
        db.flush()
