"""How much of the digits' variance three private directions hold, by ε, for the ways to find them."""

from __future__ import annotations

import altair as alt
import numpy as np
from sklearn.datasets import load_digits

from cloister.learn import PCA
from cloister.noise import Random
from scripts.curves import drawn, measured

EPSILONS = ("0.1", "0.3", "1", "3", "10", "30")
WAYS = {
    "gaussian, δ = 10⁻⁵": "gaussian",
    "power, δ = 10⁻⁵": "power",
    "exponential, pure": "exponential",
    "laplace, pure": "laplace",
}
KEPT = [10, 18, 20, 21, 26, 28, 34, 36, 42, 43, 53, 61]
"""Twelve pixels of the 64, so that all four ways are quick."""


def chart() -> alt.LayerChart:
    """Three directions of twelve pixels."""
    rows = load_digits().data[:, KEPT]
    about = rows - rows.mean(axis=0)
    whole = float((about**2).sum())

    def held(method: str, epsilon: str | None, random: Random) -> float:
        delta = "1e-5" if method in ("gaussian", "power") else None
        promise = {"privacy": None} if epsilon is None else {"epsilon": epsilon, "delta": delta, "method": method}
        model = PCA(3, bounds=(0, 16), random=random, **promise).fit(rows)
        return float(((about @ np.asarray(model.components_).T) ** 2).sum() / whole)

    curves = {
        name: measured(name, "held", EPSILONS, lambda epsilon, random, m=method: held(m, epsilon, random))
        for name, method in WAYS.items()
    }
    return drawn(curves, y="share of the variance in three directions", guess=("any three directions", 3 / len(KEPT)))
