"""The way of a question through the hub: allowed, answered, kept, written down; and only then does a byte of it leave.

The charge and the answer are one transaction of the ledger. What the hub keeps besides (the release under an address, the line of
the audit log, the answer under its idempotency key) is a second one, after it: a process that dies in between has charged and not
answered, and the same question again is answered from the ledger at no further cost.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from sqlalchemy.orm import Session as Db
from sqlglot import exp

from cloister.errors import CloisterError, Missing
from cloister.hub.decisions.facts import Facts
from cloister.hub.decisions.held import steadily
from cloister.hub.hub import Caller, Hub
from cloister.hub.ids import new_id
from cloister.hub.platform.jobs import caller_of_job, came_of, submit
from cloister.hub.platform.trail import Act, act_of, question_details
from cloister.hub.service import JobType, Progress
from cloister.hub.services.asking.authorised import AuthorisedQuestion, ready, spend_for
from cloister.hub.services.asking.keeping import Keeping, Kept, keep, rush_of
from cloister.hub.services.asking.question_request import WISH, QuestionRequest
from cloister.hub.services.asking.showing import page_of
from cloister.hub.services.asking.watching import look_later
from cloister.hub.web.languages import N_
from cloister.hub.work.authorise import decided
from cloister.hub.work.concurrency import working
from cloister.hub.work.idempotency import OWN_KEYS, Claim, once
from cloister.hub.work.recheck import note_refusal, present
from cloister.hub.work.submitting import store_job, telling
from cloister.session import Release


@dataclass(frozen=True, kw_only=True)
class Answered:
    """What left: the release, the row under its address, and in it the bytes that stay the same."""

    row: Kept
    release: Release

    @property
    def id(self) -> str:
        """Its address."""
        return self.row.id


Beside = Callable[["Db", Sequence[Answered]], None]
"""What is written in the transaction that keeps the releases."""


def ask(
    hub: Hub,
    caller: Caller,
    wish: QuestionRequest,
    *,
    progress: Callable[[str], None] | None = None,
    title: str = "",
    beside: Beside | None = None,
) -> Answered:
    """The private answer to a wish, charged, kept and written down."""

    def answer(found: AuthorisedQuestion) -> list[Release]:
        sql, spend = wish.sql, found.spend
        return [found.session.sql(sql, spend, purpose=wish.purpose, dialect=wish.dialect, fresh=wish.fresh)]

    [answered] = _way(hub, caller, wish, answer, progress, title, beside)
    return answered


def ask_together(hub: Hub, caller: Caller, wish: QuestionRequest, *, beside: Beside | None = None) -> list[Answered]:
    """The private answers to several questions under one charge, measured together so that they agree."""

    def answer(found: AuthorisedQuestion) -> list[Release]:
        return found.session.workload(wish.texts, wish.spend, purpose=wish.purpose, dialect=wish.dialect)

    return _way(hub, caller, wish, answer, None, "", beside)


def stored(hub: Hub, caller: Caller, wish: QuestionRequest, *, beside: Beside | None = None) -> Answered:
    """An answer that was paid for already, whoever paid: never a charge of a population; missing where there is none."""

    def answer(found: AuthorisedQuestion) -> list[Release]:
        again = found.session.stored(wish.sql, found.spend, purpose=wish.purpose, dialect=wish.dialect)
        if again is None:
            raise Missing(
                "There is no such answer",
                why="no one has run this query, or not with as large a spend",
                instead="run it: POST /api/v1/questions",
            )
        return [again]

    [answered] = _way(hub, caller, wish, answer, None, "", beside, charges=False)
    return answered


def _way(
    hub: Hub,
    caller: Caller,
    wish: QuestionRequest,
    answer: Callable[[AuthorisedQuestion], list[Release]],
    progress: Callable[[str], None] | None,
    title: str,
    beside: Beside | None,
    *,
    charges: bool = True,
) -> list[Answered]:
    def may(wish: QuestionRequest, db: Db, facts: Facts) -> AuthorisedQuestion:
        return ready(hub, db, caller, wish, "question.ask", facts=facts, progress=progress, charges=charges)

    paid: dict[str, str] = {}
    try:
        with rush_of(hub).one():
            with working(hub, caller) as waited:
                if waited:  # they may have been shut out since they came in
                    with hub.database.reading() as db:
                        caller = present(hub, db, caller)
                if wish.pilot:  # its answer is bought first; what follows from it is put to the policy once more
                    asked = wish
                    _, spend = steadily(
                        partial(decided, hub, partial(may, asked)), lambda found: spend_for(found.session, asked, buy=True)
                    )
                    wish = replace(wish, within=None, pilot="", spend=spend or "")
                found, releases = steadily(partial(decided, hub, partial(may, wish)), answer)
            kept = _keep(hub, caller, wish, found, releases, title, beside, paid)
    except Exception as error:  # what nobody foresaw too: it may have been charged
        _refused(hub, caller, wish, error, paid)
        raise
    return kept


def _keep(
    hub: Hub,
    caller: Caller,
    wish: QuestionRequest,
    found: AuthorisedQuestion,
    releases: Sequence[Release],
    title: str,
    beside: Beside | None,
    paid: dict[str, str],
) -> list[Answered]:
    """What was charged goes into `paid` first: a refusal says it."""
    texts, ids, algorithm = wish.texts, [each.id for each in found.objects], found.terms.algorithm
    costs = [{population: str(cost) for population, cost in each.spent_by.items()} for each in releases]
    for release, cost in zip(releases, costs, strict=True):
        if not release.provenance.repeated:  # several share one charge, but those that cost nothing
            paid.update(cost)
    policy, created = found.policy.to_dict(), hub.now()
    how: dict[str, Any] = {"data_sets": ids, "columns": found.columns, "dialect": wish.dialect}
    kept: list[Answered] = []
    acts: list[Act] = []
    for sql, release, cost in zip(texts, releases, costs, strict=True):
        row = Kept(
            id=new_id(),
            person=caller.id,
            project=found.terms.project,
            kind="sql",
            title=title,
            sql=sql,
            purpose=wish.purpose,
            data_sets=ids,
            cost=cost,
            digest=release.provenance.digest,
            body=release.to_json().encode(),
            policy=policy,
            created=created,
            algorithm=algorithm,
            details={"dialect": wish.dialect} if wish.dialect else {},
        )
        told = question_details(sql=sql, **how, tree=partial(_tree, found, sql, wish.dialect))
        told |= {"algorithm": algorithm} if algorithm else {}
        of: dict[str, Any] = {"kind": "release", "object_id": row.id, "purpose": wish.purpose, "cost": {} if kept else paid}
        acts.append(act_of(created, caller, "question.ask", **of, **told))
        kept.append(Answered(row=row, release=release))
    also = None if beside is None else lambda db: beside(db, kept)
    lines = keep(hub, Keeping(caller=caller, found=found, rows=[each.row for each in kept], acts=acts, beside=also))
    for release in releases:
        hub.meter.question("repeated" if release.provenance.repeated else "answered")
    for line in lines:
        look_later(hub, caller, line)
    return kept


def _tree(found: AuthorisedQuestion, sql: str, dialect: str | None) -> exp.Query | None:
    """The text as it was read; None where it cannot be any more, since the table was declared again: its answer is paid for."""
    try:
        return found.session.tree_of(sql, dialect=dialect)
    except CloisterError:
        return None


def _refused(hub: Hub, caller: Caller, wish: QuestionRequest, error: Exception, paid: dict[str, str]) -> None:
    """Write the refusal to the audit log, with the analyst's own words."""
    sql = "; ".join(wish.texts)[:2000]
    how: dict[str, Any] = {"kind": "question", "purpose": wish.purpose, "algorithm": wish.algorithm, "cost": paid}
    note_refusal(hub, caller, "question.ask", error, **how, sql=sql)


LONG = 600.0
"""Seconds: a page waits for an answer whose limit of time, by its plan, is at most this; longer ones become jobs."""
_STAGES = {
    N_("preparing the tables"): 0.1,
    N_("reserving the cost"): 0.2,
    N_("asking the engine"): 0.3,
    N_("settling the charge"): 0.9,
}


def ask_once(
    hub: Hub,
    caller: Caller,
    key: str,
    request: bytes,
    asking: Callable[[Beside | None], Sequence[Answered]],
    told: Callable[[Sequence[Answered]], bytes],
    *,
    later: Callable[[], QuestionRequest | None] = lambda: None,
    **how: Any,
) -> tuple[int, bytes]:
    """What `told` says of the answers, once under a key: it is stored in the transaction that keeps them. With a question for
    `later`, the job that will answer it."""

    def work(claim: Claim) -> tuple[int, bytes]:
        wish = later()
        if wish is not None:
            payload = {"wish": WISH.told(wish), "came": came_of(caller)}  # from where and how, for the policy
            return store_job(hub, claim, lambda db: submit(hub, db, caller, "question", payload, purpose=wish.purpose))
        kept = asking((lambda db, kept: claim.store(db, 201, told(kept))) if key else None)
        return 201, told(kept)

    return once(hub, caller, key, request, work, **how) if key else work(Claim(key))


def _run(hub: Hub, payload: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
    """Ask it, as long as the person and the token that it was asked with may. The job's own key makes what was kept before a
    crash be given again."""
    with hub.database.reading() as db:
        caller = present(hub, db, caller_of_job(progress, payload))
    wish = WISH.made({**payload["wish"], "more": tuple(payload["wish"]["more"])})

    tell = telling(progress, _STAGES, free=("preparing the tables", "reserving the cost"))

    key, request = f"{OWN_KEYS}job {progress.job}", json.dumps(dict(payload), sort_keys=True).encode()
    _, told = ask_once(
        hub,
        caller,
        key,
        request,
        lambda beside: [ask(hub, caller, wish, progress=tell, beside=beside)],
        told_by_id,
        alone=True,
        own=True,
    )
    number = json.loads(told)["release"]
    return {"release": number, "href": page_of(number, wish.confidence)}


def told_by_id(kept: Sequence[Answered]) -> bytes:
    """Of an answer, where it is kept."""
    return json.dumps({"release": kept[0].id}).encode()


QUESTION = JobType(kind="question", title="Query", run=_run)
