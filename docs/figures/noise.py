"""Two pictures of noise: which answers a textbook floating-point sampler can give, and how blocks are thinned to the law."""

from __future__ import annotations

import math

import altair as alt
import numpy as np

INK, EITHER, ONE = "#2d2823", "#3f6c8f", "#c9714f"
SHOWN = 48
NEAR = 0.3
BLOCKS = 14
SCALE = 4.0
"""Blocks in one standard deviation: the engine uses 4 to 8."""


def chart() -> alt.VConcatChart:
    """Above, the leak; below, the way that noise is drawn here."""
    return alt.vconcat(leak(), blocks(), spacing=34).resolve_scale(color="independent")


def leak() -> alt.LayerChart:
    """Neighbouring doubles near 0.3: can the answers 0 and 1, with Laplace noise computed as ±ln(u), become this number?"""
    doubles = [NEAR]
    while len(doubles) < SHOWN:
        doubles.append(float(np.nextafter(doubles[-1], 1.0)))
    worlds = {"true answer 0": reached(0.0, doubles), "true answer 1": reached(1.0, doubles)}
    both = worlds["true answer 0"] & worlds["true answer 1"]
    points = [
        {"place": place, "world": world, "seen": "in both worlds" if place in both else "in this world only"}
        for world, places in worlds.items()
        for place in sorted(places)
    ]
    return (
        alt.Chart(alt.Data(values=points))
        .mark_tick(thickness=6, size=26, opacity=1)
        .encode(
            x=alt.X("place:Q", title="48 neighbouring floating-point numbers, from 0.3 on", axis=alt.Axis(grid=False)),
            y=alt.Y("world:N", title=None),
            color=alt.Color(
                "seen:N",
                title="a noisy answer that is possible",
                scale=alt.Scale(domain=["in both worlds", "in this world only"], range=[EITHER, ONE]),
                legend=alt.Legend(orient="top"),
            ),
        )
        .properties(width=620, height=80, title="A textbook floating-point sampler: every orange answer gives the truth away")
    )


def reached(truth: float, doubles: list[float]) -> set[int]:
    """Which of the doubles are truth ± ln(u), for some u = k/2⁵³ and one of the signs."""
    found = set()
    for place, wanted in enumerate(doubles):
        size = abs(wanted - truth)
        sign = 1.0 if wanted > truth else -1.0
        centre = round(math.exp(-size) * 2**53)
        u = np.arange(centre - 8, centre + 9, dtype=np.float64) * 2.0**-53
        if (truth - sign * np.log(u) == wanted).any():
            found.add(place)
    return found


def blocks() -> alt.LayerChart:
    """The half-line in blocks: a block is chosen by exact tail probabilities, and thinned by a coin to the law itself."""
    edges = [
        {
            "from": q / SCALE,
            "to": (q + 1) / SCALE,
            "weight": math.exp(-((q / SCALE) ** 2) / 2),
            "part": "thinned away by the coin",
        }
        for q in range(BLOCKS)
    ]
    curve = [
        {"x": x / 50, "weight": math.exp(-((x / 50) ** 2) / 2), "part": "kept: the exact law"}
        for x in range(int(50 * BLOCKS / SCALE) + 1)
    ]
    colour = alt.Color(
        "part:N",
        title=None,
        scale=alt.Scale(domain=["kept: the exact law", "thinned away by the coin"], range=[EITHER, "#d9c9a8"]),
        legend=alt.Legend(orient="top"),
    )
    height = alt.Y("weight:Q", title="weight", axis=alt.Axis(tickCount=3, grid=False))
    steps = (
        alt.Chart(alt.Data(values=edges))
        .mark_rect(stroke=INK, strokeWidth=0.5)
        .encode(x=alt.X("from:Q", title="|noise| in standard deviations"), x2="to:Q", y=height, y2=alt.datum(0), color=colour)
    )
    law = alt.Chart(alt.Data(values=curve)).mark_area(opacity=0.95).encode(x="x:Q", y=height, color=colour)
    return alt.layer(steps, law).properties(
        width=620, height=150, title="Here: choose a block by 63 bits, a place within it, and let a coin of bias exp(−y) keep it"
    )
