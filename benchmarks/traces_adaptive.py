"""The adaptive policy against the best fixed split, which is only known in hindsight: the goal is a mean absolute error of at
most 1.1 times its, on streams that were looked at once while it was written.

*Protocol.* The numbers of `Adaptive` (memories, risks, the quarter of a share) were chosen by hand on taxi passengers, the
nation's influenza reports, and generated streams: constant, Poisson, random walks, jumps, days, seasons, bursts. Reported are
five others: births of a year, hourly PM2.5, a household's power and that of its kitchen, influenza of the over-65. Ours has the
estimator `ModelAverage`, whose models were chosen on the former streams. A fixed split publishes every k-th step with kε/w
(`Sampled`), with the last release or with `LocalLevel`; all k below are tried, and the best of them is taken for each stream and
window. The same with `ModelAverage` for the fixed splits is printed beside.

The streams come from the folder that CLOISTER_DATA names. Without it nothing is measured.
"""

from __future__ import annotations

import csv
import gzip
import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from _report import report

from cloister.noise import Random
from cloister.traces import Adaptive, LastRelease, LocalLevel, ModelAverage, Sampled, WindowStream

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
DATA = Path(os.environ.get("CLOISTER_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")) / "streams"
STREAMS = {
    "births": ("daily_births.csv", "Births"),
    "PM2.5": ("beijing_pm25_hourly.csv.gz", "pm2.5"),
    "power": ("household_power_daily.csv", "Global_active_power"),
    "kitchen": ("household_power_daily.csv", "Sub_metering_1"),
    "influenza over 65": ("cdc_ilinet.csv", "age_65"),
}
PAUSES = (1, 2, 3, 5, 10, 20, 40, 120)
WINDOWS = (20,) if QUICK else (20, 60, 120)
LONGEST, SEEDS = (200, 1) if QUICK else (700, 3)


def main() -> None:
    """Measure, print for people, print for programs."""
    if not DATA.exists():
        print("no streams: set CLOISTER_DATA to the folder that holds them")
        return
    worst, better = 0.0, 0
    for name in STREAMS:
        totals, ratios = read(name), []
        for window in WINDOWS:
            ours = error(totals, window, Adaptive, ModelAverage)
            fixed = {
                f"every {pause}, {estimator.__name__}": error(totals, window, lambda pause=pause: Sampled(pause), estimator)
                for pause in PAUSES
                if pause <= window
                for estimator in (LastRelease, LocalLevel)
            }
            best = min(fixed, key=lambda each: fixed[each])
            alike = min(error(totals, window, lambda k=k: Sampled(k), ModelAverage) for k in PAUSES if k <= window)
            ratios.append(ours / fixed[best])
            print(
                f"{name}, w = {window}: {ours:.2f} against {fixed[best]:.2f} ({best}): {ratios[-1]:.2f}; "
                f"{ours / alike:.2f} of the best with its own estimator",
                flush=True,
            )
        worst, better = max(worst, *ratios), better + (float(np.mean(ratios)) < 1)
    windows = ", ".join(map(str, WINDOWS))
    report(
        "adaptive policy, worst of five streams",
        ratio=worst,
        limit=1.1,
        detail=f"against the best fixed split, w = {windows}",
        most=True,
    )
    report("adaptive policy, streams on which it is better", ratio=better, limit=4, detail="than the best fixed split, of five")


def read(name: str) -> list[int]:
    """The totals of a stream, in order, a missing one as the one before; of influenza, the nation's."""
    file, column = STREAMS[name]
    opened: Any = gzip.open if file.endswith("gz") else open
    totals: list[int] = []
    with opened(DATA / file, "rt", encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            if row.get("region_type", "National") == "National":
                try:
                    totals.append(max(round(float(row[column])), 0))
                except ValueError:
                    totals.append(totals[-1] if totals else 0)
    return totals[:LONGEST]


def error(totals: list[int], window: int, policy: Any, estimator: Any) -> float:
    """The mean absolute error, over steps and seeds."""
    found: list[npt.NDArray[np.float64]] = []
    for seed in range(SEEDS):
        stream = WindowStream(
            epsilon=1,
            window=window,
            steps=len(totals),
            policy=policy(),
            estimator=estimator(1),
            random=Random.deterministic(seed),
        )
        found.append(np.array([abs(float(stream.step(total)[0]) - total) for total in totals]))
    return float(np.mean(found))


if __name__ == "__main__":
    main()
