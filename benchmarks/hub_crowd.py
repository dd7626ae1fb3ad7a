"""One person floods the hub, and eight others work: how much longer they wait than where nobody floods it.

Thirty-two connections of one person order without a pause, one service after another; eight other people, each with one kept
connection, ask private counts that nobody has asked before, one after the other. Told is the time within which 95 of 100 of their
answers come, against that of the same eight alone, in turns; at most three times as long is promised. The hub is a process of
its own, as uvicorn starts it.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from http.client import HTTPException
from itertools import count
from pathlib import Path
from typing import Any

from _hub import Client, Place, furnished, run, serving
from _report import report
from sqlalchemy import select

import cloister as cl
from cloister.crypto import SigningKey
from cloister.hub.app import make_app
from cloister.hub.decisions.policy.actions import READS
from cloister.hub.generation import bump
from cloister.hub.hub import Caller, Hub
from cloister.hub.platform.access import grant
from cloister.hub.platform.access.granting import grant_in, own_algorithm
from cloister.hub.platform.accounts import add_person
from cloister.hub.platform.accounts.people import as_person
from cloister.hub.platform.accounts.tokens import make_token, scopes_for
from cloister.hub.records.accounts import Person
from cloister.hub.services import all_services
from cloister.hub.settings import Settings
from cloister.together import KeyHolder, Marginal, MaskedFormat, Roster, Sealer

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
ROWS = 2_000 if QUICK else 50_000
FLOOD, OTHERS = 32, 8
SECONDS = 1.5 if QUICK else 5.0
TURNS = 1 if QUICK else 3
MOST = 3.0
WANTED = os.environ.get("CLOISTER_BENCH_FLOOD", "")
_NUMBERS = count()


def question(table: str = "people") -> dict[str, Any]:
    """One that nobody has asked."""
    number = next(_NUMBERS)
    sql = f"SELECT COUNT(*) AS n FROM {table} WHERE age > {17 + number % 70} AND pay < {1 + number // 70}"
    return {"sql": sql, "spend": "0.01", "purpose": "benchmark"}


def heavy(table: str = "people") -> dict[str, Any]:
    """One that takes a while, and that nobody has asked."""
    number = next(_NUMBERS)
    parts = ", ".join(f"SUM(CASE WHEN pay < {each * 20 + number % 19} THEN 1 ELSE 0 END) AS n{each}" for each in range(20))
    return {"sql": f"SELECT age, {parts} FROM {table} GROUP BY age", "spend": "0.01", "purpose": "benchmark"}


ORDER = {"table": "people", "spend": "0.1", "purpose": "benchmark"}
SURVEY = {
    "title": "Exams",
    "purpose": "benchmark",
    "cap": "8",
    "levels": [{"name": "careful", "epsilon": "1"}],
    "questions": [{"kind": "yes-no", "name": "copied", "text": "Have you ever copied in an exam?"}],
}
SHARED = {"text": "Have you ever copied in an exam?", "kind": "yes-no", "epsilon": "1"}
STREAM = {
    "title": "People in the house",
    "sql": "SELECT room, COUNT(*) AS n FROM readings GROUP BY room",
    "columns": {"room": {"kind": "category", "values": ["hall", "attic"]}},
    "every": "1 hour",
    "since": "2030-01-01T00:00:00Z",
    "until": "2030-01-08T00:00:00Z",
    "most": 200,
    "rho": "0.5",
    "purpose": "benchmark",
}
BOX = ["4.3", "52.0", "4.4", "52.1"]
TRIPS = {
    "who": {"kind": "text"},
    "at": {"kind": "moment", "low": "2026-01-01T00:00:00", "high": "2026-01-02T00:00:00"},
    "where": {"kind": "place", "box": BOX, "longitude": "lon", "latitude": "lat"},
}
JOURNEYS = {**ORDER, "table": "trips", "moment": "at", "place": "where", "cells": "4", "zones": "2"}
MUCH = {"epsilon": "1000000"}
COLUMNS = {"age": {"kind": "integer", "low": 17, "high": 90}, "pay": {"kind": "integer", "low": 0, "high": 1000}}
SITES = {name: SigningKey(name.encode() * 32) for name in "nsw"}
CODE = "def youngest(rows):\n    return [min(rows['age'])]"
FLOODS: Mapping[str, tuple[str, Any]] = {
    "questions": ("/api/v1/questions", heavy),
    "plans of questions": ("/api/v1/questions/explain", heavy),
    "prices of synthetic tables": ("/api/v1/synthetic-tables/price", lambda: {**ORDER, "columns": ["age", "pay"]}),
    "prices of projections": (
        "/api/v1/projections/price",
        lambda: {**ORDER, "columns": "age, pay", "method": "PCA", "dimensions": "1"},
    ),
    "orders of models": ("/api/v1/models", lambda: {**ORDER, "method": "LinearRegression", "features": ["age"], "target": "pay"}),
    "several questions at once": (
        "/api/v1/questions/workload",
        lambda: {"questions": [heavy()["sql"] for _ in range(3)], "spend": "0.03", "purpose": "benchmark"},
    ),
    "trials of anonymised tables": (
        "/api/v1/anonymised/trials",
        lambda: {"table": "people", "parts": {"age": "quasi", "pay": "sensitive"}, "k": 5, "search": "mondrian"},
    ),
    "files": ("/api/v1/uploads", lambda: b"age,pay\n" + b"17,900\n" * ROWS),
    "drafts of surveys": ("/api/v1/surveys", lambda: SURVEY),
    "drafts of joint surveys": ("/api/v1/joint-surveys", lambda: {"title": "Exams", "questions": [SHARED]}),
    "streams": ("/api/v1/streams", lambda: STREAM),
    "runs of algorithms": ("/api/v1/algorithm-runs", lambda: {**ORDER, "algorithm": "youngest"}),
    "prices of journeys": ("/api/v1/journeys/price", lambda: JOURNEYS),
    "orders of journeys": ("/api/v1/journeys", lambda: JOURNEYS),
    "comparisons of a pool": ("/api/v1/pooled-datasets/both/compare", lambda: {"sql": heavy("both")["sql"], "spend": "0.1"}),
    "orders of joint learning": (
        "/api/v1/joint-learning",
        lambda: {**ORDER, "table": "both", "columns": ["age", "pay"], "method": "PCA", "components": "1"},
    ),
    "masked cells": ("/api/v1/uploads/masked", lambda: masked()),
    "questions to silent sites": ("/api/v1/questions", lambda: {**question("hospitals"), "spend": "1"}),
}
"""What one person orders: an address and an order of each service."""
OF_OWNERS = ("trials of anonymised tables", "files", "streams", "masked cells")
SILENT = "questions to silent sites"


def main() -> None:
    """Measure, print for people, print for programs."""
    with tempfile.TemporaryDirectory() as folder, serving(__file__, folder) as hub:
        owner, analyst, *others = [replace(hub, token=each) for each in hub.token.split()]
        late(others)  # what a first answer prepares is prepared
        for name, (path, order) in FLOODS.items():
            if WANTED not in name:
                continue
            flooding = owner if name in OF_OWNERS else analyst
            if name != SILENT and (status := Client(flooding).post(order(), path)) >= 300:  # what it imports is imported now
                raise RuntimeError(f"{path} answered {status}")
            pairs = [(late(others), flooded(flooding, others, path, order)) for _ in range(TURNS)]
            quiet, crowded = (statistics.median(pair[which] for pair in pairs) for which in (0, 1))
            told = (
                f"95 of 100 answers to {OTHERS} people within {1000 * crowded:.0f} ms, {1000 * quiet:.0f} ms without the flood; "
            )
            told += f"{FLOOD} connections of one person, {ROWS:,} rows, median of {TURNS} turns"
            report(f"others while one person floods: {name}", crowded / quiet, MOST, told, most=True)


def table(size: int, first: int = 0) -> str:
    """So many ages and pays, as a file."""
    return "age,pay\n" + "".join(f"{17 + n * 7919 % 74},{n * 31 % 1000}\n" for n in range(first, first + size))


@cache
def masked() -> bytes:
    """A batch of masked cells."""
    form = MaskedFormat(columns={"age": cl.Integer(17, 90)}, marginals=[Marginal(by=[], sums=["age"])], population="masked")
    with tempfile.TemporaryDirectory() as folder:
        sealer = Sealer(form, KeyHolder("keys", budgets={"masked": cl.PureDP(1)}).public, owner=SITES["n"])
        return sealer.seal({"age": [17 + n % 74 for n in range(ROWS)]}, Path(folder, "batch")).read_bytes()


def late(others: list[Place]) -> float:
    """The seconds within which 95 of 100 answers came to people who ask at once."""
    seconds: list[float] = []
    failed: list[BaseException] = []
    end = time.perf_counter() + SECONDS

    def work(place: Place) -> None:
        client = Client(place)
        try:
            while time.perf_counter() < end:
                begun = time.perf_counter()
                status = client.post(question())
                seconds.append(time.perf_counter() - begun)
                if status != 201:
                    raise RuntimeError(f"the hub answered {status}")
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(each,)) for each in others]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    if failed:
        raise failed[0]
    return sorted(seconds)[int(0.95 * len(seconds))]


def flooded(flooding: Place, others: list[Place], path: str, order: Any) -> float:
    """The same while one person orders on many connections."""
    ends = threading.Event()
    came: Counter[int | str] = Counter()
    clients, silent = [Client(flooding) for _ in range(FLOOD)], order is FLOODS[SILENT][1]

    def flood(client: Client) -> None:
        try:
            while not ends.is_set():
                came[client.post(order(), path)] += 1
        except (OSError, HTTPException) as error:
            if not (silent and ends.is_set()):  # hung up
                came[str(error)] += 1

    threads = [threading.Thread(target=flood, args=(each,)) for each in clients]
    for each in threads:
        each.start()
    time.sleep(0.5)
    try:
        return late(others)
    finally:
        ends.set()
        for client, each in zip(clients, threads, strict=True):
            if silent:
                client.hang_up()  # the sites would be waited for
            each.join()
        wrong = [each for each in came if isinstance(each, str) or each >= 500 or each in (401, 403, 404)]
        if wrong or bool(came) is silent:  # beyond what one person may keep here, orders are refused; the silent answer nobody
            raise RuntimeError(f"{path} answered {dict(came)}")


def caller(person: Person, role: str) -> Caller:
    """Somebody with one role, who is logged in."""
    return replace(as_person(person, ""), roles=frozenset([role]), via="session")


def token_of(hub: Hub, whose: Caller) -> str:
    """A new token for all that its person may do by one."""
    with hub.database.begin() as db:
        return make_token(hub, db, whose, name="benchmark", scopes=scopes_for(whose.roles))[1]


def furnish(hub: Hub, app: Any, owner: Caller, provider: Caller) -> None:
    """Beside the people: those who travel, two owners' tables in a pool, three sites that never call, and an algorithm. All of it
    is open to everybody."""

    with warnings.catch_warnings(action="ignore"):  # it is told to use another library
        from fastapi.testclient import TestClient

    def told(who: Caller, path: str, body: Mapping[str, Any] | bytes | None = None) -> Any:
        sent = {} if body is None else {"content": body} if isinstance(body, bytes) else {"json": body}
        kind = {"Content-Type": "text/csv"} if isinstance(body, bytes) else {}
        client = TestClient(app, base_url=hub.settings.origin, headers={"Authorization": f"Bearer {token_of(hub, who)}", **kind})
        answer = client.request("GET" if body is None else "POST", path, **sent)
        if answer.status_code >= 300:
            raise RuntimeError(f"{path} answered {answer.text}")
        return answer.json()

    def add(name: str, columns: Mapping[str, Any], rows: str, **more: Any) -> None:
        given = {
            column: each if each["kind"] == "text" else {**each, "reason": "a benchmark"} for column, each in columns.items()
        }
        upload = told(owner, "/api/v1/uploads", rows.encode())["id"]
        made = {"upload": upload, "name": name, "title": name, "columns": given, "population": name, "budget": MUCH}
        told(owner, "/api/v1/datasets", {**made, **more})

    ways = [f"p{who},2026-01-01T0{n}:00:00,{4.31 + 0.03 * n:.2f},{52.01 + 0.03 * n:.2f}" for who in range(500) for n in range(3)]
    add("trips", TRIPS, "who,at,lon,lat\n" + "\n".join(ways), unit="who", max_rows=3, size=1500)
    for number, name in enumerate(("north", "south"), 1):
        add(name, COLUMNS, table(ROWS // 10, number), size=ROWS // 10)
    pool = {"parts": ["north", "south"], "name": "both", "title": "both", "population": "both", **MUCH}
    told(owner, "/api/v1/pooled-datasets", pool)
    key = bytes.fromhex(told(owner, "/api/v1/joint-datasets")["hub"])
    roster = Roster(sites={name: each.public for name, each in SITES.items()}, hub=key, missing=0, epoch=1)
    signed = {"roster": roster.plain(), "signatures": {name: each.sign(roster.text).hex() for name, each in SITES.items()}}
    bounds = [f'{at} = {{ kind = "integer", low = {each["low"]}, high = {each["high"]} }}' for at, each in COLUMNS.items()]
    declared = "\n".join(["[tables.hospitals]", "[tables.hospitals.columns]", *bounds])
    about = {"table": declared, "overlap": "none", "reason": "a benchmark", "title": "hospitals", "population": "hospitals"}
    told(owner, "/api/v1/joint-datasets", {**signed, **about, **MUCH})
    settings = {"code": CODE, "inputs": ["age"], "low": [0], "high": [120], "names": ["age"], "blocks": 10, "seconds": 0.1}
    told(provider, "/api/v1/algorithms", {"name": "youngest", "title": "youngest", "service": "guests", "settings": settings})
    run = {"actions": ["algorithm.run"], "algorithms": ["youngest"]}
    everybody = {"role": "all", "members": {"anybody": True}}
    for name in ("people", "trips", "north", "south", "both", "hospitals"):
        actions = ["dataset.see", "question.explain", *(each for each in READS if each not in run["actions"])]
        grant(hub, owner, data_set=name, **everybody, rules={"actions": actions})
    with hub.database.begin() as db:
        own = {"actions": ["algorithm.see", "algorithm.run"], "only_with": ["people"]}
        grant_in(hub, db, provider, own_algorithm(hub, db, provider, "youngest")[1], {**everybody, "rules": own})
    grant(hub, owner, data_set="people", **everybody, rules=run)


def serve(folder: Path) -> None:
    """A hub over rows of ages and pays: the tokens of its owner, an analyst and eight others."""
    with Hub(Settings(data=folder), all_services()) as hub:
        app = make_app(hub)
        furnished(hub, table(ROWS), {"columns": COLUMNS, "size": ROWS})
        with hub.database.begin() as db:
            owner = caller(db.scalars(select(Person).where(Person.email == "olga@example.org")).one(), "owner")
            others = []
            for number, role in enumerate(["algorithm-provider", *["analyst"] * (1 + OTHERS)]):
                others.append(caller(add_person(hub, db, email=f"p{number}@example.org", name=f"P{number}", roles=[role]), role))
            bump(db)
        furnish(hub, app, owner, others[0])
        tokens = [token_of(hub, each) for each in (owner, *others[1:])]
        run(app, "/api/v1/questions", " ".join(tokens))


if __name__ == "__main__":
    serve(Path(sys.argv[1])) if len(sys.argv) > 1 else main()
