"""What several numbers at once cost: the margin of a mean against the number of coordinates, for a corner and for a lot."""

from __future__ import annotations

import altair as alt

from cloister.local import Duchi, Hybrid, LocalLaplace

MECHANISMS = {"Laplace": LocalLaplace, "Duchi: a whole corner": Duchi, "Hybrid: coordinates by lot": Hybrid}
COLOURS = ["#c9714f", "#8a9a5b", "#3f6c8f"]
DIMENSIONS = [1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 70, 100]


def chart() -> alt.Chart:
    """A line for each mechanism, both axes logarithmic."""
    points = [
        {"d": d, "margin": 1.96 * made(epsilon=1, dimensions=d).variance(100_000) ** 0.5, "mechanism": name}
        for name, made in MECHANISMS.items()
        for d in DIMENSIONS
    ]
    return (
        alt.Chart(alt.Data(values=points))
        .mark_line(strokeWidth=2.5, point=True)
        .encode(
            x=alt.X("d:Q", title="coordinates", scale=alt.Scale(type="log", nice=False)),
            y=alt.Y("margin:Q", title="95 % margin on [−1, 1], n = 100,000, ε = 1", scale=alt.Scale(type="log")),
            color=alt.Color(
                "mechanism:N", title=None, scale=alt.Scale(domain=list(MECHANISMS), range=COLOURS), sort=list(MECHANISMS)
            ),
        )
        .properties(width=420, height=240)
    )
