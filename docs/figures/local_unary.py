"""The coins of the two unary encodings: how likely a bit is 1, for the value that is held and for the others, against ε."""

from __future__ import annotations

import altair as alt

from cloister.local import UnaryEncoding

COLOURS = {"optimised (OUE)": "#3f6c8f", "symmetric (SUE)": "#c9714f"}
BITS = ("the value that is held", "every other value")


def chart() -> alt.Chart:
    """Two lines for each encoding."""
    points = [
        {"ε": place / 10, "chance": float(chance), "bit": bit, "encoding": name}
        for name, optimized in zip(COLOURS, (True, False), strict=True)
        for place in range(2, 61)
        for bit, chance in zip(
            BITS, UnaryEncoding(range(3), epsilon=f"{place}/10", optimized=optimized).probabilities, strict=True
        )
    ]
    return (
        alt.Chart(alt.Data(values=points))
        .mark_line(strokeWidth=2.4)
        .encode(
            x=alt.X("ε:Q", title="ε", scale=alt.Scale(nice=False)),
            y=alt.Y("chance:Q", title="probability that the bit is 1", scale=alt.Scale(domain=[0, 1])),
            color=alt.Color("encoding:N", title=None, scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values()))),
            strokeDash=alt.StrokeDash("bit:N", title="bit of", sort=list(BITS)),
        )
        .properties(width=420, height=240)
    )
