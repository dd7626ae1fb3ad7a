"""Which pairs of columns MST measures, and what that leaves of the others."""

from __future__ import annotations

from itertools import combinations

import altair as alt
import numpy as np

import cloister as cl
from cloister.noise import Random

COLUMNS = {
    "age": cl.Integer(0, 9),
    "work": cl.Integer(0, 7),
    "school": cl.Integer(0, 11),
    "pay": cl.Integer(0, 19),
    "car": cl.Boolean(),
}
MEASURED, LEFT = "in the tree: measured", "not in the tree"
COLOURS = {MEASURED: "#3f6c8f", LEFT: "#c9714f"}


def people(count: int = 10_000) -> dict[str, np.ndarray]:
    """Pay follows age and schooling, work follows schooling, and a car follows pay."""
    random = np.random.default_rng(1)
    age, school = random.integers(0, 10, count), np.clip(random.normal(5, 2.5, count), 0, 11).astype(int)
    work = np.clip(school * 0.6 + random.normal(0, 1, count), 0, 7).astype(int)
    pay = np.clip(age + school + random.normal(-2, 2, count), 0, 19).astype(int)
    return {"age": age, "work": work, "school": school, "pay": pay, "car": random.random(count) < pay / 20}


def chart() -> alt.Chart:
    """10,000 made-up people at ε = 1, δ = 1e-6: how far each pair of the model lies from the table's own."""
    real, names = people(), list(COLUMNS)
    model = cl.synth.fit_frame(real, COLUMNS, epsilon=1, delta="1e-6", method="mst", random=Random.deterministic(1))
    assert model.measured is not None
    points = []
    for one, other in combinations(range(len(names)), 2):
        sizes = [model.columns[place].number for place in (one, other)]
        codes = np.ravel_multi_index([real[names[place]].astype(int) for place in (one, other)], sizes)
        shares = np.bincount(codes, minlength=sizes[0] * sizes[1]) / len(codes)
        away = float(np.abs(model.mixture.marginal((one, other)).ravel() - shares).sum() / 2)
        kind = MEASURED if (one, other) in model.measured.tables else LEFT
        points.append({"pair": f"{names[one]} and {names[other]}", "away": away, "kind": kind})
    colour = alt.Color(
        "kind:N",
        title=None,
        scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values())),
        legend=alt.Legend(orient="top", labelLimit=300),
    )
    bars = alt.Chart(alt.Data(values=points)).mark_bar()
    return bars.encode(
        x=alt.X("away:Q", title="total variation"), y=alt.Y("pair:N", sort="x", title=None), color=colour
    ).properties(width=420, height=220, title="10,000 people, method mst, ε = 1")
