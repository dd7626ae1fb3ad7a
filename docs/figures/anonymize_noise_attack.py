"""How much of the noise an attacker takes off, against the number of columns that tell of one another."""

from __future__ import annotations

import altair as alt
import numpy as np

from cloister.anonymize.perturbing import AdditiveNoise, remove_noise
from cloister.noise import Random

COUNTS = (1, 2, 3, 5, 8, 12, 20)


def left(columns: int, kind: str) -> float:
    """The share of the noise that is left after the attack: two hidden factors, noise half as wide as the data."""
    generator = np.random.default_rng(columns)
    values = generator.normal(size=(3000, 2)) @ generator.normal(size=(2, columns)) + 0.2 * generator.normal(size=(3000, columns))
    table = {f"c{place}": column for place, column in enumerate(values.T)}
    done = AdditiveNoise(columns=list(table), ratio=0.5, kind=kind).apply(
        table, random=Random.deterministic(columns), shuffle=False
    )
    before, after = remove_noise(done.frame, list(table), done.covariance).errors(values)
    return float(np.sqrt(np.mean((after / before) ** 2)))


def chart() -> alt.Chart:
    """Two lines: noise drawn for each column by itself, and with the columns' correlations."""
    names = {"independent": "each column by itself", "correlated": "with the columns' correlations"}
    rows = [{"columns": count, "left": left(count, kind), "noise": name} for kind, name in names.items() for count in COUNTS]
    colours = alt.Scale(domain=list(names.values()), range=["#c9714f", "#3f6c8f"])
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_line(point=alt.OverlayMarkDef(filled=True, size=50))
        .encode(
            x=alt.X("columns:Q", title="columns made of the same two factors"),
            y=alt.Y("left:Q", title="share of the noise that is left", scale=alt.Scale(domain=[0, 1])),
            color=alt.Color("noise:N", title="noise", scale=colours),
        )
        .properties(width=400, height=240)
    )
