"""Counters of streams: readings counted in a second, and the error at the end of the horizon against the square root itself.

The error is computed, not drawn: the root of (longest column)² · (energy of the last row), for noise of scale 1 per unit of
sensitivity. The limit is that of the exact square root of the matrix of running sums (its squared column norm), which no
memory of a few kilobytes holds.
"""

from __future__ import annotations

import math
import os
import time

import numpy as np
from _report import report

from cloister.traces import Counter
from cloister.traces.square_root import SquareRoot, square_root_energy

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
HORIZONS = (512, 16_384) if QUICK else (512, 65_536, 1_048_576)
READINGS = 200_000 if QUICK else 2_000_000
STEPS = 2_000 if QUICK else 20_000


def main() -> None:
    """Measure, print for people, print for programs."""
    energies = {steps: errors(steps) for steps in HORIZONS}
    long, steps = SquareRoot(2**30), HORIZONS[-1]
    ratio = math.sqrt(long.l2_squared * energies[steps]) / int(long.weights[0]) / square_root_energy(steps)
    if not QUICK:
        detail = f"root mean squared error after {steps:,} steps, against the exact square root of as many"
        report("counter with a horizon of 2^30 steps", ratio=ratio, limit=1.2, detail=detail, most=True)
    rates()


def errors(steps: int) -> float:
    """The error of the last sum of a horizon; its energy, for the next comparison."""
    matrix = SquareRoot(steps)
    energy = matrix.energy(steps)
    error, exact = math.sqrt(matrix.l2_squared * energy) / int(matrix.weights[0]), square_root_energy(steps)
    tree = math.sqrt(steps.bit_length() * (steps - 1).bit_count())
    detail = (
        f"root mean squared error {error:.2f}, of the exact square root {exact:.2f}, of the binary tree at its worst {tree:.1f}"
    )
    report(f"counter over {steps:,} steps", ratio=error / exact, limit=1.05, detail=detail, most=True)
    return energy


def rates() -> None:
    """Readings in a second, a thousand a step, and steps in a second."""
    counter, readings = Counter(rho=1, steps=2**30), np.ones(1000, dtype=np.int64)
    counter.step(readings)
    began = time.perf_counter()
    for _ in range(READINGS // 1000):
        counter.step(readings)
    rate = READINGS / (time.perf_counter() - began)
    detail = f"{rate / 1e6:.1f} million readings in a second, 1,000 a step, horizon 2^30"
    report("readings counted in memory", ratio=rate / 1e6, limit=1, detail=detail)
    began = time.perf_counter()
    for _ in range(STEPS):
        counter.step(1)
    rate = STEPS / (time.perf_counter() - began)
    print(f"steps of one reading: {rate:,.0f} in a second")


if __name__ == "__main__":
    main()
