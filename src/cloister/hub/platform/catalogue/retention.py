"""When data must be gone: data sets whose retention is over are closed and their keys destroyed, whoever forgot about it.

From the first moment after the retention the policy lets nobody read them (`policy`). The keeper looks soon after a process
opens the hub and every hour; what it finds due becomes a job of the data set's owner, who sees it among the jobs. It also has
the tables opened that databases hold, so that two of them over the same rows are found before anybody asks (`shared.py`).
"""

import logging
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.orm import Session as Db

from cloister.hub.database import of_each
from cloister.hub.generation import bump
from cloister.hub.hub import ITSELF, Hub
from cloister.hub.platform.accounts import sweep
from cloister.hub.platform.catalogue.arrivals import forget_old
from cloister.hub.platform.catalogue.live import live_of
from cloister.hub.platform.catalogue.managing import forget_keys, remove, versions_of
from cloister.hub.platform.catalogue.shared import close_shared, connects
from cloister.hub.platform.trail import write
from cloister.hub.records.catalogue import DataSet
from cloister.hub.records.jobs import Job
from cloister.hub.records.owner_views import OwnerView, forget_views
from cloister.hub.records.policies import retention_of
from cloister.hub.service import JobType, Progress
from cloister.hub.storage import StoredTable
from cloister.hub.web.languages import N_

_KIND = "catalogue.expire"
KEEPER = "catalogue keeper"
"""Under which name the hub has it."""
_FIRST, _EVERY = 5.0, 3600.0
_LOG = logging.getLogger("cloister.hub.catalogue")


def over(hub: Hub, db: Db) -> list[DataSet]:
    """Data sets whose retention is over and of which a key is left. What else their policies say, and whether that can be read,
    makes no difference."""
    rows = db.scalars(select(DataSet).where(DataSet.state != "deleted"))
    return [
        row
        for row, end in of_each(rows, lambda row: (row, retention_of(row)), partly=True)
        if end is not None and end <= hub.now() and any(each.destroyed is None for each in versions_of(db, row))
    ]


def expire(hub: Hub) -> list[str]:
    """Close what is over and destroy its keys, then the files; the names of these data sets."""
    tables: list[StoredTable] = []
    names = []
    with hub.database.begin() as db:
        for row in over(hub, db):
            row.state, row.changed = "closed", hub.now()
            tables += forget_keys(hub, db, versions_of(db, row))
            db.execute(delete(OwnerView).where(OwnerView.data_set == row.id))
            names.append(row.name)
            write(hub, db, ITSELF, "dataset.expire", kind="data-set", object_id=row.id, data_sets=[row.id], name=row.name)
        if names:
            bump(db)
    remove(hub, tables)
    return names


def _run(hub: Hub, payload: Mapping[str, Any], progress: Progress) -> Mapping[str, Any]:
    progress.tell("destroying keys", None)
    return {"closed": expire(hub)}


EXPIRE = JobType(kind=_KIND, title=N_("Destroy what has reached the end of its retention"), run=_run)


class Keeper:
    """A thread that looks what is over."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._ending, self._awake = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._look, name="cloister retention", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End it."""
        self._ending.set()
        self._awake.set()
        self._thread.join(timeout=10)

    def notify(self) -> None:
        """Let it look now."""
        self._awake.set()

    def _look(self) -> None:
        pause = _FIRST  # first the other services open: the audit log compares itself with its file before anything is written
        while True:
            self._awake.wait(pause)
            self._awake.clear()
            if self._ending.is_set():
                return
            pause = _EVERY
            try:
                self.look()
            except Exception as error:  # a disk that refuses once must not end it
                _LOG.warning("what is over was not looked at: %s", type(error).__name__)

    def look(self) -> None:
        """One look: a job for the first owner of what is over; without a queue it is done here."""
        live = live_of(self._hub)
        with self._hub.database.reading() as db:
            if connects(db):
                live.renew(db)
        if live.shared:
            close_shared(self._hub, live.shared)
        forget_old(self._hub)
        sweep(self._hub)
        with self._hub.database.begin() as db:
            forget_views(db, self._hub.now())
        with self._hub.database.reading() as db:
            owners = [row.owner for row in over(self._hub, db)]
        if not owners:
            return
        if _KIND not in self._hub.jobs or "jobs" not in self._hub.parts:
            expire(self._hub)
            return
        from cloister.hub.platform.jobs import submit

        waits = select(Job.id).where(Job.kind == _KIND, Job.state.in_(("waiting", "running"))).limit(1)
        with self._hub.database.begin() as db:
            if db.scalar(waits) is None:
                submit(self._hub, db, replace(ITSELF, id=owners[0]), _KIND, {})
