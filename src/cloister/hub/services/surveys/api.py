"""The API of surveys: composing, opening, inviting, results; and, for whoever has a survey's link, what it asks and one report.

A report bears no sign-in and is not tied to a page of ours: it is worth what its token is worth.
"""

import json
from datetime import datetime
from typing import Annotated, Any, cast

from fastapi import Body
from pydantic import BaseModel, Field
from starlette.responses import Response

from cloister.errors import InvalidParameter
from cloister.hub.database import of_each
from cloister.hub.description import Limit, Taken, example, read_of
from cloister.hub.hub import CallerDep, HubDep
from cloister.hub.records.surveys import HeldSurvey
from cloister.hub.releases.api import kind_api
from cloister.hub.releases.reading import read_release
from cloister.hub.services.surveys import drafts, joint_api
from cloister.hub.services.surveys.composing import demonstrations, of_text
from cloister.hub.services.surveys.counting import asked, receive
from cloister.hub.services.surveys.joint_api import Invitations, Inviting, Received
from cloister.hub.services.surveys.modelling import (
    SURVEY_MODEL,
    SurveyModelLine,
    SurveyModelWhole,
    SurveyTraining,
    foretell,
    submit_training,
)
from cloister.hub.services.surveys.results import results_file
from cloister.hub.web.render import ExactJSON
from cloister.hub.web.routing import After, IdempotencyKey, Number, Routes
from cloister.hub.work.ordering import JobOfWork
from cloister.hub.work.submitting import accepted


class OfferedLevel(Taken):
    """How much may be told by each answer, at most."""

    name: Annotated[str, Field(min_length=1, max_length=40)]
    epsilon: Annotated[str, Field(max_length=60, description="An exact number, such as 0.5 or 1/3")]


class Composing(Taken):
    """A draft. What is left out stays as it is."""

    model_config = example(title="Smoking", purpose="health reporting")

    title: Annotated[str, Field(max_length=1000)] | None = None
    purpose: Annotated[str, Field(max_length=2000)] | None = None
    introduction: Annotated[str, Field(max_length=6000)] | None = None
    levels: Annotated[list[OfferedLevel], Field(min_length=1, max_length=8)] | None = None
    cap: Annotated[str, Field(max_length=60)] | None = None
    hoped: Annotated[int, Field(ge=1, le=10**8)] | None = None
    invited: bool | None = None
    questions: Annotated[list[dict[str, Any]], Field(max_length=50)] | None = None
    """As the library writes questions (`Question.to_dict`): kind, name, text, no_answer, and what its kind needs."""

    def said(self) -> dict[str, Any]:
        """What was stated; of questions, all that they say."""
        told = self.model_dump(exclude_none=True, exclude={"questions"})
        return told if self.questions is None else told | {"questions": self.questions}


class SurveyLine(BaseModel):
    """One of one's own surveys."""

    id: str
    title: str
    purpose: str
    state: str
    invited: bool
    hoped: int
    questions: int
    created: datetime
    opened: datetime | None
    closed: datetime | None


class SurveyPage(BaseModel):
    """Some of them; `next` is the `after` of the rest."""

    surveys: list[SurveyLine]
    next: str | None


class SurveyWhole(SurveyLine):
    """A survey with what it asks; where it is open, also with the integers that respondents rely on."""

    draft: dict[str, Any]
    survey: dict[str, Any] | None
    """As `cloister.local.survey.Survey.to_dict` writes it; none for a draft."""


class Looking(BaseModel):
    """Results are not ready: a job looks for words (/api/v1/jobs/<job>)."""

    job: str


def line_of(row: HeldSurvey) -> SurveyLine:
    """A row as a line."""
    return read_of(SurveyLine, row, questions=len(row.draft["questions"]))


_FILE: dict[int | str, dict[str, Any]] = {200: {"content": {"application/json": {}}, "description": "The file"}}
_RESULTS: dict[int | str, dict[str, Any]] = {**_FILE, 202: {"model": Looking, "description": "A job looks for words first"}}


def add(routes: Routes) -> None:
    _drafts(routes)
    _running(routes)
    _answering(routes)
    _learning(routes)
    joint_api.add(routes)


def _drafts(routes: Routes) -> None:
    @routes.get("/surveys", "survey.compose", "List surveys", "Your surveys, the newest first")
    def surveys(hub: HubDep, caller: CallerDep, after: After = "", limit: Limit = 50) -> SurveyPage:
        """One's own; the newest first."""
        with hub.database.reading() as db:
            rows = drafts.surveys_of(db, caller, after=after, limit=limit + 1)
        more = rows[limit - 1].id if len(rows) > limit else None
        return SurveyPage(surveys=of_each(rows[:limit], line_of), next=more)

    @routes.post("/surveys", "survey.compose", "Create a survey", "The draft", status_code=201)
    def make(hub: HubDep, caller: CallerDep, wanted: Composing) -> SurveyWhole:
        """A draft, with its questions where they are given."""
        if wanted.title is None:
            raise InvalidParameter("The survey is invalid", why="it has no title", instead='{"title": "Sleep and screens"}')
        with hub.database.begin() as db:
            row = drafts.make_survey(hub, db, caller, title=wanted.title, purpose=wanted.purpose or "")
            return _whole(drafts.rewrite(hub, db, caller, row.id, **wanted.said()))

    @routes.get("/surveys/{number}", "survey.see", "Get a survey", "The survey", response_model=SurveyWhole)
    def survey(hub: HubDep, caller: CallerDep, number: Number) -> Response:
        """What it asks, and of whom."""
        with hub.database.reading() as db:
            row = drafts.seen_survey(hub, db, caller, number)
            # not through SurveyWhole: a stored text may hold half a letter, which pydantic cannot write
            return ExactJSON({**line_of(row).model_dump(mode="json"), "draft": row.draft, "survey": _body(row)})

    @routes.patch("/surveys/{number}", "survey.manage", "Update the draft of a survey", "The changed draft")
    def rewrite(hub: HubDep, caller: CallerDep, number: Number, wanted: Composing) -> SurveyWhole:
        """What is stated takes the place of what was there; questions as a whole."""
        with hub.database.begin() as db:
            return _whole(drafts.rewrite(hub, db, caller, number, **wanted.said()))

    @routes.delete("/surveys/{number}", "survey.manage", "Delete the draft of a survey", "The draft is deleted", status_code=204)
    def drop(hub: HubDep, caller: CallerDep, number: Number) -> None:
        """A survey that was opened stays."""
        with hub.database.begin() as db:
            drafts.drop_draft(HeldSurvey, hub, db, caller, number)


def _running(routes: Routes) -> None:
    @routes.post("/surveys/{number}/open", "survey.manage", "Open a survey", "The open survey")
    def open_(hub: HubDep, caller: CallerDep, number: Number) -> SurveyLine:
        """From now on nothing of it changes."""
        with hub.database.begin() as db:
            return line_of(drafts.open_survey(hub, db, caller, number))

    @routes.post("/surveys/{number}/close", "survey.manage", "Close a survey", "The closed survey")
    def close(hub: HubDep, caller: CallerDep, number: Number) -> SurveyLine:
        """It takes no report any more."""
        with hub.database.begin() as db:
            return line_of(drafts.close_survey(hub, db, caller, number))

    @routes.post(
        "/surveys/{number}/invitations",
        "survey.manage",
        "Create invitations to a survey",
        "The invitations; their codes are shown only here",
        status_code=201,
    )
    def invite(hub: HubDep, caller: CallerDep, number: Number, wanted: Inviting) -> Invitations:
        """Each is good for one report; the hub keeps a digest, and doesn't know who gets which."""
        with hub.database.begin() as db:
            return Invitations(tokens=drafts.invite(HeldSurvey, hub, db, caller, number, wanted.count))

    @routes.get(
        "/surveys/{number}/results", "survey.download", "Get the results of a survey", response_class=Response, responses=_RESULTS
    )
    def results(hub: HubDep, caller: CallerDep, number: Number) -> Response:
        """Estimates with margins, by level and together, as the library writes them (`Results.to_json`). Where words are asked
        for, a job looks for them first: 202 and its id; ask again when it is done. Of an open survey these are the words of the
        reports that were there then; each question says of how many reports it is (`n`)."""
        found = results_file(hub, caller, number, "json")
        return found if isinstance(found, Response) else _later(found)

    @routes.get(
        "/surveys/{number}/reports",
        "survey.download",
        "Download the reports of a survey",
        response_class=Response,
        responses=_FILE,
    )
    def reports(hub: HubDep, caller: CallerDep, number: Number) -> Response:
        """The survey and the randomised reports to it, in no order."""
        return cast("Response", results_file(hub, caller, number, "reports"))


class Foretelling(Taken):
    """What people answered to the questions that a model learnt from, by question; those left out say nothing."""

    model_config = example(answers=[{"year": "third"}])

    answers: Annotated[list[dict[str, Annotated[str, Field(max_length=1000)]]], Field(min_length=1, max_length=10_000)]


class Foretold(BaseModel):
    """The target of each of them: an answer, or a number."""

    predictions: list[str | float]


def _learning(routes: Routes) -> None:
    @routes.post(
        "/surveys/{number}/models",
        "survey.download",
        "Train a model on the reports of a survey",
        "The job that does it",
        ticked=True,
        status_code=202,
        response_model=JobOfWork,
    )
    def train(
        hub: HubDep, caller: CallerDep, number: Number, wanted: Annotated[SurveyTraining, Body()], key: IdempotencyKey = ""
    ) -> Response:
        """Naive Bayes (`naive-bayes`) of an answer, or the regression (`regression`) of a number, by the answers to other
        questions. Nothing is charged, and no respondent's ε grows: only randomised reports are read."""
        return accepted(submit_training(hub, caller, key, number, wanted))

    @routes.post(
        "/survey-models/{number}/predictions", "release.see", "Predict with a model of a survey", "The predictions, one for each"
    )
    def predict(hub: HubDep, caller: CallerDep, number: Number, wanted: Foretelling) -> Foretold:
        """What the model says of answers of one's own, which are kept nowhere. It spends nothing."""
        with hub.database.reading() as db:
            row = read_release(hub, db, caller, number, kind=SURVEY_MODEL.name)
        return Foretold(predictions=foretell(row, wanted.answers))

    names, nouns = ("models", "survey_model", "survey_model_file"), ("models of surveys", "a model of a survey")
    routes.router.include_router(
        kind_api(SURVEY_MODEL, SurveyModelLine, SurveyModelWhole, names=names, nouns=nouns, forms=("json",))
    )


def _answering(routes: Routes) -> None:
    @routes.get(
        "/surveys/{number}/form",
        "survey.answer",
        "Get the form of a survey",
        "Questions, levels and the integers of the promise",
        response_model=dict[str, Any],
    )
    def form(hub: HubDep, number: Number) -> Response:
        """`survey` has questions, levels, and the integers that are the promise, as the library reads them (`Survey.from_dict`);
        `demonstration` the coins of a yes-or-no question at each level. Needs no session."""
        with hub.database.reading() as db:
            survey = of_text(asked(db, number, HeldSurvey).body)
        return ExactJSON({"survey": survey.to_dict(), "demonstration": demonstrations(survey)})

    @routes.post(
        "/surveys/{number}/reports",
        "survey.answer",
        "Send a report to a survey",
        "The receipt; whether the same report was here before",
        status_code=201,
        response_model_exclude_defaults=True,
    )
    def report(hub: HubDep, caller: CallerDep, number: Number, sent: dict[str, Any]) -> Received:
        """One report, as `Report.to_dict` writes it. Needs no session. The very same one, sent again, counts once, and is told so
        (`again`): where it was not sent before, two people have one token and drew the same values, and the second one sends the
        report again under a new token. Another one under the same token counts too, except that an invitation is
        good for one (403). To an open survey, one network may send so many an hour (`survey_hourly`); beyond, 429."""
        return Received(received=True, again=not receive(hub, number, sent, address=caller.address))


def _later(job: str) -> Response:
    return Response(
        Looking(job=job).model_dump_json(), status_code=202, media_type="application/json", headers={"Retry-After": "5"}
    )


def _whole(row: HeldSurvey) -> SurveyWhole:
    return SurveyWhole(**line_of(row).model_dump(), draft=row.draft, survey=_body(row))


def _body(row: HeldSurvey) -> dict[str, Any] | None:
    """The survey as respondents get it, once it is open."""
    body: dict[str, Any] | None = json.loads(row.body) if row.body else None
    return body
