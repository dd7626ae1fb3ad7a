"""The queue: jobs wait in the database, one worker claims each, and what became of it is written where it stood.

A claim has a name of its own, and whatever a worker writes about a job is written only while the job still bears that name: a
worker that was taken for dead, and was not, changes nothing any more. A running job whose worker has been silent for too long is
claimed once more where its kind allows (`JobType.again`), and has failed where it doesn't, or was begun twice.

What a job charges is safe in both: its work is written against the ledger, where an unsettled reservation is taken over and a
settled one answers from the stored release. What it keeps in the hub is kept in the transaction that ends it (`end`), so no claim
but the one that the job bears keeps anything.

A person sees their own jobs; stewards and administrators all of them, without what these were given and gave.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import ColumnElement, and_, event, func, or_, select, update
from sqlalchemy.orm import Session, aliased

from cloister.errors import AccessDenied, CloisterError, InvalidParameter, Missing, TooMany
from cloister.hub.database import older_than
from cloister.hub.decisions.checking import check
from cloister.hub.decisions.policy import Object
from cloister.hub.hub import ITSELF, Caller, Hub
from cloister.hub.ids import new_id
from cloister.hub.platform.trail import write
from cloister.hub.problems import Problem
from cloister.hub.records.jobs import Job
from cloister.hub.service import Progress

ENDED = ("done", "failed", "cancelled")
MOST_ATTEMPTS = 2
_LONGEST_PAYLOAD, _MOST_WAITING = 2**20, 100
_WAITING = Job.state == "waiting"
_LOST = Problem(
    status=500,
    code="lost",
    title="The job was lost",
    why="the process that ran it ended, and it may not begin once more",
    instead="submit it again",
)


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A job that one worker has, and the name of that claim."""

    job: str
    name: str
    kind: str
    person: str
    payload: Mapping[str, Any]
    attempt: int
    notes: tuple[Mapping[str, Any], ...] = ()


class Superseded(CloisterError):
    """The job is another worker's by now: this one was taken for dead, and does nothing more about it."""

    stored = "Superseded"

    def __init__(self) -> None:
        super().__init__("The job was left", why="another worker has it by now", instead="its page")


def submit(
    hub: Hub,
    db: Session,
    caller: Caller,
    kind: str,
    payload: Mapping[str, Any],
    *,
    secret: Mapping[str, Any] | None = None,
    title: str = "",
    purpose: str = "",
) -> str:
    """Put a job into the queue, in the transaction of `db`; its id. It begins once that transaction is committed.

    `secret` comes to the job under that name beside the rest of the payload; it is kept wrapped, and gone once the job has ended.
    """
    known = hub.jobs.get(kind)
    if known is None:
        raise InvalidParameter(
            f"The job {kind!r} is invalid", why="no service runs jobs of that kind", instead=", ".join(sorted(hub.jobs))
        )
    if len(json.dumps({**payload, **(secret or {})})) > _LONGEST_PAYLOAD:
        raise InvalidParameter("The job is invalid", why="what it was given is over 1 MiB", instead="an upload, and its name")
    waiting = db.scalar(select(func.count()).where(Job.person == caller.id, Job.state == "waiting")) or 0
    if waiting >= _MOST_WAITING:
        raise TooMany(
            "The job was not taken", why=f"{waiting} of yours wait already", instead="the same when some of them have ended"
        )
    job = Job(
        id=new_id(),
        kind=kind,
        person=caller.id,
        title=(title or known.title).replace("\0", "")[:200],
        purpose=purpose.replace("\0", ""),
        payload=dict(payload),
        created=hub.now(),
    )
    if secret is not None:
        job.secret = hub.keys.wrap(json.dumps(secret).encode(), job.about)
    db.add(job)
    db.flush()
    write(hub, db, caller, "job.submit", kind="job", object_id=job.id, purpose=purpose, job=kind)
    event.listen(db, "after_commit", lambda _: _notify(hub), once=True)
    return job.id


def cancel(hub: Hub, db: Session, caller: Caller, job: str) -> str:
    """End a job that waits; ask one that runs to stop. The state it then has. What it has charged stays charged."""
    row = db.scalar(select(Job).where(Job.id == job).with_for_update())
    if row is None:
        raise Missing("There is no such job", why="nothing is known under that id", instead="/jobs")
    if row.state in ENDED or row.stopping:
        return row.state
    if row.state == "waiting":
        row.state, row.ended, row.secret = "cancelled", hub.now(), None
    row.stopping = True
    db.flush()
    write(hub, db, caller, "job.cancel", kind="job", object_id=job, job=row.kind)
    return row.state


def waits(hub: Hub, db: Session, lost: timedelta) -> bool:
    """Whether there is anything to claim; a look that locks nothing."""
    wanted = and_(Job.kind.in_(hub.jobs), or_(_WAITING, _silent(hub, lost)))
    return db.scalar(select(Job.id).where(wanted).limit(1)) is not None


def claim(hub: Hub, worker: str, lost: timedelta) -> Claim | None:
    """Take the next job: one that a dead worker left, then the one that waits longest. None: there is none."""
    with hub.database.begin() as db:
        while True:
            row = _next(hub, db, _silent(hub, lost)) or _next(hub, db, _WAITING)
            if row is None:
                return None
            if row.state == "waiting" or (hub.jobs[row.kind].again and row.attempts < MOST_ATTEMPTS and not row.stopping):
                break
            _end_lost(hub, db, row)
        row.state, row.attempts = "running", row.attempts + 1
        row.worker, row.beat = f"{worker[:70]} {new_id()}", hub.now()
        row.begun = row.begun or hub.now()
        secret = {} if row.secret is None else {"secret": json.loads(hub.keys.unwrap(row.secret, row.about))}
        return Claim(
            job=row.id,
            name=row.worker,
            kind=row.kind,
            person=row.person,
            payload={**row.payload, **secret},
            attempt=row.attempts,
            notes=tuple(row.notes),
        )


def beat(hub: Hub, claimed: Claim, stage: str, share: float | None) -> bool | None:
    """Say that the worker lives and how far it is. Whether the job should stop; None: it is this worker's no more."""
    with hub.database.begin() as db:
        values = {"beat": hub.now(), "stage": stage[:200], "share": share}
        found = db.execute(update(Job).where(_mine(claimed)).values(values).returning(Job.stopping)).one_or_none()
        return None if found is None else bool(found.stopping)


def note(hub: Hub, claimed: Claim, entry: Mapping[str, Any]) -> None:
    """Write down what a later attempt has to know; refused where the job is another's by now."""
    with hub.database.begin() as db:
        row = db.scalar(select(Job).where(_mine(claimed)).with_for_update())
        if row is None:
            raise Superseded
        row.notes = [*row.notes, {**entry, "attempt": claimed.attempt}]


def end(hub: Hub, db: Session, claimed: Claim, result: Mapping[str, Any]) -> None:
    """Write that a job is done, in the transaction that keeps what it made; refused where it is another's by now."""
    if not _finished(hub, db, claimed, "done", result, None):
        raise Superseded


def finish(
    hub: Hub, claimed: Claim, state: str, *, result: Mapping[str, Any] | None = None, problem: Problem | None = None
) -> bool:
    """Write down how a job ended; False where it was this worker's no more."""
    with hub.database.begin() as db:
        return _finished(hub, db, claimed, state, result, problem)


def _finished(
    hub: Hub, db: Session, claimed: Claim, state: str, result: Mapping[str, Any] | None, problem: Problem | None
) -> bool:
    details = {} if problem is None else problem.details()
    values: dict[str, Any] = {"state": state, "ended": hub.now(), "result": dict(result or {}), "problem": details}
    values |= {"share": None, "secret": None}
    if db.execute(update(Job).where(_mine(claimed)).values(values).returning(Job.id)).one_or_none() is None:
        return False
    outcome = "failed" if state == "failed" else "done"
    again: dict[str, Any] = {"attempt": claimed.attempt} if claimed.attempt > 1 else {}
    write(hub, db, ITSELF, "job.end", kind="job", object_id=claimed.job, outcome=outcome, job=claimed.kind, state=state, **again)
    return True


def give_back(hub: Hub, claimed: Claim) -> bool:
    """Put a job back into the queue, where it may begin once more; False where it may not, or is this worker's no more."""
    if claimed.attempt >= MOST_ATTEMPTS or not hub.jobs[claimed.kind].again:
        return False
    with hub.database.begin() as db:
        values = {"state": "waiting", "worker": "", "beat": None, "share": None}
        back = update(Job).where(_mine(claimed), Job.stopping.is_(False)).values(values)
        return db.execute(back.returning(Job.id)).one_or_none() is not None


def _next(hub: Hub, db: Session, which: ColumnElement[bool]) -> Job | None:
    """Such a job that no other worker is just taking: of whom the fewest run, then of whom none was begun for the longest, and of
    theirs the oldest. So a person's hundred jobs hold up one of another by what runs now, and by no more."""
    other = aliased(Job)
    theirs = other.person == Job.person
    running = select(func.count()).where(theirs, other.state == "running").scalar_subquery()
    lately = select(func.max(other.begun)).where(theirs).scalar_subquery()
    wanted = select(Job).where(which, Job.kind.in_(hub.jobs)).order_by(running, lately.nulls_first(), Job.created, Job.id)
    return db.scalar(wanted.limit(1).with_for_update(skip_locked=True, of=Job))


def _silent(hub: Hub, lost: timedelta) -> ColumnElement[bool]:
    return and_(Job.state == "running", or_(Job.beat < hub.now() - lost, Job.beat.is_(None)))


def _mine(claimed: Claim) -> ColumnElement[bool]:
    return and_(Job.id == claimed.job, Job.state == "running", Job.worker == claimed.name)


def _end_lost(hub: Hub, db: Session, row: Job) -> None:
    row.state, row.ended, row.share = ("cancelled" if row.stopping else "failed"), hub.now(), None
    row.secret = None
    row.problem = {} if row.stopping else _LOST.details()
    db.flush()
    outcome = "done" if row.stopping else "failed"
    again: dict[str, Any] = {"attempt": row.attempts} if row.attempts > 1 else {}
    write(hub, db, ITSELF, "job.end", kind="job", object_id=row.id, outcome=outcome, job=row.kind, state="lost", **again)


def _notify(hub: Hub) -> None:
    workers = hub.parts.get("jobs")
    if workers is not None:
        workers.notify()


def came_of(caller: Caller) -> dict[str, Any]:
    """How the caller came, as plain data for a job's payload (under "came")."""
    return {
        "address": caller.address,
        "second_factor": caller.second_factor,
        "via": caller.via,
        "scopes": None if caller.scopes is None else sorted(caller.scopes),
        "token": caller.token,
    }


def caller_of_job(progress: Progress, payload: Mapping[str, Any]) -> Caller:
    """Who submitted a job, come as they came then; whether they still may is for who calls to ask (`present`)."""
    came = payload["came"]
    scopes = None if came["scopes"] is None else frozenset(came["scopes"])
    return Caller(id=progress.who, **{**came, "scopes": scopes})


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
        wanted = wanted.where(older_than(last))
    return list(db.scalars(wanted))


def open_jobs(db: Session, caller: Caller) -> list[Job]:
    """The newest five of the caller's jobs that wait or run."""
    wanted = select(Job).where(Job.person == caller.id, Job.state.in_(("waiting", "running")))
    return list(db.scalars(wanted.order_by(Job.created.desc(), Job.id).limit(5)))
