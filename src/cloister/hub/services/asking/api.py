"""The API of questions. Answers about rows leave at fixed ticks, refusals too; a key makes a request safe to repeat."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, Any

from fastapi import Header, Query, Request
from pydantic import ValidationError
from starlette.responses import Response

from cloister.hub.hub import Caller, CallerDep, Hub, HubDep
from cloister.hub.releases.kinds import ANSWERS, View, kind_of
from cloister.hub.releases.reading import read_release, seen_release
from cloister.hub.service import Direct
from cloister.hub.services.asking.answering import Answered, Beside, ask_once, ask_together
from cloister.hub.services.asking.answering import ask as answered_to
from cloister.hub.services.asking.answering import stored as stored_answer
from cloister.hub.services.asking.answers import unpacked
from cloister.hub.services.asking.preview import afford as affordable
from cloister.hub.services.asking.preview import preview
from cloister.hub.services.asking.preview import rehearse as rehearsal_of
from cloister.hub.services.asking.saved import remove, save, saved_of, seen_question
from cloister.hub.services.asking.shapes import (
    Answer,
    Answers,
    Explained,
    JobTold,
    LeftLine,
    Margins,
    Question,
    Questions,
    Rehearsed,
    Saved,
    SavedPage,
    Saving,
    Spends,
    answer_bytes,
    saved_line,
)
from cloister.hub.web.languages import language_of
from cloister.hub.web.routing import After, Confidence, IdempotencyKey, Number, Routes
from cloister.printable import finite
from cloister.privacy import text_of

_LONGEST_WORD = 200
_Prefer = Annotated[str, Header(max_length=_LONGEST_WORD)]
_LATER = "respond-async"
_JSON = "application/json"


def add(routes: Routes) -> None:
    _asking(routes)
    _previewing(routes)
    _saved(routes)
    _reading(routes)


def _asking(routes: Routes) -> None:
    @routes.post(
        "/questions",
        "question.ask",
        "Ask a query",
        "The private answer, with its guarantee, its margins of error and its cost",
        ticked=True,
        response_model=Answer,
        status_code=201,
        responses={202: {"model": JobTold, "description": "A job answers it, with `Prefer: respond-async`"}},
    )
    def ask(hub: HubDep, caller: CallerDep, question: Question, key: IdempotencyKey = "", prefer: _Prefer = "") -> Response:
        """The private answer, charged. The same `Idempotency-Key` gives the same bytes and is charged once."""
        return _asked(hub, caller, question, key, later=_LATER in prefer.lower())

    @routes.post(
        "/questions/workload",
        "question.ask",
        "Ask several queries together",
        "The private answers, under one charge",
        ticked=True,
        response_model=Answers,
        status_code=201,
    )
    def workload(hub: HubDep, caller: CallerDep, questions: Questions, key: IdempotencyKey = "") -> Response:
        """The private answers to several questions under one charge: what they share is measured once, and they agree."""
        request, again = _request("workload", questions), _again(hub, caller)

        def asking(beside: Beside | None) -> Sequence[Answered]:
            return ask_together(hub, caller, questions.wish(), beside=beside)

        status, body = ask_once(hub, caller, key, request, asking, _bodies, again=again)
        return Response(body, status, media_type=_JSON)

    @routes.post(
        "/questions/stored",
        "question.ask",
        "Get an answer that was asked before",
        "The stored answer",
        ticked=True,
        response_model=Answer,
        status_code=201,
    )
    def stored(hub: HubDep, caller: CallerDep, question: Question) -> Response:
        """The answer that was asked before, of at least the spend that is named; 404 where there is none. It never charges a
        population; using what others asked charges your share, unless you were given the answer before."""
        answered = stored_answer(hub, caller, question.wish())
        return Response(_body(answered, question.confidence), 201, media_type=_JSON)


def _asked(hub: Hub, caller: Caller, question: Question, key: str, *, later: bool = False) -> Response:
    wish = question.wish()
    status, body = ask_once(
        hub,
        caller,
        key,
        _request("questions", question, "later" if later else "") if key else b"",
        lambda beside: [answered_to(hub, caller, wish, beside=beside)],
        lambda kept: _body(kept[0], wish.confidence),
        later=lambda: wish if later else None,
        again=_again(hub, caller) if key else None,
    )
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


DIRECT = Direct(path="/questions", action="question.ask", read=_plain, answer=_asked)
"""`POST /questions`, with an API token."""


def _previewing(routes: Routes) -> None:
    @routes.post(
        "/questions/explain",
        "question.explain",
        "Explain a query",
        "What it would measure, with which margin of error and at which cost",
        ticked=True,
    )
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

    @routes.post(
        "/questions/afford",
        "question.explain",
        "Compare spends for a query",
        "The margins of error to expect over a range of spends",
        ticked=True,
    )
    def afford(hub: HubDep, caller: CallerDep, question: Question) -> Spends:
        """The margins to expect over a range of spends: spends nothing and reads no row."""
        found = affordable(hub, caller, question.wish())
        margins = {name: [finite(float(each)) for each in found.margins[name]] for name in found.margins.column_names}
        return Spends(confidence=found.confidence, spends=[text_of(each) for each in found.spends], margins=margins)

    @routes.post(
        "/questions/rehearse",
        "question.rehearse",
        "Rehearse a query on made-up rows",
        "An answer of made-up rows, marked as such",
    )
    def rehearse(hub: HubDep, caller: CallerDep, question: Question) -> Rehearsed:
        """An answer from made-up rows: what it would look like. Nothing is spent."""
        return Rehearsed(release=rehearsal_of(hub, caller, question.wish()).to_json())


def _reading(routes: Routes) -> None:
    @routes.get(
        "/releases/{number}",
        "release.see",
        "Get a release",
        "The release as it was answered; of another kind than an answer, as its own address tells it",
        ticked=True,
        response_model=Answer | dict[str, Any],
    )
    def release(hub: HubDep, caller: CallerDep, number: Number, confidence: Confidence = 0.95) -> Response:
        """A stored release, byte for byte what was answered at that confidence; of another kind than an answer, what its own
        address has. What others show you takes `release.download` on what it came from, as a file does; a browser shows it
        without."""
        with hub.database.reading() as db:
            row = read_release(hub, db, caller, number)
        view = View(hub=hub, caller=caller, row=row, language=language_of("en"), confidence=confidence)
        return Response(kind_of(hub, row).told(view), media_type=_JSON)

    @routes.get(
        "/releases/{number}/margins",
        "release.see",
        "Get the margins of error of a release",
        "The margins at the confidence that is asked for",
        ticked=True,
    )
    def margins(hub: HubDep, caller: CallerDep, number: Number, confidence: Confidence = 0.95, joint: bool = False) -> Margins:
        """At another confidence; with `joint`, all intervals hold at once. It takes what the release takes."""
        with hub.database.reading() as db:
            found = unpacked(read_release(hub, db, caller, number, kind=ANSWERS))
        widths, drowned = found.margin(confidence, joint=joint), found.drowned(confidence)
        names = found.statistics()
        return Margins(
            confidence=confidence,
            joint=joint,
            margins={name: [finite(float(each)) for each in widths[name].tolist()] for name in names},
            drowned={name: [bool(each) for each in drowned[name].tolist()] for name in names},
        )


def _again(hub: Hub, caller: Caller) -> Callable[[int, bytes], None]:
    """Refuses to give an answer again that its analyst may not look at any more: a key is no way around the policy of a release.
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


def _body(answered: Answered, confidence: float = 0.95) -> bytes:
    return answer_bytes(answered.row, answered.release, confidence)


def _bodies(kept: Sequence[Answered]) -> bytes:
    return b'{"releases":[' + b",".join(map(_body, kept)) + b"]}"


def _request(path: str, body: Question | Questions, way: str = "") -> bytes:
    return f"{path} {way}\n".encode() + body.model_dump_json().encode()


def _saved(routes: Routes) -> None:
    @routes.get("/questions/saved", "question.see", "List saved queries", "The saved queries, the newest first")
    def questions(
        hub: HubDep, caller: CallerDep, after: After = "", limit: Annotated[int, Query(ge=1, le=200)] = 50
    ) -> SavedPage:
        """One's own and those of one's projects; the newest first."""
        with hub.database.reading() as db:
            rows = saved_of(db, caller, after=after, limit=limit + 1)
        more = rows[limit - 1].id if len(rows) > limit else None
        return SavedPage(questions=[saved_line(row, caller.id) for row in rows[:limit]], next=more)

    @routes.post("/questions/saved", "question.manage", "Save a query", "The saved query", status_code=201)
    def keep(hub: HubDep, caller: CallerDep, wanted: Saving) -> Saved:
        """Keep a question under a name; in a project, for its members too."""
        with hub.database.begin() as db:
            row = save(hub, db, caller, wanted.wish(), wanted.title)
        return saved_line(row, caller.id)

    @routes.get("/questions/saved/{number}", "question.see", "Get a saved query", "The saved query")
    def question(hub: HubDep, caller: CallerDep, number: Number) -> Saved:
        """One question."""
        with hub.database.reading() as db:
            return saved_line(seen_question(hub, db, caller, number), caller.id)

    @routes.post(
        "/questions/saved/{number}/remove", "question.manage", "Delete a saved query", "The saved query that was deleted"
    )
    def forget(hub: HubDep, caller: CallerDep, number: Number) -> Saved:
        """Remove one's own saved question; what it was answered stays."""
        with hub.database.begin() as db:
            told = saved_line(seen_question(hub, db, caller, number), caller.id)
            remove(hub, db, caller, number)
        return told
