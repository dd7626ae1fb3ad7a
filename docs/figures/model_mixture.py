"""How likely other rows are under a private mixture of four groups, by ε, pure and with a δ."""

from __future__ import annotations

import altair as alt
import numpy as np

from cloister.learn import Curve, GaussianMixture
from cloister.noise import Random
from scripts.curves import drawn, measured

EPSILONS = ("0.03", "0.1", "0.3", "1", "3")
MIDDLES = np.array([[0.2, 0.2, 0.5], [0.8, 0.3, 0.2], [0.5, 0.8, 0.5], [0.7, 0.7, 0.9]])


def blobs(count: int, seed: int) -> np.ndarray:
    """Four normal groups in three features, of different widths."""
    generator = np.random.default_rng(seed)
    return np.clip(MIDDLES[generator.integers(0, 4, count)] + generator.normal(0, [0.03, 0.06, 0.05], (count, 3)), 0, 1)


def chart() -> alt.LayerChart:
    """10,000 rows; one normal group for all of them is the line to beat."""
    rows, others = blobs(10_000, 1), blobs(5_000, 2)

    def curve(name: str, delta: str | None) -> Curve:
        def run(epsilon: str | None, random: Random) -> float:
            promise = {"privacy": None} if epsilon is None else {"epsilon": epsilon, "delta": delta}
            return GaussianMixture(4, bounds=(0, 1), random=random, **promise).fit(rows).score(others)

        return measured(name, "log likelihood", EPSILONS, run, runs=4, plain=delta is None)

    curves = {name: curve(name, delta) for name, delta in (("ε alone", None), ("with δ = 10⁻⁵", "1e-5"))}
    alone = GaussianMixture(1, privacy=None).fit(rows).score(others)
    return drawn(curves, y="mean log density of other rows", guess=("one group for all", alone))
