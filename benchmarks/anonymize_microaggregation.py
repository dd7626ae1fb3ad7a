"""Microaggregation: MDAV against a plain numpy one in the same run, and its faster kin on a million records.

The plain twin is written as most programs have it: distances of all that are left, sorted, records deleted from a copy.
"""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np
from _clock import alternating
from _report import report

from cloister.anonymize.perturbing import best_groups, blocked_mdav, information_loss, mdav
from cloister.anonymize.perturbing.microaggregation.replacing import means

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
COLUMNS, K = 13, 3
WHOLE = 2_000 if QUICK else 10_000
MANY = 20_000 if QUICK else 1_000_000


def main() -> None:
    """Measure, print for people, print for programs."""
    generator = np.random.default_rng(1)
    points = generator.normal(size=(WHOLE, COLUMNS))
    ours, plain = alternating(lambda _: mdav(points, K), lambda _: naive(points, K), rounds=1 if QUICK else 3)
    shape = f"{WHOLE:,} × {COLUMNS}, k = {K}"
    report("MDAV, against plain numpy", plain / ours, 2 if QUICK else 4, f"{shape}: {ours:.2f} s against {plain:.2f} s")
    report("MDAV, seconds", ours, 5, shape, most=True)
    many = generator.normal(size=(MANY, 5)) @ generator.normal(size=(5, 5))
    seconds = timed(lambda: blocked_mdav(many, 5))
    report("MDAV in blocks, seconds", seconds, 120, f"{MANY:,} × 5, k = 5", most=True)
    part = many[:WHOLE]
    ratio = loss(part, blocked_mdav(part, 5)) / loss(part, mdav(part, 5))
    report("what blocks lose, against MDAV on the whole", ratio, 1.25, f"{WHOLE:,} × 5, k = 5", most=True)
    seconds = timed(lambda: best_groups(many[:, 0], 5))
    report("one column to the optimum, seconds", seconds, 30, f"{MANY:,} values, k = 5", most=True)


def naive(points: Any, k: int) -> Any:
    """MDAV as it is usually written."""
    left, groups, group = np.arange(len(points)), np.full(len(points), -1), 0
    while len(left) >= 3 * k:
        far = points[left[np.linalg.norm(points[left] - points[left].mean(axis=0), axis=1).argmax()]]
        opposite = points[left[np.linalg.norm(points[left] - far, axis=1).argmax()]]
        for place in (far, opposite):
            chosen = np.argsort(np.linalg.norm(points[left] - place, axis=1))[:k]
            groups[left[chosen]] = group
            left = np.delete(left, chosen)
            group += 1
    if len(left) >= 2 * k:
        far = points[left[np.linalg.norm(points[left] - points[left].mean(axis=0), axis=1).argmax()]]
        chosen = np.argsort(np.linalg.norm(points[left] - far, axis=1))[:k]
        groups[left[chosen]] = group
        left = np.delete(left, chosen)
        group += 1
    groups[left] = group
    return groups


def loss(points: Any, groups: Any) -> float:
    """Of groups published as their means."""
    return information_loss(points, np.column_stack([means(column, groups) for column in points.T]))


def timed(work: Any) -> float:
    """Seconds."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


if __name__ == "__main__":
    main()
