"""What noise does to a column, and what an analyst makes of it: truth, noised values, and the estimate with its margins."""

from __future__ import annotations

import altair as alt
import numpy as np

from cloister.anonymize.perturbing import AdditiveNoise, reconstruct
from cloister.noise import Random

EDGES = np.linspace(0, 120, 25)
PEOPLE = 20_000


def minutes() -> np.ndarray:
    """Ways to work: many short, some long."""
    generator = np.random.default_rng(2)
    return np.where(generator.random(PEOPLE) < 0.6, generator.normal(30, 9, PEOPLE), generator.normal(80, 11, PEOPLE))


def chart() -> alt.LayerChart:
    """Bars for the truth, a step line for the noised column, dots with whiskers for the estimate."""
    truth = minutes()
    done = AdditiveNoise(columns="minutes", scale=20, law="laplace").apply(
        {"minutes": truth}, random=Random.deterministic(1), shuffle=False
    )
    noised = np.array(done.frame["minutes"])
    found = reconstruct(noised, done.laws["minutes"], bins=EDGES)
    margins = found.margin(0.95)
    rows = [
        {
            "middle": float(low + high) / 2,
            "truth": float(true) / PEOPLE,
            "noised": float(seen) / PEOPLE,
            "share": float(share),
            "low": max(0.0, float(share - margin)),
            "high": float(share + margin),
        }
        for low, high, true, seen, share, margin in zip(
            EDGES[:-1],
            EDGES[1:],
            np.histogram(truth, EDGES)[0],
            np.histogram(noised, EDGES)[0],
            found.shares,
            margins,
            strict=True,
        )
    ]
    base = alt.Chart(alt.Data(values=rows)).encode(x=alt.X("middle:Q", title="minutes on the way to work"))
    title = "share: truth (bars), noised (line), estimated (dots)"
    bars = base.mark_bar(color="#d9cfc1", size=15).encode(y=alt.Y("truth:Q", title=title))
    line = base.mark_line(color="#c9714f", interpolate="step", strokeWidth=1.5).encode(y="noised:Q")
    whiskers = base.mark_rule(color="#3f6c8f", strokeWidth=1.5).encode(y="low:Q", y2="high:Q")
    dots = base.mark_point(filled=True, size=45, color="#3f6c8f", opacity=1).encode(y="share:Q")
    return alt.layer(bars, line, whiskers, dots).properties(width=460, height=260)
