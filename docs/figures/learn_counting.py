"""The error of a count against ε: the margin that 95 answers in 100 stay within, and the scale that 63 do."""

from __future__ import annotations

import altair as alt

from cloister.noise import DiscreteLaplace

COUNT = 6460
COLOURS = {"95 in 100 stay within": "#c9714f", "63 in 100 stay within": "#3f6c8f"}
EPSILONS = [round(10 ** (place / 8), 6) for place in range(-24, 1)]


def chart() -> alt.LayerChart:
    """Two lines on logarithmic axes, and the count itself for comparison."""
    points = [
        {"epsilon": epsilon, "error": max(DiscreteLaplace.for_epsilon(str(epsilon)).margin(level), 1), "line": name}
        for epsilon in EPSILONS
        for name, level in zip(COLOURS, ("0.95", "0.632"), strict=True)
    ]
    lines = (
        alt.Chart(alt.Data(values=points))
        .mark_line(strokeWidth=2.5)
        .encode(
            x=alt.X("epsilon:Q", title="ε", scale=alt.Scale(type="log", nice=False)),
            y=alt.Y("error:Q", title="error, in persons", scale=alt.Scale(type="log", domain=[1, 10_000])),
            color=alt.Color(
                "line:N", title=None, scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values())), sort=list(COLOURS)
            ),
        )
    )
    here = alt.Chart(alt.Data(values=[{"text": f"the count itself: {COUNT}"}]))
    rule = here.mark_rule(color="#2d2823", strokeDash=[4, 4]).encode(y=alt.datum(COUNT))
    text = here.mark_text(align="right", dy=10, color="#2d2823").encode(x=alt.datum(1), y=alt.datum(COUNT), text="text:N")
    return alt.layer(lines, rule, text).properties(width=440, height=260)
