"""The API of streams: opening one, its devices, their readings; released steps as JSON, CSV and server-sent events."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import Header, Query, Request
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse

from cloister.errors import CloisterError
from cloister.hub.description import Limit, Taken, example, read_of
from cloister.hub.hub import CallerDep, HubDep
from cloister.hub.platform.accounts import identify
from cloister.hub.records.streams import HeldStream
from cloister.hub.services.streams.intake import MOST, Sent, receive
from cloister.hub.services.streams.opening import (
    Declared,
    add_device,
    close_stream,
    declared_of,
    devices_of,
    open_stream,
    revoke_device,
    seen_stream,
    streams_of,
)
from cloister.hub.services.streams.showing import all_steps, csv_of, event_of, steps_of
from cloister.hub.web.routing import After, IdempotencyKey, Number, Routes, attachment

_LOOK = 0.5
_ROOM = {"room": {"kind": "category", "values": ["hall", "attic"]}}


class StreamOpening(Taken):
    """A stream to open."""

    model_config = example(
        title="People in the house",
        sql="SELECT room, COUNT(*) AS n FROM readings GROUP BY room",
        columns=_ROOM,
        every="1 hour",
        since="2030-01-01T00:00:00Z",
        until="2030-01-08T00:00:00Z",
        most=200,
        rho="0.5",
    )

    title: Annotated[str, Field(max_length=200)]
    sql: Annotated[str, Field(max_length=2000, description="Over the table `readings`, whose columns are declared here")]
    columns: Annotated[dict[str, dict[str, Any]], Field(max_length=50)]
    every: Annotated[str, Field(max_length=40)]
    since: Annotated[str, Field(max_length=40)]
    until: Annotated[str, Field(max_length=40)]
    most: Annotated[int, Field(ge=1, le=10**6, description="How many readings of one device count, in all steps together")]
    hourly: Annotated[int, Field(ge=1, le=10**6, description="How many readings one device may send in an hour")] = 1000
    wait: Annotated[int, Field(ge=0, le=86_400, description="Seconds after its end for which a step takes readings")] = 10
    rho: Annotated[str, Field(max_length=60)] = ""
    epsilon: Annotated[str, Field(max_length=60)] = ""
    shown: bool = False
    late: Annotated[
        Literal["drop", "next"], Field(description="What becomes of a reading that comes after its step: the next step counts it")
    ] = "drop"
    purpose: Annotated[str, Field(max_length=1000, description="What for, which rules and the audit log see")] = ""


class StreamLine(BaseModel):
    """A stream, with how far it is."""

    id: str
    title: str
    state: str
    steps: int
    taken: int
    cost: str
    ends: str
    sql: str
    created: datetime


class Streams(BaseModel):
    """Those that one may see; `next` is the `after` of the rest."""

    streams: list[StreamLine]
    next: str | None


class NewDevice(Taken):
    """A device of a stream."""

    model_config = example(name="badge 17", person="visitor 4")

    name: Annotated[str, Field(min_length=1, max_length=100)]
    person: Annotated[
        str, Field(max_length=90, description="Whose it is: the readings of all devices of one person count together")
    ] = ""


class DeviceKey(BaseModel):
    """The key is shown once."""

    id: str
    name: str
    key: str


class DeviceLine(BaseModel):
    """A device, without its key."""

    id: str
    name: str
    created: datetime
    revoked: datetime | None


class Devices(BaseModel):
    """Those of a stream."""

    devices: list[DeviceLine]


class ReadingBatch(Taken):
    """Readings of one device."""

    model_config = example(readings=[{"at": "2030-01-01T00:05:00Z", "room": "hall", "id": 17}])

    readings: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=MOST)]


class ReceivedReadings(BaseModel):
    """What became of a batch: `late` ones came after their step and do not count, `outside` ones say no moment of the stream."""

    waiting: int
    late: int
    outside: int


class ReleasedSteps(BaseModel):
    """Released steps."""

    steps: list[dict[str, Any]]


def line_of(row: HeldStream) -> StreamLine:
    """A row as a line."""
    declared = declared_of(row)
    steps = declared.steps
    told = {"steps": steps.count, "cost": str(declared.spend), "ends": steps.span(steps.count)[1], "sql": declared.sql}
    return read_of(StreamLine, row, **told)


def add(routes: Routes) -> None:
    _owning(routes)
    _reading(routes)

    @routes.post(
        "/streams/{number}/readings", "stream.send", "Send readings to a stream", "What became of the batch", status_code=202
    )
    def send(
        hub: HubDep, number: Number, batch: ReadingBatch, device_key: Annotated[str, Header(max_length=100)] = ""
    ) -> ReceivedReadings:
        """By a device, whose key is in the header `Device-Key`; needs no session. Each reading says when (`at`: ISO text or
        seconds since 1970), and may have an `id`: one that is there already waits once. Beyond the device's quota: 429."""
        return ReceivedReadings(**receive(hub, Sent(number, device_key, batch.readings)))


def _owning(routes: Routes) -> None:
    @routes.post("/streams", "stream.open", "Open a stream", "The stream", status_code=201)
    def open_(hub: HubDep, caller: CallerDep, wanted: StreamOpening, key: IdempotencyKey = "") -> StreamLine:
        """All steps are charged now; nothing of it changes afterwards. The same `Idempotency-Key` opens one stream."""
        number = open_stream(hub, caller, Declared(**wanted.model_dump()), key)
        with hub.database.reading() as db:
            return line_of(db.get_one(HeldStream, number))

    @routes.post("/streams/{number}/close", "stream.manage", "Close a stream", "The stream")
    def close(hub: HubDep, caller: CallerDep, number: Number) -> StreamLine:
        """It takes no reading and releases no step any more; the charge stands."""
        with hub.database.begin() as db:
            return line_of(close_stream(hub, db, caller, number))

    @routes.get("/streams/{number}/devices", "stream.manage", "List the devices of a stream", "Devices")
    def devices(hub: HubDep, caller: CallerDep, number: Number) -> Devices:
        """By name, without their keys."""
        with hub.database.reading() as db:
            row = seen_stream(hub, db, caller, number, "stream.manage")
            known = devices_of(db, row.id)
        return Devices(devices=[read_of(DeviceLine, each) for each in known])

    @routes.post(
        "/streams/{number}/devices",
        "stream.manage",
        "Add a device to a stream",
        "The device and its key, which is shown only here",
        status_code=201,
    )
    def add(hub: HubDep, caller: CallerDep, number: Number, wanted: NewDevice) -> DeviceKey:
        """The hub keeps a digest of the key."""
        with hub.database.begin() as db:
            device, key = add_device(hub, db, caller, number, wanted.name, wanted.person)
            return DeviceKey(id=device.id, name=device.name, key=key)

    @routes.delete(
        "/streams/{number}/devices/{device}", "stream.manage", "Revoke the key of a device", "The key is revoked", status_code=204
    )
    def revoke(hub: HubDep, caller: CallerDep, number: Number, device: Number) -> None:
        """What it sent before stays."""
        with hub.database.begin() as db:
            revoke_device(hub, db, caller, number, device)


def _reading(routes: Routes) -> None:
    @routes.get("/streams", "stream.see", "List streams", "Streams, the newest first")
    def listed(hub: HubDep, caller: CallerDep, after: After = "", limit: Limit = 200) -> Streams:
        """One's own, then those that are shown to everybody; the newest first of either."""
        with hub.database.reading() as db:
            rows = streams_of(hub, db, caller, after=after, limit=limit + 1)
            more = rows[limit - 1].id if len(rows) > limit else None
            return Streams(streams=[line_of(row) for row in rows[:limit]], next=more)

    @routes.get("/streams/{number}", "stream.see", "Get a stream", "The stream")
    def one(hub: HubDep, caller: CallerDep, number: Number) -> StreamLine:
        """What it costs, how far it is, and when it ends."""
        with hub.database.reading() as db:
            return line_of(seen_stream(hub, db, caller, number))

    @routes.get("/streams/{number}/steps", "stream.see", "Get the released steps of a stream", "Steps")
    def steps(hub: HubDep, caller: CallerDep, number: Number, after: Annotated[int, Query(ge=0, le=2**53)] = 0) -> ReleasedSteps:
        """In their order, those after a number; at most 10,000."""
        with hub.database.reading() as db:
            return ReleasedSteps(
                steps=[dict(each) for each in steps_of(db, seen_stream(hub, db, caller, number).id, after=after)]
            )

    @routes.get(
        "/streams/{number}/steps.csv",
        "stream.see",
        "Download the released steps of a stream",
        response_class=Response,
        responses={200: {"content": {"text/csv": {}}, "description": "The file"}},
    )
    def file(hub: HubDep, caller: CallerDep, number: Number) -> Response:
        """A row for each group of each step, with margins and running totals."""
        with hub.database.reading() as db:
            row = seen_stream(hub, db, caller, number)
            body = csv_of(all_steps(db, row.id))
        return Response(body, media_type="text/csv", headers=attachment(f"stream-{row.id}.csv"))

    @routes.get(
        "/streams/{number}/events",
        "stream.see",
        "Get the steps of a stream as events",
        response_class=StreamingResponse,
        responses={200: {"content": {"text/event-stream": {}}, "description": "An event for each step"}},
    )
    async def events(
        request: Request,
        hub: HubDep,
        number: Number,
        after: Annotated[int, Query(ge=0, le=2**53)] = 0,
        seconds: Annotated[int, Query(ge=0, le=600)] = 300,
        last_event_id: Annotated[int, Header(ge=0, le=2**53)] = 0,
    ) -> StreamingResponse:
        """Server-sent events: each step when it is released, for so many seconds; a browser asks again by itself, after the last
        step that it has. Who asks, and whether they may see the stream, is asked again before each."""

        def look(known: int) -> list[str]:
            caller = identify(hub, request)  # as they stand now: signed in, not blocked, with their roles
            with hub.database.reading() as db:
                return [event_of(each) for each in steps_of(db, seen_stream(hub, db, caller, number).id, after=known)]

        first = await run_in_threadpool(look, max(after, last_event_id))

        async def told() -> AsyncIterator[str]:
            known, left, found = max(after, last_event_id), float(seconds), first
            while True:
                for event in found:
                    known += 1
                    yield event
                if left <= 0:
                    return
                await asyncio.sleep(_LOOK)
                left -= _LOOK
                try:
                    found = await run_in_threadpool(look, known)
                except CloisterError:
                    return

        return StreamingResponse(told(), media_type="text/event-stream", headers={"Cache-Control": "no-store"})
