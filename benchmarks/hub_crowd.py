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
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

from _hub import Client, Place, furnished, run, serving
from _report import report

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
ROWS = 2_000 if QUICK else 50_000
FLOOD, OTHERS = 32, 8
SECONDS = 1.5 if QUICK else 5.0
TURNS = 1 if QUICK else 3
MOST = 3.0
_NUMBERS = count()


def question() -> dict[str, Any]:
    """One that nobody has asked."""
    number = next(_NUMBERS)
    sql = f"SELECT COUNT(*) AS n FROM people WHERE age > {17 + number % 70} AND pay < {1 + number // 70}"
    return {"sql": sql, "spend": "0.01", "purpose": "benchmark"}


def heavy() -> dict[str, Any]:
    """One that takes a while, and that nobody has asked."""
    number = next(_NUMBERS)
    parts = ", ".join(f"SUM(CASE WHEN pay < {each * 20 + number % 19} THEN 1 ELSE 0 END) AS n{each}" for each in range(20))
    return {"sql": f"SELECT age, {parts} FROM people GROUP BY age", "spend": "0.01", "purpose": "benchmark"}


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
}
"""What one person orders: an address and an order of each service that takes orders of its own about rows of this hub. Guests,
journeys and sites need an algorithm, people with several rows or other machines first; they share these turns and queues."""
OF_OWNERS = ("trials of anonymised tables", "files", "streams")


def main() -> None:
    """Measure, print for people, print for programs."""
    with tempfile.TemporaryDirectory() as folder, serving(__file__, folder) as hub:
        tokens = hub.token.split()
        owner, analyst, *others = [replace(hub, token=each) for each in tokens]
        late(others)  # what a first answer prepares is prepared
        for name, (path, order) in FLOODS.items():
            flooding = owner if name in OF_OWNERS else analyst
            if (status := Client(flooding).post(order(), path)) >= 300:  # what a first order imports is imported now
                raise RuntimeError(f"{path} answered {status}")
            pairs = [(late(others), flooded(flooding, others, path, order)) for _ in range(TURNS)]
            quiet, crowded = (statistics.median(pair[which] for pair in pairs) for which in (0, 1))
            told = (
                f"95 of 100 answers to {OTHERS} people within {1000 * crowded:.0f} ms, {1000 * quiet:.0f} ms without the flood; "
            )
            told += f"{FLOOD} connections of one person, {ROWS:,} rows, median of {TURNS} turns"
            report(f"others while one person floods: {name}", crowded / quiet, MOST, told, most=True)


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
    came: Counter[int] = Counter()

    def flood() -> None:
        client = Client(flooding)
        while not ends.is_set():
            came[client.post(order(), path)] += 1

    threads = [threading.Thread(target=flood) for _ in range(FLOOD)]
    for each in threads:
        each.start()
    time.sleep(0.5)
    try:
        return late(others)
    finally:
        ends.set()
        for each in threads:
            each.join()
        wrong = [status for status in came if status >= 500 or status in (401, 403, 404)]
        if wrong or not came:  # beyond what one person may keep here, orders are refused
            raise RuntimeError(f"{path} answered {dict(came)}")


def serve(folder: Path) -> None:
    """A hub over rows of ages and pays, open to nine people, with its owner's token before theirs."""
    from datetime import timedelta

    from cloister.hub.app import make_app
    from cloister.hub.decisions.policy.actions import READS
    from cloister.hub.decisions.policy.actions import actions as known
    from cloister.hub.generation import bump
    from cloister.hub.hub import Hub
    from cloister.hub.ids import digest, new_id, new_secret
    from cloister.hub.platform.accounts import add_person
    from cloister.hub.records.access import Grant
    from cloister.hub.records.accounts import ApiToken
    from cloister.hub.records.catalogue import DataSet
    from cloister.hub.services import all_services
    from cloister.hub.settings import Settings

    columns = {"age": {"kind": "integer", "low": 17, "high": 90}, "pay": {"kind": "integer", "low": 0, "high": 1000}}
    rows = "age,pay\n" + "".join(f"{17 + n * 7919 % 74},{n * 31 % 1000}\n" for n in range(ROWS))
    with Hub(Settings(data=folder, workers=0), all_services()) as hub:
        furnished(hub, rows, {"columns": columns, "size": ROWS})
        tokens, now = ["clo_" + new_secret() for _ in range(2 + OTHERS)], hub.now()
        with hub.database.begin() as db:
            people = db.query(DataSet).filter_by(name="people").one()
            given = {"kind": "data-set", "object": people.id, "role": "all", "granted_by": people.owner, "created": now}
            actions = [*READS[:1], "question.explain", *(each for each in READS[1:] if not each.startswith("algorithm"))]
            db.add(Grant(id=new_id(), **given, attributes={"anybody": True}, rules={"actions": sorted(actions)}))
            lasts = {"created": now, "expires": now + timedelta(days=1), "second_factor": False}
            for number, token in enumerate(tokens):
                person, role = people.owner, "owner"
                if number:
                    role, email = "analyst", f"p{number}@example.org"
                    person = add_person(hub, db, email=email, name=f"P{number}", roles=[role]).id
                scopes = [each.name for each in known().values() if each.by_token and role in each.roles]
                db.add(ApiToken(id=new_id(), person=person, name="benchmark", digest=digest(token), scopes=scopes, **lasts))
            bump(db)
        run(make_app(hub), "/api/v1/questions", " ".join(tokens))


if __name__ == "__main__":
    serve(Path(sys.argv[1])) if len(sys.argv) > 1 else main()
