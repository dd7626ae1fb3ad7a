"""Watches: readings fed and counted in a second, steps with many groups, and batches through a hub."""

from __future__ import annotations

import os
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from _report import report

import cloister as cl

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
READINGS = 200_000 if QUICK else 4_000_000
BATCHES = 20 if QUICK else 200


def main() -> None:
    """Measure, print for people, print for programs."""
    fed()
    groups()
    hub()


def fed() -> None:
    """Three steps, a number of readings in each."""
    table = cl.PrivateTable({"room": []}, columns={"room": cl.Integer(0, 9)})
    with cl.Session({"readings": table}, budget=cl.ZCDP(1)) as session:
        watch = session.watch(
            "SELECT room, COUNT(*) AS n FROM readings GROUP BY room",
            at="at",
            every="1 hour",
            since=0,
            until=14_400,
            spend=1,
            fed=True,
        ).open()
        watch.feed({"at": [1.0], "room": [1]})  # type: ignore[union-attr]
        watch.step()  # the engine is loaded
        rows = {"at": 3600 + np.arange(READINGS) * (10_800 / READINGS), "room": np.arange(READINGS) % 10}
        began = time.perf_counter()
        watch.feed(rows)  # type: ignore[union-attr]
        released = len(list(watch.until(14_400)))
        rate = READINGS / (time.perf_counter() - began)
    assert released == 3
    report(
        "watch: readings fed and released",
        ratio=rate / 1e6,
        limit=1,
        detail=f"{rate / 1e6:.1f} million readings in a second, 3 steps",
    )


def groups() -> None:
    """Steps of a thousand groups, durable."""
    table, steps = cl.PrivateTable({"g": []}, columns={"g": cl.Integer(0, 999)}), 5 if QUICK else 20
    with TemporaryDirectory() as folder, cl.Session({"t": table}, cl.ZCDP(1), f"{folder}/b.db") as session:
        watch = session.watch(
            "SELECT g, COUNT(*) AS n FROM t GROUP BY g", at="at", every="1 hour", since=0, until=3600 * 720, spend=1, fed=True
        ).open()
        began = time.perf_counter()
        list(watch.until(3600 * steps))
        each = (time.perf_counter() - began) / steps
    report(
        "watch: a step of 1,000 groups", ratio=each, limit=1, detail=f"{each * 1000:.0f} ms a step, sealed and durable", most=True
    )


def hub() -> None:
    """Batches of 500 readings taken in by a hub's own code: key, quota, encryption, database; without the network."""
    from cloister.hub.hub import Caller, Hub
    from cloister.hub.platform.accounts import add_person
    from cloister.hub.services import all_services
    from cloister.hub.services.streams import release_due
    from cloister.hub.services.streams.intake import Sent, receive
    from cloister.hub.services.streams.opening import Declared, add_device, open_stream
    from cloister.hub.settings import Settings

    now = time.time() // 3600 * 3600
    clock = [now + 60.0]
    with (
        TemporaryDirectory() as folder,
        Hub(Settings(data=Path(folder), workers=0), all_services(), clock=lambda: clock[0]) as opened,
    ):
        with opened.database.begin() as db:
            row = add_person(opened, db, email="ada@example.org", name="Ada", roles=("owner",))
            ada = Caller(id=row.id, email=row.email, name=row.name, roles=frozenset({"owner"}), via="session")
        room = {"kind": "category", "values": ["hall", "attic"]}
        declared = Declared(
            title="House",
            sql="SELECT room, COUNT(*) AS n FROM readings GROUP BY room",
            columns={"room": room},
            every="1 hour",
            since=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now)),
            until=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now + 7200)),
            most=10**6,
            hourly=10**6,
            rho="1",
        )
        number = open_stream(opened, ada, declared)
        with opened.database.begin() as db:
            _, key = add_device(opened, db, ada, number, "hall")
        batch = [{"at": now + 30, "room": "hall", "id": place} for place in range(500)]
        took = []
        for _ in range(BATCHES):
            began = time.perf_counter()
            receive(opened, Sent(number, key, batch))
            took.append(time.perf_counter() - began)
        rate = 500 * BATCHES / sum(took)
        clock[0] = now + 3700
        began = time.perf_counter()
        assert release_due(opened) == 1
        step = time.perf_counter() - began
    slowest = sorted(took)[int(0.95 * len(took))] * 1000
    detail = f"{rate:,.0f} readings in a second, p95 of a batch {slowest:.0f} ms; the step of {500 * BATCHES:,} took {step:.1f} s"
    report("hub: readings taken in, batches of 500", ratio=rate / 5000, limit=1, detail=detail)


if __name__ == "__main__":
    main()
