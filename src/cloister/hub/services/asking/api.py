"""The API of questions. Answers about rows leave at fixed ticks, refusals too; a key makes a request safe to repeat."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Header, Request
from pydantic import ValidationError
from starlette.responses import Response

from cloister.hub.caller import Caller, CallerDep
from cloister.hub.guard import needs
from cloister.hub.hub import Hub, HubDep
from cloister.hub.service import Direct
from cloister.hub.services.asking import api_releases, api_saved
from cloister.hub.services.asking.answering import Answered, Beside, ask_together
from cloister.hub.services.asking.answering import ask as answered_to
from cloister.hub.services.asking.answering import stored as stored_answer
from cloister.hub.services.asking.later import ask_later
from cloister.hub.services.asking.preview import afford as affordable
from cloister.hub.services.asking.preview import preview
from cloister.hub.services.asking.preview import rehearse as rehearsal_of
from cloister.hub.services.asking.reading import seen_release
from cloister.hub.services.asking.shapes import (
    Answer,
    Answers,
    Explained,
    JobTold,
    LeftLine,
    Question,
    Questions,
    Rehearsed,
    Spends,
    answer_bytes,
    finite,
)
from cloister.hub.web.routing import TICKED, WRITTEN
from cloister.hub.work.idempotency import Claim, once
from cloister.hub.work.submitting import store_job
from cloister.privacy import text_of

if TYPE_CHECKING:
    from sqlalchemy.orm import Session as Db

__all__ = ["DIRECT", "api"]

_LONGEST_WORD = 200
_Key = Annotated[str, Header(alias="Idempotency-Key", min_length=1, max_length=_LONGEST_WORD)]
_Prefer = Annotated[str, Header(max_length=_LONGEST_WORD)]
_LATER = "respond-async"
_JSON = "application/json"


def api() -> APIRouter:
    """The routes."""
    router = APIRouter()
    _asking(router)
    _previewing(router)
    api_saved.routes(router)
    api_releases.routes(router)
    return router


def _asking(router: APIRouter) -> None:
    @router.post(
        "/questions",
        dependencies=[TICKED, needs("question.ask"), WRITTEN],
        summary="Ask",
        response_model=Answer,
        status_code=201,
        responses={202: {"model": JobTold, "description": "A job answers it, with `Prefer: respond-async`"}},
    )
    def ask(hub: HubDep, caller: CallerDep, question: Question, key: _Key = "", prefer: _Prefer = "") -> Response:
        """The private answer, charged. The same `Idempotency-Key` gives the same bytes and is charged once."""
        return _asked(hub, caller, question, key, later=_LATER in prefer.lower())

    @router.post(
        "/questions/workload",
        dependencies=[TICKED, needs("question.ask"), WRITTEN],
        summary="Ask several questions together",
        response_model=Answers,
        status_code=201,
    )
    def workload(hub: HubDep, caller: CallerDep, questions: Questions, key: _Key = "") -> Response:
        """The private answers to several questions under one charge: what they share is measured once, and they agree."""

        def work(claim: Claim) -> tuple[int, bytes]:
            def beside(db: Db, kept: Sequence[Answered]) -> None:
                claim.store(db, 201, _bodies(kept))

            return 201, _bodies(ask_together(hub, caller, questions.wish(), beside=beside))

        status, body = once(hub, caller, key, _request("workload", questions), work, again=_again(hub, caller))
        return Response(body, status, media_type=_JSON)

    @router.post(
        "/questions/stored",
        dependencies=[TICKED, needs("question.ask"), WRITTEN],
        summary="An answer that was paid for",
        response_model=Answer,
        status_code=201,
    )
    def stored(hub: HubDep, caller: CallerDep, question: Question) -> Response:
        """The answer that was bought already, of at least the spend that is named; 404 where there is none. It never spends of a
        population; the use of what others paid for debits one's share, unless one was given it before."""
        answered = stored_answer(hub, caller, question.wish())
        return Response(_body(answered, question.confidence), 201, media_type=_JSON)


def _asked(hub: Hub, caller: Caller, question: Question, key: str, *, later: bool = False) -> Response:
    wish = question.wish()

    def work(claim: Claim) -> tuple[int, bytes]:
        if later:
            return store_job(hub, claim, lambda db: ask_later(db, hub, caller, wish))
        answered = answered_to(hub, caller, wish, beside=_storing(claim, 201, wish.confidence) if key else None)
        return 201, _body(answered, wish.confidence)

    asked = _request("questions", question, "later" if later else "") if key else b""
    status, body = once(hub, caller, key, asked, work, again=_again(hub, caller))
    headers = {}
    if status == 202:
        headers = {"Location": f"/api/v1/jobs/{json.loads(body)['job']}", "Preference-Applied": _LATER}
    return Response(body, status, headers, media_type=_JSON)


def _plain(request: Request, body: bytes) -> tuple[Question, str] | None:
    """What a plain request asks, and under which key; None where it is malformed, or prefers something."""
    key = request.headers.get("idempotency-key", "")
    if len(key) > _LONGEST_WORD or (not key and "idempotency-key" in request.headers) or "prefer" in request.headers:
        return None
    try:
        return Question.model_validate_json(body), key
    except ValidationError:
        return None


def _directly(hub: Hub, caller: Caller, asked: tuple[Question, str]) -> Response:
    return _asked(hub, caller, *asked)


DIRECT = Direct(path="/questions", action="question.ask", read=_plain, answer=_directly)
"""`POST /questions`, with an API token."""


def _previewing(router: APIRouter) -> None:
    @router.post("/questions/explain", dependencies=[TICKED, needs("question.explain"), WRITTEN], summary="Explain")
    def explain(hub: HubDep, caller: CallerDep, question: Question) -> Explained:
        """What an answer would measure, with which error, at which cost, and what would be left: spends nothing and reads no
        row."""
        found = preview(hub, caller, question.wish())
        told: dict[str, Any] = found.plan.summary(question.confidence)
        left = [
            LeftLine(
                population=each.population,
                of_share=each.of_share,
                before="nothing" if each.frozen else str(each.before),
                after=(str(each.after) if each.after is not None else "nothing") if each.enough else None,
            )
            for each in found.left
        ]
        return Explained(**told, left=left, denied=str(found.denied) if found.denied is not None else None)

    @router.post("/questions/afford", dependencies=[TICKED, needs("question.explain"), WRITTEN], summary="What spends would buy")
    def afford(hub: HubDep, caller: CallerDep, question: Question) -> Spends:
        """The margins to expect over a range of spends: spends nothing and reads no row."""
        found = affordable(hub, caller, question.wish())
        margins = {name: [finite(float(each)) for each in found.margins[name]] for name in found.margins.column_names}
        return Spends(confidence=found.confidence, spends=[text_of(each) for each in found.spends], margins=margins)

    @router.post("/questions/rehearse", dependencies=[needs("question.rehearse"), WRITTEN], summary="Rehearse")
    def rehearse(hub: HubDep, caller: CallerDep, question: Question) -> Rehearsed:
        """An answer from made-up rows: what it would look like. Nothing is spent."""
        return Rehearsed(release=rehearsal_of(hub, caller, question.wish()).to_json())


def _again(hub: Hub, caller: Caller) -> Callable[[int, bytes], None]:
    """Refuses to give an answer again that its asker may not look at any more: a key is no way around the policy of a release.
    A token that was made to ask gets the answer of what it asked, whatever else it was made for.
    """

    def check(status: int, body: bytes) -> None:
        if status != 201:
            return
        told, reader = json.loads(body), replace(caller, scopes=None)
        with hub.database.reading() as db:
            for each in told.get("releases", [told]):
                seen_release(hub, db, reader, each["id"])

    return check


def _storing(claim: Claim, status: int, confidence: float) -> Beside:
    def beside(db: Db, kept: Sequence[Answered]) -> None:
        claim.store(db, status, _body(kept[0], confidence))

    return beside


def _body(answered: Answered, confidence: float = 0.95) -> bytes:
    return answer_bytes(answered.row, answered.release, confidence)


def _bodies(kept: Sequence[Answered]) -> bytes:
    return b'{"releases":[' + b",".join(map(_body, kept)) + b"]}"


def _request(path: str, body: Question | Questions, way: str = "") -> bytes:
    return f"{path} {way}\n".encode() + body.model_dump_json().encode()
