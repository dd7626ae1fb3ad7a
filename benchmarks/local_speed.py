"""How fast reports are made and read: a million values of 128, ε = 1, against the goals and against the peers in the same run.

The peers make one report at a time in Python, so they get fewer values; rates are compared. pure-ldp's fast local hashing buys
its speed with eight times the error; ours is the accurate one.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from _local_peers import RELEASES, available, theirs
from _report import report

from cloister.local import DirectEncoding, FrequencyOracle, HadamardResponse, LocalHashing, SubsetSelection, UnaryEncoding

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
SIZE, EPSILON = 128, 1
PEOPLE = 50_000 if QUICK else 1_000_000
PEER_PEOPLE = 1_000 if QUICK else 20_000
ROUNDS = 1 if QUICK else 5


def main() -> None:
    """Measure, print for people, print for programs."""
    values = np.random.default_rng(1).integers(0, SIZE, PEOPLE)
    oracles = {
        "GRR": DirectEncoding(range(SIZE), EPSILON),
        "OUE": UnaryEncoding(range(SIZE), EPSILON),
        "OLH": LocalHashing(range(SIZE), EPSILON),
        "subset selection": SubsetSelection(range(SIZE), EPSILON),
        "Hadamard response": HadamardResponse(range(SIZE), EPSILON),
    }
    rates = {name: rates_of(oracle, values) for name, oracle in oracles.items()}
    for name, (made, read) in rates.items():
        print(f"{name}: {made:,.0f} reports a second made, {read:,.0f} read")
    goals(rates)
    if available():
        against_peers(rates, values[:PEER_PEOPLE])


def rates_of(oracle: FrequencyOracle, values: Any) -> tuple[float, float]:
    """Reports made and read a second: medians over rounds."""
    made, read = [], []
    for _ in range(ROUNDS):
        reports: list[Any] = []
        made.append(timed(lambda kept=reports: kept.append(oracle.randomize(values))))
        read.append(timed(lambda kept=reports: oracle.estimate(oracle.aggregate(kept[0]))))
    return len(values) / statistics.median(made), len(values) / statistics.median(read)


def timed(work: Callable[[], object]) -> float:
    """Seconds."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def goals(rates: dict[str, tuple[float, float]]) -> None:
    """Reports a second against what was set out to reach."""
    shape = f"{PEOPLE:,} values of {SIZE}, ε = {EPSILON}"
    report("direct encoding, values randomised a second, in 10⁷", rates["GRR"][0] / 1e7, 1, shape)
    report("optimised unary encoding, values randomised a second, in 10⁶", rates["OUE"][0] / 1e6, 1, shape)
    report("optimal local hashing, reports read a second, in 5·10⁶", rates["OLH"][1] / 5e6, 1, shape)


def against_peers(rates: dict[str, tuple[float, float]], values: Any) -> None:
    """Made and read, against each peer that has the protocol."""
    for peer in RELEASES:
        for name in ("GRR", "OUE", "OLH"):
            run = theirs(peer, name, epsilon=EPSILON, size=SIZE, values=values)
            made, read = len(values) / run.randomize, len(values) / run.aggregate
            detail = f"{RELEASES[peer]}: {made:,.0f} made and {read:,.0f} read a second"
            report(f"{name}, reports made a second, against {peer}", rates[name][0] / made, 1, detail)
            report(f"{name}, reports read a second, against {peer}", rates[name][1] / read, 1, detail)
    fast = theirs("pure-ldp", "FLH", epsilon=EPSILON, size=SIZE, values=values)
    read = len(values) / fast.aggregate
    detail = f"its fast variant, with more error: {read:,.0f} read a second"
    report("OLH, reports read a second, against pure-ldp's fast local hashing", rates["OLH"][1] / read, 1, detail)


if __name__ == "__main__":
    main()
