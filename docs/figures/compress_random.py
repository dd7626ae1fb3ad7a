"""Random directions: how far distances between rows change, by the number of directions, and the bound on it."""

from __future__ import annotations

import altair as alt
import numpy as np

from cloister.compress import RandomProjection
from cloister.compress.drawing import normal
from cloister.noise import Random

DIRECTIONS = (10, 20, 50, 100, 200)
ROWS, COLUMNS = 40, 256


def chart() -> alt.LayerChart:
    """The worst of all pairs of 40 rows, for each kind of matrix; dashed, what holds with probability 99 %."""
    rows = normal(ROWS * COLUMNS, Random.deterministic(3)).reshape(ROWS, COLUMNS)
    one, other = np.triu_indices(ROWS, 1)
    before, found, bound = ((rows[one] - rows[other]) ** 2).sum(axis=1), [], []
    for count in DIRECTIONS:
        for kind in ("gaussian", "sparse", "hadamard"):
            model = RandomProjection(count, kind=kind, random_state=1).fit(rows)
            z = model.transform(rows)
            worst = float(np.abs(((z[one] - z[other]) ** 2).sum(axis=1) / before - 1).max())
            found.append({"directions": count, "kind": kind, "worst": worst})
        bound.append({"directions": count, "bound": float(model.distortion(ROWS))})
    x = alt.X("directions:Q", title="directions of 256 columns", scale=alt.Scale(type="log", nice=False))
    lines = alt.Chart(alt.Data(values=found)).mark_line(point=True, strokeWidth=2)
    title = "worst relative change of a squared distance"
    drawn = lines.encode(x=x, y=alt.Y("worst:Q", title=title), color=alt.Color("kind:N", title=None))
    promised = alt.Chart(alt.Data(values=bound)).mark_line(strokeDash=[6, 4], color="#2d2823").encode(x=x, y="bound:Q")
    return alt.layer(drawn, promised).properties(width=420, height=230)
