"""The bodies of the API of anonymised tables. Unknown fields are refused."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

if TYPE_CHECKING:
    from cloister.hub.records.owner_views import OwnerView
    from cloister.hub.records.releases import StoredRelease


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
