"""How much noise an answer over several sites has: by how many may collude and drop out, against a noise at each site."""

from __future__ import annotations

import altair as alt

from cloister.together import Roster

SITES = range(3, 21)
WAYS = {
    "a noise at each site": "#c9714f",
    "a third may collude, and as many drop out": "#8a9a5b",
    "one may collude, and one drop out": "#b08bbb",
    "one may collude, none drop out": "#3f6c8f",
}


def chart() -> alt.Chart:
    """Variances, in those of one table's noise."""
    rows = []
    for count in SITES:
        keys = {f"site {place}": place.to_bytes(32, "big") for place in range(1, count + 1)}
        failing = {
            "a third may collude, and as many drop out": ((count - 1) // 3, None),
            "one may collude, and one drop out": (1, 1),
            "one may collude, none drop out": (1, 0),
        }
        rows.append({"sites": count, "way": "a noise at each site", "variance": float(count)})
        for way, (collude, gone) in failing.items():
            if count > 3 or gone == 0:  # three of whom one may collude forgive no drop-out
                roster = Roster(sites=keys, hub=bytes(32), missing=collude, dropouts=gone)
                rows.append({"sites": count, "way": way, "variance": count / roster.honest})
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_line(strokeWidth=2, point=True)
        .encode(
            x=alt.X("sites:Q", title="sites"),
            y=alt.Y("variance:Q", title="variance, in that of one table", scale=alt.Scale(type="log")),
            color=alt.Color(
                "way:N",
                title=None,
                scale=alt.Scale(domain=list(WAYS), range=list(WAYS.values())),
                legend=alt.Legend(orient="bottom", columns=2, labelLimit=300),
            ),
        )
        .properties(width=460, height=240)
    )
