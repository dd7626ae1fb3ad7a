"""Window level on three public streams: the mean absolute error of ours against budget absorption (BA), at ε = 1, w = 20 to 120.

The streams are taxi passengers of half an hour, weekly reports of influenza and daily power of a household, from the folder
that CLOISTER_DATA names. Without it nothing is measured.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path

import numpy as np
from _report import report

from cloister.noise import Random
from cloister.traces import Absorption, LastRelease, WindowStream

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
DATA = Path(os.environ.get("CLOISTER_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")) / "streams"
STREAMS = {
    "taxi": ("nyc_taxi_half_hourly.csv", "value"),
    "influenza": ("cdc_ilinet.csv", "ilitotal"),
    "power": ("household_power_daily.csv", "Global_active_power"),
}
LONGEST = 300 if QUICK else 3_000


def main() -> None:
    """Measure, print for people, print for programs."""
    if not DATA.exists():
        print("no streams: set CLOISTER_DATA to the folder that holds them")
        return
    for name in STREAMS:
        totals = read(name)
        for window in (20,) if QUICK else (20, 60, 120):
            ours = error(totals, WindowStream(epsilon=1, window=window, steps=len(totals), random=Random.deterministic(1)))
            absorbed = WindowStream(
                epsilon=1,
                window=window,
                steps=len(totals),
                policy=Absorption(),
                estimator=LastRelease(1),
                random=Random.deterministic(1),
            )
            theirs = error(totals, absorbed)
            detail = f"mean absolute error {ours:.1f} against {theirs:.1f} over {len(totals):,} steps, ε = 1"
            report(f"{name}, w = {window}, against BA", ratio=ours / theirs, limit=0.8, detail=detail, most=True)


def read(name: str) -> list[int]:
    """The totals of a stream, in order; of influenza, the nation's."""
    file, column = STREAMS[name]
    with (DATA / file).open(encoding="utf-8") as lines:
        rows = [row for row in csv.DictReader(lines) if row.get("region_type", "National") == "National"]
    return [round(float(row[column])) for row in rows][:LONGEST]


def error(totals: list[int], stream: WindowStream) -> float:
    """Of the released stream, on average over its steps."""
    return float(np.mean([abs(float(stream.step(total)[0]) - total) for total in totals]))


if __name__ == "__main__":
    main()
