"""The hub's API against the clock and against the least that any server can do: one request, one fsynced row.

A private count (one nobody has asked before: parsed, decided on, charged, drawn, kept, written down, and held until the tick) is
asked over a kept connection, one after the other, for the median; and by many clients at once, in turns with a bare FastAPI
handler that commits one row to SQLite with `synchronous = FULL`, for the ratio of what both do in a second. They are as many as
keep either server busy: each of the hub's clients waits for a tick. What few clients get is told beside, and so is the
processor time of an answer: on a machine that others use, its ratio is steadier than that of the rates. Each server is a process
of its own, as uvicorn starts it.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import threading
import time
from itertools import count
from pathlib import Path

from _hub import Client, Place, run, run_hub, serving
from _report import report
from fastapi import FastAPI, Response
from pydantic import BaseModel

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
ROWS = 2_000 if QUICK else 50_000
ASKED = 40 if QUICK else 300
CLIENTS, FEW = 128, 8
SECONDS = 1.5 if QUICK else 6.0
TURNS = 2 if QUICK else 5
LEAST, MOST_MS = 1 / 3, 25.0
_NUMBERS = count()


class Sent(BaseModel):
    """What the bare handler reads."""

    sql: str
    spend: str
    purpose: str


def question() -> dict[str, str]:
    """One that nobody has asked."""
    number = next(_NUMBERS)
    sql = f"SELECT COUNT(*) AS n FROM people WHERE age > {17 + number % 70} AND pay < {1 + number // 70}"
    return {"sql": sql, "spend": "0.01", "purpose": "benchmark"}


def ask(client: Client) -> None:
    """One request and its answer."""
    status = client.post(question())
    if status != 201:
        raise RuntimeError(f"the server answered {status}")


def main() -> None:
    """Measure, print for people, print for programs."""
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(__file__, "hub", folder) as hub,
        serving(__file__, "bare", folder) as bare,
    ):
        latencies = latency(hub)
        middle, late = 1000 * statistics.median(latencies), 1000 * sorted(latencies)[int(0.95 * len(latencies))]
        told = f"{ASKED} questions over {ROWS:,} rows, tick of 10 ms included; 95 of 100 within {late:.1f} ms"
        report("a private count through the API, median milliseconds", middle, MOST_MS, told, most=True)
        turns = [(throughput(hub), throughput(bare)) for _ in range(TURNS)]
        ours, theirs = (statistics.median(turn[which][0] for turn in turns) for which in (0, 1))
        work = [1000 * statistics.median(turn[which][1] for turn in turns) for which in (0, 1)]
        told = f"{ours:.0f} a second against {theirs:.0f} fsynced inserts, {CLIENTS} clients, median of {TURNS} turns"
        told += f"; processor time of an answer: {work[0]:.2f} ms against {work[1]:.2f} ms"
        few = [throughput(server, FEW)[0] for server in (hub, bare)]
        told += f"; {FEW} clients: {few[0]:.0f} against {few[1]:.0f}"
        report("private counts against bare fsynced inserts, same run", ours / theirs, LEAST, told)


def latency(place: Place) -> list[float]:
    """Seconds of each of many questions, one after the other."""
    client, seconds = Client(place), []
    for number in range(ASKED + 20):
        begun = time.perf_counter()
        ask(client)
        if number >= 20:
            seconds.append(time.perf_counter() - begun)
    return seconds


def throughput(place: Place, clients: int = CLIENTS) -> tuple[float, float]:
    """Answers a second to so many clients at once, and seconds of the server's processor time for each."""
    done, failed = [0] * clients, []
    end = time.perf_counter() + SECONDS

    def work(mine: int) -> None:
        client = Client(place)
        try:
            while time.perf_counter() < end:
                ask(client)
                done[mine] += 1
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(mine,)) for mine in range(clients)]
    begun, worked = time.perf_counter(), place.worked()
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    if failed:
        raise failed[0]
    return sum(done) / (time.perf_counter() - begun), (place.worked() - worked) / sum(done)


def serve_hub(folder: Path) -> None:
    """A hub over rows of ages and pays."""
    columns = {"age": {"kind": "integer", "low": 17, "high": 90}, "pay": {"kind": "integer", "low": 0, "high": 1000}}
    rows = "age,pay\n" + "".join(f"{17 + n * 7919 % 74},{n * 31 % 1000}\n" for n in range(ROWS))
    run_hub(folder, rows, {"columns": columns, "size": ROWS})


def serve_bare(folder: Path) -> None:
    """FastAPI and one table."""
    import sqlite3

    app, here = FastAPI(), threading.local()

    @app.post("/insert", status_code=201)
    def insert(question: Sent) -> Response:
        if not hasattr(here, "connection"):
            here.connection = sqlite3.connect(folder / "bare.db", isolation_level=None, timeout=60)
            for pragma in ("journal_mode = WAL", "synchronous = FULL"):
                here.connection.execute(f"PRAGMA {pragma}")
            here.connection.execute("CREATE TABLE IF NOT EXISTS asked (sql TEXT, spend TEXT, purpose TEXT)")
        here.connection.execute("INSERT INTO asked VALUES (?, ?, ?)", (question.sql, question.spend, question.purpose))
        return Response('{"done": true}', 201, media_type="application/json")

    run(app, "/insert", "")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        place = Path(sys.argv[2]) / sys.argv[1]
        place.mkdir(exist_ok=True)
        {"hub": serve_hub, "bare": serve_bare}[sys.argv[1]](place)
    else:
        main()
