"""A distribution that nobody told: the truth, the reports' own histogram, and what is read of them with margins."""

from __future__ import annotations

from statistics import NormalDist

import altair as alt
import numpy as np

from cloister.local import SquareWave
from cloister.noise import Random

BINS = 25
PEOPLE = 100_000


def people() -> np.ndarray:
    """Commutes in minutes: many short, some long."""
    places = (np.arange(PEOPLE // 2) + 0.5) / (PEOPLE // 2)
    groups = (NormalDist(25, 8), NormalDist(70, 12))
    return np.clip(np.concatenate([[law.inv_cdf(place) for place in places] for law in groups]), 0, 120)


def chart() -> alt.LayerChart:
    """Bars for the truth, points with whiskers for the estimate."""
    minutes = people()
    mechanism = SquareWave(0, 120, epsilon=2)
    shape = mechanism.distribution(mechanism.randomize(minutes, random=Random.deterministic(1))).histogram(BINS)
    truth = np.histogram(minutes, np.linspace(0, 120, BINS + 1))[0]
    rows = [
        {
            "middle": (low + high) / 2,
            "truth": int(true) / PEOPLE,
            "share": float(count) / PEOPLE,
            "low": max(0.0, float(count - margin) / PEOPLE),
            "high": float(count + margin) / PEOPLE,
        }
        for (low, high), true, count, margin in zip(shape.values, truth, shape.counts, shape.margin(0.95), strict=True)
    ]
    base = alt.Chart(alt.Data(values=rows)).encode(x=alt.X("middle:Q", title="minutes on the way to work"))
    y_title = "share of people: the truth (bars), the estimate at ε = 2 (dots)"
    bars = base.mark_bar(color="#d9cfc1", size=15).encode(y=alt.Y("truth:Q", title=y_title))
    whiskers = base.mark_rule(color="#3f6c8f", strokeWidth=1.5).encode(y="low:Q", y2="high:Q")
    dots = base.mark_point(filled=True, size=45, color="#3f6c8f", opacity=1).encode(y="share:Q")
    return alt.layer(bars, whiskers, dots).properties(width=460, height=260)
