"""Two-party circuits: AND gates a second, garbled and evaluated, and what a whole run of two parties costs.

Gates are measured at wide levels (65,536 gates a call), on the processor's time of one core. Products show what arithmetic makes
of that speed. The comparison of two sums is the whole protocol: both parties, of 1,000 numbers each, in one process.
"""

from __future__ import annotations

import os

import numpy as np
from _clock import best
from _report import report

from cloister.noise import Random
from cloister.together.circuits import FixedPoint, Program, comparison_of_sums, run_both
from cloister.together.circuits.garbling import Evaluating, Garbling

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
WIDE, TIMES = 1 << 16, 3 if QUICK else 9


def main() -> None:
    """Measure, print for people, print for programs."""
    told: list[bytes] = []
    garbling = Garbling(told.append, seed=bytes(32), random=Random())
    a, b = garbling.labels(1, WIDE), garbling.labels(1, WIDE)

    def garble() -> None:
        told.clear()
        garbling.both(a, b)

    garbled = WIDE / best(garble, TIMES) / 1e6
    pieces, turn = list(told), iter(())

    def evaluate() -> None:
        nonlocal turn
        turn = iter(pieces)
        Evaluating(lambda size: next(turn), seed=bytes(32)).both(a, b)

    evaluated = WIDE / best(evaluate, TIMES) / 1e6
    narrow = best(lambda: garbling.both(a[:, :1], b[:, :1]), TIMES) * 1e6
    report("Circuits, million AND gates garbled a second", ratio=garbled, limit=10, detail=f"a level of one gate {narrow:.0f} µs")
    report("Circuits, million AND gates evaluated a second", ratio=evaluated, limit=25, detail="levels of 65,536 gates")

    kind = FixedPoint(bits=32, shape=(2000,), fraction=8)
    product = Program(lambda a, b: a * b, garbler={"a": kind}, evaluator={"b": kind})
    machine = Garbling(lambda gates: None, seed=bytes(32), random=Random())
    one, two = machine.labels(32, 2000), machine.labels(32, 2000)
    spent = best(lambda: product.on(machine, {"a": one, "b": two}), 2)
    detail = f"{product.gates:,} gates in {product.levels:,} levels, {spent * 1e3:.0f} ms for 2,000 products of 32 bits"
    report("Circuits, million AND gates garbled a second, products", ratio=product.gates / spent / 1e6, limit=5, detail=detail)

    program = comparison_of_sums(1000, 1000)
    values = {"a": np.arange(1000), "b": np.arange(1000) + 1}
    whole = best(lambda: run_both(program, values), 1)
    detail = f"both parties' processor seconds; {program.gates:,} gates, {program.wires('evaluator'):,} transfers"
    report("Circuits, sums of 1,000 numbers compared, seconds", ratio=whole, limit=10, detail=detail, most=True)


if __name__ == "__main__":
    main()
