"""The API of joint surveys: composing, the helper's link, opening, sums; a respondent's form and report; a helper's calls.

A report bears no sign-in. A helper shows the secret of its link in the header `Helper-Key`.
"""

from datetime import datetime
from typing import Annotated, Any

from fastapi import Header
from pydantic import BaseModel, Field
from sqlalchemy.orm import Session as Db

from cloister.hub.database import of_each
from cloister.hub.description import Limit, Taken, example, read_of
from cloister.hub.hub import CallerDep, HubDep
from cloister.hub.records.surveys import HeldJointSurvey
from cloister.hub.services.surveys import drafts, joint
from cloister.hub.services.surveys.counting import asked
from cloister.hub.web.routing import After, Number, Routes

_SMOKES = {"text": "Do you smoke?", "kind": "yes-no", "epsilon": "1"}


class JointDraft(Taken):
    """A joint survey with its questions, as `JointQuestion.to_dict` writes them."""

    model_config = example(title="Smoking", questions=[_SMOKES])

    title: Annotated[str, Field(max_length=1000)]
    purpose: Annotated[str, Field(max_length=2000)] = ""
    invited: bool = False
    questions: Annotated[list[dict[str, Any]], Field(max_length=20, default_factory=list)]


class JointLine(BaseModel):
    """One of one's own joint surveys."""

    id: str
    title: str
    purpose: str
    state: str
    invited: bool
    questions: list[dict[str, Any]]
    helper: str
    """The name of the other institution, once it has joined."""
    fingerprint: str
    """Of its key: compare it by phone before the survey is opened."""
    created: datetime
    opened: datetime | None
    closed: datetime | None


class JointPage(BaseModel):
    """Some of them; `next` is the `after` of the rest."""

    surveys: list[JointLine]
    next: str | None


class JointWhole(JointLine):
    """A joint survey with what came in."""

    reports: dict[str, int]
    """How many wait for a check, were counted, and were dropped as invalid."""
    results: list[dict[str, Any]] | None
    """By question, with margins at 95 %; none before the sums are opened."""


class HelperLink(BaseModel):
    """Shown once: `cloister helper join <address>/joint-surveys/<id>#<secret>`."""

    secret: str


class Inviting(Taken):
    """How many invitations."""

    model_config = example(count=100)

    count: Annotated[int, Field(ge=1, le=5000)]


class Invitations(BaseModel):
    """Shown once: each is good for one report. The link of the page is /s/<id>#<token>, or /j/<id>#<token>."""

    tokens: list[str]


class HelperSays(Taken):
    """What a helper says: who it is, then what it says of each report, by nonce, and at last its shares of the sums of a list."""

    model_config = example(name="Cancer Registry", key="04" + "6b" * 64)

    name: str | None = None
    key: str | None = None
    said: Annotated[dict[str, list[str]], Field(max_length=joint.PAGE)] | None = None
    shares: Annotated[list[str], Field(max_length=20)] | None = None
    list_: Annotated[str | None, Field(alias="list")] = None


class JointForm(BaseModel):
    """What a respondent's device needs."""

    survey: dict[str, Any]
    digest: str
    """What the shares are bound to."""
    helper: str
    """The helper's public key, in hexadecimal digits."""


class Received(BaseModel):
    """A report came in."""

    received: bool
    again: bool = False
    """True where the very same report, token and all, was here before: it counts once. Whoever has not sent it before was given
    somebody else's token, and sends the report again under a new one."""


def line_of(row: HeldJointSurvey) -> JointLine:
    """A row as a line."""
    helper = joint.helper_of(row)
    questions = joint.survey_of(row).to_dict()["questions"] if row.questions else []
    return read_of(JointLine, row, questions=questions, helper=helper["name"], fingerprint=helper["fingerprint"])


def add(routes: Routes) -> None:
    _composing(routes)
    _answering(routes)


def _composing(routes: Routes) -> None:
    @routes.get("/joint-surveys", "survey.compose", "List joint surveys", "Your joint surveys, the newest first")
    def joint_surveys(hub: HubDep, caller: CallerDep, after: After = "", limit: Limit = 50) -> JointPage:
        """One's own; the newest first."""
        with hub.database.reading() as db:
            rows = drafts.own(HeldJointSurvey, db, caller, after=after, limit=limit + 1)
        more = rows[limit - 1].id if len(rows) > limit else None
        return JointPage(surveys=of_each(rows[:limit], line_of), next=more)

    @routes.post("/joint-surveys", "survey.compose", "Create a joint survey", "The draft", status_code=201)
    def make_joint_survey(hub: HubDep, caller: CallerDep, wanted: JointDraft) -> JointWhole:
        """A draft, with its questions: yes or no, one of several, or a whole number, each with an ε of its own."""
        with hub.database.begin() as db:
            row = joint.make_joint(hub, db, caller, title=wanted.title, purpose=wanted.purpose, invited=wanted.invited)
            joint.ask(hub, db, caller, row.id, wanted.questions)
            return _whole(db, row)

    @routes.get("/joint-surveys/{number}", "survey.see", "Get a joint survey", "The survey, and its sums once they are opened")
    def joint_survey(hub: HubDep, caller: CallerDep, number: Number) -> JointWhole:
        """What it asks, who helps, what came in."""
        with hub.database.reading() as db:
            return _whole(db, joint.seen_joint(hub, db, caller, number))

    @routes.delete("/joint-surveys/{number}", "survey.manage", "Delete a joint survey", "The survey is deleted", status_code=204)
    def drop_joint_survey(hub: HubDep, caller: CallerDep, number: Number) -> None:
        """A draft, or a survey that is closed and whose helper gives no share: its sums are never opened."""
        with hub.database.begin() as db:
            drafts.drop_draft(HeldJointSurvey, hub, db, caller, number)

    @routes.post("/joint-surveys/{number}/link", "survey.manage", "Ask for a helper", "The secret of its link, shown only here")
    def link(hub: HubDep, caller: CallerDep, number: Number) -> HelperLink:
        """From now on the questions stay as they are. Asked again before the survey is opened, the link before is void, and a
        helper that joined by it helps no more."""
        with hub.database.begin() as db:
            return HelperLink(secret=joint.ask_helper(hub, db, caller, number))

    @routes.post("/joint-surveys/{number}/open", "survey.manage", "Open a joint survey", "The open survey")
    def open_joint_survey(hub: HubDep, caller: CallerDep, number: Number) -> JointLine:
        """Once its helper has joined, and the fingerprint of its key was compared."""
        with hub.database.begin() as db:
            return line_of(joint.open_joint(hub, db, caller, number))

    @routes.post("/joint-surveys/{number}/close", "survey.manage", "Close a joint survey", "The closed survey")
    def close_joint_survey(hub: HubDep, caller: CallerDep, number: Number) -> JointLine:
        """It takes no report any more; its sums are opened when the helper has given its share."""
        with hub.database.begin() as db:
            return line_of(joint.close_joint(hub, db, caller, number))

    @routes.post(
        "/joint-surveys/{number}/invitations",
        "survey.manage",
        "Create invitations to a joint survey",
        "The invitations; their codes are shown only here",
        status_code=201,
    )
    def invite_joint(hub: HubDep, caller: CallerDep, number: Number, wanted: Inviting) -> Invitations:
        """Each is good for one report; the hub keeps a digest, and doesn't know who gets which."""
        with hub.database.begin() as db:
            return Invitations(tokens=drafts.invite(HeldJointSurvey, hub, db, caller, number, wanted.count))


def _answering(routes: Routes) -> None:
    @routes.get(
        "/joint-surveys/{number}/form", "survey.answer", "Get the form of a joint survey", "Questions and the helper's key"
    )
    def joint_form(hub: HubDep, number: Number) -> JointForm:
        """As `JointSurvey.from_dict` reads it. Needs no session."""
        with hub.database.reading() as db:
            row = asked(db, number, HeldJointSurvey)
        survey = joint.survey_of(row)
        return JointForm(survey=survey.to_dict(), digest=survey.digest, helper=joint.helper_of(row)["key"])

    @routes.post(
        "/joint-surveys/{number}/reports",
        "survey.answer",
        "Send a report to a joint survey",
        "The receipt; whether the same report was here before",
        status_code=201,
        response_model_exclude_defaults=True,
    )
    def joint_report(hub: HubDep, caller: CallerDep, number: Number, sent: dict[str, Any]) -> Received:
        """One report, as `JointReport.to_dict` writes it, with `ticket` where the survey is by invitation. Needs no session. One
        whose proof is false is dropped when both servers have looked at it."""
        return Received(received=True, again=not joint.receive(hub, number, sent, address=caller.address))

    @routes.post(
        "/joint-surveys/{number}/helper",
        "survey.answer",
        "Send what the helper of a joint survey says",
        "The survey, and the reports to check or the list of those that were counted",
        response_model=dict[str, Any],
    )
    def helper(
        hub: HubDep, number: Number, sent: HelperSays, key: Annotated[str, Header(alias="Helper-Key", max_length=100)] = ""
    ) -> dict[str, Any]:
        """By `cloister helper`, which shows the secret of its link in the header `Helper-Key`; needs no session. First `name` and
        `key`; then what it says about reports (`said`, by nonce); at last its shares of the sums (`shares`, of the `list`)."""
        return joint.helped(hub, number, key, sent.model_dump(exclude_none=True, by_alias=True))


def _whole(db: Db, row: HeldJointSurvey) -> JointWhole:
    results = joint.results_of(row) if row.state == "done" else None
    return JointWhole(**line_of(row).model_dump(), reports=joint.reports_of(db, row), results=results)
