"""The bodies of the API of questions: what is sent, what is answered. Unknown fields are refused."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import to_json

from cloister.hub.description import Taken, example, read_of
from cloister.hub.records.asking import SavedQuestion
from cloister.hub.records.releases import StoredRelease
from cloister.hub.releases.derived import told_policy
from cloister.hub.releases.shapes import Title
from cloister.hub.services.asking.question_request import QuestionRequest
from cloister.printable import finite

if TYPE_CHECKING:
    from cloister.hub.services.asking.keeping import Kept
    from cloister.session import Release

Exact = Annotated[str, Field(max_length=100, pattern=r"^[0-9eE.+/-]*$", description="An exact number as text: 0.1, 1/3, 1e-6.")]
Sql = Annotated[str, Field(json_schema_extra={"minLength": 1, "maxLength": 50_000, "pattern": r"^[^\x00]*$"})]
"""`QuestionRequest` refuses another, in words."""
_Algorithm = Annotated[str, Field(max_length=63, description="Under which it is asked: its name, or its id.")]


class _Asked(Taken):
    """What every way of asking names."""

    purpose: Annotated[str, Field(json_schema_extra={"maxLength": 1000})] = ""
    project: Annotated[str, Field(max_length=63, description="The project in which it is asked: its name, or its id.")] = ""
    dialect: Annotated[str | None, Field(max_length=40)] = None


class Question(_Asked):
    """A question, what it may cost, and what it is for."""

    model_config = example(sql="SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", spend="0.1", purpose="a first look")

    sql: Sql
    spend: Exact = ""
    within: Annotated[float | None, Field(gt=0, le=1e300, allow_inf_nan=False)] = None
    pilot: Exact = ""
    confidence: Annotated[float, Field(gt=0.5, lt=1)] = 0.95
    fresh: bool = False
    algorithm: _Algorithm = ""

    def wish(self) -> QuestionRequest:
        """As the hub works with it."""
        return QuestionRequest(**self.model_dump())


class Questions(_Asked):
    """Several questions that are answered together under one charge, so that they agree."""

    model_config = example(
        questions=["SELECT COUNT(*) AS n FROM people", "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"], spend="0.1"
    )

    questions: Annotated[list[Sql], Field(min_length=1, max_length=50)]
    spend: Annotated[Exact, Field(min_length=1)]
    algorithm: _Algorithm = ""

    def wish(self) -> QuestionRequest:
        """As the hub works with it."""
        first, *more = self.questions
        told = self.model_dump(exclude={"questions"})
        return QuestionRequest(sql=first, more=tuple(more), **told)


class Saving(_Asked):
    """A question to keep under a name."""

    model_config = example(title="By sex", sql="SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", spend="0.1")

    title: Title
    sql: Sql
    spend: Exact = ""
    within: Annotated[float | None, Field(gt=0, le=1e300, allow_inf_nan=False)] = None
    algorithm: _Algorithm = ""

    def wish(self) -> QuestionRequest:
        """As the hub works with it."""
        return QuestionRequest(**self.model_dump(exclude={"title"}))


class Answer(BaseModel):
    """A release as people read it; `release` is the whole of it, from which a client works out margins at any confidence."""

    id: str
    columns: dict[str, list[Any]]
    margins: dict[str, list[float | None]]
    confidence: float
    cost: dict[str, str]
    repeated: bool
    notes: list[str]
    policy: dict[str, Any]
    created: datetime
    sql: str
    purpose: str
    release: dict[str, Any]


class Answers(BaseModel):
    """Several releases under one charge."""

    releases: list[Answer]


class JobTold(BaseModel):
    """A question that is answered as a job: look at /jobs/{job}, whose result names the release."""

    job: str


class LeftLine(BaseModel):
    """What a charge would leave of a budget, or of one's share of it; `after` is None where it has too little."""

    population: str
    of_share: bool
    before: str
    after: str | None


class Explained(BaseModel):
    """What an answer would measure, with which error, at which cost."""

    model_config = ConfigDict(extra="allow")

    text: str
    cost: dict[str, str]
    costs: dict[str, dict[str, str]]
    margins: dict[str, float | None]
    left: list[LeftLine]
    denied: str | None
    """Why asking it would be denied, where it would."""


class Rehearsed(BaseModel):
    """An answer from made-up rows, as `Release.to_json` writes it."""

    release: str


class Spends(BaseModel):
    """For each spend the margins to expect; None: not known in advance."""

    confidence: float
    spends: list[str]
    margins: dict[str, list[float | None]]


class Margins(BaseModel):
    """The half-widths of the intervals of each cell, and whether the noise may exceed the value."""

    confidence: float
    joint: bool
    margins: dict[str, list[float | None]]
    drowned: dict[str, list[bool]]


class Saved(BaseModel):
    """A question that is kept."""

    id: str
    title: str
    sql: str
    spend: str
    within: float | None
    purpose: str
    project: str
    dialect: str
    algorithm: Annotated[str, Field(description="The id of the one under which it is asked; empty: none.")]
    created: datetime
    mine: bool


class SavedPage(BaseModel):
    """Some questions, the newest first. `next`: what to give as `after` for the following ones."""

    questions: list[Saved]
    next: str | None


def answer_bytes(row: StoredRelease | Kept, release: Release, confidence: float = 0.95) -> bytes:
    """A stored release, as it is answered: an `Answer` in JSON, with the margins at a confidence. The same row at the same
    confidence gives the same bytes, whenever and however often it is asked for. The release in it stands as it is stored: to
    read it and write it again would take longer than all the rest.
    """
    margins, columns, statistics = release.margin(confidence).to_pydict(), release.to_pydict(), release.statistics()
    told = {
        "id": row.id,
        "columns": plain(columns),
        "margins": {name: margins[name] for name in statistics},
        "confidence": confidence,
        "cost": dict(row.cost),
        "repeated": release.provenance.repeated,
        "notes": list(release.notes),
        "policy": told_policy(row.policy),
        "created": row.created,
        "sql": row.sql,
        "purpose": row.purpose,
    }
    return to_json(told, inf_nan_mode="null")[:-1] + b',"release":' + row.body + b"}"


def saved_line(row: SavedQuestion, reader: str) -> Saved:
    """One question in a list."""
    return read_of(Saved, row, mine=row.person == reader)


def plain(columns: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Columns as JSON has them: a day is a text, and a number that JSON has not is null.

    >>> plain({"n": [1, float("nan"), None]})
    {'n': [1, None, None]}
    """
    return {
        name: [
            finite(each) if isinstance(each, float) else each if isinstance(each, (int, str, bool, type(None))) else str(each)
            for each in column
        ]
        for name, column in columns.items()
    }
