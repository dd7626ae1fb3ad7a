"""How far the cells that synthetic journeys pass are from the real ones, against ε: on the declared roads, and on a grid."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np

import cloister as cl
from cloister.noise import Random
from cloister.traces import RoadGraph, fit_journeys, fit_road_journeys

SIDE = 12
PEOPLE = 1_000
EPSILONS = (0.1, 0.3, 1, 3, 10)
COLOURS = ["#a63f24", "#3f6c8f"]


def town() -> RoadGraph:
    """Streets 100 m apart, and a river across the middle with two bridges."""
    names = [f"{i}-{j}" for i in range(SIDE) for j in range(SIDE)]
    links = [(f"{i}-{j}", f"{i + 1}-{j}") for i in range(SIDE - 1) for j in range(SIDE)]
    links += [(f"{i}-{j}", f"{i}-{j + 1}") for i in range(SIDE) for j in range(SIDE - 1) if j != SIDE // 2 - 1 or i in (2, 9)]
    places = np.array([[100 * int(part) for part in name.split("-")] for name in names])
    edges = {"from": [a for a, _ in links], "to": [b for _, b in links]}
    return RoadGraph({"node": names, "x": places[:, 0], "y": places[:, 1]}, edges)


def journeys(roads: RoadGraph) -> dict[str, Any]:
    """From one of three homes to one of three works, on the shortest path, a row for each crossing."""
    random = np.random.default_rng(1)
    homes, works = random.integers(0, SIDE**2, 3), random.integers(0, SIDE**2, 3)
    counts, passed = roads.paths(homes[random.integers(0, 3, PEOPLE)], works[random.integers(0, 3, PEOPLE)])
    x, y = roads.places[passed].T
    moment = np.arange(len(passed)) - np.repeat(np.cumsum(counts) - counts, counts)
    return {"who": np.repeat(np.arange(PEOPLE), counts).astype(str).tolist(), "moment": moment.tolist(), "x": x, "y": y}


def visits(who: Any, x: Any, y: Any) -> Any:
    """The share of each cell among the cells that journeys pass, once for each journey."""
    cells = [np.minimum((np.asarray(axis) // 100).astype(int), SIDE - 1) for axis in (x, y)]
    seen = np.unique(np.stack([np.asarray(who).astype(int), cells[0] + SIDE * cells[1]]), axis=1)[1]
    return np.bincount(seen, minlength=SIDE**2) / len(seen)


def chart() -> alt.Chart:
    """Half the sum of differences of shares, for 1,000 journeys."""
    roads = town()
    rows = journeys(roads)
    numbers = {name: cl.Integer(0, 100 * SIDE - 1) for name in ("x", "y")}
    people = cl.PrivateTable(rows, {"who": cl.Text(), "moment": cl.Integer(0, 99), **numbers}, unit="who", max_rows=60)
    real, points = visits(rows["who"], rows["x"], rows["y"]), []
    for epsilon in EPSILONS:
        with cl.Session({"town": people}, budget=cl.PureDP(100), random=Random.deterministic(1)) as session:
            models: dict[str, Any] = {
                "on the declared roads": fit_road_journeys(session, "town", roads, spend=epsilon, zones=4),
                "on a grid": fit_journeys(session, "town", spend=epsilon, cells=SIDE, zones=4),
            }
        for name, model in models.items():
            frame = model.sample(2_000, random=Random.deterministic(1))
            found = visits(*(frame[column].tolist() for column in ("journey", "x", "y")))
            points.append({"epsilon": epsilon, "distance": float(np.abs(real - found).sum()) / 2, "model": name})
    return (
        alt.Chart(alt.Data(values=points))
        .mark_line(strokeWidth=2.4, point=True)
        .encode(
            x=alt.X("epsilon:Q", title="ε of a journey", scale=alt.Scale(type="log")),
            y=alt.Y("distance:Q", title="share of visits in the wrong cell", scale=alt.Scale(domainMin=0)),
            color=alt.Color("model:N", title=None, scale=alt.Scale(range=COLOURS), sort=["on the declared roads", "on a grid"]),
        )
        .properties(width=420, height=240)
    )
