"""Synthetic journeys: how long 100,000 of them take on a grid and on roads, and on Athens trucks how far they are from the real
ones at ε = 1, against AdaTrace (Gursoy, Liu, Truex, Yu & Wei 2018) and LDPTrace (Du, Hu, Zhang, Fang, Chen, Zheng & Gao 2023) as
their authors' programs have them, written again here. LDPTrace trusts nobody, and pays for that.

Measured is the Jensen–Shannon divergence (bits) of visits, beginnings, ends and trips over 6 × 6 cells and of lengths. The nine
measures of `traces.journey_measures` on the same cells are counted beside. The 276 trips come from the folder that
CLOISTER_DATA names; a trip is what is protected there. Without it only time is measured. The other's grid lies over declared
bounds here, as ours does. Its lengths are as published: greatest and number of each trip are looked up, which ε does not cover.
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
from cloister.traces import RoadGraph, fit_journeys, fit_road_journeys, journey_measures

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
    roads = streets(50)
    with cl.Session({"trips": drives(roads)}, budget=cl.PureDP(1), random=Random.deterministic(1)) as session:
        model = fit_road_journeys(session, "trips", roads, spend=1)
    started = time.process_time()
    model.sample(100_000, random=Random.deterministic(1))
    taken = time.process_time() - started
    report("100,000 journeys on roads, processor seconds", ratio=taken, limit=10, detail=f"{roads!r}", most=True)
    if not (DATA / "athens_trucks.csv.gz").exists():
        print("no trucks: set CLOISTER_DATA to the folder that holds them")
        return
    real = seen(rows)
    other = AdaTrace(rows)
    ways: dict[str, Callable[[int], Rows]] = {
        "ours": lambda seed: ours(rows, seed),
        "AdaTrace": other.sample,
        "LDPTrace": LDPTrace(other.paths).sample,
    }
    found: dict[str, dict[str, list[float]]] = {way: {name: [] for name in real} for way in ways}
    nine: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
    for way, sample in ways.items():
        for seed in range(SEEDS):
            drawn = sample(seed)
            for name, counts in seen(drawn).items():
                found[way][name].append(divergence(real[name], counts))
            columns = [[each[name] for name in ("who", "moment", "x", "y")] for each in (rows, drawn)]
            nine[way].append(journey_measures(*columns, box=((WEST, SOUTH), (EAST, NORTH)), cells=SIDE).to_dict())
    means = {way: {name: float(np.mean([each[name] for each in runs])) for name in runs[0]} for way, runs in nine.items()}
    for way, values in means.items():
        print(f"  {way}: " + ", ".join(f"{name} {value:.3f}" for name, value in values.items()))
    for way in ("AdaTrace", "LDPTrace"):
        sign = {name: -1 if name in ("hotspots", "coverage", "patterns") else 1 for name in means[way]}
        better = [name for name, value in means["ours"].items() if (value - means[way][name]) * sign[name] < 0]
        detail = f"{', '.join(better)}; trips of trucks, ε = 1, {SEEDS} runs"
        report(f"trucks, measures of nine better than {way}'s", ratio=len(better), limit=6, detail=detail)
    for name in real:
        mine, theirs = (float(np.mean(found[way][name])) for way in ("ours", "AdaTrace"))
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


def add(rows: Rows, number: int, path: list[int]) -> None:
    """A journey more, by its cells: a row in the middle of each."""
    rows["who"] += [number] * len(path)
    rows["moment"] += list(range(len(path)))
    rows["x"] += [WEST + (cell % SIDE + 0.5) * (EAST - WEST) / SIDE for cell in path]
    rows["y"] += [SOUTH + (cell // SIDE + 0.5) * (NORTH - SOUTH) / SIDE for cell in path]


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
            add(rows, number, path)
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


class LDPTrace:
    """Each person reports by optimised unary encoding: the length of their journey in cells with a tenth of ε, then its first
    cell, its moves and its last cell, each with an equal part of the rest. Longer journeys than the 90 % quantile of the
    reported lengths end there.
    """

    def __init__(self, paths: list[list[int]]) -> None:
        self.paths = paths

    def sample(self, seed: int) -> Rows:
        """Measured with noise of its own, and as many journeys as there are."""
        random, cells = np.random.default_rng(seed), SIDE**2
        lengths = self.reported([min(len(path), cells) - 1 for path in self.paths], cells, 0.1, random).clip(0)
        reached = np.flatnonzero(lengths.cumsum() >= 0.9 * lengths.sum())
        most = int(reached[0]) + 1 if len(reached) else cells
        each = 0.9 / (most + 1)
        pairs = [pair[0] * cells + pair[1] for path in self.paths for pair in pairwise(path[:most])]
        beside = np.array([a * cells + b for a in range(cells) for b in range(cells) if AdaTrace.apart(a, b) == 1])
        place = {pair: at for at, pair in enumerate(beside.tolist())}
        begins = self.reported([path[0] for path in self.paths], cells, each, random).clip(0)
        ends = self.reported([path[:most][-1] for path in self.paths], cells, each, random).clip(0)
        moves = np.zeros((cells, cells))
        moves.ravel()[beside] = self.reported([place[pair] for pair in pairs], len(beside), each, random).clip(0)
        rows: Rows = {"who": [], "moment": [], "x": [], "y": []}
        for number in range(len(self.paths)):
            path = [int(random.choice(cells, p=begins / begins.sum()))]
            for step in range(1, int(random.choice(cells, p=lengths / lengths.sum())) + 1):
                total = moves[path[-1]].sum() + ends[path[-1]]
                if total <= 0:
                    break
                # The probability of an end grows with the length, as in its program.
                weights = np.append(moves[path[-1]], ends[path[-1]] * min(1.0, 0.3 + (step - 1) * 0.2)) / total
                chosen = int(random.choice(cells + 1, p=weights / weights.sum()))
                if chosen == cells:
                    break
                path.append(chosen)
            add(rows, number, path)
        return rows

    @staticmethod
    def reported(values: list[int], size: int, epsilon: float, random: np.random.Generator) -> Floats:
        """Estimated counts of values that are reported by optimised unary encoding: a bit that is 1 stays so with probability
        1/2.
        """
        low = 1 / (np.exp(epsilon) + 1)
        true = np.bincount(np.array(values, dtype=np.int64), minlength=size)
        ones = random.binomial(true, 0.5) + random.binomial(len(values) - true, low)
        return np.asarray((ones - len(values) * low) / (0.5 - low))


def streets(side: int) -> RoadGraph:
    """Streets 100 m apart, with bends."""
    random, names = np.random.default_rng(1), [(i, j) for i in range(side) for j in range(side)]
    east = [(i * side + j, (i + 1) * side + j) for i in range(side - 1) for j in range(side)]
    north = [(i * side + j, i * side + j + 1) for i in range(side) for j in range(side - 1)]
    nodes = {"node": list(range(side**2)), "x": [100 * i for i, _ in names], "y": [100 * j for _, j in names]}
    begin, end = zip(*east, *north, strict=True)
    return RoadGraph(nodes, {"from": begin, "to": end, "length": 100 * random.uniform(1, 1.5, len(begin))})


def drives(roads: RoadGraph) -> cl.PrivateTable:
    """2,000 trips from anywhere to anywhere."""
    most = int(roads.places.max())
    ends = np.random.default_rng(2).integers(0, most + 1, (4000, 2))
    rows = {"who": np.repeat(np.arange(2000), 2).astype(str).tolist(), "moment": [0, 1] * 2000, "x": ends[:, 0], "y": ends[:, 1]}
    columns = {"who": cl.Text(), "moment": cl.Integer(0, 1), **{name: cl.Integer(0, most) for name in ("x", "y")}}
    return cl.PrivateTable(rows, columns, unit="who", max_rows=2)


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
