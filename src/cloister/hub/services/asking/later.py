"""Questions that take their time, as jobs: charged once, however often they are begun again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cloister.hub.caller import Caller
from cloister.hub.services.asking.answering import Answered, ask
from cloister.hub.services.asking.question_request import WISH, QuestionRequest
from cloister.hub.services.asking.showing import page_of
from cloister.hub.services.jobs import JobType, caller_of_job, came_of, submit
from cloister.hub.work.idempotency import OWN_KEYS, Claim, once
from cloister.hub.work.recheck import present
from cloister.hub.work.submitting import telling

if TYPE_CHECKING:
    from sqlalchemy.orm import Session as Db

    from cloister.hub.hub import Hub
    from cloister.hub.service import Progress

LONG = 600.0
"""Seconds: a page waits for an answer whose limit of time, by its plan, is at most this; longer ones become jobs."""
_STAGES = {"preparing the tables": 0.1, "reserving the cost": 0.2, "asking the engine": 0.3, "settling the charge": 0.9}


def ask_later(db: Db, hub: Hub, caller: Caller, wish: QuestionRequest) -> str:
    """Put a question into the queue; the id of its job. From where and how the person came is kept for the policy."""
    return submit(db, hub, caller, "question", {"wish": WISH.told(wish), "came": came_of(caller)}, purpose=wish.purpose)


def _run(hub: Hub, payload: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
    """Ask it, as long as the person and the token that it was asked with may. The job's own key makes what was kept before a
    crash be given again."""
    with hub.database.reading() as db:
        caller = present(hub, db, caller_of_job(progress, payload))
    wish = WISH.made({**payload["wish"], "more": tuple(payload["wish"]["more"])})

    tell = telling(progress, _STAGES, free=("preparing the tables", "reserving the cost"))

    def work(claim: Claim) -> tuple[int, bytes]:
        def beside(db: Db, kept: list[Answered]) -> None:
            claim.store(db, 201, _told(kept[0].id))

        answered = ask(hub, caller, wish, progress=tell, beside=beside)  # type: ignore[arg-type]
        return 201, _told(answered.id)

    _, told = once(
        hub,
        caller,
        f"{OWN_KEYS}job {progress.job}",
        json.dumps(dict(payload), sort_keys=True).encode(),
        work,
        alone=True,
        own=True,
    )
    number = json.loads(told)["release"]
    return {"release": number, "href": page_of(number, wish.confidence)}


def _told(number: str) -> bytes:
    return json.dumps({"release": number}).encode()


QUESTION = JobType(kind="question", title="Query", run=_run)
