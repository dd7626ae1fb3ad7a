"""Mean absolute error of a released stream against the window's length, by budget over time, on a made-up stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import altair as alt
import numpy as np

from cloister.noise import Random
from cloister.traces import Absorption, Adaptive, Distribution, LastRelease, LocalLevel, Sampled, Uniform, WindowStream

STEPS = 600
WINDOWS = (10, 20, 40, 80)
WAYS: dict[str, tuple[Callable[[], Any], Callable[[int], Any]]] = {
    "distribution (BD)": (Distribution, LastRelease),
    "absorption (BA)": (Absorption, LastRelease),
    "uniform": (Uniform, LastRelease),
    "every tenth step": (lambda: Sampled(10), LastRelease),
    "adaptive, smoothed": (Adaptive, LocalLevel),
}
COLOURS = ["#a59a8c", "#8a9a5b", "#3f6c8f", "#7c6a50", "#c9714f"]


def chart() -> alt.Chart:
    """Visitors an hour: a daily wave, a random walk under it, ε = 1 for every window."""
    random = np.random.default_rng(1)
    hours = np.arange(STEPS)
    truth = np.rint(400 + 150 * np.sin(hours * 2 * np.pi / 24) + random.normal(0, 8, STEPS).cumsum()).astype(int)
    truth = np.maximum(truth, 0)
    points = []
    for name, (policy, estimator) in WAYS.items():
        for window in WINDOWS:
            stream = WindowStream(
                epsilon=1, window=window, steps=STEPS, policy=policy(), estimator=estimator(1), random=Random.deterministic(1)
            )
            off = [abs(float(stream.step(int(total))[0]) - total) for total in truth]
            points.append({"window": window, "error": float(np.mean(off)), "by": name})
    return (
        alt.Chart(alt.Data(values=points))
        .mark_line(strokeWidth=2.2, point=True)
        .encode(
            x=alt.X("window:Q", title="steps in a row that are protected (w)", scale=alt.Scale(type="log", domain=[10, 80])),
            y=alt.Y("error:Q", title="mean absolute error", scale=alt.Scale(type="log")),
            color=alt.Color("by:N", title=None, scale=alt.Scale(domain=list(WAYS), range=COLOURS), sort=list(WAYS)),
        )
        .properties(width=420, height=240)
    )
