"""The margin of a running sum by step: the square-root factorisation, the binary tree, and fresh noise at each step."""

from __future__ import annotations

import math

import altair as alt

from cloister.noise import DiscreteGaussian
from cloister.traces import Counter
from cloister.traces.square_root import square_root_matrix

HORIZON = 4096
STEPS = sorted({max(1, round(2 ** (tenths / 10))) for tenths in range(121)})
NAMES = ["fresh noise at each step", "binary tree", "square root"]
COLOURS = ["#a59a8c", "#3f6c8f", "#c9714f"]


def chart() -> alt.Chart:
    """All three keep ρ = 0.5 for one event over 4,096 steps."""
    matrix, points = square_root_matrix(HORIZON), []
    counter = Counter(rho="0.5", steps=HORIZON)
    fresh = DiscreteGaussian.for_rho("0.5").variance
    levels = HORIZON.bit_length()
    for step in STEPS:
        root = counter.noise.variance * matrix.energy_bound(step) / int(matrix.weights[0]) ** 2
        for name, variance in zip(NAMES, (step * fresh, step.bit_count() * levels * fresh, root), strict=True):
            points.append({"step": step, "margin": 1.96 * math.sqrt(variance), "by": name})
    return (
        alt.Chart(alt.Data(values=points))
        .mark_line(strokeWidth=2.2)
        .encode(
            x=alt.X("step:Q", title="steps so far", scale=alt.Scale(type="log", domain=[1, HORIZON])),
            y=alt.Y("margin:Q", title="margin of the running sum (95 %)", scale=alt.Scale(type="log")),
            color=alt.Color("by:N", title=None, scale=alt.Scale(domain=NAMES, range=COLOURS), sort=NAMES),
        )
        .properties(width=420, height=240)
    )
