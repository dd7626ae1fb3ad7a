"""Accuracy of a small network on ten digits by ε, δ = 10⁻⁵, and of softmax regression by the same steps."""

from __future__ import annotations

import altair as alt
from sklearn.datasets import load_digits

from cloister.learn import NeuralClassifier, price_of_privacy
from cloister.noise import Random
from scripts.curves import drawn

EPSILONS = ("0.3", "1", "3", "10")


def chart() -> alt.LayerChart:
    """A line for each shape."""
    data = load_digits()
    curves = {
        name: price_of_privacy(
            NeuralClassifier(delta="1e-5", bounds=(0, 16), hidden=hidden, classes=list(range(10))),
            data.data,
            data.target,
            epsilons=EPSILONS,
            runs=4,
            random=Random.deterministic(8),
        )
        for name, hidden in (("one hidden layer of 32", (32,)), ("no hidden layer", ()))
    }
    return drawn(curves, y="accuracy on other pictures", guess=("guess: any digit", 0.1))
