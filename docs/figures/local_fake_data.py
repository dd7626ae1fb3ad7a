"""The margins of three ways to ask four attributes with one ε: sampling, made-up data, splitting."""

from __future__ import annotations

import altair as alt

from cloister.local import FakeData, SeveralAttributes

COLOURS = {
    "one is told, and which one is seen": "#3f6c8f",
    "one is told, the others are made up": "#8a9a5b",
    "all are told, with ε/4 each": "#c9714f",
}
PEOPLE, VALUES = 10_000, 5


def margins(epsilon: float) -> list[float]:
    """Of a share of one in five, in %."""
    domains = {name: range(VALUES) for name in "abcd"}
    several = SeveralAttributes(domains, epsilon)
    sampling, splitting = (several.variances[way] / 4 for way in ("sampling", "splitting"))
    fake = FakeData(domains, epsilon).variance("a", 1, 1 / VALUES)
    return [1.96 * (variance / PEOPLE) ** 0.5 * 100 for variance in (sampling, fake, splitting)]


def chart() -> alt.Chart:
    """Three lines."""
    points = [
        {"epsilon": step / 4, "margin": margin, "way": name}
        for step in range(2, 25)
        for name, margin in zip(COLOURS, margins(step / 4), strict=True)
    ]
    names = list(COLOURS)
    return (
        alt.Chart(alt.Data(values=points))
        .mark_line(strokeWidth=2.5)
        .encode(
            x=alt.X("epsilon:Q", title="ε of a person's record"),
            y=alt.Y("margin:Q", title="95 % margin of a share, in % (n = 10,000)", scale=alt.Scale(type="log")),
            color=alt.Color(
                "way:N",
                title=None,
                sort=names,
                scale=alt.Scale(domain=names, range=list(COLOURS.values())),
                legend=alt.Legend(orient="top", labelLimit=300, columns=1),
            ),
        )
        .properties(width=440, height=240)
    )
