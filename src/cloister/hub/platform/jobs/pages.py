"""The pages of jobs: a list, and one job with its progress, which the page's script asks for by itself and a reload shows too."""

from typing import Annotated

from fastapi import Path, Query, Request
from starlette.responses import Response

from cloister.hub.decisions.checking import allowed, check
from cloister.hub.hub import CallerDep, HubDep
from cloister.hub.platform.jobs.queue import ENDED, OVERSEERS, PAGE, cancel, job_for, jobs_of, object_of
from cloister.hub.records.accounts import names_of
from cloister.hub.web.forms import FormDep, go
from cloister.hub.web.render import is_fragment, render, request_gettext
from cloister.hub.web.routing import Pages

JOB = Path(pattern=r"^[A-Za-z0-9_-]{1,32}$")
_Job = Annotated[str, JOB]
_Before = Annotated[str, Query(pattern=r"^[A-Za-z0-9_-]{0,32}$")]


def add(routes: Pages) -> None:
    @routes.get("/jobs", "job.see")
    def jobs(request: Request, hub: HubDep, caller: CallerDep, who: str = "", before: _Before = "") -> Response:
        """The caller's jobs, or everybody's."""
        overseer = caller.has(*OVERSEERS)
        everybody = overseer and who == "everybody"
        with hub.database.reading() as db:
            rows = jobs_of(db, caller, everybody=everybody, before=before)
            people = names_of(db, [row.person for row in rows])
        older = f"/jobs?who={'everybody' if everybody else ''}&before={rows[PAGE - 1].id}" if len(rows) > PAGE else ""
        return render(
            request, "jobs/list.html", jobs=rows[:PAGE], people=people, overseer=overseer, everybody=everybody, older=older
        )

    @routes.get("/jobs/{job}", "job.see")
    def one(request: Request, hub: HubDep, caller: CallerDep, job: _Job) -> Response:
        """One job; for the page's script, its progress alone."""
        with hub.database.reading() as db:
            row = job_for(hub, db, caller, job)
            people = names_of(db, [row.person])
            may_cancel = allowed(hub, db, caller, "job.cancel", object_of(row)).allowed
        ended = row.state in ENDED
        template = "jobs/progress.html" if is_fragment(request) else "jobs/job.html"
        answer = render(
            request,
            template,
            job=row,
            who=people.get(row.person, ""),
            ended=ended,
            own=row.person == caller.id,
            may_cancel=may_cancel,
        )
        if ended and is_fragment(request):
            answer.headers["X-Done"] = "1"
        return answer

    @routes.post("/jobs/{job}/cancel", "job.cancel")
    def stop(request: Request, hub: HubDep, caller: CallerDep, job: _Job, form: FormDep) -> Response:
        _ = request_gettext(request)
        with hub.database.begin() as db:
            check(hub, db, caller, "job.cancel", object_of(job_for(hub, db, caller, job)))
            state = cancel(hub, db, caller, job)
        said = _("The job was cancelled.") if state == "cancelled" else _("The job was asked to stop.")
        return go(request, f"/jobs/{job}", _("The job had ended already.") if state in ("done", "failed") else said)
