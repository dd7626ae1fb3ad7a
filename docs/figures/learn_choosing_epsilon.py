"""The attacker's best chance against ε, and the factor on the odds of a group against its size."""

from __future__ import annotations

import math

import altair as alt

PRIORS = {"1 %": "#8a9a5b", "10 %": "#3f6c8f", "50 %": "#c9714f"}
EPSILONS = {"0.01": "#8a9a5b", "0.1": "#3f6c8f", "1": "#c9714f"}


def chart() -> alt.HConcatChart:
    """Side by side, each with its own legend."""
    return alt.hconcat(chances(), groups(), spacing=40).resolve_scale(color="independent")


def chances() -> alt.Chart:
    """prior·e^ε/(1 − prior + prior·e^ε)."""
    points = [
        {"epsilon": 10 ** (place / 20), "chance": chance(float(prior.rstrip(" %")) / 100, 10 ** (place / 20)), "before": prior}
        for prior in PRIORS
        for place in range(-40, 21)
    ]
    y = alt.Y("chance:Q", title="best chance after the answer", axis=alt.Axis(format="%"))
    return lines(points, "epsilon", "ε", y, "before", PRIORS, "chance before").properties(
        title="One person's presence (a value: at 2ε)"
    )


def groups() -> alt.Chart:
    """e^{kε}: the most by which the odds of a group's presence may grow."""
    points = [
        {"size": size, "factor": math.exp(size * float(epsilon)), "epsilon": epsilon}
        for epsilon in EPSILONS
        for size in sorted({round(10 ** (place / 20)) for place in range(61)})
        if size * float(epsilon) < 12
    ]
    y = alt.Y(
        "factor:Q", title="odds grow by at most", scale=alt.Scale(type="log", domain=[1, 100_000]), axis=alt.Axis(format="~s")
    )
    return lines(points, "size", "persons in the group", y, "epsilon", EPSILONS, "ε").properties(
        title="A group's presence (values: at 2ε)"
    )


def lines(
    points: list[dict[str, object]], x: str, title: str, y: alt.Y, kind: str, colours: dict[str, str], legend: str
) -> alt.Chart:
    """Lines over a logarithmic axis."""
    names = list(colours)
    return (
        alt.Chart(alt.Data(values=points))
        .mark_line(strokeWidth=2.5, clip=True)
        .encode(
            x=alt.X(f"{x}:Q", title=title, scale=alt.Scale(type="log", nice=False)),
            y=y,
            color=alt.Color(
                f"{kind}:N",
                title=legend,
                sort=names,
                scale=alt.Scale(domain=names, range=list(colours.values())),
                legend=alt.Legend(orient="top"),
            ),
        )
        .properties(width=280, height=240)
    )


def chance(prior: float, epsilon: float) -> float:
    """What a guess with this chance can become."""
    odds = prior / (1 - prior) * math.exp(epsilon)
    return odds / (1 + odds)
