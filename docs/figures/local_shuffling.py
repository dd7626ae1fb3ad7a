"""What a crowd is worth: the ε of shuffled reports against their number."""

from __future__ import annotations

import altair as alt

from cloister.local import after_shuffling, largest_local_epsilon

COLOURS = {"0.5": "#8a9a5b", "1": "#3f6c8f", "2": "#c9714f", "4": "#8a5a83"}
REPORTS = [round(10 ** (place / 4)) for place in range(12, 29)]


def chart() -> alt.Chart:
    """A line for each ε of a report, from where the theorem begins to hold."""
    points = [
        {"n": n, "central": float(after_shuffling(local, reports=n, delta="1e-6").epsilon), "local": local}
        for local in COLOURS
        for n in REPORTS
        if (largest_local_epsilon(reports=n, delta="1e-6") or 0) >= float(local)
    ]
    return (
        alt.Chart(alt.Data(values=points))
        .mark_line(strokeWidth=2.4)
        .encode(
            x=alt.X("n:Q", title="shuffled reports", scale=alt.Scale(type="log", nice=False), axis=alt.Axis(format="~s")),
            y=alt.Y("central:Q", title="ε of all together, δ = 1e-6", scale=alt.Scale(type="log")),
            color=alt.Color(
                "local:N", title="ε₀ of a report", scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values()))
            ),
        )
        .properties(width=420, height=240)
    )
