"""Members found against false alarms, both logarithmic: a raw decision tree and a private one on the same patients."""

from __future__ import annotations

from typing import Any

import altair as alt
from sklearn.datasets import load_diabetes
from sklearn.tree import DecisionTreeClassifier

from cloister import learn
from cloister.attacks import train_shadows
from cloister.noise import Random

MODELS, TARGETS = 96, 32


def chart() -> alt.LayerChart:
    """The likelihood-ratio attack on both; on the dashed line the attacker guesses."""
    X, progress = load_diabetes(return_X_y=True)
    y = (progress > 140).astype(int)
    random = Random.deterministic(1)

    def raw(X: Any, y: Any) -> Any:
        return DecisionTreeClassifier(random_state=0).fit(X, y)

    def private(X: Any, y: Any) -> Any:
        return learn.DecisionTreeClassifier(epsilon=1, bounds=(-0.2, 0.2), random=random).fit(X, y)

    results = [train_shadows(fit, X, y, models=MODELS, random=random).attacked(TARGETS) for fit in (raw, private)]
    return results[0].plot(results[1], names=("raw tree", "private tree, ε = 1"))
