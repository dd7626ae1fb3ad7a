"""Synthetic journeys: how long 100,000 of them take, and on Athens trucks how far they are from the real ones at ε = 1, against
AdaTrace (Gursoy, Liu, Truex, Yu & Wei 2018) as its authors' program has it, written again here.

Measured is the Jensen–Shannon divergence (bits) of visits, beginnings, ends and trips over 6 × 6 cells and of lengths. The 276
trips come from the folder that CLOISTER_DATA names; a trip is what is protected there. Without it only time is measured. The
other's grid lies over declared bounds here, as ours does. Its lengths are as published: greatest and number of each trip are
looked up, which ε does not cover.
"""

from __future__ import annotations

import csv
import gzip
import os
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from _report import report
from scipy.special import gammaln

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
Integers = npt.NDArray[np.int64]


def main() -> None:
    """Measure, print for people, print for programs."""
    rows = trucks() if (DATA / "athens_trucks.csv.gz").exists() else walks(300)
    model = fitted(rows, seed=1)
    started = time.process_time()
    model.sample(100_000, random=Random.deterministic(1))
    taken = time.process_time() - started
    report("100,000 journeys, processor seconds", ratio=taken, limit=10, detail="12 × 12 cells", most=True)
    if not (DATA / "athens_trucks.csv.gz").exists():
        print("no trucks: set CLOISTER_DATA to the folder that holds them")
        return
    real = seen(rows)
    ways: dict[str, Callable[[int], Rows]] = {"ours": lambda seed: ours(rows, seed), "AdaTrace": AdaTrace(rows).sample}
    found = {way: {name: [] for name in real} for way in ways}
    for way, sample in ways.items():
        for seed in range(SEEDS):
            for name, counts in seen(sample(seed)).items():
                found[way][name].append(divergence(real[name], counts))
    for name in real:
        mine, theirs = (float(np.mean(found[way][name])) for way in ways)
        detail = f"divergence {mine:.3f} against {theirs:.3f} of AdaTrace, 276 trips, ε = 1, {SEEDS} runs"
        report(f"trucks, {name}", ratio=mine / theirs, limit=1, detail=detail, most=True)


def ours(rows: Rows, seed: int) -> Rows:
    """As many journeys as there are."""
    frame = fitted(rows, seed=seed, cells=SIDE, zones=2).sample(276, random=Random.deterministic(seed))
    return {name: frame[column].tolist() for name, column in (("who", "journey"), ("moment", "step"), ("x", "x"), ("y", "y"))}


def fitted(rows: Rows, *, seed: int, cells: int = 12, zones: int = 4) -> Any:
    """A model at ε = 1 for a trip."""
    table = cl.PrivateTable(rows, COLUMNS, unit="who", max_rows=1000)
    with cl.Session({"trips": table}, budget=cl.PureDP(1), random=Random.deterministic(seed)) as session:
        return fit_journeys(session, "trips", spend=1, cells=cells, zones=zones)


def cells_of(rows: Rows) -> tuple[Integers, Integers, Integers]:
    """The cells of all rows in the order of journeys and moments, whose they are, and where each journey begins."""
    who, cell = np.unique(np.array(rows["who"]), return_inverse=True)[1], np.zeros(len(rows["who"]), dtype=np.int64)
    for name, (low, high), times in (("x", (WEST, EAST), 1), ("y", (SOUTH, NORTH), SIDE)):
        cell += times * np.clip(((np.array(rows[name]) - low) / (high - low) * SIDE).astype(np.int64), 0, SIDE - 1)
    order = np.lexsort((np.array(rows["moment"]), who))
    return cell[order], who[order], np.flatnonzero(np.diff(who[order], prepend=-1))


def seen(rows: Rows) -> dict[str, Floats]:
    """In how many journeys each cell is visited, is the first, the last, each pair of cells is both, and each number of moves."""
    cell, who, first = cells_of(rows)
    last = np.append(first[1:], len(who)) - 1
    visited = np.unique(np.stack([who, cell]), axis=1)[1]
    moved = np.bincount(who[1:], weights=(cell[1:] != cell[:-1]) & (who[1:] == who[:-1]), minlength=len(first))
    lengths = np.searchsorted([1, 2, 4, 8, 12, 16, 24, 32, 64], moved, side="right")
    found = ((visited, SIDE**2), (cell[first], SIDE**2), (cell[last], SIDE**2), (cell[first] * SIDE**2 + cell[last], SIDE**4))
    names = ("visits", "beginnings", "ends", "trips", "lengths")
    pairs = zip(names, (*found, (lengths, 10)), strict=True)
    return {name: np.bincount(values, minlength=size).astype(np.float64) for name, (values, size) in pairs}


class AdaTrace:
    """Its trips, its moves and its lengths, with the shares of its program: 0.5, 0.35 and 0.1 of ε (0.05 is for densities, which
    place points within cells and no more).
    """

    def __init__(self, rows: Rows) -> None:
        cell, who, first = cells_of(rows)
        kept = np.append(True, (cell[1:] != cell[:-1]) | (who[1:] != who[:-1]))
        self.paths = [self.between(path.tolist()) for path in np.split(cell[kept], np.flatnonzero(np.diff(who[kept])) + 1)]
        assert len(self.paths) == len(first)

    @staticmethod
    def between(path: list[int]) -> list[int]:
        """Every move to a cell beside the last: both coordinates approach the next stop by one."""
        found = path[:1]
        for stop in path[1:]:
            while found[-1] != stop:
                x, y = found[-1] % SIDE, found[-1] // SIDE
                found.append(int(x + np.sign(stop % SIDE - x) + SIDE * (y + np.sign(stop // SIDE - y))))
        return found

    def sample(self, seed: int) -> Rows:
        """Measured with noise of its own, and as many journeys as there are."""
        random = np.random.default_rng(seed)
        trips, moves = np.zeros((SIDE**2, SIDE**2)), np.zeros((SIDE**2, SIDE**2))
        extra: dict[tuple[int, int], list[int]] = {}
        for path in self.paths:
            trips[path[0], path[-1]] += 1
            extra.setdefault((path[0], path[-1]), []).append(len(path) - 1 - self.apart(path[0], path[-1]))
            for pair in pairwise(path):
                moves[pair] += 1 / (len(path) - 1)
        trips = np.rint(np.maximum(trips + random.laplace(0, 1 / 0.5, trips.shape), 0))
        beside = np.array([[self.apart(a, b) == 1 for b in range(SIDE**2)] for a in range(SIDE**2)])
        moves = np.maximum(moves + random.laplace(0, 1 / 0.35, moves.shape), 0) * beside
        chances = moves / np.maximum(moves.sum(axis=1, keepdims=True), 1e-12)
        powers = [chances, chances]
        while len(powers) <= 100:
            powers.append(powers[-1] @ chances)
        lengths = {trip: self.lengths(values, random) for trip, values in extra.items()}
        rows: Rows = {"who": [], "moment": [], "x": [], "y": []}
        for number, pair in enumerate(random.choice(SIDE**4, len(self.paths), p=trips.ravel() / trips.sum()).tolist()):
            begin, end = divmod(pair, SIDE**2)
            left = min(self.apart(begin, end) + (lengths[begin, end]() if (begin, end) in lengths else 0), 100)
            path = [begin]
            for after in range(left - 1, 0, -1):
                weights = chances[path[-1]] * powers[after][:, end]
                path.append(
                    int(random.choice(SIDE**2, p=weights / weights.sum()))
                    if weights.sum() > 1e-5
                    else (self.between([path[-1], end])[1:2] or [end])[0]
                )
            path += [end] if left or not path else []
            rows["who"] += [number] * len(path)
            rows["moment"] += list(range(len(path)))
            rows["x"] += [WEST + (cell % SIDE + 0.5) * (EAST - WEST) / SIDE for cell in path]
            rows["y"] += [SOUTH + (cell // SIDE + 0.5) * (NORTH - SOUTH) / SIDE for cell in path]
        return rows

    @staticmethod
    def apart(one: int, other: int) -> int:
        """The fewest moves."""
        return max(abs(one % SIDE - other % SIDE), abs(one // SIDE - other // SIDE))

    @staticmethod
    def lengths(values: list[int], random: np.random.Generator) -> Callable[[], int]:
        """Uniform, geometric or Poisson, whichever is nearest to the real ones; its mean has noise."""
        most = max(values)
        if not most:
            return lambda: 0
        mean = max((sum(values) + random.laplace(0, most / 0.1)) / len(values), 0.0)
        steps = np.arange(most + 1)
        kinds: list[tuple[Floats, Callable[[], int]]] = [
            (np.full(most + 1, 1 / (most + 1)), lambda: int(random.integers(0, most + 1))),
            ((1 / max(mean, 1)) * (1 - 1 / max(mean, 1)) ** steps, lambda: int(random.geometric(1 / max(mean, 1))) - 1),
            (np.exp(steps * np.log(mean or 0.1) - (mean or 0.1) - gammaln(steps + 1)), lambda: int(random.poisson(mean or 0.1))),
        ]
        real = np.bincount(values, minlength=most + 1) / len(values)
        drawn = min(kinds, key=lambda kind: float(np.abs(np.cumsum(kind[0] - real)).sum()))[1]
        return lambda: min(drawn(), round(most * 1.3))


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
