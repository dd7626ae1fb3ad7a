"""Accuracy of a linear support vector machine by ε, pure and with a δ: is a handwritten digit below five?"""

from __future__ import annotations

import altair as alt
from sklearn.datasets import load_digits

from cloister.learn import LinearSVC, price_of_privacy
from cloister.noise import Random
from scripts.curves import drawn

EPSILONS = ("0.3", "1", "3", "10")


def chart() -> alt.LayerChart:
    """1,797 pictures of 64 pixels, in two classes."""
    data = load_digits()
    small = (data.target < 5).astype(int)
    curves = {
        name: price_of_privacy(
            LinearSVC(delta=delta, bounds=(0, 16)), data.data, small, epsilons=EPSILONS, runs=5, random=Random.deterministic(5)
        )
        for name, delta in (("ε alone", None), ("with δ = 10⁻⁵", "1e-5"))
    }
    return drawn(curves, y="accuracy on other pictures", guess=("guess: the larger class", float(small.mean())))
