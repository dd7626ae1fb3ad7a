"""Whether the time of an answer tells two neighbouring worlds apart: medians over alternating rounds, against their own spread.

Two worlds of 10⁵ rows differ in one person with as many odd rows as one person can have: values out of bounds, long texts, every
row in one group. The same questions are asked of both in turn, each with a number in its condition that makes it a new question.
What is printed is the difference of the medians in units of the median absolute deviation of one answer: at 1 and below, one
answer tells little, and an attacker needs some (1/ratio)² answers, each of which is charged, to tell the worlds apart.
"""

from __future__ import annotations

import os
import statistics
import time
from typing import Any

from _report import report

import cloister as cl

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
ROWS = 10_000 if QUICK else 100_000
ROUNDS = 15 if QUICK else 101
CAP = 20
LIMIT = 2.0
COLUMNS = {
    "age": cl.Integer(17, 90),
    "ward": cl.Category(["heart", "bones", "eyes"]),
    "cost": cl.Real(0, 1000, step="0.01"),
    "note": cl.Text(),
}
QUESTIONS = {
    "count and mean": "SELECT ward, COUNT(*) AS n, AVG(cost) AS a FROM visits WHERE age >= {0} GROUP BY ward",
    "median": "SELECT ward, MEDIAN(cost) AS m FROM visits WHERE age >= {0} GROUP BY ward",
    "pattern on long texts": "SELECT COUNT(*) AS n FROM visits WHERE note LIKE '%a_a%a_b%{0}%'",
    "sums per person": "SELECT AVG(s) AS a FROM (SELECT person, SUM(cost) AS s FROM visits WHERE age > {0} GROUP BY person) AS t",
    "join with itself": "SELECT SUM(a.cost) AS n FROM visits AS a JOIN visits AS b ON a.person = b.person WHERE a.age >= {0}",
    "undeclared keys": "SELECT note, COUNT(*) AS n FROM visits WHERE age >= {0} GROUP BY note",
}


def main() -> None:
    """Measure, print for people, print for programs."""
    budget = cl.ApproxDP(10**9, "1e-2")
    with (
        cl.Session({"visits": visits(odd=True)}, budget=budget) as left,
        cl.Session({"visits": visits(odd=False)}, budget=budget) as right,
    ):
        for name, sql in QUESTIONS.items():
            with_one, without = rounds(sql, left, right)
            apart = statistics.median(with_one) - statistics.median(without)
            ratio = abs(apart) / deviation([*with_one, *without])
            told = f"medians {ms(with_one)} and {ms(without)} ms; {ROWS:,} rows, with and without one person, {ROUNDS} rounds"
            report(f"time tells the worlds apart: {name}", ratio, LIMIT, told, most=True)


def visits(*, odd: bool) -> cl.PrivateTable:
    """Persons with two rows each; with `odd`, the last one's rows are the worst that one person can bring."""
    rows: dict[str, list[Any]] = {
        "person": [f"p{n // 2}" for n in range(ROWS)],
        "age": [17 + n * 7919 % 74 for n in range(ROWS)],
        "ward": [("heart", "bones", "eyes")[n % 3] for n in range(ROWS)],
        "cost": [float(n * 31 % 1000) for n in range(ROWS)],
        "note": ["ab" * (n % 9) for n in range(ROWS)],
    }
    if odd:
        strange: dict[str, Any] = {"person": "odd", "age": 10**12, "ward": "heart", "cost": float("inf"), "note": "a" * 20_000}
        rows = {name: [*values, *([strange[name]] * CAP)] for name, values in rows.items()}
    return cl.PrivateTable(rows, columns=COLUMNS, unit="person", max_rows=CAP, population="all", version="1")


def rounds(sql: str, left: cl.Session, right: cl.Session) -> tuple[list[float], list[float]]:
    """The seconds of each answer, in turn, and in turn which world is asked first."""
    found: tuple[list[float], list[float]] = ([], [])
    for number in range(-2, ROUNDS):
        order = [(left, 0), (right, 1)] if number % 2 else [(right, 1), (left, 0)]
        for session, place in order:
            question = sql.format(17 + (number + 2) % 70 + (number + 2) // 70 * 1_000)
            begun = time.perf_counter()
            session.sql(question, spend=cl.ApproxDP(1, "1e-6"), fresh=True)
            if number >= 0:
                found[place].append(time.perf_counter() - begun)
    return found


def deviation(seconds: list[float]) -> float:
    """The median distance from the median."""
    middle = statistics.median(seconds)
    return max(statistics.median(abs(each - middle) for each in seconds), 1e-9)


def ms(seconds: list[float]) -> str:
    """The median in milliseconds."""
    return f"{1000 * statistics.median(seconds):.2f}"


if __name__ == "__main__":
    main()
