"""How large classes have to be under SafePub, by ε, for three δ; dashed: by the tail bound of the papers."""

from __future__ import annotations

from fractions import Fraction

import altair as alt
import numpy as np

from cloister.anonymize.safepub.parameters import largest_rate, least_k

EPSILONS = ["0.3", "0.5", "0.75", "1", "1.5", "2", "3"]


def chart() -> alt.LayerChart:
    """k against ε."""
    rows = []
    for delta in ("1e-3", "1e-6", "1e-9"):
        for epsilon in EPSILONS:
            exact = least_k(Fraction(epsilon), Fraction(delta), largest_rate(Fraction(epsilon)))
            rows.append({"ε": float(epsilon), "k": exact, "δ": delta, "how": "exact"})
            rows.append({"ε": float(epsilon), "k": by_tail(float(epsilon), float(delta)), "δ": delta, "how": "tail"})
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_line(point=True)
        .encode(
            x=alt.X("ε:Q"),
            y=alt.Y("k:Q", scale=alt.Scale(type="log")),
            color=alt.Color("δ:N", scale=alt.Scale(range=["#8a9aa8", "#3f6c8f", "#c9714f"])),
            strokeDash=alt.StrokeDash("how:N", title=None, scale=alt.Scale(domain=["exact", "tail"], range=[[1, 0], [4, 3]])),
        )
        .properties(width=400, height=240)
    )


def by_tail(epsilon: float, delta: float) -> int:
    """The k of Li, Qardaji and Su's bound."""
    rate = 1 - np.exp(-epsilon)
    gamma = 1 - (1 - rate) * np.exp(-epsilon)
    slope = gamma * np.log(gamma / rate) + (1 - gamma) * np.log((1 - gamma) / (1 - rate))
    k = 1
    while True:
        worst, people = 0.0, max(int(np.ceil(k / gamma - 1)), 1)
        while np.exp(-people * slope) > worst:
            worst = max(worst, tail(int(gamma * people) + 1, people, rate))
            people += 1
        if worst <= delta:
            return k
        k += 1


def tail(least: int, people: int, rate: float) -> float:
    """The chance of at least so many of so many."""
    from math import exp, lgamma, log

    terms = [
        exp(lgamma(people + 1) - lgamma(j + 1) - lgamma(people - j + 1) + j * log(rate) + (people - j) * log(1 - rate))
        for j in range(least, people + 1)
    ]
    return sum(terms)
