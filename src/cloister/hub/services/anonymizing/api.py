"""The API of anonymised tables: a trial, a release, what was released."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from fastapi import APIRouter, Query
from starlette.responses import Response

from cloister.hub.caller import CallerDep
from cloister.hub.guard import needs
from cloister.hub.hub import HubDep
from cloister.hub.releases.reading import file_of, read_release, releases_of
from cloister.hub.services.anonymizing.authorised import ACTION
from cloister.hub.services.anonymizing.reading import seen_trial
from cloister.hub.services.anonymizing.releasing import ANONYMISING, RELEASE, check_release
from cloister.hub.services.anonymizing.shapes import (
    Anonymized,
    AnonymizedPage,
    Anonymizing,
    JobOfTable,
    Releasing,
    Tried,
    line_of,
    told_of,
    tried_of,
)
from cloister.hub.services.anonymizing.tables import TABLE
from cloister.hub.services.anonymizing.trying import TRY
from cloister.hub.web.routing import TICKED, WRITTEN, After, IdempotencyKey, Number
from cloister.hub.work.orders import submit_order
from cloister.hub.work.submitting import accepted

if TYPE_CHECKING:
    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub
    from cloister.hub.service import JobType
    from cloister.hub.services.anonymizing.order import Order

_OWNER = [TICKED, needs(ACTION), WRITTEN]


def api() -> APIRouter:
    """The routes."""
    router = APIRouter()
    _ordering(router)
    _reading(router)
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
    def attempt(hub: HubDep, caller: CallerDep, wanted: Anonymizing, key: IdempotencyKey = "") -> Response:
        """Risk against loss for several k, as a job. For the data set's owner; nothing leaves."""
        return _submitted(hub, caller, "Anonymizing", wanted, key, wanted.order(), TRY)

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
    def release(hub: HubDep, caller: CallerDep, wanted: Releasing, key: IdempotencyKey = "") -> Response:
        """Release it as a job, by the marked door: the population's spending reads unbounded from then on."""
        order = check_release(wanted.order(), understood=wanted.understood)
        return _submitted(hub, caller, "Releasing", wanted, key, order, RELEASE)


def _submitted(hub: Hub, caller: Caller, kind: str, wanted: Anonymizing, key: str, order: Order, job: JobType) -> Response:
    """The job; `kind` is what a request's digest says that it asks for."""
    request = f"anonymised {kind}\n{wanted.model_dump_json()}".encode()
    return accepted(submit_order(hub, caller, ANONYMISING, key, request, order, job=job.kind))


def _reading(router: APIRouter) -> None:
    @router.get(
        "/anonymised",
        dependencies=[needs("release.see")],
        summary="List anonymised tables",
        response_description="Your anonymised tables, the newest first",
    )
    def tables(
        hub: HubDep, caller: CallerDep, after: After = "", limit: Annotated[int, Query(ge=1, le=200)] = 50
    ) -> AnonymizedPage:
        """One's own; the newest first."""
        with hub.database.reading() as db:
            rows = releases_of(hub, db, caller, kind=TABLE.name, after=after, limit=limit + 1)
        more = rows[limit - 1].id if len(rows) > limit else None
        return AnonymizedPage(tables=[line_of(row) for row in rows[:limit]], next=more)

    @router.get(
        "/anonymised/{number}",
        dependencies=[needs("release.see")],
        summary="Get an anonymised table",
        response_description="Its report and its certificate",
    )
    def table(hub: HubDep, caller: CallerDep, number: Number) -> Anonymized:
        """Its report and its certificate."""
        with hub.database.reading() as db:
            return told_of(read_release(hub, db, caller, number, kind=TABLE.name))

    @router.get(
        "/anonymised/{number}/download",
        dependencies=[needs("release.download")],
        summary="Download the rows of an anonymised table",
        response_class=Response,
        responses={
            200: {"content": {"text/csv": {}, "application/vnd.apache.parquet": {}}, "description": "The rows"},
        },
    )
    def download(
        hub: HubDep, caller: CallerDep, number: Number, form: Annotated[Literal["csv", "parquet"], Query()] = "csv"
    ) -> Response:
        """As CSV or as Parquet."""
        return file_of(hub, caller, number, form, kind=TABLE.name)
