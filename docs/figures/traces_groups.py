"""By how much a group that is always together is told apart, against its size, for three kinds of noise that claim ε = 1."""

from __future__ import annotations

import altair as alt

from cloister.noise import DiscreteLaplace
from cloister.traces import Groups

NAMES = ["noise for one person", "correlated sensitivity, ties of 0.3", "joint contribution of the group"]
COLOURS = ["#c9714f", "#8a9a5b", "#3f6c8f"]


def chart() -> alt.Chart:
    """Each person stays ten times; the noise has the scale that each way asks for."""
    stays, points = 10, []
    for size in range(1, 9):
        together = Groups([(0, other) for other in range(1, size)]).largest
        reach = {NAMES[0]: 1.0, NAMES[1]: 1 + 0.3 * (together - 1), NAMES[2]: together}
        for name, people in reach.items():
            noise = DiscreteLaplace(scale=str(stays * people), sensitivity=stays * together)
            points.append({"size": size, "epsilon": float(noise.guarantee.epsilon), "noise": name})
    return (
        alt.Chart(alt.Data(values=points))
        .mark_line(strokeWidth=2.4, point=True)
        .encode(
            x=alt.X("size:Q", title="people who are always together"),
            y=alt.Y("epsilon:Q", title="ε by which they are told apart", scale=alt.Scale(domainMin=0)),
            color=alt.Color("noise:N", title=None, scale=alt.Scale(domain=NAMES, range=COLOURS), sort=NAMES),
        )
        .properties(width=420, height=240)
    )
