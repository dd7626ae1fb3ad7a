"""The margin of a rare occupation's count against ε: three ways that trust no one, and a central count."""

from __future__ import annotations

import altair as alt

from cloister.local import DirectEncoding, HistogramEncoding, UnaryEncoding
from cloister.noise import DiscreteLaplace

PEOPLE, VALUES = 32_561, 15
COLOURS = {"direct": "#c9714f", "unary (OUE)": "#3f6c8f", "summed histograms": "#8a7f72", "a central count": "#5d7f4e"}
EPSILONS = [round(place / 4, 2) for place in range(1, 25)]


def margins(epsilon: str) -> dict[str, float]:
    """What 95 estimates in 100 of a count that few hold stay within."""
    values = range(VALUES)
    ways = (
        DirectEncoding(values, epsilon=epsilon),
        UnaryEncoding(values, epsilon=epsilon),
        HistogramEncoding(values, epsilon=epsilon),
    )
    found = [1.96 * float(each.variance(PEOPLE)) ** 0.5 for each in ways]
    return dict(zip(COLOURS, [*found, max(float(DiscreteLaplace.for_epsilon(epsilon).margin("0.95")), 1.0)], strict=True))


def chart() -> alt.Chart:
    """A line a way, on a logarithmic axis."""
    points = [
        {"epsilon": epsilon, "margin": margin, "way": way}
        for epsilon in EPSILONS
        for way, margin in margins(str(epsilon)).items()
    ]
    return (
        alt.Chart(alt.Data(values=points))
        .mark_line(strokeWidth=2.5)
        .encode(
            x=alt.X("epsilon:Q", title="ε", scale=alt.Scale(nice=False)),
            y=alt.Y("margin:Q", title="margin of a rare count, in people", scale=alt.Scale(type="log")),
            color=alt.Color(
                "way:N", title=None, scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values())), sort=list(COLOURS)
            ),
        )
        .properties(width=440, height=260)
    )
