"""The API of anonymised tables: a trial, a release, what was released."""

from typing import Any

from pydantic import BaseModel

from cloister.hub.hub import CallerDep, HubDep
from cloister.hub.releases.api import kind_api
from cloister.hub.services.anonymizing.authorised import ACTION
from cloister.hub.services.anonymizing.order import Anonymizing, Releasing
from cloister.hub.services.anonymizing.reading import seen_trial
from cloister.hub.services.anonymizing.releasing import ANONYMISING
from cloister.hub.services.anonymizing.tables import TABLE, Anonymized, AnonymizedLine
from cloister.hub.services.anonymizing.trying import TRY
from cloister.hub.web.routing import Number, Routes
from cloister.hub.work.ordering import order_api


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


def add(routes: Routes) -> None:
    trying: dict[str, Any] = {"mark": "anonymised Anonymizing", "job": TRY.kind, "without": frozenset({"name", "title"})}
    tried, released = ("Try settings of an anonymised table",), ("Release an anonymised table",)
    routes.router.include_router(order_api(ANONYMISING, Anonymizing, "/anonymised/trials", summaries=tried, **trying))
    mark = "anonymised Releasing"
    routes.router.include_router(order_api(ANONYMISING, Releasing, "/anonymised", summaries=released, mark=mark))

    @routes.get(
        "/anonymised/trials/{number}", ACTION, "Get a trial of an anonymised table", "Risk and information loss for each k"
    )
    def trial(hub: HubDep, caller: CallerDep, number: Number) -> Tried:
        """What was found, for its owner."""
        with hub.database.reading() as db:
            row, found = seen_trial(hub, db, caller, number)
        told = {name: each for name, each in found.items() if name in Tried.model_fields}
        return Tried(id=row.id, table=str(row.order["table"]), **told)

    names, nouns = ("tables", "table", "download"), ("anonymised tables", "an anonymised table")
    forms = ("csv", "parquet")
    routes.router.include_router(kind_api(TABLE, AnonymizedLine, Anonymized, names=names, nouns=nouns, forms=forms))
