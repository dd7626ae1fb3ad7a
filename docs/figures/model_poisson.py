"""D² of Poisson regression on made-up visits by ε, pure and with a δ."""

from __future__ import annotations

import altair as alt
import numpy as np

from cloister.learn import PoissonRegressor
from cloister.noise import Random
from scripts.curves import drawn, measured

EPSILONS = ("0.1", "0.3", "1", "3", "10")
ROWS = 4000


def visits(size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Three features of [0, 1], and a count up to 20, with a mean of about 3."""
    source = np.random.default_rng(seed)  # public, and no noise: the rows of a picture
    X = source.uniform(0, 1, (size, 3))
    return X, np.minimum(source.poisson(np.exp(0.5 + 1.5 * X[:, 0] - X[:, 1])), 20)


def chart() -> alt.LayerChart:
    """4,000 people to learn from, and as many others."""
    rows, others = visits(ROWS, 1), visits(ROWS, 2)

    def run(delta: str | None, epsilon: str | None, random: Random) -> float:
        promise = {"privacy": None} if epsilon is None else {"epsilon": epsilon, "delta": delta, "random": random}
        return PoissonRegressor(bounds=(0, 1), bounds_y=(0, 20), **promise).fit(*rows).score(*others)

    curves = {
        name: measured(name, "D²", EPSILONS, lambda epsilon, random, delta=delta: run(delta, epsilon, random))
        for name, delta in (("ε alone", None), ("with δ = 10⁻⁶", "1e-6"))
    }
    return drawn(curves, y="D² on other people", guess=("the mean for everybody", 0.0), domain=(-0.1, 0.4))
