"""For how many people the one table of all columns is closer than what pairs of columns say of it."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np

import cloister as cl
from cloister.noise import Random

COLUMNS = {"illness": cl.Integer(0, 5), "severity": cl.Integer(0, 5), "treatment": cl.Integer(0, 5)}
SIZES = (300, 1_000, 3_000, 10_000, 30_000)
WAYS = {"histogram": "histogram: the table of all columns", "pairs": "pairs of columns"}
COLOURS = ("#3f6c8f", "#c9714f")


def patients(count: int) -> np.ndarray:
    """The treatment is chosen by illness and severity together: no pair of columns shows it."""
    random = np.random.default_rng(2)
    illness, severity = random.integers(0, 6, count), random.integers(0, 6, count)
    chosen = np.where(random.random(count) < 0.2, (illness + severity) % 6, random.integers(0, 6, count))
    return np.column_stack([illness, severity, chosen])


def away(rows: np.ndarray, method: Any, seed: int) -> float:
    """The total variation of the table of all three columns."""
    frame = dict(zip(COLUMNS, rows.T, strict=True))
    model = cl.synth.fit_frame(frame, COLUMNS, epsilon=1, method=method, random=Random.deterministic(seed))
    shares = np.bincount(np.ravel_multi_index(rows.T, [6, 6, 6]), minlength=216) / len(rows)
    return float(np.abs(model.mixture.marginal((0, 1, 2)).ravel() - shares).sum() / 2)


def chart() -> alt.Chart:
    """Made-up patients at ε = 1, two runs each."""
    points = [
        {"people": size, "away": float(np.mean([away(patients(size), method, seed) for seed in (1, 2)])), "way": words}
        for size in SIZES
        for method, words in WAYS.items()
    ]
    colour = alt.Color(
        "way:N",
        title=None,
        scale=alt.Scale(domain=list(WAYS.values()), range=list(COLOURS)),
        legend=alt.Legend(orient="top", labelLimit=300),
    )
    lines = alt.Chart(alt.Data(values=points)).mark_line(point=True)
    return lines.encode(
        x=alt.X("people:Q", scale=alt.Scale(type="log"), axis=alt.Axis(values=list(SIZES)), title="people"),
        y=alt.Y("away:Q", title="total variation, all three columns"),
        color=colour,
    ).properties(width=420, height=220, title="three columns of six values, ε = 1")
