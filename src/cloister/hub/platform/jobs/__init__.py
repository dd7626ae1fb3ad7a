"""Long work: a queue in the database, workers that take from it, pages that show how far it is.

- `queue.py`: submit, claim, beat, note, finish, cancel, give back; how somebody came who submitted, for the policy; who
  sees which jobs.
- `workers.py`: the threads that run jobs, in the hub's process or in `cloister worker`.
- `pages.py`, `api.py`: the routes.

A service brings its kinds of work as `JobType`s, and calls `submit`. A job that was asked to stop (`progress.stopped()`) raises
`Stopped`. Work that must not be done twice says with `progress.note` what it is about to do, and keeps what it made in the
transaction of `progress.finish`.
"""

from sqlalchemy.orm import Session

from cloister.hub.hub import Caller, Hub
from cloister.hub.platform.jobs.queue import Superseded as Superseded
from cloister.hub.platform.jobs.queue import caller_of_job as caller_of_job
from cloister.hub.platform.jobs.queue import came_of as came_of
from cloister.hub.platform.jobs.queue import cancel as cancel
from cloister.hub.platform.jobs.queue import open_jobs
from cloister.hub.platform.jobs.queue import submit as submit
from cloister.hub.platform.jobs.workers import Stopped as Stopped
from cloister.hub.platform.jobs.workers import Timing as Timing
from cloister.hub.platform.jobs.workers import Workers as Workers
from cloister.hub.platform.jobs.workers import closed, opened
from cloister.hub.platform.jobs.workers import stop_workers as stop_workers
from cloister.hub.service import Card, Link, Service, routes_in


def _cards(hub: Hub, db: Session, caller: Caller) -> list[Card]:
    jobs = open_jobs(db, caller)
    return [Card(template="jobs/card.html", values={"jobs": jobs}, order=30)] if jobs else []


SERVICE = Service(
    name="jobs",
    title="Jobs",
    pages=routes_in(__name__, "pages"),
    api=routes_in(__name__, "api"),
    links=(Link("Jobs", "/jobs", "job.see", "account", 60, "jobs", help="explanation/hub"),),
    cards=_cards,
    opened=opened,
    closed=closed,
)
