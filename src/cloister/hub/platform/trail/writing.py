"""Writing a line: in the caller's transaction, at the end of the one chain, with the chain's end copied to a file.

The head's row is locked until the transaction ends (SQLite: its one writer), so concurrent writers form one chain; write late in
a transaction, and the others wait shortly. After the commit the end is appended to a file in the hub's folder, by the
ledger's own way of keeping it: an audit log whose newest lines are gone does not contain the end that the file knows. Such a loss
is written into the audit log itself when it is found, as a `GAP`, and stays there until somebody answers for it (`accept`).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, bindparam, event, func, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from cloister.errors import InvalidParameter
from cloister.hub.database import Reader, WroteWhileReading
from cloister.hub.hub import Caller, Hub
from cloister.hub.platform.trail.chain import PARTS, START, Act, about, cleaned, no_secrets, seal, text_of
from cloister.hub.records.trail import AuditAbout, AuditHead, AuditLine
from cloister.hub.statements import Statement
from cloister.ledger.head import Head, HeadFile

GAP, ACCEPT = "trail.gap", "trail.accept"
_ROW = 1
_LOG = logging.getLogger("cloister.hub.trail")
_MAKING = threading.Lock()
_LINES, _ABOUTS, _HEADS = (each.metadata.tables[each.__tablename__] for each in (AuditLine, AuditAbout, AuditHead))
_END = Statement(select(_HEADS.c.number, _HEADS.c.hash).where(_HEADS.c.id == _ROW).with_for_update())
_MOVE = Statement(update(_HEADS).where(_HEADS.c.id == _ROW).values(number=bindparam("new"), hash=bindparam("last")))
_LINE, _ABOUT = Statement(insert(_LINES)), Statement(insert(_ABOUTS))


def write(hub: Hub, db: Session, caller: Caller, action: str, **told: Any) -> int:
    """Write a line in the transaction of `db`; the line's number. It exists if and only if that transaction is committed.

    What is told is what `act_of` takes. Details hold names and ids, and the analyst's own question; `data_sets` (ids of data
    sets, never names: a name may be another's later) makes the line visible to their owners.
    """
    return write_all(hub, db, [act_of(hub.now(), caller, action, **told)])[0]


def write_all(hub: Hub, db: Session, acts: Sequence[Act]) -> list[int]:
    """Write several lines in the transaction of `db`, one after the other; their numbers."""
    return keeper_of(hub).add(db, acts)


def act_of(
    when: datetime,
    caller: Caller,
    action: str,
    *,
    kind: str = "",
    object_id: str = "",
    purpose: str = "",
    cost: Mapping[str, str] | None = None,
    outcome: str = "done",
    **details: Any,
) -> Act:
    """What a line will say, as `write` is told it."""
    no_secrets(details)
    if caller.via != "nobody":
        details = {"via": caller.via, **details}
    if caller.address:
        details = {"address": caller.address, **details}
    return Act(
        when=when,
        person=caller.id,
        action=action,
        kind=kind,
        object=text_of(object_id, 200),
        purpose=text_of(purpose),
        cost=cleaned(dict(cost or {})),
        outcome=outcome,
        details=cleaned(details),
    )


def write_alone(hub: Hub, caller: Caller, action: str, **line: Any) -> int:
    """Write a line in a transaction of its own: a denial or a failure stays when the request's transaction is undone. Not to be
    called inside a transaction that writes: SQLite has one writer."""
    with hub.database.begin() as db:
        return write(hub, db, caller, action, **line)


def left(hub: Hub, caller: Caller, kind: str, number: str, data_sets: Sequence[str], purpose: str, form: str) -> None:
    """Write down that something is taken away as a file, before it is."""
    told: dict[str, Any] = {"form": form, "data_sets": list(data_sets)}
    write_alone(hub, caller, "release.download", kind=kind, object_id=number, purpose=purpose, **told)


def accept(hub: Hub, caller: Caller, *, who: str, why: str) -> int:
    """Answer for the loss that the newest `GAP` names, as after a restored backup; the audit log verifies from then on."""
    with hub.database.begin() as db:
        gap = db.scalar(select(AuditLine.number).where(AuditLine.action == GAP).order_by(AuditLine.number.desc()).limit(1))
        if gap is None:
            raise InvalidParameter(
                "Nothing was acknowledged", why="the audit log has no gap", instead="cloister audit-trail verify"
            )
        return write(hub, db, caller, ACCEPT, kind="trail", object_id=str(gap), purpose=why, who=who)


def opened(hub: Hub) -> None:
    """Compare the audit log with its file when a process opens the hub; a loss is written down at once."""
    keeper = keeper_of(hub)
    with hub.database.begin() as db:
        keeper.compare(db)


def closed(hub: Hub) -> None:
    """Push the file to the disk."""
    keeper: Keeper | None = hub.parts.pop("trail", None)
    if keeper is not None:
        keeper.close()


def keeper_of(hub: Hub) -> Keeper:
    """What this process knows of the audit log."""
    with _MAKING:
        if "trail" not in hub.parts:
            hub.parts["trail"] = Keeper(hub)
        keeper: Keeper = hub.parts["trail"]
        return keeper


class Keeper:
    """One a process: the chain's key, the newest end that was committed here, and the file that it is copied to."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._turn = threading.Lock()
        self.key = hub.secret("trail")
        """The chain's key: made once, so that another master key leaves the chain as it is."""
        self._file: HeadFile | None = None
        self.known = 0
        """The highest number that this process knows to be committed."""
        event.listen(hub.database.sessions, "after_commit", self._committed)
        event.listen(hub.database.sessions, "after_soft_rollback", _undone)

    def add(self, db: Session, acts: Sequence[Act]) -> list[int]:
        """The lines at the end of the chain."""
        if isinstance(db, Reader):
            raise WroteWhileReading("a line of the trail")
        connection, number, before = self._lock(db)
        if db.info.get("trail") is None:  # so the end that was read is a committed one
            with self._turn:
                if self._file is not None and self._file.grown:
                    self._file.replace(Head(count=number, hash=before))
            if number < self.known:
                number, before = self._write_gap(db, connection, number, before, self.known)
        self._append(db, connection, number, before, acts)
        return list(range(number + 1, number + len(acts) + 1))

    def compare(self, db: Session) -> None:
        """Does the database contain the end that the file knows?"""
        connection, number, before = self._lock(db)
        file = self.file()
        with self._turn:
            head = file.read()
        if head is None:
            with self._turn:
                file.begin()
                file.replace(Head(count=number, hash=before))
            if number:
                self._write_gap(db, connection, number, before, None)
        elif not _contains(db, head):
            self._write_gap(db, connection, number, before, head.count)
        else:
            self.known = max(self.known, head.count)

    def file(self) -> HeadFile:
        """The file, for who holds the turn."""
        with self._turn:
            if self._file is None:
                self._file = HeadFile(self._hub.settings.path("trail.head"), self.key)
            return self._file

    def close(self) -> None:
        """Let go of the file."""
        event.remove(self._hub.database.sessions, "after_commit", self._committed)
        event.remove(self._hub.database.sessions, "after_soft_rollback", _undone)
        with self._turn:
            if self._file is not None:
                self._file.close()
                self._file = None

    def _lock(self, db: Session) -> tuple[Connection, int, str]:
        """The end of the chain, nobody else's until the transaction ends."""
        db.flush()  # what a line is about is there before it
        connection = db.connection()
        if connection.dialect.name == "sqlite":
            raw: Any = connection.connection.driver_connection
            if not raw.in_transaction:
                raise RuntimeError("the trail is written in a transaction: with hub.database.begin() as db")
        rows = _END.rows(connection)
        if not rows:
            maker = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
            first = maker(AuditHead).values(id=_ROW, number=0, hash=START)
            connection.execute(first.on_conflict_do_nothing())  # others may be as quick
            rows = _END.rows(connection)
        return connection, rows[0].number, rows[0].hash

    def _append(self, db: Session, connection: Connection, number: int, before: str, acts: Sequence[Act]) -> tuple[int, str]:
        """The lines, and the new end in the database; and in the file, as soon as the transaction is committed."""
        self.file()
        lines: list[dict[str, Any]] = []
        objects: list[dict[str, Any]] = []
        for act in acts:
            number += 1
            before = seal(self.key, before, number, act)
            told = {name: getattr(act, name) for name in PARTS if name != "when"}
            lines.append({"number": number, "moment": act.when, **told, "hash": before})
            objects += [{"object": each, "number": number} for each in about(act.kind, act.object, act.details)]
        _LINE.run(connection, *lines)
        _ABOUT.run(connection, *objects)
        _MOVE.run(connection, {"new": number, "last": before})
        db.info["trail lines"] = db.info.get("trail lines", 0) + len(lines)
        db.info["trail"] = Head(count=number, hash=before)
        return number, before

    def _write_gap(self, db: Session, connection: Connection, number: int, before: str, known: int | None) -> tuple[int, str]:
        """The audit log ends before an end that is known, or nothing is known of its end: write that into it, and go on."""
        details: dict[str, Any]
        if known is None:
            _LOG.error("the trail's head file is missing: whether lines are lost after line %d cannot be told", number)
            details = {"found": number, "why": "the head file was missing"}
        else:
            found = connection.scalar(select(func.max(_LINES.c.number)).where(_LINES.c.number <= number)) or 0
            if found < known:
                _LOG.error("the trail was cut or rolled back: line %d is known, and the newest that is there is %d", known, found)
            else:
                _LOG.error("the trail was rolled back and went on: line %d is not the one that is known", known)
            details = {"known": known, "found": found}
        act = Act(when=self._hub.now(), person="", action=GAP, kind="trail", outcome="failed", details=details)
        db.info["trail replace"] = True
        return self._append(db, connection, number, before, [act])

    def _committed(self, db: Session) -> None:
        if db.get_nested_transaction() is not None or db.info.get("trail") is None:
            return
        head, gap, lines = db.info["trail"], db.info.pop("trail replace", False), db.info.pop("trail lines", 0)
        db.info["trail"] = None
        with self._turn:
            others = head.count != self.known + lines
            self.known = head.count if gap else max(self.known, head.count)
            if self._file is None:
                return
            try:
                if others:
                    self._file.look_again()
                if gap:
                    self._file.replace(head)
                else:
                    self._file.append(head)
            except OSError:  # the line is committed; a file that lags is no alarm
                _LOG.exception("the trail's head file could not be written")


def _undone(db: Session, _: Any) -> None:
    """What was written is gone, or some of it: the file may lag, never lead."""
    db.info["trail"] = None
    db.info.pop("trail replace", None)
    db.info.pop("trail lines", None)


def _contains(db: Session, head: Head) -> bool:
    if head.count == 0:
        return True
    return db.scalar(select(AuditLine.hash).where(AuditLine.number == head.count)) == head.hash
