"""Charges with a long tail, beside rows drawn with bins of equal width and with bins whose cuts were bought."""

from __future__ import annotations

import altair as alt
import numpy as np

import cloister as cl
from cloister.noise import Random

ROWS, MOST = 20_000, 10**6
TABLE, EQUAL, CUT = "the table", "bins of equal width", "quantile bins"


def chart() -> alt.Chart:
    """The distribution functions, for ε = 1."""
    random = np.random.default_rng(6)
    charges = np.minimum(200 * np.exp(1.2 * random.standard_normal(ROWS)), MOST).astype(int)
    columns, found = {"charge": cl.Integer(0, MOST)}, {TABLE: charges}
    for name, cuts in ((EQUAL, []), (CUT, [cl.synth.QuantileBins("charge")])):
        model = cl.synth.fit_frame({"charge": charges}, columns, epsilon=1, cuts=cuts, random=Random.deterministic(4))
        found[name] = np.array(model.sample(ROWS, random=Random.deterministic(2))["charge"].tolist())
    places = np.geomspace(5, MOST, 120)
    rows = [
        {"charge": float(place), "share": float((values <= place).mean()), "rows": name}
        for name, values in found.items()
        for place in places
    ]
    scale = alt.Scale(domain=[TABLE, EQUAL, CUT], range=["#2d2823", "#c9714f", "#3f6c8f"])
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_line(size=2)
        .encode(
            x=alt.X("charge:Q", title="charge", scale=alt.Scale(type="log")),
            y=alt.Y("share:Q", title="share of the rows up to it"),
            color=alt.Color("rows:N", title=None, scale=scale),
        )
        .properties(width=420, height=240)
    )
