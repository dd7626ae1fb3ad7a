"""Why groups are added and not weighted: what either expects where the choice of a level goes with the answer."""

from __future__ import annotations

import altair as alt

from cloister.local import RandomizedResponse

COLOURS = {"groups added": "#3f6c8f", "weighted by inverse variance": "#c9714f"}
YES = 0.3


def chart() -> alt.LayerChart:
    """30 % say yes; they choose ε = ½ over ε = 4 so many times as often as those who say no."""
    points = [
        {"times": times, "share": 100 * (YES if name == "groups added" else weighted(times)), "estimate": name}
        for name in COLOURS
        for times in (1 + step / 10 for step in range(40))
    ]
    lines = (
        alt.Chart(alt.Data(values=points))
        .mark_line(strokeWidth=2.4)
        .encode(
            x=alt.X("times:Q", title="how much likelier the strict level is for those who say yes", scale=alt.Scale(nice=False)),
            y=alt.Y("share:Q", title="expected estimate, %", scale=alt.Scale(domain=[0, 35])),
            color=alt.Color("estimate:N", title=None, scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values()))),
        )
    )
    truth = alt.Chart(alt.Data(values=[{"y": 100 * YES}])).mark_rule(strokeDash=[4, 4], color="#2d2823").encode(y="y:Q")
    return alt.layer(truth, lines).properties(width=420, height=240)


def weighted(times: float) -> float:
    """The expectation of inverse variance: each group's share, by its weight."""
    strict_if_no = 0.2
    strict_if_yes = strict_if_no * times
    total = weights = 0.0
    for level, yes, no in (("0.5", strict_if_yes, strict_if_no), ("4", 1 - strict_if_yes, 1 - strict_if_no)):
        people = YES * yes + (1 - YES) * no
        weight = people / RandomizedResponse(epsilon=level).variance(1)
        total, weights = total + weight * YES * yes / people, weights + weight
    return total / weights
