"""What a truer coin costs: ε against the bias of the first coin, for a fair second coin and for the same coin twice."""

from __future__ import annotations

import altair as alt

from cloister.noise import BinaryResponse

COLOURS = {"the same coin again": "#c9714f", "a fair second coin": "#3f6c8f"}


def chart() -> alt.LayerChart:
    """Two lines, and the points that books quote."""
    points = [
        {"p": percent / 100, "epsilon": epsilon(percent, twice=twice), "second": second}
        for second, twice in zip(COLOURS, (True, False), strict=True)
        for percent in range(50, 93)
    ]
    marks = [
        {"p": 0.5, "epsilon": epsilon(50, twice=True), "text": "ln 3"},
        {"p": 0.8, "epsilon": epsilon(80, twice=True), "text": "ln 21"},
        {"p": 0.8, "epsilon": epsilon(80, twice=False), "text": "ln 9"},
    ]
    colour = alt.Color(
        "second:N",
        title="after tails",
        scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values())),
        legend=alt.Legend(orient="top-left"),
    )
    x = alt.X("p:Q", title="bias p of the first coin (heads: the truth)", scale=alt.Scale(domain=[0.48, 0.93], nice=False))
    lines = (
        alt.Chart(alt.Data(values=points)).mark_line(strokeWidth=2.5).encode(x=x, y=alt.Y("epsilon:Q", title="ε"), color=colour)
    )
    base = alt.Chart(alt.Data(values=marks)).encode(x=x, y="epsilon:Q")
    dots = base.mark_point(size=60, filled=True, color="#2d2823", opacity=1)
    texts = base.mark_text(align="left", dx=10, dy=8, color="#2d2823").encode(text="text:N")
    return alt.layer(lines, dots, texts).properties(width=440, height=260)


def epsilon(percent: int, *, twice: bool) -> float:
    """ε of a first coin of that bias."""
    bias = f"{percent}/100"
    return float(BinaryResponse(truth=bias, coin=bias if twice else "1/2").guarantee.epsilon)
