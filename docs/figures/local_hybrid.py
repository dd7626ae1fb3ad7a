"""Whose number is measured how well: one person's variance against the true number, for four mechanisms."""

from __future__ import annotations

import altair as alt

from cloister.local import Duchi, Hybrid, LocalLaplace, Piecewise

MECHANISMS = {"Laplace": LocalLaplace, "Duchi": Duchi, "Piecewise": Piecewise, "Hybrid": Hybrid}
COLOURS = ["#a59a8c", "#8a9a5b", "#c9714f", "#3f6c8f"]


def chart() -> alt.Chart:
    """A line for each mechanism."""
    points = [
        {"t": t / 20, "variance": made(epsilon="1.5").variance(1, t / 20), "mechanism": name}
        for name, made in MECHANISMS.items()
        for t in range(-20, 21)
    ]
    return (
        alt.Chart(alt.Data(values=points))
        .mark_line(strokeWidth=2.5)
        .encode(
            x=alt.X("t:Q", title="the true number, on [−1, 1]"),
            y=alt.Y("variance:Q", title="variance of one report at ε = 1.5", scale=alt.Scale(domain=[0, 4])),
            color=alt.Color(
                "mechanism:N", title=None, scale=alt.Scale(domain=list(MECHANISMS), range=COLOURS), sort=list(MECHANISMS)
            ),
        )
        .properties(width=420, height=240)
    )
