"""The two errors of a sum against the bound that is declared: what it cuts off, and the noise that it needs."""

from __future__ import annotations

import altair as alt
import numpy as np

from cloister.noise import DiscreteLaplace, Random

BOUNDS = [20_000, 30_000, 40_000, 50_000, 60_000, 80_000, 100_000, 125_000, 150_000, 200_000, 250_000, 300_000, 400_000, 500_000]
ROWS = 20_000
COLOURS = {"cut off by the bound": "#8a9a5b", "margin, ε = 0.01": "#c9714f", "margin, ε = 0.1": "#3f6c8f"}


def chart() -> alt.Chart:
    """Three lines on logarithmic axes, for a skewed column that is nobody's."""
    pay = skewed()
    points = []
    for bound in BOUNDS:
        errors = [float(np.maximum(pay - bound, 0).sum()), *(margin(bound, epsilon) for epsilon in ("0.01", "0.1"))]
        points += [
            {"bound": bound, "error": error, "what": name} for name, error in zip(COLOURS, errors, strict=True) if error > 0
        ]
    return (
        alt.Chart(alt.Data(values=points))
        .mark_line(strokeWidth=2.5, clip=True)
        .encode(
            x=alt.X(
                "bound:Q",
                title="declared upper bound of the pay",
                scale=alt.Scale(type="log", nice=False),
                axis=alt.Axis(format="~s", values=[20_000, 50_000, 100_000, 200_000, 500_000]),
            ),
            y=alt.Y(
                "error:Q", title="error of the sum", scale=alt.Scale(type="log", domain=[1e5, 1e9]), axis=alt.Axis(format="~s")
            ),
            color=alt.Color(
                "what:N", title=None, sort=list(COLOURS), scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values()))
            ),
        )
        .properties(width=440, height=260)
    )


def skewed() -> np.ndarray:
    """20,000 made-up salaries: a quarter has a long tail."""
    drawn = (Random.deterministic(1).words(2 * ROWS) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    rich, place = drawn[:ROWS] < 0.24, drawn[ROWS:]
    return np.where(rich, np.minimum(50_000 * (1 - place) ** -0.4, 500_000), 8_000 + 42_000 * place)


def margin(bound: int, epsilon: str) -> float:
    """Of a sum of which one row is at most the bound."""
    return float(DiscreteLaplace.for_epsilon(epsilon, sensitivity=bound).margin(0.95))
