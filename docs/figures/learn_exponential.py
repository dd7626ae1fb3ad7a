"""Who wins the vote, against ε: the exponential mechanism (solid) and permute-and-flip (dashed)."""

from __future__ import annotations

import altair as alt

from cloister.noise import Exponential, PermuteAndFlip

VOTES = {"football": 49, "volleyball": 25, "basketball": 6, "swimming": 2}
COLOURS = ["#c9714f", "#3f6c8f", "#8a9a5b", "#2d2823"]
LAWS: dict[str, type[Exponential] | type[PermuteAndFlip]] = {"exponential": Exponential, "permute-and-flip": PermuteAndFlip}
EPSILONS = [round(10 ** (place / 12), 5) for place in range(-32, 2)]


def chart() -> alt.Chart:
    """Probability against ε on a logarithmic axis."""
    points = [
        {"epsilon": epsilon, "sport": sport, "probability": float(probability), "law": name}
        for name, law in LAWS.items()
        for epsilon in EPSILONS
        for sport, probability in zip(VOTES, law(epsilon=str(epsilon)).probabilities(list(VOTES.values())), strict=True)
    ]
    sports, laws = list(VOTES), list(LAWS)
    return (
        alt.Chart(alt.Data(values=points))
        .mark_line(strokeWidth=2.5)
        .encode(
            x=alt.X("epsilon:Q", title="ε", scale=alt.Scale(type="log", nice=False)),
            y=alt.Y("probability:Q", title="probability to be named"),
            color=alt.Color("sport:N", title=None, sort=sports, scale=alt.Scale(domain=sports, range=COLOURS)),
            strokeDash=alt.StrokeDash("law:N", title=None, sort=laws, scale=alt.Scale(domain=laws, range=[[1, 0], [5, 3]])),
        )
        .properties(width=440, height=260)
    )
