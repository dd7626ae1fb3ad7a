"""How far Hadamard response is from optimal local hashing, with one block and with the best number of blocks."""

from __future__ import annotations

import math

import altair as alt

from cloister.local import HadamardResponse

SIZE = 10_000
COLOURS = {"one block": "#c9714f", "the best order": "#3f6c8f"}


def chart() -> alt.Chart:
    """Two lines: variances in units of 4e^ε/(e^ε − 1)²."""
    points = []
    for step in range(4, 61, 2):
        epsilon = step / 10
        odds = math.exp(epsilon)
        optimum = 4 * odds / (odds - 1) ** 2
        ratios = ((odds + 1) ** 2 / (odds - 1) ** 2 / optimum, HadamardResponse(range(SIZE), epsilon).variance(1) / optimum)
        points += [
            {"epsilon": epsilon, "ratio": ratio, "way": name} for name, ratio in zip(COLOURS, ratios, strict=True) if ratio < 5
        ]
    names = list(COLOURS)
    return (
        alt.Chart(alt.Data(values=points))
        .mark_line(strokeWidth=2.5)
        .encode(
            x=alt.X("epsilon:Q", title="ε"),
            y=alt.Y("ratio:Q", title="variance, local hashing = 1", scale=alt.Scale(domain=[0, 5])),
            color=alt.Color(
                "way:N",
                title=None,
                sort=names,
                scale=alt.Scale(domain=names, range=list(COLOURS.values())),
                legend=alt.Legend(orient="top", labelLimit=300),
            ),
        )
        .properties(width=440, height=240)
    )
