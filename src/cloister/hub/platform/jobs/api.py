"""Jobs for programs: list them, look at one, end one."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import Query
from pydantic import BaseModel

from cloister.hub.database import of_each
from cloister.hub.decisions.checking import check
from cloister.hub.description import Limit, read_of
from cloister.hub.hub import Caller, CallerDep, HubDep
from cloister.hub.platform.jobs.pages import JOB
from cloister.hub.platform.jobs.queue import PAGE, cancel, job_for, jobs_of, object_of
from cloister.hub.records.jobs import Job
from cloister.hub.web.routing import Routes

_Job = Annotated[str, JOB]


class JobOut(BaseModel):
    """One piece of work. `result` and `problem` are its owner's alone."""

    id: str
    kind: str
    title: str
    person: str
    purpose: str
    state: str
    stage: str
    share: float | None
    stopping: bool
    attempts: int
    result: dict[str, Any]
    problem: dict[str, Any]
    created: datetime
    begun: datetime | None
    ended: datetime | None

    @classmethod
    def of(cls, job: Job, caller: Caller) -> JobOut:
        """As the caller may see it."""
        own = job.person == caller.id
        return read_of(cls, job, **({} if own else {"result": {}, "problem": {}, "purpose": ""}))


class Jobs(BaseModel):
    """Some jobs, the newest first. `older`: what to give as `before` for the next ones."""

    jobs: list[JobOut]
    older: str | None


def add(routes: Routes) -> None:
    @routes.get("/jobs", "job.see", "List jobs", "The jobs, the newest first")
    def jobs(
        hub: HubDep,
        caller: CallerDep,
        everybody: bool = False,
        before: Annotated[str, Query(pattern=r"^[A-Za-z0-9_-]{0,32}$")] = "",
        limit: Limit = PAGE,
    ) -> Jobs:
        """The caller's jobs; with `everybody`, all of them for who watches over them."""
        with hub.database.reading() as db:
            rows = jobs_of(db, caller, everybody=everybody, before=before, limit=limit)
            older = rows[limit - 1].id if len(rows) > limit else None
            return Jobs(jobs=of_each(rows[:limit], lambda row: JobOut.of(row, caller)), older=older)

    @routes.get("/jobs/{job}", "job.see", "Get a job", "The job with its state")
    def one(hub: HubDep, caller: CallerDep, job: _Job) -> JobOut:
        """One job."""
        with hub.database.reading() as db:
            return JobOut.of(job_for(hub, db, caller, job), caller)

    @routes.post("/jobs/{job}/cancel", "job.cancel", "Cancel a job", "The job with its state")
    def stop(hub: HubDep, caller: CallerDep, job: _Job) -> JobOut:
        """End a job that waits; ask one that runs to stop."""
        with hub.database.begin() as db:
            row = job_for(hub, db, caller, job)
            check(hub, db, caller, "job.cancel", object_of(row))
            cancel(hub, db, caller, job)
            return JobOut.of(row, caller)
