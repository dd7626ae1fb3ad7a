"""What a moving median takes off a noisy trace, against its length: noise at each point, and one draw for the whole trace."""

from __future__ import annotations

import altair as alt
import numpy as np

from cloister.noise import Random
from cloister.traces import PlanarLaplace, filter_attack
from cloister.traces.filtering import WINDOWS

POINTS = 2_000
NAMES = ["fresh noise at each point", "one draw for the whole trace"]
COLOURS = ["#a63f24", "#3f6c8f"]


def chart() -> alt.Chart:
    """A made-up walk of 2,000 points some 6 m apart, and planar Laplace noise of 100 m."""
    truth = np.cumsum(np.random.default_rng(1).normal(0, 0.6, (POINTS, 2)).cumsum(axis=0) * 0.1, axis=0)
    mechanism = PlanarLaplace("0.02")
    fresh = mechanism.release(truth, random=Random.deterministic(1))
    shifted = truth + mechanism.sample(1, random=Random.deterministic(6))
    points = []
    for name, released in zip(NAMES, (fresh, shifted), strict=True):
        attack = filter_attack(truth, released)
        points.append({"window": 1, "metres": attack.before, "noise": name})
        medians = {window: attack.after[f"a moving median of {window}"] for window in WINDOWS}
        points += [{"window": window, "metres": metres, "noise": name} for window, metres in medians.items()]
    return (
        alt.Chart(alt.Data(values=points))
        .mark_line(strokeWidth=2.4, point=True)
        .encode(
            x=alt.X("window:Q", title="points in the moving median", scale=alt.Scale(type="log", domain=[1, 101])),
            y=alt.Y("metres:Q", title="mean distance to the truth (m)", scale=alt.Scale(domainMin=0)),
            color=alt.Color("noise:N", title=None, scale=alt.Scale(domain=NAMES, range=COLOURS), sort=NAMES),
        )
        .properties(width=420, height=240)
    )
