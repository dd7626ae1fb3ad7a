"""What the audit finds of each broken twin and of its mended one, relative to what was claimed."""

from __future__ import annotations

from typing import Any

import altair as alt

from cloister.attacks.broken import TWINS, ChannelTwin, Twin
from cloister.noise import Random

RUNS = 100_000
BROKEN, MENDED = "#c9714f", "#3f6c8f"


def chart() -> alt.LayerChart:
    """A line for each twin: claimed at 1, found to the right of it where the claim is broken."""
    rows = [row for place, twin in enumerate(TWINS) for row in measured(place, twin)]
    names = [twin.name for twin in TWINS]
    kinds = alt.Scale(domain=["broken", "mended"], range=[BROKEN, MENDED])
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X(
            "ratio:Q",
            title="ε found by the audit ÷ ε claimed",
            scale=alt.Scale(type="log", domain=[0.09, 12], nice=False),
            axis=alt.Axis(values=[0.1, 0.2, 0.5, 1, 2, 5, 10]),
        ),
        y=alt.Y("twin:N", sort=names, title=None, axis=alt.Axis(labelLimit=340, labelFontSize=11)),
    )
    line = base.mark_line(color="#b9ac98", size=1.5).encode(detail="twin:N")
    shapes = alt.Scale(domain=["broken", "mended"], range=["circle", "diamond"])
    dots = base.mark_point(size=70, filled=True, opacity=1).encode(
        color=alt.Color("kind:N", scale=kinds, title="twin"), shape=alt.Shape("kind:N", scale=shapes, title="twin")
    )
    claim = alt.Chart(alt.Data(values=[{}])).mark_rule(size=2, color="#2d2823").encode(x=alt.datum(1))
    return alt.layer(claim, line, dots).properties(width=420, height=17 * len(TWINS))


def measured(place: int, twin: Twin | ChannelTwin) -> list[dict[str, Any]]:
    """The two points of one twin."""
    promise = twin.keeps or twin.claims
    results = {
        "broken": (twin.audit(runs=RUNS, random=Random.deterministic(2 * place)), twin.claims),
        "mended": (twin.audit_mended(runs=RUNS, random=Random.deterministic(2 * place + 1)), promise),
    }
    return [
        {"twin": twin.name, "kind": kind, "ratio": max(0.1, result.epsilon_at(claim.delta) / float(claim.epsilon))}
        for kind, (result, claim) in results.items()
    ]
