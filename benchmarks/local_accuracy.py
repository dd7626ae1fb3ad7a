"""The measured mean squared error of every protocol against its formula, over 3·10⁴ cells of a million people each.

Each run has everybody hold one value, so that all other cells have frequency 0 and share the formula that is published; the
run's own cell is left out. The published formula is compared with as well: n·4e^ε/(e^ε − 1)² for the optimal protocols.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable

import numpy as np
from _local_peers import RELEASES, available, theirs
from _report import report

from cloister.local import (
    DirectEncoding,
    FrequencyOracle,
    HadamardResponse,
    HistogramEncoding,
    LocalHashing,
    SubsetSelection,
    UnaryEncoding,
)

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
SIZE, EPSILON = 128, 1
PEOPLE = 10_000 if QUICK else 1_000_000
CELLS = 1_000 if QUICK else 30_000
PEER_PEOPLE = 2_000 if QUICK else 20_000

MAKERS: dict[str, Callable[[], FrequencyOracle]] = {
    "direct encoding": lambda: DirectEncoding(range(SIZE), EPSILON),
    "symmetric unary encoding": lambda: UnaryEncoding(range(SIZE), EPSILON, optimized=False),
    "optimised unary encoding": lambda: UnaryEncoding(range(SIZE), EPSILON),
    "histogram with a threshold": lambda: HistogramEncoding(range(SIZE), EPSILON, threshold=True),
    "binary local hashing": lambda: LocalHashing(range(SIZE), EPSILON, optimized=False),
    "optimal local hashing": lambda: LocalHashing(range(SIZE), EPSILON),
    "Hadamard response": lambda: HadamardResponse(range(SIZE), EPSILON),
    "subset selection": lambda: SubsetSelection(range(SIZE), EPSILON),
}
OPTIMAL = 4 * math.e**EPSILON / (math.e**EPSILON - 1) ** 2


def main() -> None:
    """Measure, print for people, print for programs."""
    for name, make in MAKERS.items():
        oracle = make()
        error = measured(oracle)
        theory = oracle.variance(PEOPLE)
        best = theory / PEOPLE / OPTIMAL
        detail = f"{error:,.0f} against {theory:,.0f}, n = {PEOPLE:,}, {CELLS:,} cells; {best:.3f} of 4e^ε/(e^ε − 1)²"
        report(f"{name}: how far the squared error is from its formula", abs(error / theory - 1), 0.03, detail, most=True)
    if available():
        against_peers()


def measured(oracle: FrequencyOracle, people: int = PEOPLE, cells: int = CELLS) -> float:
    """The mean squared error of the cells that nobody holds."""
    errors, done = 0.0, 0
    while done < cells:
        held = done % SIZE
        found = oracle.estimate(oracle.aggregate(oracle.randomize(np.full(people, held)))).counts
        empty = np.delete(found, held)
        errors += float((empty**2).sum())
        done += len(empty)
    return errors / done


def against_peers() -> None:
    """The same of pure-ldp's protocols, which don't clip their estimates, for as many people as they are quick enough for."""
    values = np.zeros(PEER_PEOPLE, dtype=np.int64)
    for name, ours in (("OLH", MAKERS["optimal local hashing"]()), ("FLH", MAKERS["optimal local hashing"]())):
        runs = [
            theirs("pure-ldp", name, epsilon=EPSILON, size=SIZE, values=values).estimate[1:] for _ in range(2 if QUICK else 8)
        ]
        their_error = float(np.mean(np.stack(runs) ** 2))
        our_error = measured(ours, PEER_PEOPLE, CELLS // 10)
        detail = f"ours {our_error:,.0f}, {RELEASES['pure-ldp']} {name} {their_error:,.0f}, {PEER_PEOPLE:,} people"
        report(f"squared error of {name} in pure-ldp, in ours", their_error / our_error, 0.8, detail)


if __name__ == "__main__":
    main()
