"""Asking one of several attributes against asking all with a share of ε: where each is better."""

from __future__ import annotations

import altair as alt

from cloister.local import SeveralAttributes

COLOURS = {"one, with the whole ε": "#3f6c8f", "all, with ε/4 each": "#c9714f"}


def chart() -> alt.Chart:
    """Two lines for four attributes of five values each."""
    points = []
    for step in range(5, 161, 5):
        several = SeveralAttributes({name: range(5) for name in "abcd"}, step / 10)
        for name, way in zip(COLOURS, ("sampling", "splitting"), strict=True):
            points.append(
                {"epsilon": step / 10, "margin": 1.96 * (several.variances[way] / 4 * 10_000) ** 0.5 / 100, "way": name}
            )
    names = list(COLOURS)
    return (
        alt.Chart(alt.Data(values=points))
        .mark_line(strokeWidth=2.5)
        .encode(
            x=alt.X("epsilon:Q", title="ε of a person, in all"),
            y=alt.Y("margin:Q", title="95 % margin of a share, in % (n = 10,000)", scale=alt.Scale(type="log")),
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
