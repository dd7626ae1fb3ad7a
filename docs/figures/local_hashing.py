"""What local hashing costs at each ε, beside direct encoding and binary local hashing: 1,000 values."""

from __future__ import annotations

import altair as alt

from cloister.local import DirectEncoding, LocalHashing

SIZE = 1000
COLOURS = {"direct encoding": "#a59a8c", "binary local hashing": "#c9714f", "local hashing, best field": "#3f6c8f"}


def chart() -> alt.Chart:
    """Three lines on a logarithmic axis."""
    points = []
    for step in range(4, 61, 2):
        epsilon = step / 10
        oracles = (
            DirectEncoding(range(SIZE), epsilon),
            LocalHashing(range(SIZE), epsilon, optimized=False),
            LocalHashing(range(SIZE), epsilon),
        )
        points += [
            {"epsilon": epsilon, "margin": 100 * oracle.margin(10_000), "way": name}
            for name, oracle in zip(COLOURS, oracles, strict=True)
        ]
    names = list(COLOURS)
    return (
        alt.Chart(alt.Data(values=points))
        .mark_line(strokeWidth=2.5)
        .encode(
            x=alt.X("epsilon:Q", title="ε"),
            y=alt.Y("margin:Q", title="95 % margin of a share, in % (n = 10,000)", scale=alt.Scale(type="log")),
            color=alt.Color(
                "way:N",
                title=None,
                sort=names,
                scale=alt.Scale(domain=names, range=list(COLOURS.values())),
                legend=alt.Legend(orient="top", labelLimit=300),
            ),
        )
        .properties(width=440, height=260)
    )
