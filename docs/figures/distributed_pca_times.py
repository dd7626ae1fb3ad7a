"""Run time by the number of owners, as benchmarks/distributed_pca.py measured it on two busy cores: a picture is no clock."""

from __future__ import annotations

import altair as alt

SECONDS = {
    "through the proxy": {10: 0.95, 55: 1.11, 100: 1.34, 145: 1.41, 190: 1.54},
    "a chain, no network": {10: 0.04, 55: 0.16, 100: 0.29, 145: 0.32, 190: 0.56},
}
"""90 columns, 1,000 rows an owner, ε = 0.3, keys of 2,048 bits."""
DELAY = 0.02
"""Seconds of a network between two owners: a chain waits for each, the proxy for the slowest."""
COLOURS = ["#3f6c8f", "#d9c07a", "#8a9a5b"]


def chart() -> alt.Chart:
    """Seconds by owners; the chain with and without a network's delay."""
    chain = SECONDS["a chain, no network"]
    ways = {**SECONDS, f"a chain, {1000 * DELAY:.0f} ms a step": {n: s + DELAY * n for n, s in chain.items()}}
    points = [
        {"owners": count, "seconds": round(seconds, 2), "way": way}
        for way, times in ways.items()
        for count, seconds in times.items()
    ]
    return (
        alt.Chart(alt.Data(values=points))
        .mark_line(point=True, strokeWidth=2)
        .encode(
            x=alt.X("owners:Q", title="owners"),
            y=alt.Y("seconds:Q", title="seconds"),
            color=alt.Color("way:N", title=None, sort=list(ways), scale=alt.Scale(range=COLOURS)),
        )
        .properties(width=420, height=220)
    )
