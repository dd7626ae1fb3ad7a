"""Rank swapping as a picture: each record's rank before and after, for two reaches."""

from __future__ import annotations

import altair as alt
import numpy as np

from cloister.anonymize.perturbing import RankSwap
from cloister.noise import Random

RECORDS = 300


def chart() -> alt.Chart:
    """Two panels of dots around the diagonal."""
    values = np.arange(RECORDS)
    rows = []
    for percent in (5, 20):
        done = RankSwap(columns="rank", percent=percent).apply({"rank": values}, random=Random.deterministic(1), shuffle=False)
        rows += [
            {"before": int(old), "after": int(new), "reach": f"p = {percent} %"} for old, new in enumerate(done.frame["rank"])
        ]
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_point(filled=True, size=14, color="#3f6c8f", opacity=0.9)
        .encode(
            x=alt.X("before:Q", title="rank before"),
            y=alt.Y("after:Q", title="rank after"),
            facet=alt.Facet("reach:N", title=None, sort=["p = 5 %", "p = 20 %"]),
        )
        .properties(width=220, height=220)
    )
