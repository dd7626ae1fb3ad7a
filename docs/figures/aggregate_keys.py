"""The chance that an undeclared key is shown, against the number of persons that have it."""

from __future__ import annotations

from fractions import Fraction

import altair as alt

from cloister.noise import DiscreteLaplace
from cloister.session.questions.threshold import threshold_for

DELTA = Fraction(1, 10**6)
COLOURS = {"0.5": "#c9714f", "1": "#3f6c8f", "2": "#8a9a5b"}
MOST = 50


def chart() -> alt.Chart:
    """A curve for each ε, at δ = 10⁻⁶ and one key a person."""
    points = [
        {"persons": persons, "chance": chance, "epsilon": f"ε = {epsilon}"}
        for epsilon in COLOURS
        for persons, chance in enumerate(chances(epsilon))
    ]
    names = [f"ε = {epsilon}" for epsilon in COLOURS]
    return (
        alt.Chart(alt.Data(values=points))
        .mark_line(strokeWidth=2.5)
        .encode(
            x=alt.X("persons:Q", title="persons that have the key"),
            y=alt.Y("chance:Q", title="chance that it is shown", axis=alt.Axis(format=".0%")),
            color=alt.Color("epsilon:N", title="δ = 10⁻⁶", scale=alt.Scale(domain=names, range=list(COLOURS.values()))),
        )
        .properties(width=440, height=240)
    )


def chances(epsilon: str) -> list[float]:
    """P(n + Z ≥ τ): by symmetry half of a two-sided tail on one side, and one less it on the other."""
    noise = DiscreteLaplace.for_epsilon(epsilon)
    least = threshold_for(noise, 1, DELTA).least
    beyond = [
        float(noise.tail(gap - 1)) / 2 if gap > 0 else 1 - float(noise.tail(-gap)) / 2
        for gap in range(least, least - MOST - 1, -1)
    ]
    return [0.0, *beyond[1:]]
