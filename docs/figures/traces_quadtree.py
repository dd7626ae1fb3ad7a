"""The leaves of a private quadtree over made-up homes, darker where more stays are."""

from __future__ import annotations

import altair as alt
import numpy as np

import cloister as cl
from cloister.noise import Random
from cloister.traces import Groups, fit_quadtree


def chart() -> alt.Chart:
    """2,000 people, half of them around one place; ε = 1, five levels."""
    random = np.random.default_rng(1)
    home = np.where(np.arange(2000)[:, None] % 2, random.normal(400, 90, (2000, 2)), random.uniform(0, 2000, (2000, 2)))
    x, y = np.repeat(np.clip(home.round(), 0, 2000), 2, axis=0).T
    rows = {
        "who": np.repeat(np.arange(2000), 2).astype(str).tolist(),
        "moment": [0, 3600] * 2000,
        "x": x.tolist(),
        "y": y.tolist(),
    }
    columns = {"who": cl.Text(), "moment": cl.Integer(0, 86_400), **{axis: cl.Integer(0, 2000) for axis in ("x", "y")}}
    people = cl.PrivateTable(rows, columns, unit="who", max_rows=2)
    with cl.Session({"people": people}, budget=cl.PureDP(1), random=Random.deterministic(1)) as session:
        tree = fit_quadtree(session, "people", Groups(), spend=1, depth=5, stays=1)
    leaves = []
    for leaf in tree.regions():
        left, low, right, high = leaf.box
        density = max(leaf.count, 0.0) / ((right - left) * (high - low)) * 10_000
        leaves.append({"x": left, "x2": right, "y": low, "y2": high, "density": density})
    return (
        alt.Chart(alt.Data(values=leaves))
        .mark_rect(stroke="#7c6a50", strokeWidth=0.6)
        .encode(
            x=alt.X("x:Q", title="metres", scale=alt.Scale(domain=[0, 2000])),
            x2="x2:Q",
            y=alt.Y("y:Q", title="metres", scale=alt.Scale(domain=[0, 2000])),
            y2="y2:Q",
            color=alt.Color("density:Q", title="stays per hectare", scale=alt.Scale(range=["#f3ede2", "#3f6c8f"])),
        )
        .properties(width=320, height=320)
    )
