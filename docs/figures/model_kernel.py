"""Accuracy of a kernel machine on two rings by ε, pure and with a δ; no line does better than a guess."""

from __future__ import annotations

import altair as alt
import numpy as np

from cloister.learn import KernelClassifier, price_of_privacy
from cloister.noise import Random
from scripts.curves import drawn

EPSILONS = ("0.03", "0.1", "0.3", "1", "3")


def rings(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Two rings about one middle, a class each."""
    generator = np.random.default_rng(1)
    y = generator.integers(0, 2, count)
    radius = np.where(y == 0, 0.35, 0.8) + generator.normal(0, 0.08, count)
    angle = generator.uniform(0, 2 * np.pi, count)
    return np.clip(np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), -1, 1), y


def chart() -> alt.LayerChart:
    """4,000 rows, a quarter of them held back."""
    X, y = rings(4000)
    curves = {
        name: price_of_privacy(
            KernelClassifier(delta=delta, bounds=(-1, 1)), X, y, epsilons=EPSILONS, runs=4, random=Random.deterministic(4)
        )
        for name, delta in (("ε alone", None), ("with δ = 10⁻⁵", "1e-5"))
    }
    return drawn(curves, y="accuracy on other rows", guess=("any line: a guess", 0.5), domain=(0.45, 1.02))
