"""What collisions add to the error of a count mean sketch, by the number of buckets."""

from __future__ import annotations

import altair as alt

from cloister.local import CountMeanSketch

COLOURS = {"ε = 1": "#a59a8c", "ε = 2": "#c9714f", "ε = 4": "#3f6c8f"}


def chart() -> alt.Chart:
    """Three lines: the error in units of what it would be without collisions."""
    points = []
    for name, epsilon in zip(COLOURS, (1, 2, 4), strict=True):
        without = CountMeanSketch(range(4096), epsilon, buckets=4096).variance(1)
        points += [
            {
                "buckets": 1 << bits,
                "ratio": (CountMeanSketch(range(4096), epsilon, buckets=1 << bits).variance(1) / without) ** 0.5,
                "way": name,
            }
            for bits in range(2, 13)
        ]
    names = list(COLOURS)
    return (
        alt.Chart(alt.Data(values=points))
        .mark_line(strokeWidth=2.5, point=True)
        .encode(
            x=alt.X("buckets:Q", title="buckets", scale=alt.Scale(type="log", base=2)),
            y=alt.Y("ratio:Q", title="margin, without collisions = 1", scale=alt.Scale(domain=[0.9, 2.4])),
            color=alt.Color("way:N", title=None, sort=names, scale=alt.Scale(domain=names, range=list(COLOURS.values()))),
        )
        .properties(width=440, height=240)
    )
