"""An audit of a million runs in each world: how long it takes, and how that compares with a loop over the runs in plain Python.

The loop does the least that any audit does: it draws each output by itself and counts it in a dictionary, once for each of the
two worlds. (Published auditors run their mechanism in such a loop, and then test events one at a time.) Our time holds
everything: drawing the outputs, learning the cells, comparing every event, and measuring the best.
"""

from __future__ import annotations

import math
import os
import random as plain
import time
from collections import Counter
from collections.abc import Callable

import numpy as np
from _report import report

from cloister.attacks import audit
from cloister.noise import Random

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
RUNS = 200_000 if QUICK else 1_000_000
LOOP = 50_000 if QUICK else 200_000
ROUNDS = 3
SECONDS = 5.0


def main() -> None:
    """Measure in turns, and compare the best of each."""
    ours, rows, loop = [], [], []
    for _ in range(ROUNDS):
        ours.append(timed(lambda: audit(integers, 0, 1, runs=RUNS)) / RUNS)
        loop.append(timed(by_hand) / LOOP)
        rows.append(timed(lambda: audit(vectors, 0.0, 0.25, runs=RUNS)) / RUNS)
    million = 1e6 * min(ours)
    detail = f"{million:.2f} s for a million runs in each of two worlds, every event compared"
    report("an audit against a loop over its runs", min(loop) / min(ours), 4, detail)
    report("a million runs of one number, seconds", million, SECONDS, "drawing included", most=True)
    report(
        "a million runs of four numbers, seconds",
        1e6 * min(rows),
        3 * SECONDS,
        "23 ways to look at a row, each with its events",
        most=True,
    )


def integers(data: int, n: int, random: Random) -> np.ndarray:
    """Two-sided geometric noise with ε = 1, by logarithms: quick, so that the audit is what is measured."""
    heads, tails = (np.floor(np.log((random.words(n) >> np.uint64(11)) * 2.0**-53 + 2.0**-54)).astype(np.int64) for _ in range(2))
    return data + heads - tails


def vectors(data: float, n: int, random: Random) -> np.ndarray:
    """Four coordinates that move together, with noise on a grid."""
    draws = [np.log((random.words(4 * n) >> np.uint64(11)) * 2.0**-53 + 2.0**-54) for _ in range(2)]
    return data + np.round((draws[0] - draws[1]).reshape(n, 4) * 2.0**20) / 2.0**20


def by_hand() -> float:
    """The loop: one run at a time, counted in a dictionary; then the best ratio of the counts."""
    worlds = []
    for data in (0, 1):
        counts: Counter[int] = Counter()
        for _ in range(LOOP):
            counts[data + math.floor(math.log(1 - plain.random())) - math.floor(math.log(1 - plain.random()))] += 1
        worlds.append(counts)
    return max(worlds[0][value] / worlds[1][value] for value in worlds[0] if worlds[1][value] > 100)


def timed(work: Callable[[], object]) -> float:
    """Seconds of processor time that it took: what else the machine does meanwhile does not count."""
    start = time.process_time()
    work()
    return time.process_time() - start


if __name__ == "__main__":
    main()
