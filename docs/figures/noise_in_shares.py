"""Noise that five owners make together, against noise at each of them; and how small the noise is for someone who knows B."""

from __future__ import annotations

import altair as alt

OWNERS = 5
COLOURS = {"at each owner": "#c9714f", "in shares, one may collude, one drop out": "#3f6c8f", "central": "#8a9a5b"}
FACTORS = (5, 10, 100)


def chart() -> alt.HConcatChart:
    """Left: the variance over that of one central noise. Right: the chance that the scale of the noise is below a part of it."""
    return alt.hconcat(variances(), known_factor()).resolve_scale(color="independent")


def variances() -> alt.Chart:
    """By the number of owners."""
    rows = [
        {"owners": owners, "variance": value, "noise": name}
        for owners in range(4, 21)
        for name, value in zip(COLOURS, (owners, owners / (owners - 2), 1), strict=True)
    ]
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X("owners:Q", title="owners"),
            y=alt.Y("variance:Q", title="variance, central noise = 1", scale=alt.Scale(type="log", domain=[0.9, 20])),
            color=alt.Color(
                "noise:N",
                title=None,
                scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values())),
                legend=alt.Legend(orient="bottom", columns=1),
            ),
        )
        .properties(width=300, height=220)
    )


def known_factor() -> alt.Chart:
    """P(√B < x) = 1 − (1 − x²)^(N − 1)."""
    rows = [
        {"part": part / 100, "chance": 1 - (1 - (part / 100) ** 2) ** (owners - 1), "owners": f"{owners} owners"}
        for owners in FACTORS
        for part in range(1, 101)
    ]
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X("part:Q", title="scale of the noise given B, over the scale that was promised"),
            y=alt.Y("chance:Q", title="probability of less than that", axis=alt.Axis(format=".0%")),
            color=alt.Color(
                "owners:N",
                title=None,
                scale=alt.Scale(domain=[f"{owners} owners" for owners in FACTORS], range=["#8a9a5b", "#3f6c8f", "#2d2823"]),
                legend=alt.Legend(orient="bottom"),
            ),
        )
        .properties(width=300, height=220)
    )
