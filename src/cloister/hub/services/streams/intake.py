"""Readings as devices send them: known by their key, within their quota, for themselves, kept encrypted until their step is over.

What a device is told about its batch (how many were late, or at no moment) follows from the batch and the public clock alone.
Many batches are taken in by one transaction: over HTTP one, over MQTT as many as came meanwhile.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session as Db

from cloister.errors import AccessDenied, CloisterError, Conflict, InvalidParameter, TooMany
from cloister.hub.database import damaged, of_each
from cloister.hub.hub import Hub
from cloister.hub.ids import digest, new_id
from cloister.hub.problems import Unauthenticated
from cloister.hub.records.accounts import Person
from cloister.hub.records.streams import HeldStream, StreamBatch, StreamDevice
from cloister.hub.services.streams.opening import Declared, declared_of
from cloister.traces.moments import moments_of

MOST = 10_000
_EXAMPLE = '{"readings": [{"at": "2026-01-01T00:05Z", "room": "hall", "id": 17}]}'
_SCALARS = frozenset({str, int, float, bool, type(None)})


class Sent(NamedTuple):
    """A batch of one device, as it came."""

    stream: str
    key: str
    readings: Sequence[Any]


Answer: TypeAlias = "dict[str, int] | CloisterError"
_Accepted: TypeAlias = "list[tuple[int, StreamDevice, Sequence[Any]]]"


def receive(hub: Hub, batch: Sent) -> dict[str, int]:
    """Keep a batch; how many wait for their step, came too late to be counted, or say no moment of the stream."""
    [found] = receive_all(hub, [batch])
    if isinstance(found, CloisterError):
        raise found
    return found


def receive_all(hub: Hub, batches: Sequence[Sent]) -> list[Answer]:
    """Keep batches in one transaction; of each what became of it, or why it was not accepted."""
    answers: list[Answer] = [{"waiting": 0, "late": 0, "outside": 0} for _ in batches]
    accepted: dict[str, _Accepted] = {}
    with hub.database.begin() as db:
        wanted = {key: digest(key) for key in {batch.key for batch in batches}}
        rows = db.scalars(
            select(StreamDevice).where(StreamDevice.digest.in_(list(wanted.values()))).order_by(StreamDevice.id).with_for_update()
        )
        devices = {device.digest: device for device in rows}
        numbers = sorted({device.stream for device in devices.values()})
        # locked: no step is released until the batch is there
        held = [db.get_one(HeldStream, number, with_for_update={"read": True}) for number in numbers]
        streams = dict(of_each(held, lambda row: (row.id, (row, declared_of(row)))))
        for place, batch in enumerate(batches):
            try:
                device = devices.get(wanted[batch.key])
                _check(batch, device)
                assert device is not None
                if device.stream not in streams:
                    raise damaged()
                stream, declared = streams[device.stream]
                if stream.state != "open" or db.get_one(Person, stream.owner).blocked:
                    raise Conflict("The readings were not accepted", why="the stream is closed", instead="another stream")
                _count(hub, device, len(batch.readings), declared.hourly)
                accepted.setdefault(batch.stream, []).append((place, device, batch.readings))
            except CloisterError as error:
                answers[place] = error
        for number, found in accepted.items():
            _keep(hub, db, *streams[number], found, answers)
    return answers


def _check(batch: Sent, device: StreamDevice | None) -> None:
    if not 0 < len(batch.readings) <= MOST or not all(isinstance(each, Mapping) for each in batch.readings):
        raise InvalidParameter("The batch is invalid", why=f"it must hold 1 to {MOST:,} readings", instead=_EXAMPLE)
    if device is None or device.stream != batch.stream or device.revoked is not None:
        raise Unauthenticated(
            "The readings were not accepted", why="the key is of no device of this stream, or revoked", instead="Device-Key: …"
        )
    if any(each.get("device", device.name) != device.name for each in batch.readings):
        raise AccessDenied(
            "The readings were not accepted", why="a device sends for itself alone", instead=f'"device": "{device.name}"'
        )


def _count(hub: Hub, device: StreamDevice, readings: int, hourly: int) -> None:
    """Hold a device within its quota: late and repeated readings count, since they are work too."""
    if readings > hourly:  # to wait would be in vain
        raise InvalidParameter("The batch is invalid", why=f"this device sends at most {hourly:,} in an hour", instead="fewer")
    seconds = int(hub.now().timestamp())
    if device.hour != seconds // 3600:
        device.hour, device.used = seconds // 3600, 0
    if device.used + readings > hourly:
        wait = 3600 - seconds % 3600
        raise TooMany(
            "The readings have to wait",
            why=f"this device sends at most {hourly:,} in an hour",
            instead=f"send them again in {wait} seconds",
            after=wait,
        )
    device.used += readings


def _keep(hub: Hub, db: Db, stream: HeldStream, declared: Declared, accepted: _Accepted, answers: list[Answer]) -> None:
    """Put the readings by for the step that counts them, by column, and say so in `answers`."""
    readings = [each for _, _, sent in accepted for each in sent]
    senders = [device for _, device, sent in accepted for _ in sent]
    moments = moments_of([each.get("at") for each in readings])
    numbers, over = declared.steps.number(moments), max(declared.over(hub.now()), stream.taken)
    late = (numbers > 0) & (numbers <= over)
    if declared.late == "next" and over < declared.steps.count:
        numbers, late = np.where(late, over + 1, numbers), np.zeros_like(late)
    columns: dict[str, list[Any]] = {
        "at": moments.tolist(),
        "device": [device.person or device.id for device in senders],
        "key": [
            None if each.get("id") is None else f"{device.id} {each['id']}"
            for each, device in zip(readings, senders, strict=True)
        ],
        **{name: [told if type(told := each.get(name)) in _SCALARS else None for each in readings] for name in declared.fields},
    }
    for number in np.unique(numbers[numbers > over]).tolist():
        chosen = np.flatnonzero(numbers == number).tolist()
        body = json.dumps({name: [values[place] for place in chosen] for name, values in columns.items()}).encode()
        made = new_id()
        sealed = hub.keys.wrap(body, f"stream batch {made}")
        db.add(StreamBatch(id=made, stream=stream.id, arrived=hub.now(), last=number, body=sealed))
    places = np.repeat([place for place, _, _ in accepted], [len(sent) for _, _, sent in accepted])
    for name, which in (("waiting", numbers > over), ("late", late), ("outside", numbers == 0)):
        for place, many in enumerate(np.bincount(places[which], minlength=len(answers)).tolist()):
            if many:
                answers[place][name] = many  # type: ignore[index]


def waiting_of(hub: Hub, db: Db, stream: str, step: int) -> dict[str, list[Any]]:
    """What waits for a step, in the order in which it came."""
    of_step = select(StreamBatch).where(StreamBatch.stream == stream, StreamBatch.last == step)
    found: dict[str, list[Any]] = {"at": []}
    for row in db.scalars(of_step.order_by(StreamBatch.arrived, StreamBatch.id)):
        for name, values in json.loads(hub.keys.unwrap(row.body, f"stream batch {row.id}")).items():
            found.setdefault(name, []).extend(values)
    return found
