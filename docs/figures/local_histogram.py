"""Where to put the threshold: the variance of a count against it, in units of what the summed histogram has."""

from __future__ import annotations

import altair as alt

from cloister.local import HistogramEncoding
from cloister.local.frequency.histogram import best_threshold

COLOURS = {"0.5": "#8a5a83", "1": "#3f6c8f", "2": "#c9714f", "4": "#8a9a5b"}


def chart() -> alt.LayerChart:
    """A line for each ε, with its best threshold marked; 1 is the summed histogram."""
    points = [
        {"θ": place / 50, "ratio": ratio(epsilon, f"{place}/50"), "ε": epsilon} for epsilon in COLOURS for place in range(51)
    ]
    best = [{"θ": float(best_threshold(each)), "ratio": ratio(each, best_threshold(each)), "ε": each} for each in COLOURS]
    x = alt.X("θ:Q", title="threshold θ", scale=alt.Scale(domain=[0, 1]))
    y = alt.Y("ratio:Q", title="variance, as a share of SHE's", scale=alt.Scale(domain=[0, 1.6]))
    colour = alt.Color("ε:N", title="ε", scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values())))
    lines = alt.Chart(alt.Data(values=points)).mark_line(strokeWidth=2.4, clip=True).encode(x=x, y=y, color=colour)
    marks = alt.Chart(alt.Data(values=best)).mark_point(size=60, filled=True, opacity=1).encode(x=x, y=y, color=colour)
    rule = alt.Chart(alt.Data(values=[{"one": 1}])).mark_rule(strokeDash=[4, 4], color="#2d2823").encode(y="one:Q")
    return alt.layer(rule, lines, marks).properties(width=420, height=240)


def ratio(epsilon: str, threshold: object) -> float:
    """The variance with a threshold over that of the sum."""
    return HistogramEncoding(range(2), epsilon, threshold=threshold).variance(1) / HistogramEncoding(range(2), epsilon).variance(
        1
    )
