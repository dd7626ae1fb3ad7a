"""How often the mode is right, and how often the answer says that it is sure, against ε."""

from __future__ import annotations

import altair as alt
import numpy as np

from cloister.noise import DiscreteLaplace, Random

TOWNS = [4034, 2596, 3613, 1757]
DRAWS = 4_000
SURE = 0.95
EPSILONS = ["0.0005", "0.001", "0.002", "0.003", "0.005", "0.007", "0.01", "0.015", "0.02", "0.03"]
COLOURS = {"it is right": "#3f6c8f", "it says: right with at least 95 % confidence": "#c9714f"}


def chart() -> alt.Chart:
    """Two lines against a logarithmic axis."""
    points = []
    for place, epsilon in enumerate(EPSILONS):
        noise = DiscreteLaplace.for_epsilon(epsilon)
        drawn = noise.sample(DRAWS * len(TOWNS), random=Random.deterministic(place)).reshape(DRAWS, len(TOWNS))
        counts = np.array(TOWNS) + drawn
        shares = float((counts.argmax(axis=1) == 0).mean()), float((said(counts, float(noise.variance)) >= SURE).mean())
        points += [{"epsilon": float(epsilon), "share": share, "what": name} for name, share in zip(COLOURS, shares, strict=True)]
    return (
        alt.Chart(alt.Data(values=points))
        .mark_line(strokeWidth=2.5, point=True)
        .encode(
            x=alt.X(
                "epsilon:Q",
                title="ε",
                scale=alt.Scale(type="log", nice=False),
                axis=alt.Axis(values=[0.0005, 0.001, 0.002, 0.005, 0.01, 0.02]),
            ),
            y=alt.Y("share:Q", title="share of the answers", axis=alt.Axis(format=".0%"), scale=alt.Scale(domain=[0, 1])),
            color=alt.Color(
                "what:N",
                title=None,
                sort=list(COLOURS),
                scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values())),
                legend=alt.Legend(orient="top", labelLimit=300),
            ),
        )
        .properties(width=440, height=260)
    )


def said(counts: np.ndarray, variance: float) -> np.ndarray:
    """The lower bound that an answer reports, by the formula of `cloister.session`."""
    ordered = np.sort(counts, axis=1)
    gaps, scale = ordered[:, -1:] - ordered[:, :-1], (variance / 2) ** 0.5
    tails = (1 + gaps / (2 * scale)) * np.exp(-gaps / scale) / 2
    return np.asarray(np.clip(1 - tails.sum(axis=1), 0, 1))
