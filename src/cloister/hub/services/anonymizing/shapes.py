"""The bodies of the API of anonymised tables. Unknown fields are refused."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from cloister.hub.description import example
from cloister.hub.services.anonymizing.order import Order

if TYPE_CHECKING:
    from cloister.hub.records.owner_views import OwnerView
    from cloister.hub.records.releases import StoredRelease

_Name = Annotated[str, Field(min_length=1, max_length=200)]
_Short = Annotated[str, Field(max_length=40)]


class Anonymizing(BaseModel):
    """A table to try: of which data set, what each column is, which models, how it is searched for."""

    model_config = ConfigDict(extra="forbid") | example(
        table="people", parts={"age": "quasi", "sex": "quasi", "pay": "sensitive"}, k=5
    )

    table: _Name
    parts: Annotated[dict[_Name, _Short], Field(min_length=1, max_length=500)]
    """Of each column: quasi, sensitive, identifying or kept; one that is not named is dropped."""
    k: Annotated[int, Field(ge=1, le=100_000)] = 5
    l: Annotated[int | float | None, Field(ge=1, le=1_000)] = None  # noqa: E741 - the field's own name
    diversity: _Short = "distinct"
    """How l counts: `distinct`, `entropy` (l need not be whole), `recursive` (with a `c`)."""
    c: _Short = ""
    t: _Short = ""
    distance: _Short = ""
    """How t measures: `equal`, `ordered`, `hierarchical` (in `hierarchies` of the sensitive columns), `kl`; else by kind."""
    beta: _Short = ""
    likeness: _Short = "basic"
    """How β is meant: `basic`, `enhanced`."""
    delta: _Short = ""
    """Of δ-disclosure privacy."""
    alpha: _Short = ""
    """Of (α, k)-anonymity, with the k above."""
    search: _Short = "optimal"
    metric: _Short = "loss"
    suppression: _Short = "0.02"
    missing: _Short = "value"
    """What a missing value is: `value` (one of its own), `suppress` (its row is left out), `refuse`."""
    levels: Annotated[dict[_Name, Annotated[int, Field(ge=0, le=1000)]], Field(max_length=500)] = {}
    """Of each quasi-identifier, where they were chosen, such as from a trial; then nothing is searched for."""
    hierarchies: Annotated[dict[_Name, Annotated[str, Field(max_length=200_000)]], Field(max_length=500)] = {}
    """Of a column: lines as ARX writes them, `value;level 1;level 2`."""
    purpose: Annotated[str, Field(max_length=1000)] = ""

    def order(self) -> Order:
        """As the hub works with it."""
        return Order(**self.model_dump())


class Releasing(Anonymizing):
    """A table to release: the name and the title of the data set that it becomes."""

    model_config = example(
        table="people",
        parts={"age": "quasi", "sex": "quasi", "pay": "sensitive"},
        k=5,
        name="people-k5",
        title="People, 5-anonymous",
        understood=True,
    )

    name: Annotated[str, Field(min_length=1, max_length=63)]
    title: _Name
    understood: bool
    """That it is not differentially private, and that the population's spending reads unbounded from then on."""

    def order(self) -> Order:
        """As the hub works with it."""
        return Order(**self.model_dump(exclude={"understood"}))


class JobOfTable(BaseModel):
    """The job that tries or releases."""

    job: str


class Tried(BaseModel):
    """What a trial found: exact, for the owner's eyes."""

    id: str
    table: str
    version: int
    """Of the data set, of which the numbers are."""
    newest: int
    """The version that the data set has now: a release reads that one."""
    before: dict[str, Any]
    """How easily people are found in the rows as they are."""
    points: list[dict[str, Any]]
    """For each k, what would be published; and other levels for the k that was asked for."""
    trees: dict[str, Any]
    refused: dict[str, Any] | None
    """Why nothing meets what was asked for, and what would do."""


class AnonymizedLine(BaseModel):
    """A released table, in a list."""

    id: str
    title: str
    table: str
    data_set: str
    """The id of the data set that its rows became."""
    purpose: str
    created: datetime


class Anonymized(AnonymizedLine):
    """A released table with its report and its certificate."""

    report: dict[str, Any]
    certificate: dict[str, Any]


class AnonymizedPage(BaseModel):
    """Some released tables, the newest first."""

    tables: list[AnonymizedLine]
    next: str | None


def tried_of(row: OwnerView, found: dict[str, Any]) -> Tried:
    """A trial as the API shows it."""
    told = {name: found[name] for name in ("version", "newest", "before", "points", "trees", "refused")}
    return Tried(id=row.id, table=str(row.order["table"]), **told)


def line_of(row: StoredRelease) -> AnonymizedLine:
    """A released table as a list shows it."""
    told = {name: getattr(row, name) for name in ("id", "title", "data_set", "purpose", "created")}
    return AnonymizedLine(table=row.details["table"], **told)


def told_of(row: StoredRelease) -> Anonymized:
    """A released table as the API shows it."""
    papers = json.loads(row.body)
    return Anonymized(**line_of(row).model_dump(), report=papers["report"], certificate=papers["certificate"])
