"""Multiplied noise, and coordinates told in levels: what a value becomes."""

from __future__ import annotations

import altair as alt
import numpy as np

from cloister.compress import PCA, MultiplicativeNoise, Rounded
from cloister.compress.drawing import normal
from cloister.noise import Random


def chart() -> alt.HConcatChart:
    """Left: a value against itself times a random factor. Right: a coordinate against its level, of two and of four."""
    values = np.abs(normal(300, Random.deterministic(2)))[:, None] * 2
    noised = MultiplicativeNoise(0.4, random_state=1).fit(values).transform(values)
    told = [{"x": float(x), "y": float(y)} for (x,), (y,) in zip(values, noised, strict=True)]
    points = alt.Chart(alt.Data(values=told)).mark_point(filled=True, size=22, opacity=0.6, color="#3f6c8f")
    left = points.encode(x=alt.X("x:Q", title="value"), y=alt.Y("y:Q", title="value with noise"))
    rows, steps = normal(600, Random.deterministic(5)).reshape(300, 2) * [3, 1], []
    exact = PCA(1).fit(rows).transform(rows)[:, 0]
    for levels in (2, 4):
        z = Rounded(PCA(1), levels=levels).fit(rows).transform(rows)[:, 0]
        steps += [{"x": float(x), "y": float(y), "levels": f"{levels} levels"} for x, y in zip(exact, z, strict=True)]
    stairs = alt.Chart(alt.Data(values=steps)).mark_point(filled=True, size=18)
    colour = alt.Color("levels:N", title=None, scale=alt.Scale(range=["#c9714f", "#8a9a5b"]))
    right = stairs.encode(x=alt.X("x:Q", title="coordinate"), y=alt.Y("y:Q", title="what is told"), color=colour)
    size = {"width": 260, "height": 210}
    return alt.hconcat(left.properties(**size, title="multiplied noise"), right.properties(**size, title="levels"))
