"""What the best filter leaves of three releases of one walk: naive noise, next points as drawn, and next points smoothed."""

from __future__ import annotations

import altair as alt
import numpy as np

from cloister.noise import Random
from cloister.traces import NextPoint, PlanarLaplace

STEPS = 600
NAMES = ["as released", "after the best filter"]
COLOURS = ["#3f6c8f", "#a63f24"]


def chart() -> alt.Chart:
    """A made-up walk of people who go on in the direction in which they went, some 6 m a point; ε = 1 a point."""
    random, step, steps = np.random.default_rng(1), np.zeros(2), []
    for _ in range(STEPS):
        step = 0.95 * step + random.normal(0, 6 * np.sqrt(1 - 0.95**2), 2)
        steps.append(step)
    truth = np.cumsum(steps, axis=0)
    anchor = PlanarLaplace("0.02")
    naive, drawn = (
        NextPoint(1, reach=50, anchor=anchor, every=every).release(truth, random=Random.deterministic(1)) for every in (1, 20)
    )
    releases = {"noise at each point": naive, "next points, as drawn": drawn, "next points, smoothed": drawn.smoothed()}
    bars = []
    for name, released in releases.items():
        attack = released.attack
        for when, metres in zip(NAMES, (attack.before, attack.ratio * attack.before), strict=True):
            bars.append({"release": name, "when": when, "metres": metres})
    return (
        alt.Chart(alt.Data(values=bars))
        .mark_bar()
        .encode(
            x=alt.X("release:N", title=None, sort=list(releases), axis=alt.Axis(labelAngle=0)),
            xOffset=alt.XOffset("when:N", sort=NAMES),
            y=alt.Y("metres:Q", title="mean distance to the truth (m)"),
            color=alt.Color("when:N", title=None, scale=alt.Scale(domain=NAMES, range=COLOURS), sort=NAMES),
        )
        .properties(width=420, height=240)
    )
