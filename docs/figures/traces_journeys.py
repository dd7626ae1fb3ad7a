"""How far the cells that synthetic journeys pass are from the real ones, against ε, for towns of three sizes."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np

import cloister as cl
from cloister.noise import Random
from cloister.traces import Journeys, fit_journeys

SIDE = 8
EPSILONS = (0.1, 0.3, 1, 3, 10)
SIZES = {"300 journeys": 300, "3,000 journeys": 3_000, "30,000 journeys": 30_000}
COLOURS = ["#c9714f", "#3f6c8f", "#8a9a5b"]


def town(people: int) -> dict[str, Any]:
    """From one of five homes to one of three works, in twelve steps, with a detour at random."""
    random = np.random.default_rng(1)
    homes, works = random.uniform(5, 95, (5, 2)), random.uniform(20, 80, (3, 2))
    ends = homes[random.integers(0, 5, people)], works[random.integers(0, 3, people)]
    share = np.linspace(0, 1, 12)[None, :, None]
    bend = random.normal(0, 12, (people, 1, 2)) * np.sin(np.pi * share)
    places = ends[0][:, None] * (1 - share) + ends[1][:, None] * share + bend + random.normal(0, 2, (people, 12, 2))
    x, y = np.clip(places, 0, 100).reshape(-1, 2).T
    return {"who": np.repeat(np.arange(people), 12).astype(str).tolist(), "moment": list(range(12)) * people, "x": x, "y": y}


def fitted(rows: dict[str, Any], epsilon: float) -> Journeys:
    """A model of the town."""
    numbers = {name: cl.Real(0, 100, step="0.1") for name in ("x", "y")}
    columns = {"who": cl.Text(), "moment": cl.Integer(0, 11), **numbers}
    people = cl.PrivateTable(rows, columns, unit="who", max_rows=12)
    with cl.Session({"town": people}, budget=cl.PureDP(100), random=Random.deterministic(1)) as session:
        return fit_journeys(session, "town", spend=epsilon, cells=SIDE, zones=4, outside="edge")


def visits(who: Any, x: Any, y: Any) -> Any:
    """The share of each cell among the cells that journeys pass, once for each journey."""
    cells = [np.minimum((np.asarray(axis) / 100 * SIDE).astype(int), SIDE - 1) for axis in (x, y)]
    seen = np.unique(np.stack([np.asarray(who).astype(int), cells[0] + SIDE * cells[1]]), axis=1)[1]
    counts = np.bincount(seen, minlength=SIDE**2)
    return counts / counts.sum()


def chart() -> alt.Chart:
    """Half the sum of differences of shares."""
    points = []
    for name, people in SIZES.items():
        rows = town(people)
        real = visits(rows["who"], rows["x"], rows["y"])
        for epsilon in EPSILONS:
            frame = fitted(rows, epsilon).sample(2_000, random=Random.deterministic(1))
            found = visits(*(frame[column].tolist() for column in ("journey", "x", "y")))
            points.append({"epsilon": epsilon, "distance": float(np.abs(real - found).sum()) / 2, "town": name})
    return (
        alt.Chart(alt.Data(values=points))
        .mark_line(strokeWidth=2.4, point=True)
        .encode(
            x=alt.X("epsilon:Q", title="ε for a journey", scale=alt.Scale(type="log", domain=[0.1, 10])),
            y=alt.Y("distance:Q", title="share of visits in the wrong cell", scale=alt.Scale(domain=[0, 1])),
            color=alt.Color("town:N", title=None, scale=alt.Scale(domain=list(SIZES), range=COLOURS), sort=list(SIZES)),
        )
        .properties(width=420, height=240)
    )
