"""Work as a job: put into the queue once under a key, and how far it is while it runs."""

import json
from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

from sqlalchemy.orm import Session as Db
from starlette.responses import Response

from cloister.hub.hub import Caller, Hub
from cloister.hub.platform.jobs import Stopped
from cloister.hub.service import Progress
from cloister.hub.work.idempotency import Claim, once

Looked = TypeVar("Looked")


def submit_once(
    hub: Hub, caller: Caller, key: str, request: bytes, look: Callable[[], Looked], submit: Callable[[Db, Looked], str]
) -> str:
    """The id of the job that `submit` puts into the queue, after `look` has refused what may not be; the same key makes one."""

    def work(claim: Claim) -> tuple[int, bytes]:
        looked = look()
        return store_job(hub, claim, lambda db: submit(db, looked))

    _, body = once(hub, caller, key, request, work)
    job: str = json.loads(body)["job"]
    return job


def store_job(hub: Hub, claim: Claim, submit: Callable[[Db], str]) -> tuple[int, bytes]:
    """Put a job into the queue, in the transaction that stores its id under the key."""
    with hub.database.begin() as db:
        body = json.dumps({"job": submit(db)}, separators=(",", ":")).encode()
        claim.store(db, 202, body)
    return 202, body


def accepted(job: str) -> Response:
    """What the API answers to who has submitted it."""
    return Response(
        json.dumps({"job": job}, separators=(",", ":")), 202, {"Location": f"/api/v1/jobs/{job}"}, media_type="application/json"
    )


def telling(progress: Progress, stages: Mapping[str, float], *, free: Collection[str]) -> Callable[[str], None]:
    """Say which stage a job has reached. Where it was asked to stop it ends at one of those that are `free`: nothing is charged
    yet that comes after."""

    def tell(stage: str) -> None:
        if stage in free and progress.stopped():
            raise Stopped
        progress.tell(stage, stages.get(stage))

    return tell
