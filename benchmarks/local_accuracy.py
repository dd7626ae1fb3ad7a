"""The measured mean squared error of every protocol against its formula, over 3·10⁴ cells of up to a million people each.

Each run has everybody hold one value, so that all other cells have frequency 0 and share the formula that is published; the
run's own cell is left out. The published formula is compared with as well: n·4e^ε/(e^ε − 1)² for the optimal protocols.

Formulas are straight lines in n, so those with long reports are measured with fewer people, and every line says with how many.
RAPPOR's cells are Bloom bits that nobody sets, each cohort's apart; its formula is that of a bit's estimate, with p* and q* of
one report.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable

import numpy as np
from _local_peers import RELEASES, available, theirs
from _report import report

from cloister.local import (
    RAPPOR,
    CountMeanSketch,
    DirectEncoding,
    FakeData,
    FrequencyOracle,
    HadamardResponse,
    HistogramEncoding,
    KeyValue,
    LocalHashing,
    SubsetSelection,
    UnaryEncoding,
)

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
SIZE, EPSILON = 128, 1
PEOPLE = 10_000 if QUICK else 1_000_000
CELLS = 1_000 if QUICK else 30_000
FEWER = 2_000 if QUICK else 10_000
PEER_PEOPLE = 2_000 if QUICK else 20_000

MAKERS: dict[str, Callable[[], FrequencyOracle]] = {
    "direct encoding": lambda: DirectEncoding(range(SIZE), EPSILON),
    "symmetric unary encoding": lambda: UnaryEncoding(range(SIZE), EPSILON, optimized=False),
    "optimised unary encoding": lambda: UnaryEncoding(range(SIZE), EPSILON),
    "histogram, summed": lambda: HistogramEncoding(range(SIZE), EPSILON),
    "histogram with a threshold": lambda: HistogramEncoding(range(SIZE), EPSILON, threshold=True),
    "binary local hashing": lambda: LocalHashing(range(SIZE), EPSILON, optimized=False),
    "optimal local hashing": lambda: LocalHashing(range(SIZE), EPSILON),
    "Hadamard response": lambda: HadamardResponse(range(SIZE), EPSILON),
    "subset selection": lambda: SubsetSelection(range(SIZE), EPSILON),
    "count mean sketch": lambda: CountMeanSketch(range(SIZE), EPSILON),
    "count mean sketch, Hadamard form": lambda: CountMeanSketch(range(SIZE), EPSILON, hadamard=True),
}
LONG = {"histogram, summed", "count mean sketch"}
OPTIMAL = 4 * math.e**EPSILON / (math.e**EPSILON - 1) ** 2


def main() -> None:
    """Measure, print for people, print for programs."""
    for name, make in MAKERS.items():
        oracle, people = make(), FEWER if name in LONG else PEOPLE
        told(name, measured(oracle, people), oracle.variance(people), people)
    rappor = RAPPOR.for_epsilon(EPSILON, 4 * EPSILON, cohorts=4)
    told("RAPPOR, a Bloom bit", bits(rappor), bit_variance(rappor) * FEWER, FEWER)
    for how in ("unary", "direct"):
        pairs = KeyValue(range(SIZE), epsilon=EPSILON, padding=2, how=how)
        told(f"keys with values, {how}", keys(pairs), pairs.variance(FEWER), FEWER)
    fake = FakeData({"held": range(SIZE), "other": range(SIZE)}, EPSILON)
    told("fake data, two attributes", made_up(fake), fake.variance("held", FEWER), FEWER)
    if available():
        against_peers()


def told(name: str, error: float, theory: float, people: int) -> None:
    """A line of the table."""
    best = theory / people / OPTIMAL
    detail = f"{error:,.0f} against {theory:,.0f}, n = {people:,}, {CELLS:,} cells; {best:.3f} of 4e^ε/(e^ε − 1)²"
    report(f"{name}: how far the squared error is from its formula", abs(error / theory - 1), 0.03, detail, most=True)


def bits(rappor: RAPPOR) -> float:
    """The mean squared error of the estimated counts of Bloom bits that nobody sets, in units of people, summed over cohorts."""
    high, low = rappor.probabilities
    errors, done = 0.0, 0
    while done < CELLS:
        text = f"text {done}"
        sketch = rappor.aggregate(rappor.randomize([text] * FEWER))
        for cohort in range(rappor.cohorts):
            people, ones = int(sketch.counts[cohort, 0]), sketch.counts[cohort, 1:]
            empty = np.delete((ones - people * low) / (high - low), rappor.bloom(text, cohort))
            errors += float((empty**2).sum()) * FEWER / people
            done += len(empty)
    return errors / done


def keys(pairs: KeyValue) -> float:
    """The mean squared error of the counts of keys that nobody has, where all have one key."""
    errors, done = 0.0, 0
    while done < CELLS:
        people = np.full((FEWER, SIZE), np.nan)
        people[:, done % SIZE] = 0.5
        empty = np.delete(pairs.estimate(pairs.aggregate(pairs.randomize(people))).counts.counts, done % SIZE)
        errors += float((empty**2).sum())
        done += len(empty)
    return errors / done


def made_up(fake: FakeData) -> float:
    """The mean squared error of the counts of values that nobody holds, of one of two attributes."""
    errors, done = 0.0, 0
    while done < CELLS:
        people = dict.fromkeys(("held", "other"), np.full(FEWER, done % SIZE))
        empty = np.delete(fake.estimate(fake.aggregate(fake.randomize(people)))["held"].counts, done % SIZE)
        errors += float((empty**2).sum())
        done += len(empty)
    return errors / done


def bit_variance(rappor: RAPPOR) -> float:
    """That of one person's part in the count of a bit that nobody sets."""
    high, low = rappor.probabilities
    return low * (1 - low) / (high - low) ** 2


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
