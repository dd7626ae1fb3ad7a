"""Which jobs a person may see: their own; all of them for stewards and administrators, without what they were given and gave."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select

from cloister.errors import AccessDenied
from cloister.hub.decisions.checking import check
from cloister.hub.decisions.policy import Object
from cloister.hub.problems import Missing
from cloister.hub.records.jobs import Job

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub

OVERSEERS = ("administrator", "steward")
PAGE = 50


def object_of(job: Job) -> Object:
    """A job as a decision sees it."""
    return Object(kind="job", id=job.id, name=job.title, owner=job.person)


def job_for(hub: Hub, db: Session, caller: Caller, job: str) -> Job:
    """A job that the caller may see; another is not told from none."""
    row = db.get(Job, job)
    try:
        if row is not None:
            check(hub, db, caller, "job.see", object_of(row))
            return row
    except AccessDenied:
        pass
    raise Missing("There is no such job", why="nothing of yours is known under that id", instead="/jobs")


def jobs_of(db: Session, caller: Caller, *, everybody: bool = False, before: str = "", limit: int = PAGE) -> list[Job]:
    """Jobs, the newest first: the caller's own, or everybody's for an operator; one more than `limit` where there are more."""
    wanted = select(Job).order_by(Job.created.desc(), Job.id.desc()).limit(limit + 1)
    if not (everybody and caller.has(*OVERSEERS)):
        wanted = wanted.where(Job.person == caller.id)
    last = db.get(Job, before) if before else None
    if last is not None:
        wanted = wanted.where((Job.created < last.created) | ((Job.created == last.created) & (Job.id < last.id)))
    return list(db.scalars(wanted))


def open_jobs(db: Session, caller: Caller, limit: int = 5) -> list[Job]:
    """The caller's jobs that wait or run."""
    wanted = select(Job).where(Job.person == caller.id, Job.state.in_(("waiting", "running")))
    return list(db.scalars(wanted.order_by(Job.created.desc(), Job.id).limit(limit)))
