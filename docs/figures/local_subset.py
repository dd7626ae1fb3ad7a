"""Subset selection beside direct encoding and local hashing, by the size of the domain."""

from __future__ import annotations

import altair as alt

from cloister.local import DirectEncoding, LocalHashing, SubsetSelection

SIZES = [2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 32, 40, 50, 64, 80, 100, 128, 160, 200]
COLOURS = {"direct encoding": "#a59a8c", "local hashing": "#c9714f", "subset selection": "#3f6c8f"}


def chart() -> alt.Chart:
    """Three lines at ε = 1."""
    points = [
        {"size": size, "variance": min(6.0, oracle.variance(1)), "way": name}
        for size in SIZES
        for name, oracle in zip(
            COLOURS,
            (DirectEncoding(range(size), 1), LocalHashing(range(size), 1), SubsetSelection(range(size), 1)),
            strict=True,
        )
        if oracle.variance(1) < 6
    ]
    names = list(COLOURS)
    return (
        alt.Chart(alt.Data(values=points))
        .mark_line(strokeWidth=2.5)
        .encode(
            x=alt.X("size:Q", title="values in the domain", scale=alt.Scale(type="log")),
            y=alt.Y("variance:Q", title="variance of one report, ε = 1", scale=alt.Scale(domain=[0, 6])),
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
