"""The error of a mean over several owners: of one alone, of all apart and put together, and of one answer over all."""

from __future__ import annotations

import math

import altair as alt

OWNERS = range(2, 21)
ROWS, RANGE, EPSILON = 500, 73, 0.1
COLOURS = {"one owner alone": "#c9714f", "all apart, put together": "#8a9a5b", "one answer over all": "#3f6c8f"}


def chart() -> alt.Chart:
    """The standard deviation of the noise in the sum, by the number of rows that it is a mean of."""
    noise = math.sqrt(2) * RANGE / EPSILON
    rows = []
    for owners in OWNERS:
        found = (noise / ROWS, noise * math.sqrt(owners) / (owners * ROWS), noise / (owners * ROWS))
        rows += [{"owners": owners, "way": way, "error": error} for way, error in zip(COLOURS, found, strict=True)]
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X("owners:Q", title="owners of 500 rows each"),
            y=alt.Y("error:Q", title="error of a mean age, in years", scale=alt.Scale(type="log")),
            color=alt.Color(
                "way:N",
                title=None,
                scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values())),
                legend=alt.Legend(orient="bottom"),
            ),
        )
        .properties(width=460, height=220)
    )
