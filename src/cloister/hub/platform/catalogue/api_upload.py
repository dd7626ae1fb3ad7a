"""The API of uploads: the file is the body, read as it comes; what arrived whole waits for a day to be registered."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Path, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from cloister.hub.caller import PersonDep
from cloister.hub.hub import HubDep
from cloister.hub.platform.catalogue.arrivals import arrivals_of, connected, discard, kept, kind_of, received
from cloister.hub.platform.catalogue.shapes import Connection, UploadOut, Uploads
from cloister.hub.storage import Reading, missing_in
from cloister.hub.web.routing import Routes

_Id = Annotated[str, Path(max_length=32, pattern=r"^[A-Za-z0-9_-]+$")]
_Sheet = Annotated[
    str, Query(max_length=200, pattern=r"^[^\x00]*$", description="Of a workbook: the sheet that holds the table.")
]
_Lines = Annotated[int, Query(ge=1, le=2, description="How many lines name the columns.")]
_Numbers = Annotated[
    Literal["", "comma", "point"], Query(description="How numbers are written: comma, 1.234,5; point, 1,234.5; otherwise 1234.5.")
]
_Dates = Annotated[Literal["", "dmy", "mdy", "ymd"], Query(description="The order of day, month and year; otherwise 2026-03-31.")]
_Pivot = Annotated[
    int | None, Query(ge=0, le=99, description="The last year of two digits that is of the 2000s; without it, years have four.")
]
_Missing = Annotated[str, Query(max_length=2000, pattern=r"^[^\x00]*$", description="What stands for a missing value: NA, -99")]
_Short = Annotated[bool, Query(description="Whether lines may end early, or go on with empty fields.")]
_BINARY: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}}
_BODY: dict[str, Any] = {
    "requestBody": {"required": True, "content": {"text/csv": _BINARY, "application/vnd.apache.parquet": _BINARY}}
}


def add(routes: Routes) -> None:
    """Add them."""

    async def taken(
        request: Request,
        hub: HubDep,
        caller: PersonDep,
        sheet: _Sheet = "",
        lines: _Lines = 1,
        numbers: _Numbers = "",
        dates: _Dates = "",
        pivot: _Pivot = None,
        missing: _Missing = "",
        short: _Short = False,
    ) -> UploadOut:
        """The body is the file; Content-Type says what it is. The whole of it is kept, or nothing."""
        named = missing_in(missing)
        how = Reading(sheet=sheet, lines=lines, numbers=numbers, dates=dates, pivot=pivot, missing=named, short=short)
        upload = await received(hub, kind_of(request.headers.get("content-type", "")), request.stream(), how)
        return UploadOut.of(await run_in_threadpool(lambda: kept(hub, caller, upload, how=how)))

    for name, way in (("upload_post", routes.post), ("upload_put", routes.put)):
        given = "The upload, which waits to be registered"
        way("/uploads", "dataset.version", "Upload a file", given, status_code=201, openapi_extra=_BODY, operation_id=name)(taken)

    @routes.get("/uploads", "dataset.version", "List uploads", "The uploads that are not registered yet")
    def waiting(hub: HubDep, caller: PersonDep) -> Uploads:
        """One's own uploads and connections, the newest first."""
        with hub.database.reading() as db:
            return Uploads(items=[UploadOut.of(row) for row in arrivals_of(db, caller)])

    @routes.post(
        "/connections",
        "dataset.register",
        "Connect a table of a database",
        "The connection, which waits to be registered as an upload does",
        status_code=201,
    )
    def connect(hub: HubDep, caller: PersonDep, body: Connection) -> UploadOut:
        """A table of a PostgreSQL or Spark Connect server that the hub's settings allow; it waits like an upload."""
        return UploadOut.of(connected(hub, caller, body.address))

    @routes.delete("/uploads/{number}", "dataset.version", "Delete an upload", "The upload is deleted", status_code=204)
    def drop(hub: HubDep, caller: PersonDep, number: _Id) -> Response:
        """Nothing of it stays."""
        discard(hub, caller, number)
        return Response(status_code=204)
