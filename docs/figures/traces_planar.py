"""A year of evenings at home: fresh planar Laplace noise each time, its running mean, and one permanent report."""

from __future__ import annotations

import altair as alt
import numpy as np

from cloister.noise import Random
from cloister.traces import PermanentReports, PlanarLaplace

EVENINGS = 365
NAMES = ["fresh noise, averaged", "one permanent report"]
COLOURS = ["#a63f24", "#3f6c8f"]


def chart() -> alt.Chart:
    """ε = 0.01 a metre: 200 m of noise on average."""
    mechanism, home = PlanarLaplace("0.01"), [50.0, 50.0]
    fresh = mechanism.release([home] * EVENINGS, random=Random.deterministic(4))
    kept = PermanentReports(mechanism, size=100).report(*home, random=Random.deterministic(4))
    means = fresh.cumsum(axis=0) / np.arange(1, EVENINGS + 1)[:, None]
    points = []
    for evening in sorted({round(10 ** (tenths / 10)) for tenths in range(26)} | {EVENINGS}):
        far = float(np.hypot(*(means[evening - 1] - home)))
        points.append({"evenings": evening, "metres": far, "by": NAMES[0]})
        points.append({"evenings": evening, "metres": float(np.hypot(kept[0] - home[0], kept[1] - home[1])), "by": NAMES[1]})
    return (
        alt.Chart(alt.Data(values=points))
        .mark_line(strokeWidth=2.4)
        .encode(
            x=alt.X("evenings:Q", title="evenings reported", scale=alt.Scale(type="log", domain=[1, EVENINGS])),
            y=alt.Y("metres:Q", title="metres from home to what an observer makes of it"),
            color=alt.Color("by:N", title=None, scale=alt.Scale(domain=NAMES, range=COLOURS), sort=NAMES),
        )
        .properties(width=420, height=240)
    )
