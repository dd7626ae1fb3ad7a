"""The measures of journeys, each against its definition written out."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.stats import kendalltau

import cloister as cl
from cloister.errors import InvalidParameter
from cloister.noise import Random
from cloister.traces import JourneyMeasures, fit_journeys, journey_measures
from cloister.traces.measures import divergence

BOX = ((0, 0), (120, 60))
SIDE = 5
Columns = tuple[Any, Any, Any, Any]


def journeys(count: int, *, seed: int, pace: float = 12.0) -> Columns:
    random = np.random.default_rng(seed)
    who, moment, places = [], [], []
    for journey in range(count):
        length = int(random.integers(1, 12))
        who += [f"j{journey}"] * length
        moment += random.permutation(length).tolist()
        places += (random.uniform([0, 0], [120, 60]) + random.normal(0, pace, (length, 2)).cumsum(axis=0)).tolist()
    x, y = np.array(places).T
    return who, moment, x, y


def walks(columns: Columns) -> list[list[tuple[int, ...]]]:
    """Each journey as its cells."""
    found: dict[str, list[tuple[int, float, float]]] = {}
    for who, moment, x, y in zip(*columns, strict=True):
        found.setdefault(who, []).append((moment, x, y))
    paths: list[Any] = []
    for rows in found.values():
        stops = [
            (min(max(int(np.floor(x / 24)), 0), SIDE - 1), min(max(int(np.floor(y / 12)), 0), SIDE - 1))
            for _, x, y in sorted(rows)
        ]
        path: list[Any] = stops[:1]
        for (x, y), (to_x, to_y) in pairwise(stops):
            length = max(abs(to_x - x), abs(to_y - y))
            path += [
                tuple((2 * (to - at) * step + length) // (2 * length) + at for at, to in ((x, to_x), (y, to_y)))
                for step in range(1, length + 1)
            ]
        paths.append(path)
    return paths


def shares(values: list[Any], keys: list[Any]) -> np.ndarray[Any, np.dtype[np.float64]]:
    counts = Counter(values)
    return np.array([counts[key] for key in keys], dtype=float) / len(values)


def metres(one: tuple[int, ...], other: tuple[int, ...]) -> float:
    return float(np.hypot(24 * (one[0] - other[0]), 12 * (one[1] - other[1])))


def by_the_definitions(real: Columns, released: Columns) -> dict[str, float]:
    both = walks(real), walks(released)
    cells = [(x, y) for y in range(SIDE) for x in range(SIDE)]
    visits = [Counter(cell for path in paths for cell in set(path)) for paths in both]
    trips = [[(path[0], path[-1]) for path in paths] for paths in both]
    lengths = [[sum(metres(a, b) for a, b in pairwise(path)) for path in paths] for paths in both]
    diameters = [[max(metres(a, b) for a in path for b in path) for path in paths] for paths in both]

    def binned(values: list[list[float]]) -> float:
        most = max(values[0])
        places = [[20 if value > most + 1e-6 else min(int(value / most * 20), 19) for value in each] for each in values]
        return divergence(*(shares(each, list(range(21))) for each in places))

    squares = [{(x + i, y + j) for i in range(2) for j in range(2)} for x in range(4) for y in range(4)]
    passing = [[sum(bool(set(path) & square) for path in paths) / len(paths) for square in squares] for paths in both]
    patterns: list[Counter[Any]] = [
        Counter(tuple(path[at : at + size]) for path in paths for size in range(2, 6) for at in range(len(path) - size + 1))
        for paths in both
    ]

    def number(path: Any) -> int:
        code = 0
        for x, y in path:
            code = code * (SIDE**2 + 1) + x + SIDE * y + 1
        return code

    top = [sorted(each, key=lambda path: (-each[path], number(path)))[:100] for each in patterns]
    often = [[each[path] / len(paths) for path in top[0]] for each, paths in zip(patterns, both, strict=True)]
    order = [[at for at in sorted(range(25), key=lambda at: -each[cells[at]])[:10] if each[cells[at]]] for each in visits]
    gains = [sum(visits[0][cells[at]] / np.log2(2 + rank) for rank, at in enumerate(each)) for each in order]
    return {
        "density": divergence(*(np.array([each[cell] for cell in cells]) for each in visits)),
        "query": float(np.mean([abs(a - b) / max(a, 0.01) for a, b in zip(*passing, strict=True)])),
        "trips": divergence(*(shares(each, sorted({*trips[0], *trips[1]})) for each in trips)),
        "diameter": binned(diameters),
        "length": binned(lengths),
        "support": float(np.mean([abs(a - b) / a for a, b in zip(*often, strict=True)])),
        "hotspots": float(gains[1] / gains[0]),
        "coverage": float(kendalltau(*([each[cell] for cell in cells] for each in visits)).statistic),
        "patterns": len(set(top[0]) & set(top[1])) / 100,
    }


@pytest.mark.parametrize(("seed", "pace"), [(1, 12.0), (2, 40.0), (3, 4.0)])
def test_each_measure_is_that_of_its_definition(seed: int, pace: float) -> None:
    real, released = journeys(150, seed=seed, pace=pace), journeys(90, seed=seed + 10, pace=20.0)
    assert journey_measures(real, released, box=BOX, cells=SIDE).to_dict() == pytest.approx(by_the_definitions(real, released))


def test_the_same_journeys_in_another_order_are_perfect_and_others_elsewhere_are_not() -> None:
    real = journeys(80, seed=1)
    order = np.random.default_rng(1).permutation(len(real[0]))
    shuffled = tuple(np.array(column)[order] for column in real)
    perfect = journey_measures(real, shuffled, box=BOX, cells=SIDE)
    scores = ("hotspots", "coverage", "patterns")
    assert perfect.to_dict() == pytest.approx({name: float(name in scores) for name in JourneyMeasures.__slots__})
    left, right = (["a"] * 2, [0, 1], [1, 1], [1, 59]), (["a"] * 2, [0, 1], [119, 30], [1, 1])
    apart = journey_measures(left, right, box=BOX, cells=SIDE)
    assert (apart.density, apart.trips, apart.length, apart.patterns, apart.support) == (1, 1, 1, 0, 1)
    assert apart.hotspots == 0
    assert perfect.better_than(apart) == list(JourneyMeasures.__slots__)
    assert apart.better_than(perfect) == []


def test_a_model_of_the_journeys_is_nearer_than_journeys_at_random() -> None:
    random = np.random.default_rng(1)
    start, share = random.normal([25, 15], 5, (600, 2)), np.linspace(0, 1, 8)[None, :, None]
    places = np.clip(start[:, None] + share * np.array([70.0, 30.0]) + random.normal(0, 1, (600, 8, 2)), 0, [119, 59])
    x, y = places.reshape(-1, 2).T
    who, moment = np.repeat(np.arange(600), 8).astype(str), np.tile(np.arange(8), 600)
    columns = {"who": cl.Text(), "moment": cl.Integer(0, 7), "x": cl.Real(0, 120, step=1), "y": cl.Real(0, 60, step=1)}
    rows = {"who": who.tolist(), "moment": moment.tolist(), "x": x, "y": y}
    table = cl.PrivateTable(rows, columns, unit="who", max_rows=8)
    with cl.Session({"trips": table}, budget=cl.PureDP(4), random=Random.deterministic(1)) as session:
        frame = fit_journeys(session, "trips", spend=4, cells=5, zones=5).sample(600, random=Random.deterministic(1))
    drawn = tuple(frame[name] for name in ("journey", "step", "x", "y"))
    model, chance = (journey_measures((who, moment, x, y), each, box=BOX, cells=5) for each in (drawn, journeys(600, seed=9)))
    assert len(model.better_than(chance)) == 9


@pytest.mark.parametrize(
    ("released", "why"),
    [
        (([], [], [], []), "one row at least"),
        ((["a"], [0], [1]), "four columns"),
        ((["a"], [0], [1], [1, 2]), "four columns"),
        ((["a"], [0, 1], [1], [1]), "four columns"),
        ((["a"], ["noon"], [1], [1]), "four columns"),
        ((["a"], [np.nan], [1], [1]), "four columns"),
        (7, "four columns"),
        ((["a"], [0], [np.nan], [1]), "finite numbers"),
    ],
)
def test_journeys_that_are_none_are_refused(released: Any, why: str) -> None:
    real = (["a"], [0], [1], [1])
    with pytest.raises(InvalidParameter, match=f"released is invalid.*{why}"):
        journey_measures(real, released, box=BOX)
    with pytest.raises(InvalidParameter, match=f"real is invalid.*{why}"):
        journey_measures(released, real, box=BOX)


@pytest.mark.parametrize("wrong", [{"cells": 0}, {"cells": 33}, {"cells": True}, {"box": ((0, 0), (0, 5))}, {"box": 3}])
def test_a_grid_that_is_none_is_refused(wrong: dict[str, Any]) -> None:
    real = (["a"], [0], [1], [1])
    with pytest.raises(InvalidParameter):
        journey_measures(real, real, **{"box": BOX, **wrong})


def test_one_journey_of_one_point_has_measures() -> None:
    one = (["a"], [0], [1], [1])
    assert journey_measures(one, one, box=BOX, cells=1).coverage == 1
    found = journey_measures(one, journeys(20, seed=1), box=BOX)
    assert all(np.isfinite(value) for value in found.to_dict().values())
