"""MQTT 5: readings in through a broker, schemas and released steps out.

Under the prefix in the address of the broker (`cloister`), for each stream:

- `…/streams/<id>/readings`: devices publish here, a reading or {"readings": […]}, with their key in the user property
  `device-key`. Where a message names a response topic under `…/streams/<id>/answers/`, what became of it is published there.
- `…/streams/<id>/schema`, retained: the columns and the clock of a stream that is open.
- `…/streams/<id>/steps`, the newest retained: released steps, of streams that everybody may see.

A message of QoS 1 is acknowledged when its readings are committed, so a hub that is killed gets it again from the broker; a
reading with an id that comes twice is counted once (`traces/feed.py`). One transaction takes in what came meanwhile.
"""

from __future__ import annotations

import json
import logging
import ssl
import threading
from queue import Empty, Full, Queue
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit

from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from cloister.errors import CloisterError
from cloister.hub.database import of_each
from cloister.hub.decisions.callers import caller_for
from cloister.hub.hub import Hub
from cloister.hub.problems import problem_of
from cloister.hub.records.streams import HeldStream
from cloister.hub.services.streams.intake import Answer, Sent, receive_all
from cloister.hub.services.streams.opening import declared_of, sees
from cloister.hub.services.streams.showing import steps_of

if TYPE_CHECKING:
    from paho.mqtt.client import Client, MQTTMessage

_LOG = logging.getLogger("cloister.hub.streams")
_AGAIN, _EVERY, _GATHER = 1.0, 0.25, 0.05
_UNACKNOWLEDGED, _WAITING = 10_000, 20_000
_LARGEST = 2**22
_KEPT = 7 * 86_400
"""Seconds for which the broker keeps messages for a hub that is away."""


class _Came(NamedTuple):
    """A message, in which connection it came, and what it says."""

    message: MQTTMessage
    connection: int
    sent: Sent


class Bridge:
    """The hub's connection to a broker."""

    def __init__(self, hub: Hub, address: str, authority: str = "") -> None:
        self._hub = hub
        self._came = Queue[_Came | None](_WAITING)
        self._ending = threading.Event()
        self._connection = 0
        self._told: dict[str, int] = {}
        """Of each stream whose schema the broker has, the step that was published last."""
        self._over: set[str] = set()
        self._prefix, self._client = self._made(address, authority)
        threads = ((self._take, "cloister readings"), (self._tell, "cloister steps"))
        self._threads = [threading.Thread(target=each, name=name, daemon=True) for each, name in threads]
        for thread in self._threads:
            thread.start()
        self._client.loop_start()

    def close(self) -> None:
        """End it: what was not committed stays with the broker."""
        self._ending.set()
        self._client.disconnect()
        self._client.loop_stop()
        self._came.put(None)
        for thread in self._threads:
            thread.join(timeout=10)

    def _made(self, address: str, authority: str) -> tuple[str, Client]:
        from paho.mqtt.client import Client, MQTTv5
        from paho.mqtt.enums import CallbackAPIVersion

        place = urlsplit(address)
        prefix = place.path.strip("/") or "cloister"
        client = Client(CallbackAPIVersion.VERSION2, client_id=prefix, protocol=MQTTv5, manual_ack=True)
        if place.scheme == "mqtts":
            client.tls_set_context(ssl.create_default_context(cafile=authority or None))
        if place.username:
            client.username_pw_set(unquote(place.username), unquote(place.password or ""))
        client.on_connect, client.on_message = self._connected, self._message
        client.on_disconnect = lambda *given: _LOG.warning("the broker of streams is away: %s", given[3])
        client.reconnect_delay_set(min_delay=1, max_delay=30)
        wanted = _properties("CONNECT")
        wanted.SessionExpiryInterval, wanted.ReceiveMaximum, wanted.MaximumPacketSize = _KEPT, _UNACKNOWLEDGED, _LARGEST
        port = place.port or (8883 if place.scheme == "mqtts" else 1883)
        client.connect_async(place.hostname or "", port, keepalive=30, clean_start=False, properties=wanted)
        return prefix, client

    def _connected(self, client: Client, _: Any, flags: Any, reason: Any, properties: Any) -> None:
        if reason.is_failure:
            _LOG.warning("the broker of streams does not let the hub in: %s", reason)
            return
        self._connection += 1
        self._told.clear()
        self._over.clear()  # a broker that lost what it retained is told again
        client.subscribe(f"{self._prefix}/streams/+/readings", qos=1)

    def _message(self, client: Client, _: Any, message: MQTTMessage) -> None:
        try:
            self._came.put_nowait(_Came(message, self._connection, _sent_by(message)))
        except Full:  # only of QoS 0: of others the broker sends no more than fit
            _LOG.warning("messages to streams of QoS 0 came faster than they are taken in, and were dropped")

    def _take(self) -> None:
        """Commit what came, then acknowledge it."""
        while not self._ending.is_set() and (first := self._came.get()) is not None:  # a batch may have met the None of `close`
            found = [first]
            self._ending.wait(_GATHER)  # a transaction costs as much as a hundred messages
            try:
                while len(found) < _UNACKNOWLEDGED and (more := self._came.get_nowait()) is not None:
                    found.append(more)
            except Empty:
                pass
            while (answers := self._received([each.sent for each in found])) is None:
                if self._ending.wait(_AGAIN):
                    return
            for each, answer in zip(found, answers, strict=True):
                self._answer(each.message, answer)
            for each in found:
                if each.connection == self._connection:  # numbers of messages are those of a connection
                    self._client.ack(each.message.mid, each.message.qos)

    def _received(self, batches: list[Sent]) -> list[Answer] | None:
        try:
            return receive_all(self._hub, batches)
        except (CloisterError, SQLAlchemyError) as error:
            _LOG.warning("readings were not taken in, and are tried again: %s", type(error).__name__)
            return None

    def _answer(self, message: MQTTMessage, answer: Answer) -> None:
        topic = getattr(message.properties, "ResponseTopic", None)
        if topic is None or not topic.startswith(f"{message.topic.rpartition('/')[0]}/answers/") or {"+", "#"} & set(topic):
            return  # with a wildcard it names no topic, and to publish there would raise
        given = _properties("PUBLISH")
        if correlation := getattr(message.properties, "CorrelationData", None):
            given.CorrelationData = correlation
        if isinstance(answer, CloisterError):
            problem = problem_of(answer)
            told: dict[str, Any] = {"status": problem.status, "title": problem.title, "why": problem.why}
            told["instead"] = problem.instead
        else:
            told = {"status": 202, **answer}
        self._client.publish(topic, json.dumps(told), qos=0, properties=given)

    def _tell(self) -> None:
        """Publish schemas and released steps."""
        while not self._ending.wait(_EVERY):
            try:
                if self._client.is_connected():
                    self._publish()
            except (CloisterError, SQLAlchemyError) as error:
                _LOG.warning("steps were not published: %s", type(error).__name__)

    def _publish(self) -> None:
        with self._hub.database.reading() as db:
            wanted = select(HeldStream).where(HeldStream.id.not_in(self._over))
            for row, declared in of_each(db.scalars(wanted), lambda row: (row, declared_of(row))):
                topic = f"{self._prefix}/streams/{row.id}"
                over = row.state != "open" or row.taken >= declared.steps.count
                if over or row.id not in self._told:
                    self._client.publish(f"{topic}/schema", "" if over else json.dumps(declared.schema), qos=1, retain=True)
                known = self._told.get(row.id, max(row.taken - 1, 0))
                owner = caller_for(self._hub, db, row.owner) if row.shown and row.taken > known else None
                if owner is not None and sees(self._hub, db, owner, row):  # come from nowhere, as readers may have
                    for step in steps_of(db, row.id, after=known):
                        self._client.publish(f"{topic}/steps", json.dumps(step, ensure_ascii=False), qos=1, retain=True)
                self._told[row.id] = row.taken
                if over:
                    self._over.add(row.id)


def _properties(packet: str) -> Any:
    from paho.mqtt.packettypes import PacketTypes
    from paho.mqtt.properties import Properties

    return Properties(getattr(PacketTypes, packet))  # type: ignore[no-untyped-call]


def _sent_by(message: MQTTMessage) -> Sent:
    """A batch; one without readings where it cannot be read."""
    keys = [value for name, value in getattr(message.properties, "UserProperty", []) if name == "device-key"]
    try:
        body = json.loads(message.payload)
    except (ValueError, RecursionError):
        body = None
    readings = body.get("readings", [body]) if isinstance(body, dict) else []
    if not isinstance(readings, list):
        readings = []
    return Sent(message.topic.split("/")[-2], keys[0] if keys else "", readings)
