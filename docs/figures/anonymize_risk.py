"""Unique in the sample, unique in the population: three estimates and the truth, for a population that was made up."""

from __future__ import annotations

import altair as alt
import numpy as np

from cloister.anonymize.risks.uniques import estimate_uniques
from cloister.noise import Random


def chart() -> alt.LayerChart:
    """The share of unique people, against the share of the population that was sampled."""
    weights = (Random.deterministic(7).below(1 << 30, 20_000).astype(float) + 1) / (1 << 30)
    weights = weights**-0.6
    people = np.repeat(np.arange(20_000), np.maximum((weights / weights.mean() * 3).astype(int), 1))
    true = int((np.bincount(people) == 1).sum()) / len(people)
    rows = []
    for percent in (1, 2, 5, 10, 15, 20, 30, 40, 50, 70):
        sample = people[Random.deterministic(8).permutation(len(people))[: len(people) * percent // 100]]
        sizes, counts = np.unique(np.unique(sample, return_counts=True)[1], return_counts=True)
        estimate = estimate_uniques(sizes, counts, len(people)).people / len(people)
        rows.append({"sampled": percent / 100, "share": float(counts[0]) / len(sample), "what": "unique in the sample"})
        rows.append({"sampled": percent / 100, "share": estimate, "what": "estimated for the population"})
        rows.append({"sampled": percent / 100, "share": true, "what": "unique in the population"})
    colour = alt.Color(
        "what:N",
        title=None,
        scale=alt.Scale(
            domain=["unique in the sample", "estimated for the population", "unique in the population"],
            range=["#cdd6de", "#c9714f", "#3f6c8f"],
        ),
    )
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X("sampled:Q", title="share of the population in the table", axis=alt.Axis(format="%")),
        y=alt.Y("share:Q", title="share of people", axis=alt.Axis(format="%")),
        color=colour,
    )
    return (base.mark_line() + base.mark_point(filled=True)).properties(width=420, height=230)
