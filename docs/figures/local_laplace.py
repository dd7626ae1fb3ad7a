"""The worst variance of a mean against ε, for four mechanisms, as a multiple of the best one's."""

from __future__ import annotations

import altair as alt

from cloister.local import Duchi, Hybrid, LocalLaplace, Piecewise

MECHANISMS = {"Laplace": LocalLaplace, "Duchi": Duchi, "Piecewise": Piecewise, "Hybrid": Hybrid}
COLOURS = ["#a59a8c", "#8a9a5b", "#c9714f", "#3f6c8f"]
EPSILONS = [tenths / 10 for tenths in range(2, 61, 2)]


def chart() -> alt.Chart:
    """A line for each mechanism."""
    points = []
    for epsilon in EPSILONS:
        found = {name: made(epsilon=epsilon).variance() for name, made in MECHANISMS.items()}
        points += [{"epsilon": epsilon, "times": each / found["Hybrid"], "mechanism": name} for name, each in found.items()]
    return (
        alt.Chart(alt.Data(values=[point for point in points if point["times"] <= 6]))
        .mark_line(strokeWidth=2.5)
        .encode(
            x=alt.X("epsilon:Q", title="ε"),
            y=alt.Y("times:Q", title="worst variance, as a multiple of Hybrid's", scale=alt.Scale(domain=[0, 6])),
            color=alt.Color(
                "mechanism:N", title=None, scale=alt.Scale(domain=list(MECHANISMS), range=COLOURS), sort=list(MECHANISMS)
            ),
        )
        .properties(width=420, height=240)
    )
