"""The law of the noise on a count, for three spends: what is promised (ε) and what it does to an answer (the width)."""

from __future__ import annotations

import math

import altair as alt

SPENDS = {0.05: "#8a9a5b", 0.1: "#c9714f", 0.5: "#3f6c8f"}
REACH = 80


def chart() -> alt.HConcatChart:
    """Discrete Laplace noise: P(k) = (1 − α)/(1 + α) · α^|k| with α = e^(−ε), and the interval that holds 95 % of it."""
    return alt.hconcat(*(panel(epsilon, colour) for epsilon, colour in SPENDS.items())).resolve_scale(y="independent")


def panel(epsilon: float, colour: str) -> alt.LayerChart:
    """One spend."""
    alpha = math.exp(-epsilon)
    law = [{"error": k, "probability": (1 - alpha) / (1 + alpha) * alpha ** abs(k)} for k in range(-REACH, REACH + 1)]
    # the least m with P(|noise| > m) = 2α^(m+1)/(1 + α) at most 5 %
    least = math.ceil(math.log(0.05 * (1 + alpha) / 2) / -epsilon) - 1
    top = 1.18 * law[REACH]["probability"]
    span = alt.Data(values=[{"low": -least, "high": least, "height": top * 0.93, "words": f"95 % within ± {least}"}])
    across = alt.X("error:Q", title="what the noise adds to the count", scale=alt.Scale(domain=[-REACH, REACH]))
    curve = (
        alt.Chart(alt.Data(values=law))
        .mark_area(opacity=0.8, interpolate="step", color=colour)
        .encode(
            x=across,
            y=alt.Y("probability:Q", title=None, scale=alt.Scale(domain=[0, top]), axis=alt.Axis(format=".0%", tickCount=4)),
        )
    )
    rule = alt.Chart(span).mark_rule(size=3, color="#2d2823").encode(x="low:Q", x2="high:Q", y="height:Q")
    words = alt.Chart(span).mark_text(dy=-8, fontSize=12, color="#2d2823").encode(x=alt.datum(0), y="height:Q", text="words:N")
    return alt.layer(curve, rule, words).properties(width=200, height=180, title=f"ε = {epsilon:g}")
