"""Fifty people who ask a hub at once for a minute, of one data set whose budget pays for half of what they ask: 95 of 100 answers
come within a second.

    python benchmarks/hub_load.py [--seconds 60] [--people 50]

The hub is `cloister hub` as an institution starts it, with SQLite in its folder; the people are another process on the same
machine, and each asks the next question as soon as the last was answered. How many questions that are in so many seconds is
measured beforehand. No answer may be anything but an answer or "budget exceeded", and the ledger ends exactly full.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

from _report import report

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.hub.faults.clients import counted, quantile
from tests.hub.faults.looking import look
from tests.hub.faults.prepared import Prepared, prepare
from tests.hub.faults.processes import free_port, hall

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
LIMIT = 1.0


def main() -> None:
    """Measure the pace, then the minute."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seconds", type=float, default=6 if QUICK else 60)
    arguments.add_argument("--people", type=int, default=50)
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        pace = 300 / asked(prepare(Path(folder) / "first", people=given.people, pays_for=150), Path(folder))[1]
        questions = max(int(pace * given.seconds) // 2, 50) * 2
        place = prepare(Path(folder) / "hub", people=given.people, pays_for=questions // 2)
        received, taken = asked(place, Path(folder))
        ended = counted(received)
        assert ended == Counter({"201": place.pays_for, "409 budget-exceeded": place.pays_for}), ended
        assert look(place, received).spent == place.budget
    seconds = [each["seconds"] for each in received if each["status"] == 201]
    refusals = [each["seconds"] for each in received if each["status"] != 201]
    detail = (
        f"{given.people} people for {taken:.0f} s, {len(received):,} questions, {len(received) / taken:.0f} a second; answers: "
        f"median {quantile(seconds, 0.5):.2f} s, 95 % within {quantile(seconds, 0.95):.2f} s; refusals when the budget is spent: "
        f"median {quantile(refusals, 0.5):.2f} s, 95 % within {quantile(refusals, 0.95):.2f} s; {os.cpu_count()} cores for hub "
        "and people together"
    )
    report("fifty people at once: seconds within which 95 % are answered", quantile(seconds, 0.95), LIMIT, detail, most=True)


def asked(place: Prepared, folder: Path) -> tuple[list[dict[str, object]], float]:
    """What they received, and how long it took; a first question has opened the data set."""
    with hall(place, folder) as processes:
        port = free_port()
        hub = processes.hub(port)
        address = f"http://127.0.0.1:{port}"
        warm = replace(place, tokens=place.tokens[:1])
        processes.place = warm
        first = processes.clients(address, questions=1, seed=1).ended()
        processes.place = place
        begun = time.perf_counter()
        rest = processes.clients(address, questions=2 * place.pays_for - 1, first=1).ended()
        taken = time.perf_counter() - begun
        hub.end()
    return first + rest, taken


if __name__ == "__main__":
    main()
