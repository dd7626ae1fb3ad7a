"""How far pairs of columns of synthetic rows lie from those of the table, by method and ε."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import altair as alt
import numpy as np

import cloister as cl
from cloister.learn import Curve
from cloister.noise import Random
from scripts.curves import drawn, measured

EPSILONS = ("0.03", "0.1", "0.3", "1", "3", "10")
COLUMNS = {
    "age": cl.Integer(18, 67),
    "work": cl.Integer(0, 7),
    "school": cl.Integer(0, 11),
    "pay": cl.Integer(0, 19),
    "car": cl.Boolean(),
}


def people(count: int = 10_000) -> np.ndarray:
    """Pay follows age and schooling, work follows schooling, and a car follows pay."""
    random = np.random.default_rng(1)
    age, school = random.integers(18, 68, count), np.clip(random.normal(5, 2.5, count), 0, 11).astype(int)
    work = np.clip(school * 0.6 + random.normal(0, 1, count), 0, 7).astype(int)
    pay = np.clip((age - 18) / 6 + school + random.normal(-2, 2, count), 0, 19).astype(int)
    return np.column_stack([age, work, school, pay, random.random(count) < pay / 20])


def apart(made: np.ndarray, real: np.ndarray) -> float:
    """The mean total variation over all pairs of columns."""
    found = []
    for one, other in combinations(range(real.shape[1]), 2):
        shares = [np.bincount(rows[:, one] * 100 + rows[:, other], minlength=6800) / len(rows) for rows in (made, real)]
        found.append(np.abs(shares[0] - shares[1]).sum() / 2)
    return float(np.mean(found))


def chart(*, runs: int = 4) -> alt.LayerChart:
    """10,000 made-up people of five columns; the dotted line is the table itself drawn again with replacement. Methods that
    choose are run once."""
    real = people()
    frame = dict(zip(COLUMNS, real.T, strict=True)) | {"car": real[:, 4].astype(bool)}

    def curve(method: Any, runs: int = runs) -> Curve:
        def run(epsilon: str | None, random: Random) -> float:
            assert epsilon is not None
            model = cl.synth.fit_frame(frame, COLUMNS, epsilon=epsilon, delta="1e-6", method=method, random=random)
            rows = model.sample(len(real), random=random)
            return apart(np.column_stack([rows[name] for name in COLUMNS]).astype(int), real)

        return measured(method, "total variation", EPSILONS, run, runs=runs, plain=False)

    again = apart(real[np.random.default_rng(2).integers(0, len(real), len(real))], real)
    curves = {"pairs": curve("pairs"), "independent columns": curve("independent")}
    curves |= {method: curve(method, 1) for method in ("aim", "mwem", "privbayes")}
    return drawn(curves, y="mean total variation of pairs", guess=("the table drawn again", again), log=True)
