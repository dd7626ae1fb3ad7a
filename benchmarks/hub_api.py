"""The hub's API against the clock, beside the least that any server can do: one request, one fsynced row.

A private count (one nobody has asked before: parsed, decided on, charged, drawn, kept, written down, and held until the tick) is
asked over a kept connection, one after the other, for the median; and by a few clients and by many at once, in turns: many must
get no fewer answers a second than a few. What a bare FastAPI handler gives that commits one row to SQLite with
`synchronous = FULL` is told beside, and so is the processor time of an answer, which says how busy the machine was with other
work. Each server is a process of its own, as uvicorn starts it.
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
MANY, FEW = 128, 8
SECONDS = 1.5 if QUICK else 6.0
TURNS = 2 if QUICK else 5
LEAST, MOST_MS = 0.9, 12.0
"""Of what a few clients get, what many get; short turns differ by a tenth."""
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
        turns = [tuple(throughput(*how) for how in ((hub, FEW), (hub, MANY), (bare, MANY))) for _ in range(TURNS)]
        few, many, least = ([statistics.median(turn[which][what] for turn in turns) for what in (0, 1)] for which in range(3))
        told = f"{many[0]:.0f} a second to {MANY} clients, {few[0]:.0f} to {FEW}, median of {TURNS} turns; processor time of an "
        told += f"answer: {1000 * many[1]:.2f} and {1000 * few[1]:.2f} ms; a bare handler that commits one row: {least[0]:.0f} a "
        told += f"second to {MANY} clients, {1000 * least[1]:.2f} ms"
        report(f"private counts to {MANY} clients against {FEW}", many[0] / few[0], LEAST, told)


def latency(place: Place) -> list[float]:
    """Seconds of each of many questions, one after the other."""
    client, seconds = Client(place), []
    for number in range(ASKED + 20):
        begun = time.perf_counter()
        ask(client)
        if number >= 20:
            seconds.append(time.perf_counter() - begun)
    return seconds


def throughput(place: Place, clients: int) -> tuple[float, float]:
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
