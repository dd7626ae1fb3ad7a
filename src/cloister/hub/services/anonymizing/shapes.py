"""The bodies of the API of anonymised tables. Unknown fields are refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel

from cloister.hub.releases.shapes import Line

if TYPE_CHECKING:
    from cloister.hub.records.owner_views import OwnerView
    from cloister.hub.records.releases import StoredRelease


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


class AnonymizedLine(Line):
    """A released table, in a list."""

    table: str
    data_set: str
    """The id of the data set that its rows became."""


class Anonymized(AnonymizedLine):
    """A released table with its report and its certificate."""

    report: dict[str, Any]
    certificate: dict[str, Any]

    @classmethod
    def of(cls, row: StoredRelease, **more: Any) -> Self:
        """With what is kept of it besides."""
        papers = json.loads(row.body)
        return super().of(row, report=papers["report"], certificate=papers["certificate"], **more)


def tried_of(row: OwnerView, found: dict[str, Any]) -> Tried:
    """A trial as the API shows it."""
    told = {name: found[name] for name in ("version", "newest", "before", "points", "trees", "refused")}
    return Tried(id=row.id, table=str(row.order["table"]), **told)
