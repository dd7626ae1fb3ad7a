"""Readings as devices send them: known by their key, within their quota, for themselves, kept encrypted until their step is over.

What a device is told of its batch (how many were late, or at no moment) follows from the batch and the public clock alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import select

from cloister.errors import AccessDenied, InvalidParameter
from cloister.hub.ids import digest, new_id
from cloister.hub.problems import Conflict, TooMany, Unauthenticated
from cloister.hub.records.streams import HeldStream, StreamBatch, StreamDevice
from cloister.hub.services.streams.opening import declared_of
from cloister.traces.moments import moments_of

if TYPE_CHECKING:
    from sqlalchemy.orm import Session as Db

    from cloister.hub.hub import Hub

MOST = 10_000
_EXAMPLE = '{"readings": [{"at": "2026-01-01T00:05Z", "room": "hall", "id": 17}]}'


def receive(hub: Hub, number: str, key: str, readings: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Keep a batch; how many wait for their step, came too late for it, or say no moment of the stream."""
    if not 0 < len(readings) <= MOST:
        raise InvalidParameter("The batch is invalid", why=f"it holds 1 to {MOST:,} readings", instead=_EXAMPLE)
    with hub.database.begin() as db:
        device = db.scalar(select(StreamDevice).where(StreamDevice.digest == digest(key)).with_for_update())
        if device is None or device.stream != number or device.revoked is not None:
            raise Unauthenticated(
                "The readings were not accepted",
                why="the key is of no device of this stream, or revoked",
                instead="Device-Key: …",
            )
        stream = db.get_one(HeldStream, number, with_for_update={"read": True})  # no step is released until the batch is there
        if stream.state != "open":
            raise Conflict("The readings were not accepted", why="the stream is closed", instead="another stream")
        if any(each.get("device", device.name) != device.name for each in readings):
            raise AccessDenied(
                "The readings were not accepted", why="a device sends for itself alone", instead=f'"device": "{device.name}"'
            )
        declared = declared_of(stream)
        _count(hub, device, len(readings), declared.hourly)
        moments = moments_of([each.get("at") for each in readings])
        numbers, over = declared.steps.number(moments), max(declared.over(hub.now()), stream.taken)
        waiting = [
            {
                "at": moment,
                "device": device.id,
                "key": None if each.get("id") is None else f"{device.id} {each['id']}",
                **{name: each.get(name) for name in declared.columns},
            }
            for each, moment, step in zip(readings, moments.tolist(), numbers.tolist(), strict=True)
            if step > over
        ]
        if waiting:
            _keep(db, hub, stream.id, waiting, int(numbers.max()))
        late = int(((numbers > 0) & (numbers <= over)).sum())
        return {"waiting": len(waiting), "late": late, "outside": len(readings) - len(waiting) - late}


def _count(hub: Hub, device: StreamDevice, readings: int, hourly: int) -> None:
    """Hold a device within its quota: late and repeated readings count, since they are work too."""
    seconds = int(hub.now().timestamp())
    if device.hour != seconds // 3600:
        device.hour, device.used = seconds // 3600, 0
    if device.used + readings > hourly:
        wait = 3600 - seconds % 3600
        raise TooMany(
            "The readings have to wait",
            why=f"this device sends at most {hourly} in an hour",
            instead=f"send them again in {wait} seconds",
            after=wait,
        )
    device.used += readings


def _keep(db: Db, hub: Hub, stream: str, waiting: list[dict[str, Any]], last: int) -> None:
    number = new_id()
    body = hub.keys.wrap(json.dumps(waiting).encode(), f"stream batch {number}")
    db.add(StreamBatch(id=number, stream=stream, arrived=hub.now(), last=last, body=body))


class Waiting(NamedTuple):
    """A batch that waits."""

    id: str
    last: int
    readings: list[dict[str, Any]]


def waiting_of(db: Db, hub: Hub, stream: str) -> list[Waiting]:
    """What waits, in the order in which it came."""
    rows = db.scalars(select(StreamBatch).where(StreamBatch.stream == stream).order_by(StreamBatch.arrived, StreamBatch.id))
    return [Waiting(row.id, row.last, json.loads(hub.keys.unwrap(row.body, f"stream batch {row.id}"))) for row in rows]
