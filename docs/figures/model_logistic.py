"""Accuracy of logistic regression on ten digits by ε, pure and with a δ."""

from __future__ import annotations

import altair as alt
from sklearn.datasets import load_digits

from cloister.learn import LogisticRegression, price_of_privacy
from cloister.noise import Random
from scripts.curves import drawn

EPSILONS = ("0.3", "1", "3", "8")


def chart() -> alt.LayerChart:
    """1,797 pictures of 64 pixels, in ten classes."""
    data = load_digits()
    curves = {
        name: price_of_privacy(
            LogisticRegression(delta=delta, bounds=(0, 16), classes=list(range(10))),
            data.data,
            data.target,
            epsilons=EPSILONS,
            runs=2,
            random=Random.deterministic(4),
        )
        for name, delta in (("ε alone", None), ("with δ = 10⁻⁵", "1e-5"))
    }
    return drawn(curves, y="accuracy on other pictures", guess=("guess: any digit", 0.1))
