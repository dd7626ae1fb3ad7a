"""How many of N sites may be missing, and how many must agree before anything is opened."""

from __future__ import annotations

import altair as alt

SITES = range(3, 31)
COLOURS = {"all honest": "#8a9a5b", "one colludes": "#3f6c8f", "a third colludes": "#c9714f"}


def chart() -> alt.HConcatChart:
    """Left: T, the least with 2T > N + t. Right: how many of those who are not with the hub may drop out."""
    rows = []
    for sites in SITES:
        for name, colluding in zip(COLOURS, (0, 1, sites // 3), strict=True):
            if colluding <= sites - 2:
                least = (sites + colluding) // 2 + 1
                rows.append({"sites": sites, "who": name, "threshold": least, "forgiven": sites - max(least, colluding + 2)})
    panels = (("threshold", "signatures before anything is opened"), ("forgiven", "drop-outs that the masks forgive"))
    return alt.hconcat(*(panel(rows, field, title) for field, title in panels)).resolve_scale(color="shared")


def panel(rows: list[dict[str, object]], field: str, title: str) -> alt.Chart:
    """One number by the number of sites."""
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_line(strokeWidth=2, interpolate="step-after")
        .encode(
            x=alt.X("sites:Q", title="sites"),
            y=alt.Y(f"{field}:Q", title=title),
            color=alt.Color(
                "who:N",
                title=None,
                scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values())),
                legend=alt.Legend(orient="bottom"),
            ),
        )
        .properties(width=300, height=200)
    )
