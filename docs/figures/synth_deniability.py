"""What rows cost that are drawn by plausible deniability, beside rows of a model that was measured once."""

from __future__ import annotations

from math import log

import altair as alt

GAMMA, NOISE, T = 4, 1, 25
MEASURED, DENIED = "a model, measured once", "plausible deniability"


def chart() -> alt.Chart:
    """ε by the number of rows, at k = 50, γ = 4, ε₀ = 1, t = 25."""
    each = NOISE + log(1 + GAMMA / T)
    rows = [
        {"rows": number, "epsilon": epsilon, "way": way}
        for number in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
        for way, epsilon in ((DENIED, each * number), (MEASURED, 1.0))
    ]
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_line(size=2.5)
        .encode(
            x=alt.X("rows:Q", title="rows drawn", scale=alt.Scale(type="log")),
            y=alt.Y("epsilon:Q", title="ε", scale=alt.Scale(type="log")),
            color=alt.Color("way:N", title=None, scale=alt.Scale(range=["#3f6c8f", "#c9714f"], domain=[MEASURED, DENIED])),
        )
        .properties(width=420, height=240)
    )
