"""The law of a piecewise report: for three true numbers, where the window lies and how much likelier it is."""

from __future__ import annotations

import altair as alt
import numpy as np

from cloister.local import Piecewise

TRUTHS = {-1.0: "#c9714f", 0.0: "#8a9a5b", 0.6: "#3f6c8f"}


def chart() -> alt.Chart:
    """A step line for each true number."""
    mechanism = Piecewise(-1, 1, epsilon=2, grid=200)
    window = mechanism.window
    places = [mechanism.mean([cell]).value for cell in range(window.outputs)]
    width = places[1] - places[0]
    points = []
    for truth in TRUTHS:
        law = window.forward(np.eye(window.inputs)[round((truth + 1) * 100)])
        points += [
            {"report": place, "density": float(chance) / width, "truth": f"t = {truth:g}"}
            for place, chance in zip(places, law, strict=True)
        ]
    names = [f"t = {truth:g}" for truth in TRUTHS]
    return (
        alt.Chart(alt.Data(values=points))
        .mark_line(strokeWidth=2.5, interpolate="step", opacity=0.85)
        .encode(
            x=alt.X("report:Q", title="report, as it is read"),
            y=alt.Y("density:Q", title="probability density at ε = 2", scale=alt.Scale(domain=[0, 1])),
            color=alt.Color("truth:N", title="the truth", scale=alt.Scale(domain=names, range=list(TRUTHS.values())), sort=names),
        )
        .properties(width=440, height=240)
    )
