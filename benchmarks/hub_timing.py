"""What remains visible in the time of an answer that leaves a hub at a tick: of one person's rows, and of what others may ask.

Two hubs of equal rows differ in one person with as many odd rows as one person can have. The same questions are asked of both in
turn, over kept connections. What is printed is the difference of the medians in units of the median absolute deviation of one
answer, as in query_timing.py: at 1 and below one answer tells little, and each further one is charged. A tick makes an answer
take a whole number of ticks and what the network adds; so a difference shows only where it moves answers over the edge of one.

The third line is about refusals: a data set that is there and closed to the asker, against one that is not there.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from _hub import Client, run_hub, serving
from _report import report

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
ROWS = 5_000 if QUICK else 50_000
ROUNDS = 15 if QUICK else 101
CAP, LIMIT = 20, 2.0
QUESTIONS = {
    "count and mean": "SELECT ward, COUNT(*) AS n, AVG(cost) AS a FROM people WHERE age >= {0} GROUP BY ward",
    "pattern on long texts": "SELECT COUNT(*) AS n FROM people WHERE note LIKE '%a_a%a_b%{0}%'",
}
COLUMNS = {
    "person": {"kind": "text"},
    "age": {"kind": "integer", "low": 17, "high": 90},
    "ward": {"kind": "category", "values": ["heart", "bones", "eyes"]},
    "cost": {"kind": "real", "low": 0, "high": 1000, "step": 0.01},
    "note": {"kind": "text"},
}


def main() -> None:
    """Measure, print for people, print for programs."""
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(__file__, "odd", folder) as left,
        serving(__file__, "plain", folder) as right,
    ):
        clients = (Client(left), Client(right))
        for name, sql in QUESTIONS.items():
            found = rounds(clients, [{"sql": sql, "spend": "1"}] * 2, 201)
            said = f"medians {ms(found[0])} and {ms(found[1])} ms; {ROWS:,} rows, with and without one person, {ROUNDS} rounds"
            report(f"time at the hub tells the worlds apart: {name}", apart(found), LIMIT, said, most=True)
        bodies = [{"sql": f"SELECT COUNT(*) AS n FROM {name} WHERE age > {{0}}", "spend": "1"} for name in ("closed", "nothing")]
        found = rounds((clients[1], clients[1]), bodies, 404)
        said = f"medians {ms(found[0])} and {ms(found[1])} ms; {ROUNDS} rounds"
        report("time at the hub tells a closed data set from none", apart(found), LIMIT, said, most=True)


def rounds(clients: tuple[Client, Client], bodies: list[dict[str, Any]], status: int) -> tuple[list[float], list[float]]:
    """The seconds of each answer, in turn, and in turn which is asked first; each question is a new one."""
    found: tuple[list[float], list[float]] = ([], [])
    for number in range(-3, ROUNDS):
        for place in (0, 1) if number % 2 else (1, 0):
            body = {**bodies[place], "sql": bodies[place]["sql"].format(18 + (number + 3) % 70)}
            if number >= 67:
                body["spend"] = "2"
            begun = time.perf_counter()
            told = clients[place].post(body)
            if number >= 0:
                found[place].append(time.perf_counter() - begun)
            if told != status:
                raise RuntimeError(f"the server answered {told}")
    return found


def apart(found: tuple[list[float], list[float]]) -> float:
    """The difference of the medians, in median distances from the median."""
    both = [*found[0], *found[1]]
    middle = statistics.median(both)
    spread = max(statistics.median(abs(each - middle) for each in both), 1e-9)
    return abs(statistics.median(found[0]) - statistics.median(found[1])) / spread


def ms(seconds: list[float]) -> str:
    """The median in milliseconds."""
    return f"{1000 * statistics.median(seconds):.2f}"


def serve(folder: Path, *, odd: bool) -> None:
    """A hub over persons with two rows each; with `odd`, the last one's rows are the worst that one person can bring."""
    wards = ("heart", "bones", "eyes")
    lines = ["person,age,ward,cost,note"]
    lines += [f"p{n // 2},{17 + n * 7919 % 74},{wards[n % 3]},{n * 31 % 1000},{'ab' * (n % 9)}" for n in range(ROWS)]
    if odd:
        lines += [f"odd,{10**12},heart,inf,{'a' * 20_000}"] * CAP
    run_hub(folder, "\n".join(lines) + "\n", {"columns": COLUMNS, "unit": "person", "max_rows": CAP, "size": ROWS})


if __name__ == "__main__":
    if len(sys.argv) == 3:
        serve(Path(sys.argv[2]) / sys.argv[1], odd=sys.argv[1] == "odd")
    else:
        main()
