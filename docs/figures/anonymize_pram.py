"""A PRAM matrix as a picture: where each category goes, and how often."""

from __future__ import annotations

import altair as alt

from cloister.anonymize.perturbing import PRAM
from cloister.noise import Random

JOBS = {"job": ["care"] * 500 + ["craft"] * 300 + ["sales"] * 150 + ["judge"] * 50}


def chart() -> alt.LayerChart:
    """Squares with their probabilities: old category down, new one across."""
    done = PRAM(column="job", stay=0.7).apply(JOBS, random=Random.deterministic(1), shuffle=False)
    order = ["care", "craft", "sales", "judge"]
    rows = [
        {"old": old, "new": new, "probability": float(done.matrix[i, j]), "text": f"{done.matrix[i, j]:.2f}"}
        for i, old in enumerate(done.values)
        for j, new in enumerate(done.values)
    ]
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X("new:N", title="published", sort=order, axis=alt.Axis(labelAngle=0)),
        y=alt.Y("old:N", title="original", sort=order),
    )
    colour = alt.Color("probability:Q", scale=alt.Scale(range=["#f4efe6", "#3f6c8f"], interpolate="rgb"), legend=None)
    squares = base.mark_rect(stroke="white").encode(color=colour)
    light = alt.condition("datum.probability > 0.5", alt.value("white"), alt.value("#3a342c"))
    return alt.layer(squares, base.mark_text(fontSize=13).encode(text="text:N", color=light)).properties(width=300, height=220)
