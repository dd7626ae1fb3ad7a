"""Steps by the hub's clock: a thread looks which are over, and each is released under the charge that stands since the opening.

A step is committed in the ledger with the sealed state after it, and shown after that. Where a process ends in between, the next
look reads it from the ledger: it is drawn once. Of two processes that look at one time, the ledger lets one release the step.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from sqlalchemy import delete, select
from sqlalchemy.exc import SQLAlchemyError

from cloister.errors import CloisterError
from cloister.hub.database import of_each
from cloister.hub.hub import ITSELF, Hub
from cloister.hub.records.accounts import Person
from cloister.hub.records.streams import HeldStream, StreamBatch, StreamStep
from cloister.hub.services.streams.intake import waiting_of
from cloister.hub.services.streams.opening import PERSONS, Declared, declared_of, end_stream, watching
from cloister.ledger.steps import SeriesEnded

if TYPE_CHECKING:
    from cloister.hub.services.streams.broker import Bridge
    from cloister.traces.watch import WatchStep

_CLOCK, _BROKER, _EVERY = "stream clock", "stream broker", 0.25
_LOG = logging.getLogger("cloister.hub.streams")
_TURN = threading.Lock()


def release_due(hub: Hub) -> int:
    """Release every step that is over; how many."""
    with _TURN:
        with hub.database.reading() as db:
            held = db.scalars(select(HeldStream).where(HeldStream.state == "open"))
            rows = of_each(held, lambda row: (row, declared_of(row)))
            due = [
                (row.id, declared, row.taken, db.get_one(Person, row.owner).email)
                for row, declared in rows
                if row.taken < declared.over(hub.now())
            ]
        released = 0
        for number, declared, taken, owner in due:
            try:
                released += _release(hub, number, declared, taken, owner)
            except SeriesEnded:  # or readings of people would wait for ever
                with hub.database.begin() as db:
                    end_stream(hub, db, ITSELF, db.get_one(HeldStream, number))
            except (CloisterError, SQLAlchemyError) as error:  # one that goes no further does not hold up the others
                _LOG.warning("steps of a stream were not released: %s", type(error).__name__)
        return released


def _release(hub: Hub, number: str, declared: Declared, taken: int, owner: str) -> int:
    with watching(hub, number, declared, who=owner) as watch:
        watch.open()
        begun = taken
        if watch.last is not None and watch.last.number > taken:  # a process ended before it was shown
            _show(hub, number, watch.last)
        until = declared.over(hub.now())
        with hub.database.begin() as db:  # what was taken in before `until` is committed now: `receive` holds the row as well
            db.get_one(HeldStream, number, with_for_update=True)
        for step in range(watch.taken + 1, until + 1):
            with hub.database.reading() as db:
                readings = waiting_of(hub, db, number, step)
                if db.scalar(select(HeldStream.state).where(HeldStream.id == number)) != "open":
                    break  # looked up after the readings: who closes it takes both away in one moment
            watch.feed(readings)
            _show(hub, number, watch.step())
        return watch.taken - begun


def _show(hub: Hub, number: str, step: WatchStep) -> None:
    with hub.database.begin() as db:
        db.merge(StreamStep(stream=number, number=step.number, body=step.to_plain()))
        row = db.get_one(HeldStream, number)
        row.taken = max(row.taken, step.number)
        db.execute(delete(StreamBatch).where(StreamBatch.stream == number, StreamBatch.last <= step.number))


class Clock:
    """The thread that looks."""

    def __init__(self, hub: Hub) -> None:
        self._hub, self._ending = hub, threading.Event()
        self._thread = threading.Thread(target=self._look, name="cloister streams", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End it."""
        self._ending.set()
        self._thread.join(self._hub.patience(10))

    def _look(self) -> None:
        while not self._ending.wait(_EVERY):
            try:
                release_due(self._hub)
            except (CloisterError, SQLAlchemyError) as error:
                _LOG.warning("steps were not released: %s", type(error).__name__)


def opened(hub: Hub) -> None:
    """Begin to look, and to talk to the broker, in a process that carries out work."""
    hub.secret(PERSONS)  # made now: it has a transaction of its own
    if hub.settings.workers:
        hub.parts[_CLOCK] = Clock(hub)
    if hub.settings.workers and hub.settings.mqtt:
        from cloister.hub.services.streams.broker import Bridge

        hub.parts[_BROKER] = Bridge(hub, hub.settings.mqtt, hub.settings.mqtt_authority)


def closed(hub: Hub) -> None:
    """End both."""
    for name in (_BROKER, _CLOCK):
        part: Clock | Bridge | None = hub.parts.pop(name, None)
        if part is not None:
            part.close()
