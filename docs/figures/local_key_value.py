"""The margin of a key's mean against the padding, for both forms: where the one with the drawing in its favour wins."""

from __future__ import annotations

import altair as alt

from cloister.local import KeyValue

COLOURS = {"a row of all keys": "#3f6c8f", "one cell": "#c9714f"}
PEOPLE, SHARE = 100_000, 0.1


def chart() -> alt.Chart:
    """Two lines for 100 keys at ε = 2."""
    points = []
    for padding in range(1, 13):
        for name, how in zip(COLOURS, ("unary", "direct"), strict=True):
            protocol = KeyValue(range(100), 0, 100, 2, padding=padding, how=how)
            points.append({"padding": padding, "margin": 1.96 * protocol.mean_variance(PEOPLE, SHARE, 50) ** 0.5, "form": name})
    names = list(COLOURS)
    return (
        alt.Chart(alt.Data(values=points))
        .mark_line(strokeWidth=2.5, point=True)
        .encode(
            x=alt.X("padding:Q", title="padding: how many of 100 keys a person has at most"),
            y=alt.Y("margin:Q", title="95 % margin of a mean, on 0 to 100"),
            color=alt.Color(
                "form:N",
                title=None,
                sort=names,
                scale=alt.Scale(domain=names, range=list(COLOURS.values())),
                legend=alt.Legend(orient="top"),
            ),
        )
        .properties(width=440, height=240)
    )
