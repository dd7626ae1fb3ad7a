"""A domain of a million values and a million reports: seconds and memory; and the heavy hitters of 64-bit strings.

Each part runs in a process of its own, so that its memory is its own.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time

import numpy as np
from _report import report

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
PEOPLE = 20_000 if QUICK else 1_000_000
SIZE = 20_000 if QUICK else 1_000_000
SECONDS, GIGABYTES = 10, 1
PROTOCOLS = ("DirectEncoding", "LocalHashing", "HadamardResponse")


def main() -> None:
    """Measure, print for people, print for programs."""
    for protocol in PROTOCOLS:
        told = apart("large", protocol)
        detail = f"n = {PEOPLE:,}, d = {SIZE:,}: {told['seconds']:.2f} s, {told['memory']:.2f} GiB in all, with Python"
        report(f"{protocol}, estimates of {SIZE:,} values, in {SECONDS} s", told["seconds"] / SECONDS, 1, detail, most=True)
        report(f"{protocol}, memory, in GiB", told["memory"] / GIGABYTES, 1, detail, most=True)
    told = apart("heavy", "")
    detail = f"n = {PEOPLE:,}, ε = 4, Zipf 1.1 over 64-bit strings: {told['seconds']:.1f} s to find them"
    report("heavy hitters of the top 20 that were missed", told["missed"], 2, detail, most=True)


def apart(part: str, protocol: str) -> dict[str, float]:
    """What a process of its own measures."""
    ran = subprocess.run([sys.executable, __file__, part, protocol], capture_output=True, text=True, check=True)
    told: dict[str, float] = json.loads(ran.stdout)
    return told


def large(protocol: str) -> None:
    """Reports are made first; reading them is what is timed."""
    from cloister import local

    oracle = getattr(local, protocol)(range(SIZE), 2)
    reports = oracle.randomize(np.random.default_rng(1).integers(0, SIZE, PEOPLE))
    began = time.perf_counter()
    oracle.estimate(oracle.aggregate(reports))
    seconds = time.perf_counter() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps({"seconds": seconds, "memory": memory}))


def heavy() -> None:
    """Ranks by Zipf's law with exponent 1.1 over a hundred thousand strings."""
    from cloister.local import HeavyHitters

    generator = np.random.default_rng(7)
    weights = 1 / np.arange(1, 100_001) ** 1.1
    words = generator.integers(0, 1 << 64, len(weights), dtype=np.uint64)
    held = words[generator.choice(len(weights), PEOPLE, p=weights / weights.sum())]
    counts = np.unique(held, return_counts=True)
    top = set(counts[0][np.argsort(-counts[1])[:20]].tolist())
    hitters = HeavyHitters(epsilon=4, bits=64)
    reports = hitters.randomize(held)
    began = time.perf_counter()
    found = hitters.find(hitters.aggregate(reports), most=20)
    seconds = time.perf_counter() - began
    print(json.dumps({"missed": len(top - {int(each) for each in found.values}), "seconds": seconds}))


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if not arguments:
        main()
    elif arguments[0] == "large":
        large(arguments[1])
    else:
        heavy()
