"""Eigenvectors in a circuit: what 50 columns and 15 vectors cost and how near they come to numpy's, and a smaller one, run.

Gates are counted, and the subspace is that of the same program in the clear, which gates reproduce to the last bit. Twelve
columns and four vectors are run by both parties in one process, on the processor's time.
"""

from __future__ import annotations

import os
import time

import numpy as np
import numpy.typing as npt
from _report import report

from cloister.together.circuits import FixedPoint, Program, leading_eigenvectors, run_both

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))


def eigenvectors(side: int, components: int) -> Program:
    """Of a matrix that is the sum of two, 40 bits an entry."""
    kind = FixedPoint(bits=40, shape=(side * (side + 1) // 2,))
    return Program(lambda a, b: leading_eigenvectors(a + b, components), garbler={"a": kind}, evaluator={"b": kind}, bits=128)


def scatter(side: int, seed: int) -> npt.NDArray[np.float64]:
    """Of 2,000 rows whose variances fall off slowly, in whole numbers."""
    generator = np.random.default_rng(seed)
    mixed = np.linalg.qr(generator.normal(size=(side, side)))[0] / np.arange(1, side + 1)[:, None] ** 0.7
    rows = generator.normal(size=(2000, side)) @ mixed
    return np.rint(rows.T @ rows * 1000)


def sine(matrix: npt.NDArray[np.float64], found: npt.NDArray[np.float64]) -> float:
    """Of the largest angle between what was found and numpy's subspace."""
    kept = np.linalg.eigh(matrix)[1][:, -found.shape[1] :]
    return float(np.linalg.norm(found - kept @ (kept.T @ found), 2))


def main() -> None:
    """Measure, print for people, print for programs."""
    side, components = (12, 4) if QUICK else (50, 15)
    program, upper = eigenvectors(side, components), np.triu_indices(side)
    shape = f"{components} vectors of {side} columns"
    report(
        "Circuits, gates of eigenvectors, millions", ratio=program.gates / 1e6, limit=400, detail=f"{shape}; {program}", most=True
    )
    worst, gaps = 0.0, []
    for seed in range(1 if QUICK else 5):
        matrix = scatter(side, seed)
        values = np.linalg.eigvalsh(matrix)
        gaps.append((values[-components] - values[-components - 1]) / np.linalg.norm(matrix))
        half = np.rint(matrix / 2)
        worst = max(worst, sine(matrix, program.as_numbers(a=half[upper], b=(matrix - half)[upper])))
    detail = f"{shape}, {len(gaps)} scatters, the gap after the last vector {min(gaps):.1e} to {max(gaps):.1e} of the norm"
    report("Circuits, sine between the eigenvectors and numpy's", ratio=worst, limit=1e-4, detail=detail, most=True)

    small, matrix = eigenvectors(12, 4), scatter(12, 0)
    values = {"a": np.zeros(78), "b": matrix[np.triu_indices(12)]}
    started = time.process_time()
    _, found = run_both(small, values)
    spent = time.process_time() - started
    detail = f"both parties' processor seconds, 4 vectors of 12 columns; {small}; sine {sine(matrix, found):.1e}"
    report("Circuits, eigenvectors found by two parties, seconds", ratio=spent, limit=20, detail=detail, most=True)
    told = f"{spent:.1f} s of both parties, forecast {small.seconds:.1f} s for each"
    report(
        "Circuits, seconds of eigenvectors over their forecast", ratio=spent / 2 / small.seconds, limit=2, detail=told, most=True
    )


if __name__ == "__main__":
    main()
