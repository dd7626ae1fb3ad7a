"""The API of anonymised tables: a trial, a release, what was released."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body
from pydantic import TypeAdapter
from starlette.responses import Response

from cloister.hub.caller import CallerDep
from cloister.hub.guard import needs
from cloister.hub.hub import HubDep
from cloister.hub.releases.api import kind_api
from cloister.hub.services.anonymizing.authorised import ACTION
from cloister.hub.services.anonymizing.order import Anonymizing, Releasing
from cloister.hub.services.anonymizing.reading import seen_trial
from cloister.hub.services.anonymizing.releasing import ANONYMISING, check_release
from cloister.hub.services.anonymizing.shapes import (
    Anonymized,
    AnonymizedPage,
    JobOfTable,
    Tried,
    line_of,
    tried_of,
)
from cloister.hub.services.anonymizing.tables import TABLE
from cloister.hub.services.anonymizing.trying import TRY
from cloister.hub.web.routing import TICKED, WRITTEN, IdempotencyKey, Number
from cloister.hub.work.orders import submit_order
from cloister.hub.work.submitting import accepted

_OWNER = [TICKED, needs(ACTION), WRITTEN]


def api() -> APIRouter:
    """The routes."""
    router = APIRouter()
    _ordering(router)
    router.include_router(
        kind_api(
            TABLE,
            AnonymizedPage,
            Anonymized,
            line_of,
            names=("tables", "table", "download"),
            nouns=("anonymised tables", "an anonymised table"),
            forms=("csv", "parquet"),
        )
    )
    return router


def _ordering(router: APIRouter) -> None:
    @router.post(
        "/anonymised/trials",
        dependencies=_OWNER,
        summary="Try settings of an anonymised table",
        response_description="The job that tries them",
        status_code=202,
        response_model=JobOfTable,
    )
    def attempt(hub: HubDep, caller: CallerDep, wanted: Annotated[Anonymizing, Body()], key: IdempotencyKey = "") -> Response:
        """Risk against loss for several k, as a job. For the data set's owner; nothing leaves."""
        told = TypeAdapter(Anonymizing).dump_json(wanted, exclude={"name", "title"})
        request = b"anonymised Anonymizing\n" + told
        return accepted(submit_order(hub, caller, ANONYMISING, key, request, wanted, job=TRY.kind))

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

    @router.post(
        "/anonymised",
        dependencies=_OWNER,
        summary="Release an anonymised table",
        response_description="The job that releases it",
        status_code=202,
        response_model=JobOfTable,
    )
    def release(hub: HubDep, caller: CallerDep, wanted: Annotated[Releasing, Body()], key: IdempotencyKey = "") -> Response:
        """Release it as a job, by the marked door: the population's spending reads unbounded from then on."""
        request = b"anonymised Releasing\n" + TypeAdapter(Releasing).dump_json(wanted)
        order = check_release(wanted, understood=wanted.understood)
        return accepted(submit_order(hub, caller, ANONYMISING, key, request, order))
