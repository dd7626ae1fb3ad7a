"""A review as a job: the author's tests, runs on made-up rows, and for a declared mechanism the audit of it and of its twin.

Native code is not run before somebody who read it approved it, not even on made-up rows: it meets the kernel of the machine.
"""

from collections.abc import Mapping
from typing import Any

from cloister.errors import Conflict, InvalidParameter
from cloister.guests import audit_declared, run_trial
from cloister.hub.decisions.policy import check_amount
from cloister.hub.hub import Caller, Hub
from cloister.hub.platform.jobs import caller_of_job, came_of, submit
from cloister.hub.service import JobType, Progress
from cloister.hub.services.guests.admission import Reviewed, keep_found, reviewed
from cloister.hub.web.languages import N_
from cloister.hub.work.recheck import present
from cloister.lazily import check_installed
from cloister.privacy import exact_positive
from cloister.session.questions.spend import spend_of

KIND = "guests.review"
_RUNS = 2000
_STAGES = {N_("running the tests"): 0.1, N_("auditing"): 0.3}


def order_review(hub: Hub, caller: Caller, algorithm: str, data_set: str, spend: str = "1") -> str:
    """The id of the job that reviews an algorithm near a data set; its audit is at that spend."""
    check_amount(exact_positive(spend, "spend"))
    with hub.database.begin() as db:
        now = reviewed(hub, db, caller, algorithm, data_set)
        if now.guest.needs.native and not now.approvals:
            raise Conflict(
                "The review was not begun",
                why="native code runs once a person who read it approved it",
                instead="approve it first",
            )
        check_installed("" if now.guest.needs.native else "guests", "The review was not begun")
        missing = [each for each in now.guest.inputs if each not in now.table.columns]
        if missing:
            raise InvalidParameter("The data set is invalid", why="it does not declare what the code reads", instead=missing[0])
        payload = {"algorithm": now.algorithm.id, "data_set": now.data_set.name, "spend": spend, "came": came_of(caller)}
        return submit(hub, db, caller, KIND, payload)


def _review(hub: Hub, payload: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
    caller = caller_of_job(progress, payload)
    with hub.database.reading() as db:
        caller = present(hub, db, caller)
        now = reviewed(hub, db, caller, payload["algorithm"], payload["data_set"])
        db.expunge_all()
    found = _found(hub, now, payload["spend"], progress)
    result = {"href": f"/algorithm-reviews/{now.algorithm.name}/{now.data_set.name}"}
    with hub.database.begin() as db:
        progress.finish(db, result)
        again = reviewed(hub, db, caller, payload["algorithm"], payload["data_set"])
        if again.declared != now.declared:
            raise Conflict("The review was not kept", why="the declaration has changed meanwhile", instead="the same once more")
        keep_found(hub, db, caller, again, found)
    return result


def _found(hub: Hub, now: Reviewed, spend: str, progress: Progress) -> dict[str, Any]:
    stages = iter(_STAGES.items())
    progress.tell(*next(stages))
    trial = run_trial(now.guest, now.data_set.name, now.table, now.algorithm.settings.get("tests", ""))
    found: dict[str, Any] = {"trial": trial.told()}
    if now.guest.way == "declared":
        progress.tell(*next(stages))
        assert now.data_set.population is not None
        budget = hub.ledger.budget(now.data_set.population)
        audit = audit_declared(now.guest, now.table, spend_of(spend, budget).whole(), runs=_RUNS)
        found["audit"] = {
            "spend": str(audit.spend),
            "runs": audit.found.runs,
            "kept": audit.kept,
            "telling": audit.telling,
            "found": max(audit.found.epsilon, 0.0),
            "event": audit.found.event,
            "twin": max(audit.twin.epsilon, 0.0),
        }
    return found


REVIEW = JobType(kind=KIND, title=N_("Review of an algorithm"), run=_review)
