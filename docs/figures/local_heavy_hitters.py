"""Heavy hitters that were found, with their margins, beside the true counts: a Zipf law over texts."""

from __future__ import annotations

import altair as alt
import numpy as np

from cloister.local import HeavyHitters
from cloister.noise import Random

PEOPLE = 50_000


def chart() -> alt.LayerChart:
    """Bars for the truth, points with whiskers for the estimates."""
    shares = 0.15 / np.arange(1, 13)
    held = [f"word {k}" for k, share in enumerate(shares, start=1) for _ in range(int(PEOPLE * share))]
    people = held + [f"#{i}" for i in range(PEOPLE - len(held))]
    heavy = HeavyHitters(epsilon=4, length=8)
    found = heavy.find(heavy.aggregate(heavy.randomize(people, random=Random.deterministic(2))), most=20)
    margin = found.margin(0.95)
    estimates = [
        {"word": value, "count": float(count), "low": float(count - half), "high": float(count + half)}
        for value, count, half in zip(found.values, found.counts, margin, strict=True)
    ]
    truth = [{"word": f"word {k}", "count": int(PEOPLE * share)} for k, share in enumerate(shares, start=1)]
    order = [each["word"] for each in truth]
    x = alt.X("word:N", sort=order, title=None, axis=alt.Axis(labelAngle=-60))
    bars = (
        alt.Chart(alt.Data(values=truth))
        .mark_bar(color="#d9d2c5")
        .encode(x=x, y=alt.Y("count:Q", title="people (bars: the truth)"))
    )
    base = alt.Chart(alt.Data(values=estimates)).encode(x=x)
    whiskers = base.mark_rule(color="#3f6c8f", strokeWidth=2).encode(y="low:Q", y2="high:Q")
    dots = base.mark_point(color="#3f6c8f", filled=True, size=45, opacity=1).encode(y="count:Q")
    return alt.layer(bars, whiskers, dots).properties(width=480, height=240)
