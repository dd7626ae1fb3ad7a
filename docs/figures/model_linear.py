"""R² of linear regression on the diabetes rows by ε, with bounds that fit and with bounds that are too wide by ten."""

from __future__ import annotations

import altair as alt
from sklearn.datasets import load_diabetes

from cloister.learn import LinearRegression, price_of_privacy
from cloister.noise import Random
from scripts.curves import drawn

EPSILONS = ("1", "3", "10", "30", "100")
BOUNDS = {
    "bounds ± 0.2, target 25 to 346": (0.2, (25, 346)),
    "ten times as wide: ± 2, target 0 to 3,460": (2.0, (0, 3460)),
}


def chart() -> alt.LayerChart:
    """A line for each declaration."""
    data = load_diabetes()
    curves = {
        name: price_of_privacy(
            LinearRegression(bounds=(-reach, reach), bounds_y=target),
            data.data,
            data.target,
            epsilons=EPSILONS,
            runs=20,
            random=Random.deterministic(2),
        )
        for name, (reach, target) in BOUNDS.items()
    }
    return drawn(curves, y="R² on other patients", guess=("the mean for everybody", 0.0), domain=(-0.3, 0.6))
