"""What the API of surveys takes and gives."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from cloister.hub.description import example

if TYPE_CHECKING:
    from cloister.hub.records.surveys import HeldSurvey


class OfferedLevel(BaseModel):
    """How much may be told by each answer, at most."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(min_length=1, max_length=60)]
    epsilon: Annotated[str, Field(max_length=60, description="An exact number, such as 0.5 or 1/3")]


class Composing(BaseModel):
    """A draft. What is left out stays as it is."""

    model_config = ConfigDict(extra="forbid") | example(title="Smoking", purpose="health reporting")

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
        """What was stated, without the questions."""
        given = self.model_dump(exclude_none=True, exclude={"questions"})
        return {name: given[name] for name in given}


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


class Inviting(BaseModel):
    """How many invitations."""

    model_config = ConfigDict(extra="forbid") | example(count=100)

    count: Annotated[int, Field(ge=1, le=5000)]


class Invitations(BaseModel):
    """Shown once: each is good for one report. The link of the page is /s/<id>#<token>."""

    tokens: list[str]


class Looking(BaseModel):
    """Results are not ready: a job looks for words (/api/v1/jobs/<job>)."""

    job: str


class Received(BaseModel):
    """A report came in."""

    received: bool
    again: bool = False
    """True where the very same report, token and all, was here before: it counts once. Whoever has not sent it before was given
    somebody else's token, and sends the report again under a new one."""


def line_of(row: HeldSurvey) -> SurveyLine:
    """A row as a line."""
    return SurveyLine(
        id=row.id,
        title=row.title,
        purpose=row.purpose,
        state=row.state,
        invited=row.invited,
        hoped=row.hoped,
        questions=len(row.draft["questions"]),
        created=row.created,
        opened=row.opened,
        closed=row.closed,
    )
