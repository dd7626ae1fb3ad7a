"""Messages with one reading each, from Mosquitto over TLS into a hub; then their step, from the charge to the page."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from _report import report
from sqlalchemy import func, select

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from cloister.hub.records.streams import StreamDevice
from cloister.hub.services.streams import release_due
from cloister.hub.services.streams.broker import Bridge
from tests.hub.house import Clock, House
from tests.hub.streams.broker import Broker, Device
from tests.hub.streams.test_streams import Play

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
MESSAGES = 5_000 if QUICK else 50_000
STEPS = 4 if QUICK else 20
DEVICES = 50


def main() -> None:
    """Measure, print for people, print for programs."""
    with TemporaryDirectory() as folder:
        broker, house = Broker(Path(folder) / "broker"), House(Path(folder) / "hub", Clock())
        try:
            measured(Play(house, house.person("owner"), house.person("analyst")), broker)
        finally:
            house.close()
            broker.process.end()


def measured(play: Play, broker: Broker) -> None:
    """What the broker holds for the hub is taken in; then steps of so many readings are released and looked at."""
    hub, clock = play.house.hub, play.house.clock
    number, key = play.stream(until="2026-03-03T14:00:00Z", hourly=10**6, most=10**6, rho="1000000000000")
    keys = [play.api("POST", f"/{number}/devices", {"name": f"phone {each}"}).json()["key"] for each in range(DEVICES)]
    Bridge(hub, broker.address, broker.authority.file).close()  # from now on the broker keeps messages for it
    device = Device(broker)
    device.subscribe(f"cloister/streams/{number}/schema")
    bridge = Bridge(hub, broker.address, broker.authority.file)
    device.next("/schema")
    bridge.close()
    at = hub.now().isoformat()
    sent = [device.publish(number, keys[each % DEVICES], {"at": at, "room": "hall", "id": each}) for each in range(MESSAGES)]
    sent[-1].wait_for_publish(600)
    device.close()
    begun, busy = time.perf_counter(), time.process_time()
    bridge = Bridge(hub, broker.address, broker.authority.file)
    while taken_in(hub) < MESSAGES:
        time.sleep(0.05)
    took, used = time.perf_counter() - begun, time.process_time() - busy
    bridge.close()
    report(
        "hub: messages of one reading through a broker",
        ratio=MESSAGES / took / 5000,
        limit=1,
        detail=f"{MESSAGES / took:,.0f} in a second over TLS, each acknowledged after its commit;"
        f" {MESSAGES / used:,.0f} in a second of the processor",
    )
    pages = []
    play.house.clock.move(hours=1, seconds=10)
    for _ in range(STEPS):
        play.house.awake(play.ada)
        begun = time.perf_counter()
        assert release_due(hub) == 1
        assert play.ada.client.get(f"/streams/{number}").status_code == 200
        pages.append(time.perf_counter() - begun)
        clock.move(hours=1)
        now = (hub.now()).timestamp() - 3600
        play.send(number, key, *[{"at": now, "room": "attic", "id": each} for each in range(10_000)])
    later = sorted(pages[1:])[int(0.95 * (len(pages) - 1))]
    report(
        "hub: a step of 10,000 readings, from its end to the page",
        ratio=later,
        limit=1,
        detail=f"p95 {later:.2f} s, with the ledger and the chart; the first, of {MESSAGES:,}, took {pages[0]:.1f} s",
        most=True,
    )


def taken_in(hub: Any) -> int:
    """How many readings were accepted."""
    with hub.database.reading() as db:
        return int(db.scalar(select(func.sum(StreamDevice.used))) or 0)


if __name__ == "__main__":
    main()
