"""One number that changes with everything that decides who may ask what: data sets, grants, rules, projects, algorithms.

Each process keeps what it worked out for one generation, and looks at the number before each use; so a grant that was revoked is
gone for the next question of every process, at the price of one small read. What only reads sees one moment of the database, so
there it is read once.
"""

from sqlalchemy import Connection, select, update
from sqlalchemy.orm import Mapped, Session, mapped_column

from cloister.hub.database import Base, Reader
from cloister.hub.statements import Statement


class Generation(Base):
    """The one row."""

    __tablename__ = "generation"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    number: Mapped[int] = mapped_column(default=0)


_NUMBER = Statement(select(Generation.__table__.c.number).where(Generation.__table__.c.id == 1))
_KNOWN = "generation"


def generation(db: Session) -> int:
    """The number now; within `Database.reading` that of its moment."""
    known: int | None = db.info.get(_KNOWN)
    if known is None:
        known = read_generation(db.connection())
        if isinstance(db, Reader):
            db.info[_KNOWN] = known
    return known


def read_generation(connection: Connection) -> int:
    """The number now, for who has no session and may need none."""
    rows = _NUMBER.rows(connection)
    return rows[0].number if rows else 0


def claim_generation(db: Session, number: int) -> None:
    """Let a session that reads, and has asked nothing yet, begin with the number that was glanced at."""
    db.info[_KNOWN] = number


def bump(db: Session) -> None:
    """Say, in the transaction of a change, that there was one."""
    changed = db.execute(update(Generation).where(Generation.id == 1).values(number=Generation.number + 1))
    if changed.rowcount == 0:  # type: ignore[attr-defined]
        db.add(Generation(id=1, number=1))
        db.flush()
