"""Accuracy of a tree and of two forests on breast cancer by ε."""

from __future__ import annotations

import altair as alt
from sklearn.datasets import load_breast_cancer

from cloister.learn import DecisionTreeClassifier, RandomForestClassifier, price_of_privacy
from cloister.noise import Random
from scripts.curves import drawn

EPSILONS = ("0.03", "0.1", "0.3", "1", "3", "10")
CHOSEN = [0, 1, 20, 21, 24, 27]
BOUNDS = ([6.0, 9.0, 7.0, 12.0, 0.07, 0.0], [29.0, 40.0, 37.0, 50.0, 0.23, 0.3])


def chart() -> alt.LayerChart:
    """A greedy tree, three trees on persons of their own, and thirty that split at random."""
    data = load_breast_cancer()
    models = {
        "a tree": DecisionTreeClassifier(bounds=BOUNDS, max_depth=3),
        "a forest of 3": RandomForestClassifier(n_estimators=3, bounds=BOUNDS, max_depth=3),
        "a forest of 10, splits drawn": RandomForestClassifier(n_estimators=10, bounds=BOUNDS, max_depth=4, method="random"),
    }
    curves = {
        name: price_of_privacy(
            model, data.data[:, CHOSEN], data.target, epsilons=EPSILONS, runs=20, random=Random.deterministic(6)
        )
        for name, model in models.items()
    }
    return drawn(curves, y="accuracy on other patients", guess=("guess: the larger class", float(data.target.mean())))
