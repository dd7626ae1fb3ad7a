"""Averaging answers about one count: fresh noise is averaged away; keyed noise is not by rewrites, and is by partitions."""

from __future__ import annotations

import altair as alt
import numpy as np

from cloister.crypto import PseudoRandomFunction
from cloister.noise import Random
from cloister.query.controls.perturbation import OutputPerturbation

REACH, MOST = 20, 400
COLOURS = {
    "fresh noise, asked again": "#c9714f",
    "keyed noise, asked again or in other words": "#3f6c8f",
    "keyed noise, both halves of many partitions": "#8a9a5b",
}


def chart() -> alt.Chart:
    """How far the mean of n answers is from the truth: root mean square over 200 attackers."""
    trials, keep = 200, np.unique(np.geomspace(1, MOST, 40).astype(int))
    fresh = np.asarray(Random.deterministic(1).below(2 * REACH + 1, trials * MOST)).reshape(trials, MOST) - REACH
    noise = OutputPerturbation(counts=REACH)
    everybody = np.ones(900, dtype=bool)
    once = np.array([[noise.of_count(everybody, PseudoRandomFunction(f"{trial}".encode()))] * MOST for trial in range(trials)])
    halves = np.asarray(Random.deterministic(2).below(2 * REACH + 1, 2 * trials * MOST)).reshape(2, trials, MOST).sum(axis=0)
    laws = dict(zip(COLOURS, (fresh, once, halves - 2 * REACH), strict=True))
    points = [
        {"answers": int(n), "error": float(np.sqrt((drawn[:, :n].mean(axis=1) ** 2).mean())), "noise": name}
        for name, drawn in laws.items()
        for n in keep
    ]
    return (
        alt.Chart(alt.Data(values=points))
        .mark_line(strokeWidth=2.5)
        .encode(
            x=alt.X("answers:Q", title="answers averaged", scale=alt.Scale(type="log")),
            y=alt.Y("error:Q", title="error of the mean", scale=alt.Scale(zero=True)),
            color=alt.Color(
                "noise:N",
                title=None,
                scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values())),
                legend=alt.Legend(orient="top", direction="vertical", labelLimit=400),
            ),
        )
        .properties(width=480, height=240, title=f"noise of −{REACH} … {REACH} on a count of 900")
    )
