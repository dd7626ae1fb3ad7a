"""What left the door is kept: the releases under their addresses, the answer under its key, the lines of the audit log; in one
transaction, which answers that come together share.

The first thread to come writes for all who wait, so that they share one push to the disk; each of them goes on, and lets a byte
leave, only after that commit (`ledger/commit.py`). Whether an answer may still leave is looked at for each by itself, before
anything is written. Where anything else goes wrong with one of them, the whole transaction is undone, and each is kept in one of
its own: nobody fails for another's sake.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import insert
from sqlalchemy.orm import Session as Db

from cloister.errors import CloisterError
from cloister.hub.database import DatabaseUnavailable
from cloister.hub.hub import Caller, Hub
from cloister.hub.platform.trail import Act, write_all
from cloister.hub.records.releases import StoredRelease
from cloister.hub.statements import Statement
from cloister.hub.work.authorise import Authorised
from cloister.hub.work.recheck import Recheck, charged, check_standing
from cloister.ledger.commit import Entry, GroupCommit, Rush

_PART = "asking keeper"
_RELEASE = Statement(insert(StoredRelease.metadata.tables[StoredRelease.__tablename__]))


@dataclass(frozen=True, kw_only=True)
class Kept:
    """What is kept of a release: a row of `StoredRelease`, with the same names, which nothing watches."""

    id: str
    person: str
    project: str
    kind: str
    title: str
    sql: str
    purpose: str
    data_sets: list[str]
    cost: dict[str, Any]
    digest: str
    body: bytes
    policy: dict[str, Any]
    created: datetime
    withdrawn: datetime | None = None
    algorithm: str = ""
    details: dict[str, Any] = field(default_factory=dict)
    data_set: str = ""


@dataclass(frozen=True, kw_only=True)
class Keeping:
    """What is to be kept of one wish, and on what its answer stood."""

    caller: Caller
    found: Authorised
    rows: Sequence[Kept]
    acts: Sequence[Act]
    beside: Callable[[Db], None] | None
    """What else is written in the transaction; where it raises, nothing of this wish is kept."""


def keep(hub: Hub, keeping: Keeping) -> list[int]:
    """Keep it durably; the numbers of its lines in the audit log."""
    keeper: _Keeper = hub.parts.get(_PART) or hub.parts.setdefault(_PART, _Keeper(hub))
    numbers: list[int] = keeper.group.submit(keeping)
    return numbers


class _Keeper:
    """One a process."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self.group: GroupCommit[Keeping] = GroupCommit(self._run)
        self.group.coming = rush_of(hub).coming

    def _run(self, batch: list[Entry[Keeping]]) -> None:
        """All in one transaction; or, where that fails, each in its own."""
        try:
            try:
                self._transaction(batch)
            except Exception as error:
                if len(batch) == 1:
                    batch[0].error = error
                else:
                    self._one_by_one(batch)
        except BaseException:
            for entry in batch:
                if not entry.done:
                    entry.error = entry.error or DatabaseUnavailable(
                        "The answer was not kept",
                        why="another thread, which wrote for this one, was stopped",
                        instead="ask again",
                    )
            raise
        finally:
            for entry in batch:
                entry.done = True

    def _one_by_one(self, batch: list[Entry[Keeping]]) -> None:
        for entry in batch:
            entry.result = entry.error = None
        for entry in batch:
            try:
                self._transaction([entry])
            except Exception as error:
                entry.error = error
            entry.done = True

    def _transaction(self, batch: list[Entry[Keeping]]) -> None:
        hub, moment = self._hub, Recheck()
        with hub.database.writing() as db:
            may_leave, rows, acts = list[Entry[Keeping]](), list[dict[str, Any]](), list[Act]()
            for entry in batch:
                each = entry.work
                try:
                    check_standing(hub, db, each.caller, each.found, moment)
                except CloisterError as error:  # it has only read
                    entry.error = charged(each.found.words.withheld, error)
                else:
                    may_leave.append(entry)
                    rows.extend([vars(row) for row in each.rows])
                    acts.extend(each.acts)
            if not may_leave:
                return
            _RELEASE.run(db.connection(), *rows)
            for entry in may_leave:
                if entry.work.beside is not None:
                    entry.work.beside(db)
            numbers = write_all(hub, db, acts)
            for entry in may_leave:
                entry.result, numbers = numbers[: len(entry.work.acts)], numbers[len(entry.work.acts) :]


_GROUP = "asking rush"


def rush_of(hub: Hub) -> Rush:
    """How many questions of this process are being answered (`coming`); while `one` is, it counts.

    Whoever commits for several waits for those, two milliseconds at most (`ledger/commit.py`); so they share a push to the
    disk, and the work of a transaction. Nobody waits for a question that takes longer than a moment."""
    rush: Rush | None = hub.parts.get(_GROUP)
    if rush is None:
        rush = hub.parts.setdefault(_GROUP, Rush())
        hub.ledger.expect(rush.coming)
    return rush
