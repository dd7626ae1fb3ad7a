"""Accuracy of linear discriminant analysis on breast cancer by ε, pure and with a δ."""

from __future__ import annotations

import altair as alt
from sklearn.datasets import load_breast_cancer

from cloister.learn import LinearDiscriminantAnalysis, price_of_privacy
from cloister.noise import Random
from scripts.curves import drawn

EPSILONS = ("0.3", "1", "3", "10")
CHOSEN = [0, 1, 20, 21, 24, 27]
BOUNDS = ([6.0, 9.0, 7.0, 12.0, 0.07, 0.0], [29.0, 40.0, 37.0, 50.0, 0.23, 0.3])


def chart() -> alt.LayerChart:
    """Six declared features of 569 patients."""
    data = load_breast_cancer()
    curves = {
        name: price_of_privacy(
            LinearDiscriminantAnalysis(delta=delta, bounds=BOUNDS),
            data.data[:, CHOSEN],
            data.target,
            epsilons=EPSILONS,
            runs=20,
            random=Random.deterministic(3),
        )
        for name, delta in (("ε alone", None), ("with δ = 10⁻⁵", "1e-5"))
    }
    return drawn(curves, y="accuracy on other patients", guess=("guess: the larger class", float(data.target.mean())))
