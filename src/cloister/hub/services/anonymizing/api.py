"""The API of anonymised tables: a trial, a release, what was released."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from cloister.hub.caller import CallerDep
from cloister.hub.guard import needs
from cloister.hub.hub import HubDep
from cloister.hub.releases.api import kind_api
from cloister.hub.services.anonymizing.authorised import ACTION
from cloister.hub.services.anonymizing.order import Anonymizing, Releasing
from cloister.hub.services.anonymizing.reading import seen_trial
from cloister.hub.services.anonymizing.releasing import ANONYMISING
from cloister.hub.services.anonymizing.shapes import Anonymized, AnonymizedLine, Tried, tried_of
from cloister.hub.services.anonymizing.tables import TABLE
from cloister.hub.services.anonymizing.trying import TRY
from cloister.hub.web.routing import Number
from cloister.hub.work.ordering import order_api


def api() -> APIRouter:
    """The routes."""
    router = APIRouter()
    trying: dict[str, Any] = {"mark": "anonymised Anonymizing", "job": TRY.kind, "without": frozenset({"name", "title"})}
    tried, released = ("Try settings of an anonymised table",), ("Release an anonymised table",)
    router.include_router(order_api(ANONYMISING, Anonymizing, "/anonymised/trials", summaries=tried, **trying))
    mark = "anonymised Releasing"
    router.include_router(order_api(ANONYMISING, Releasing, "/anonymised", summaries=released, mark=mark))

    @router.get(
        "/anonymised/trials/{number}",
        dependencies=[needs(ACTION)],
        summary="Get a trial of an anonymised table",
        response_description="Risk and information loss for each k",
    )
    def trial(hub: HubDep, caller: CallerDep, number: Number) -> Tried:
        """What was found, for its owner."""
        with hub.database.reading() as db:
            return tried_of(*seen_trial(hub, db, caller, number))

    names, nouns = ("tables", "table", "download"), ("anonymised tables", "an anonymised table")
    forms = ("csv", "parquet")
    router.include_router(kind_api(TABLE, AnonymizedLine, Anonymized, names=names, nouns=nouns, forms=forms))
    return router
