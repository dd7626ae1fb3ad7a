"""The margin of a private accuracy by ε, for three numbers of rows to judge by."""

from __future__ import annotations

import altair as alt
import numpy as np

from cloister.learn import accuracy
from cloister.learn.frame.examples import Threshold
from cloister.noise import Random
from scripts.curves import drawn, measured

EPSILONS = ("0.01", "0.03", "0.1", "0.3", "1")


def chart() -> alt.LayerChart:
    """A line for each number of rows."""
    curves = {}
    for size in (500, 5_000, 50_000):
        X = np.linspace(0, 1, size)[:, None]
        y = (X[:, 0] > 0.5).astype(int) ^ (np.arange(size) % 5 == 0)
        model = Threshold(bounds=(0, 1), random=Random.deterministic(9)).fit(X, y)

        def margin(epsilon: str | None, random: Random, m: object = model, rows: tuple = (X, y)) -> float:
            return float(accuracy(m, *rows, epsilon=epsilon or 1, random=random).margin())

        curves[f"{size:,} rows"] = measured("margin", "margin", EPSILONS, margin, plain=False)
    return drawn(curves, y="margin of the accuracy, 95 %", log=True, domain=(0.0001, 1))
