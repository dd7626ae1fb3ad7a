"""How near the digits lie to ten private centres, by ε: rounds of sums, and one round on a coreset."""

from __future__ import annotations

import altair as alt
from sklearn.datasets import load_digits

from cloister.learn import Curve, KMeans
from cloister.noise import Random
from scripts.curves import drawn, measured

EPSILONS = ("0.3", "1", "3", "10")
WAYS = {"lloyd: rounds": "lloyd", "coreset: one round": "coreset"}


def chart() -> alt.LayerChart:
    """The mean squared distance of a row from its centre, pixels in [0, 1]; one centre for all is the line to beat."""
    rows = load_digits().data / 16

    def distance(method: str, epsilon: str | None, random: Random) -> float:
        promise = {"privacy": None} if epsilon is None else {"epsilon": epsilon}
        model = KMeans(10, bounds=(0, 1), method=method, random=random, **promise).fit(rows)
        away = ((rows[:, None, :] - model.cluster_centers_) ** 2).sum(axis=2)
        return float(away.min(axis=1).mean())

    def curve(name: str, method: str) -> Curve:
        def run(epsilon: str | None, random: Random) -> float:
            return distance(method, epsilon, random)

        return measured(name, "distance", EPSILONS, run, runs=4, plain=method == "lloyd")

    curves = {name: curve(name, method) for name, method in WAYS.items()}
    alone = float(((rows - rows.mean(axis=0)) ** 2).sum(axis=1).mean())
    return drawn(curves, y="mean squared distance from the nearest centre", guess=("one centre for all", alone))
