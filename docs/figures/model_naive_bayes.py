"""Accuracy of naive Bayes on the sample census by ε: learnt from 2,000 persons and from 20,000."""

from __future__ import annotations

import altair as alt
import numpy as np

from cloister.learn import MixedNB, price_of_privacy
from cloister.noise import Random
from scripts.curves import drawn

EPSILONS = ("0.01", "0.03", "0.1", "0.3", "1", "3")


def chart() -> alt.LayerChart:
    """A line for each size."""
    curves, share = {}, 0.0
    for size in (2_000, 20_000):
        X, y = persons(size)
        model = MixedNB(bounds=(0, 100), categories={1: 16})
        curves[f"{size:,} persons"] = price_of_privacy(
            model, X, y, epsilons=EPSILONS, runs=20, rows="made-up rows", random=Random.deterministic(size)
        )
        share = float(1 - y.mean())
    return drawn(curves, y="accuracy on other persons", guess=("guess: the larger class", share))


def persons(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Age, one of sixteen degrees, and whether the income is high, made so that both matter."""
    source = np.random.default_rng(7)
    age, degree = source.integers(18, 80, size), source.integers(0, 16, size)
    score = 0.06 * (age - 45) + 0.45 * (degree - 8.5)
    return np.column_stack([age, degree]).astype(float), (source.logistic(size=size) < score - 0.8).astype(int)
