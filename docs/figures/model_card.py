"""The price of privacy as `price_of_privacy(...).chart()` draws it: Gaussian naive Bayes on breast cancer."""

from __future__ import annotations

import altair as alt
from sklearn.datasets import load_breast_cancer

from cloister.learn import GaussianNB, price_of_privacy
from cloister.noise import Random

CHOSEN = [0, 1, 20, 21, 24, 27]
BOUNDS = ([6.0, 9.0, 7.0, 12.0, 0.07, 0.0], [29.0, 40.0, 37.0, 50.0, 0.23, 0.3])


def chart() -> alt.LayerChart:
    """As it comes."""
    data = load_breast_cancer()
    curve = price_of_privacy(
        GaussianNB(bounds=BOUNDS),
        data.data[:, CHOSEN],
        data.target,
        epsilons=("0.03", "0.1", "0.3", "1", "3", "10"),
        runs=20,
        rows="public rows",
        random=Random.deterministic(10),
    )
    return curve.chart()
