"""Readings over MQTT, through a real broker with TLS: in once whatever is killed, out as released steps alone."""

from __future__ import annotations

import ssl
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from queue import Queue
from threading import Event, Thread
from typing import Any

import pytest
from paho.mqtt.client import CallbackAPIVersion, Client, MQTTMessage, MQTTv5
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from sqlalchemy import func, select

from cloister.hub.hub import Hub
from cloister.hub.records.streams import StreamBatch, StreamStep
from cloister.hub.services.streams import release_due
from cloister.hub.services.streams.broker import Bridge, _Came
from cloister.hub.services.streams.intake import Answer, Sent, waiting_of
from scripts import engines
from tests.hub.faults.processes import Process
from tests.hub.house import Clock, House
from tests.hub.streams.broker import Broker, Device
from tests.hub.streams.test_streams import Play
from tests.hub.test_serving import Authority
from tests.tiers import by_day_and_night

pytestmark = pytest.mark.skipif(engines.mosquitto() is None, reason="Mosquitto is not here")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    found = Broker(tmp_path_factory.mktemp("broker") / "mosquitto")
    yield found
    found.process.end()


@pytest.fixture
def play(tmp_path: Path) -> Iterator[Play]:
    house = House(tmp_path / "hub", Clock())
    yield Play(house, house.person("owner"), house.person("analyst"))
    house.close()


def _waits(hub: Hub, number: str, many: int) -> None:
    """Until so many different readings wait."""
    until, found = time.monotonic() + 60, -1
    while found < many:
        assert time.monotonic() < until, found
        time.sleep(0.05)
        with hub.database.reading() as db:
            waiting = waiting_of(hub, db, number, 1)
            keys = waiting.get("key", [])
            found = len({*keys} - {None}) + keys.count(None)


def test_readings_in_and_released_steps_out(play: Play, broker: Broker, tmp_path: Path) -> None:
    clock, hub = play.house.clock, play.house.hub
    number, key = play.stream(shown=True, hourly=6, until="2026-03-02T14:00:00Z")
    silent, _ = play.stream(until="2026-03-02T14:00:00Z")
    with pytest.raises(ssl.SSLCertVerificationError):
        ssl.get_server_certificate(("localhost", broker.port), ca_certs=Authority(tmp_path, "others").file)
    device, reader = Device(broker), Device(broker)
    bridge = Bridge(hub, broker.address, broker.authority.file)
    try:
        reader.subscribe("cloister/streams/#")  # of which the broker lets it have schemas, steps and answers to `badge`
        schemas = [reader.next("/schema") for _ in range(2)]
        assert [each["columns"] for each in schemas] == [{"room": {"kind": "category", "values": ["hall", "attic"]}}] * 2
        assert "title" not in schemas[0]
        at = hub.now().isoformat()
        told = []
        for body in (
            {"at": at, "room": "hall", "id": 1},
            {"readings": [{"at": at, "room": "attic"}, {"at": "noon"}, {"at": at, "room": {"a": []}}]},
            {"at": at, "device": "badge 18"},
            b"{",
            {"readings": 7},
            [1],
            {"readings": [1]},
            {"readings": [{"at": at}] * 3},
        ):
            device.publish(number, key, body, answers="badge")
            told.append(reader.next("/answers/badge"))
        assert told[1] == {"status": 202, "waiting": 2, "late": 0, "outside": 1}
        assert [each["status"] for each in told] == [202, 202, 403, 422, 422, 422, 422, 429]
        assert "at most 6 in an hour" in told[-1]["why"]
        for which, wrong in ((number, "device_wrong"), (silent, key), ("nothing", key)):
            device.publish(which, wrong, {"at": at}, answers="badge")
            assert reader.next("/answers/badge")["status"] == 401
        device.publish(number, key, {"at": at, "room": "hall", "id": 1})  # repeated
        _waits(hub, number, 3)
        clock.move(hours=1, seconds=10)
        assert release_due(hub) == 2
        step = reader.next("/steps")
        assert (step["step"], step["table"]["n"]) == (1, [1, 1])
        late = Device(broker)  # a subscriber who comes afterwards gets the newest step
        late.subscribe(f"cloister/streams/{number}/steps")
        assert late.next("/steps")["step"] == 1
        clock.move(hours=4)
        assert release_due(hub) == 8
        assert [reader.next("/steps")["step"] for _ in range(4)] == [2, 3, 4, 5]
        assert [reader.next("/schema") for _ in range(2)] == [None, None]  # both streams are over
        late.close()
    finally:
        bridge.close()
        device.close()
        reader.close()
    assert {topic.rpartition("/")[2] for topic in reader.topics if silent in topic} == {"schema", "badge"}
    assert not any(topic.endswith("/readings") for topic in reader.topics)


def test_an_answer_to_a_topic_with_a_wildcard_is_left_out_and_ends_nothing() -> None:
    """A client raises where it is to publish there: the thread that takes readings in would end with it."""
    bridge, message = object.__new__(Bridge), MQTTMessage(topic=b"cloister/streams/a/readings")
    bridge._client = Client(CallbackAPIVersion.VERSION2, protocol=MQTTv5)
    message.properties = Properties(PacketTypes.PUBLISH)
    for topic in ("cloister/streams/a/answers/#", "cloister/streams/a/answers/+/b", "cloister/streams/a/answers/b"):
        message.properties.ResponseTopic = topic
        bridge._answer(message, {"waiting": 1, "late": 0, "outside": 0})


def test_the_thread_ends_whose_last_batch_met_the_end_of_the_queue() -> None:
    """It would wait for ever behind it, and `close` ten seconds for it: a hub that stops while devices publish."""
    bridge, came = object.__new__(Bridge), Queue[Any]()
    message = MQTTMessage(topic=b"cloister/streams/a/readings")
    message.properties = None
    bridge._came, bridge._ending, bridge._connection = came, Event(), 1
    batches = list[list[Sent]]()

    def received(batch: list[Sent]) -> list[Answer] | None:
        bridge._ending.set()  # `close` does before it puts the None
        batches.append(batch)
        return [{"waiting": 1, "late": 0, "outside": 0}] * len(batch)

    bridge._received = received  # type: ignore[method-assign]
    sent = Sent("a", "key", [{}])
    for each in (_Came(message, 0, sent), _Came(message, 0, sent), None):
        came.put(each)
    thread = Thread(target=bridge._take, daemon=True)
    thread.start()
    thread.join(timeout=10)
    assert (batches, thread.is_alive()) == ([[sent, sent]], False)


WORKER = """
import sys, time
from pathlib import Path
from cloister.hub.hub import Hub
from cloister.hub.services import all_services
from cloister.hub.settings import Settings
now = float(sys.argv[4])
settings = Settings(data=Path(sys.argv[1]), workers=1, tick_ms=1, mqtt=sys.argv[2], mqtt_authority=sys.argv[3])
with Hub(settings, all_services(), clock=lambda: now):
    print("ready", flush=True)
    time.sleep(600)
"""


@by_day_and_night("hubs", day=2, night=3)
def test_each_reading_is_counted_once_though_the_hub_is_killed_and_the_broker_restarts(
    play: Play, broker: Broker, tmp_path: Path, hubs: int
) -> None:
    """At night the first hub is killed alone, and the next one with the broker; by day the first one with the broker."""
    number, key = play.stream(until="2026-03-02T14:00:00Z", hourly=10**6, most=1000, rho="100000000000")
    hub, each_hub = play.house.hub, 200
    many = hubs * each_hub
    now, at = play.house.clock.now, hub.now().isoformat()
    words = [sys.executable, "-c", WORKER, str(play.house.settings.data), broker.address, broker.authority.file, str(now)]
    device = Device(broker)
    try:
        for attempt in range(hubs):
            worker = Process(f"hub {attempt}", words, tmp_path / f"hub-{attempt}.log", ready="ready")
            if not attempt:  # the broker keeps messages for a hub once it has been there
                device.subscribe(f"cloister/streams/{number}/schema")
                assert device.next("/schema")["most"] == 1000
            begun = attempt * each_hub
            sent = [
                device.publish(number, key, {"at": at, "room": "hall", "id": each}) for each in range(begun, begun + each_hub)
            ]
            _waits(hub, number, begun + 1)
            if attempt < hubs - 1:
                worker.kill()
            if attempt == hubs - 2:
                broker.process.end()
                broker.start()
                device.connected()
            for each in sent:  # a device that had no acknowledgement sends again by itself
                each.wait_for_publish(30)
        _waits(hub, number, many)
        worker.kill()
    finally:
        device.close()
    play.house.clock.move(hours=1, seconds=10)
    assert release_due(hub) == 1
    assert play.counts(number) == [[many, 0]]
    with hub.database.reading() as db:
        assert db.scalar(select(func.count()).select_from(StreamStep).where(StreamStep.stream == number)) == 1
        assert db.scalar(select(func.count()).select_from(StreamBatch).where(StreamBatch.stream == number)) == 0
    assert len(hub.ledger.charges(f"stream {number}")) == 2
