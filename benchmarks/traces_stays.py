"""Stay points of a sample of 217,653 points of two people: one call each, in all at most 0.2 s of one processor.

The sample is GeoLife's, from the folder that CLOISTER_DATA names; without it a made-up trace of as many points is swept.
"""

from __future__ import annotations

import csv
import gzip
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
from _report import report

from cloister.traces import stay_points

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
DATA = Path(os.environ.get("CLOISTER_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")) / "mobility"
ROUNDS = 1 if QUICK else 5


def main() -> None:
    """Measure, print for people, print for programs."""
    people, source = traces()
    seconds = min(sweep(people) for _ in range(ROUNDS))
    points = sum(len(times) for times, _ in people)
    detail = f"{points:,} points of {source}, 200 m and 20 minutes, the best of {ROUNDS}"
    report("stay points, processor seconds", ratio=seconds, limit=0.2, detail=detail, most=True)


def sweep(people: list[tuple[Any, Any]]) -> float:
    """The processor seconds that it takes for all of them."""
    began = time.process_time()
    for times, places in people:
        stay_points(times, places, distance=200, duration=1200)
    return time.process_time() - began


def traces() -> tuple[list[tuple[Any, Any]], str]:
    """Times and places of each person, and where they are from."""
    file = DATA / "geolife_sample.csv.gz"
    if not file.exists():
        random = np.random.default_rng(1)
        still = np.repeat(random.random(218) < 0.4, 1000)[:, None]
        moves = np.where(still, 0, random.normal(0, 1e-4, (218_000, 2)))
        return [(np.arange(218_000) * 5.0, np.array([40.0, 116.0]) + moves.cumsum(axis=0))], "a made-up trace"
    people: dict[str, list[tuple[str, str, str]]] = {}
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            people.setdefault(row["uid"], []).append((row["datetime"], row["lat"], row["lng"]))
    return [
        (np.array([row[0] for row in rows], dtype="datetime64[s]"), np.array([row[1:] for row in rows], dtype=float))
        for rows in people.values()
    ], "the GeoLife sample"


if __name__ == "__main__":
    main()
