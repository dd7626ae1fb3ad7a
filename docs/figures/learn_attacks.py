"""The noisy total of the salaries without and with the newcomer: at ε = 1 the two laws nearly agree, at ε = 10 they don't."""

from __future__ import annotations

import math

import altair as alt

BEFORE, JOINED, BOUND = 3_250_000, 156_000, 200_000
COLOURS = {"February: without the newcomer": "#3f6c8f", "March: with the newcomer": "#c9714f"}


def chart() -> alt.HConcatChart:
    """A panel for each ε; heights relative to the peak."""
    return alt.hconcat(*(panel(epsilon) for epsilon in (1, 10)), spacing=30)


def panel(epsilon: int) -> alt.Chart:
    """Both laws, over four scales of the wider one's neighbourhood."""
    scale = BOUND / epsilon
    reach = max(3 * scale, 1.5 * JOINED)
    points = [
        {
            "total": (BEFORE + JOINED / 2 + reach * place / 150) / 1e6,
            "height": math.exp(-abs(BEFORE + JOINED / 2 + reach * place / 150 - centre) / scale),
            "world": world,
        }
        for world, centre in zip(COLOURS, (BEFORE, BEFORE + JOINED), strict=True)
        for place in range(-150, 151)
    ]
    return (
        alt.Chart(alt.Data(values=points))
        .mark_area(opacity=0.35, line=True)
        .encode(
            x=alt.X("total:Q", title="what is published, in millions", scale=alt.Scale(zero=False, nice=False)),
            y=alt.Y("height:Q", title="likelihood", axis=alt.Axis(labels=False, ticks=False, grid=False), stack=None),
            color=alt.Color(
                "world:N",
                title=None,
                scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values())),
                legend=alt.Legend(orient="top", labelLimit=300),
            ),
        )
        .properties(width=300, height=170, title=f"ε = {epsilon}")
    )
