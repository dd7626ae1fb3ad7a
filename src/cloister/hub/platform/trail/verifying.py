"""Verifying the audit log: every line's hash, the count without a hole, the end in database and file, the index."""

import hmac
from collections.abc import Iterator
from typing import Any, Literal

from sqlalchemy import func, select
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import InstrumentedAttribute, Session

from cloister.hub.hub import Hub
from cloister.hub.platform.trail.chain import PARTS, START, Act, BrokenLine, about, seal
from cloister.hub.platform.trail.writing import ACCEPT, GAP, keeper_of
from cloister.hub.records.trail import AuditAbout, AuditHead, AuditLine

_BATCH = 1000
_UNREADABLE = "it was changed: it can't be read as a line"
_NO_LINE = (ValueError, TypeError, AttributeError, OverflowError, RecursionError, OperationalError)
"""What reading a line that was changed may raise, besides its hash."""


def verify(hub: Hub) -> Literal[True] | BrokenLine:
    """Read the whole audit log: True, or the first line that does not fit.

    Lines that are written while it reads are left to the next time. A loss that was found and written down (`GAP`) counts
    as broken until somebody has answered for it.
    """
    keeper = keeper_of(hub)
    with hub.database.reading() as db:
        known = keeper.file().read()  # before the database's end: the file never leads
        if known is None:
            newest = db.scalar(select(func.max(AuditLine.number))) or 0
            return BrokenLine(number=newest + 1, reason="the head file is missing, so nobody can tell whether lines are lost")
        end = db.execute(select(AuditHead.number, AuditHead.hash)).one_or_none()
        if end is None:
            newest = max(db.scalar(select(func.max(AuditLine.number))) or 0, known.count)
            return BrokenLine(number=1, reason="the end of the chain is missing") if newest else True
        key, last, number, gap = keeper.key, START, 0, 0
        for line in _lines_or_breach(db, until=end.number):
            if isinstance(line, BrokenLine):
                missing = line.number != number + 1
                return BrokenLine(number=number + 1, reason="it is missing") if missing else line
            number += 1
            if line.number != number:
                return BrokenLine(number=number, reason="it is missing")
            told = _sealed(key, last, number, line)
            if told is None:
                return BrokenLine(number=number, reason=_UNREADABLE)
            last = told
            if not _same(last, line.hash):
                return BrokenLine(number=number, reason="it, or the line before it, was changed")
            if known.count == number and known.hash != last:
                return BrokenLine(number=number, reason="it is not the line that the head file knows")
            if line.action == GAP:
                gap = number
            elif line.action == ACCEPT and line.object == str(gap):
                gap = 0
        if number != end.number or last != end.hash:
            return BrokenLine(number=number + 1, reason="the newest lines are missing")
        if known.count > number:
            return BrokenLine(number=number + 1, reason=f"the trail was cut or rolled back: line {known.count} is known")
        if gap:
            return BrokenLine(number=gap, reason="it tells of lost lines, and nobody has answered for them")
        behind = _behind(db, AuditLine.number)
        if behind is not None:
            return BrokenLine(number=behind, reason="it stands behind the end of the chain: nobody wrote it by the hub")
        return _verify_index(db, end.number)


def _lines_or_breach(db: Session, *, until: int) -> Iterator[AuditLine | BrokenLine]:
    """The lines up to a number; the first that can't be read as one ends them. What stands in a line that was changed may be no
    moment, no JSON and no text, and the database's driver then gives nothing of its batch."""
    after = 0
    try:
        for line in lines_in_order(db, until=until):
            after = line.number
            yield line
        return
    except _NO_LINE as error:
        if _is_away(error):
            raise
    numbers = select(AuditLine.number).where(AuditLine.number > after, AuditLine.number <= until)
    for number in db.scalars(numbers.order_by(AuditLine.number)).all():
        try:
            found = db.scalars(select(AuditLine).where(AuditLine.number == number)).one_or_none()
        except _NO_LINE as error:
            if _is_away(error):
                raise
            found = None
        yield BrokenLine(number=number, reason=_UNREADABLE) if found is None else found
        if found is None:
            return


def lines_in_order(db: Session, *, until: int) -> Iterator[AuditLine]:
    """The lines up to a number, in batches."""
    after = 0
    while True:
        batch = db.scalars(
            select(AuditLine).where(AuditLine.number > after, AuditLine.number <= until).order_by(AuditLine.number).limit(_BATCH)
        ).all()
        yield from batch
        if len(batch) < _BATCH:
            return
        after = batch[-1].number
        db.expunge_all()


def _sealed(key: bytes, before: str, number: int, line: AuditLine) -> str | None:
    """The hash of a line as it stands; None where it holds what no line was ever written with."""
    try:
        return seal(key, before, number, act_of(line))
    except _NO_LINE:
        return None


def _same(told: str, stored: Any) -> bool:
    """Whether a stored hash, which may be anything, is the one that it should be."""
    return isinstance(stored, str) and hmac.compare_digest(told.encode(), stored.encode("utf-8", "replace"))


def _is_away(error: Exception) -> bool:
    """Whether the database did not answer, which tells nothing of a line."""
    return isinstance(error, OperationalError) and "decode" not in str(error.orig)


def act_of(line: AuditLine) -> Act:
    """What a stored line says."""
    return Act(**{name: getattr(line, name) for name in PARTS})


def _behind(db: Session, column: InstrumentedAttribute[int]) -> int | None:
    """The first number behind the chain's end, both as of one moment."""
    return db.scalar(select(func.min(column)).where(column > select(AuditHead.number).scalar_subquery()))


def _verify_index(db: Session, until: int) -> Literal[True] | BrokenLine:
    """Each line is found by exactly the objects that it names."""
    after = 0
    while after < until:
        upto = min(after + _BATCH, until)
        found: dict[int, set[str]] = {}
        for row in db.execute(select(AuditAbout).where(AuditAbout.number > after, AuditAbout.number <= upto)).scalars():
            found.setdefault(row.number, set()).add(row.object)
        lines = select(AuditLine.number, AuditLine.kind, AuditLine.object, AuditLine.details)
        for line in db.execute(lines.where(AuditLine.number > after, AuditLine.number <= upto).order_by(AuditLine.number)):
            if set(about(line.kind, line.object, line.details)) != found.get(line.number, set()):
                return BrokenLine(number=line.number, reason="the index of its objects was changed")
        after = upto
    behind = _behind(db, AuditAbout.number)
    return True if behind is None else BrokenLine(number=behind, reason="the index of its objects was changed")
