"""How large a domain direct encoding bears: its margin grows with the number of values, that of a unary encoding does not."""

from __future__ import annotations

import altair as alt

from cloister.local import DirectEncoding, UnaryEncoding

COLOURS = {"ε = 1": "#3f6c8f", "ε = 2": "#c9714f", "ε = 4": "#8a9a5b"}
SIZES = [2, 3, 4, 6, 8, 10, 14, 20, 30, 40, 60, 80, 120, 160, 250]
PEOPLE = 10_000


def chart() -> alt.Chart:
    """Solid: direct encoding; dashed: unary."""
    points = [
        {
            "d": size,
            "margin": 100 * made(range(size), epsilon=name[4:]).margin(PEOPLE),
            "ε": name,
            "protocol": kind,
        }
        for name in COLOURS
        for kind, made in (("direct encoding", DirectEncoding), ("optimised unary encoding", UnaryEncoding))
        for size in SIZES
    ]
    return (
        alt.Chart(alt.Data(values=points))
        .mark_line(strokeWidth=2.4)
        .encode(
            x=alt.X("d:Q", title="values in the domain", scale=alt.Scale(type="log", nice=False)),
            y=alt.Y("margin:Q", title="95 % margin of a rare value, in points", scale=alt.Scale(type="log")),
            color=alt.Color("ε:N", title=None, scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values()))),
            strokeDash=alt.StrokeDash("protocol:N", title=None, sort=["direct encoding", "optimised unary encoding"]),
        )
        .properties(width=420, height=240)
    )
