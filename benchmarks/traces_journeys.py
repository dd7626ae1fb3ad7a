"""Synthetic journeys: how long 100,000 of them take, and on Athens trucks how far their visits, beginnings and ends are from the
real ones at ε = 1 (Jensen–Shannon divergence over 6 × 6 cells, bits), beside cells that are all alike.

The 276 trips come from the folder that CLOISTER_DATA names; a trip is what is protected there. Without it only time is measured.
"""

from __future__ import annotations

import csv
import gzip
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from _report import report

import cloister as cl
from cloister.noise import Random
from cloister.traces import fit_journeys

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
DATA = Path(os.environ.get("CLOISTER_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")) / "mobility"
SIDE, SEEDS = 6, 2 if QUICK else 10
WEST, EAST, SOUTH, NORTH = 900, 1000, 985, 1001
COLUMNS = {
    "who": cl.Text(),
    "moment": cl.Integer(0, 1000),
    "x": cl.Real(WEST, EAST, step="0.001"),
    "y": cl.Real(SOUTH, NORTH, step="0.001"),
}
Rows = dict[str, list[Any]]
Floats = npt.NDArray[np.float64]


def main() -> None:
    """Measure, print for people, print for programs."""
    rows = trucks() if (DATA / "athens_trucks.csv.gz").exists() else walks(300)
    count = 2_000 if QUICK else 100_000
    model = fitted(rows, seed=1)
    started = time.process_time()
    model.sample(count, random=Random.deterministic(1))
    taken = (time.process_time() - started) * 100_000 / count
    report("100,000 journeys, processor seconds", ratio=taken, limit=10, detail=f"12 × 12 cells, drawn: {count:,}", most=True)
    if not (DATA / "athens_trucks.csv.gz").exists():
        print("no trucks: set CLOISTER_DATA to the folder that holds them")
        return
    real, alike = seen(rows), np.full(SIDE**2, 1.0)
    found: dict[str, list[float]] = {name: [] for name in real}
    for seed in range(SEEDS):
        frame = fitted(rows, seed=seed, cells=SIDE, zones=2).sample(300, random=Random.deterministic(seed))
        names = {"who": "journey", "moment": "step", "x": "x", "y": "y"}
        for name, counts in seen({name: frame[column].tolist() for name, column in names.items()}).items():
            found[name].append(divergence(real[name], counts))
    for name, values in found.items():
        beside = divergence(real[name], alike)
        detail = f"divergence {np.mean(values):.3f} against {beside:.3f} of cells that are alike, 276 trips, ε = 1, {SEEDS} runs"
        report(f"trucks, {name}", ratio=float(np.mean(values)) / beside, limit=0.8, detail=detail, most=True)


def fitted(rows: Rows, *, seed: int, cells: int = 12, zones: int = 4) -> Any:
    """A model at ε = 1 for a trip."""
    table = cl.PrivateTable(rows, COLUMNS, unit="who", max_rows=1000)
    with cl.Session({"trips": table}, budget=cl.PureDP(1), random=Random.deterministic(seed)) as session:
        return fit_journeys(session, "trips", spend=1, cells=cells, zones=zones)


def seen(rows: Rows) -> dict[str, Floats]:
    """In how many journeys each cell is visited, and in how many it is the first and the last."""
    who, cell = np.unique(np.array(rows["who"]), return_inverse=True)[1], np.zeros(len(rows["who"]), dtype=np.int64)
    for name, (low, high), times in (("x", (WEST, EAST), 1), ("y", (SOUTH, NORTH), SIDE)):
        cell += times * np.clip(((np.array(rows[name]) - low) / (high - low) * SIDE).astype(np.int64), 0, SIDE - 1)
    order = np.lexsort((np.array(rows["moment"]), who))
    who, cell = who[order], cell[order]
    first = np.flatnonzero(np.diff(who, prepend=-1))
    last = np.append(first[1:], len(who)) - 1
    visited = np.unique(np.stack([who, cell]), axis=1)[1]
    return {
        name: np.bincount(cells, minlength=SIDE**2).astype(np.float64)
        for name, cells in (("visits", visited), ("beginnings", cell[first]), ("ends", cell[last]))
    }


def divergence(one: Floats, other: Floats) -> float:
    """Jensen and Shannon's, in bits: 0 for equal shares, 1 where nothing is shared."""
    one, other = one / one.sum(), other / other.sum()
    middle = (one + other) / 2
    return sum(float((part[part > 0] * np.log2(part[part > 0] / middle[part > 0])).sum()) for part in (one, other)) / 2


def trucks() -> Rows:
    """The published trips."""
    with gzip.open(DATA / "athens_trucks.csv.gz", "rt", encoding="utf-8") as lines:
        found = list(csv.DictReader(lines))
    numbers = {name: [float(row[column]) for row in found] for name, column in (("moment", "t"), ("x", "x"), ("y", "y"))}
    return {"who": [row["traj_id"] for row in found], **numbers, "moment": [round(moment) for moment in numbers["moment"]]}


def walks(count: int) -> Rows:
    """Made-up ones."""
    random = np.random.default_rng(1)
    x = np.clip(950 + random.normal(0, 3, (count, 50)).cumsum(axis=1), WEST, EAST)
    y = np.clip(993 + random.normal(0, 0.5, (count, 50)).cumsum(axis=1), SOUTH, NORTH)
    who = np.repeat(np.arange(count), 50)
    return {
        "who": [str(each) for each in who],
        "moment": list(range(50)) * count,
        "x": x.ravel().tolist(),
        "y": y.ravel().tolist(),
    }


if __name__ == "__main__":
    main()
