"""What the permanent bits are for: ε of all reports together against their number, with them and without."""

from __future__ import annotations

import altair as alt

from cloister.local import RAPPOR

COLOURS = {"for life ε∞ = 2": "#3f6c8f", "for life ε∞ = 4": "#c9714f", "nothing kept: ε₁ each day": "#8a9a5b"}
DAYS = [1, 2, 3, 4, 5, 7, 10, 14, 20, 30, 50, 70, 100, 150, 250, 365]


def chart() -> alt.Chart:
    """Half an ε for each report, in three ways."""
    kept = {name: RAPPOR.for_epsilon("0.5", forever) for name, forever in zip(COLOURS, (2, 4), strict=False)}
    points = [{"days": day, "ε": float(rappor.after(day).epsilon), "way": name} for name, rappor in kept.items() for day in DAYS]
    points += [{"days": day, "ε": 0.5 * day, "way": list(COLOURS)[2]} for day in DAYS if day <= 20]
    return (
        alt.Chart(alt.Data(values=points))
        .mark_line(strokeWidth=2.4, clip=True)
        .encode(
            x=alt.X("days:Q", title="daily reports, ε₁ = ½ each", scale=alt.Scale(type="log", nice=False)),
            y=alt.Y("ε:Q", title="ε of all of them together", scale=alt.Scale(domain=[0, 6])),
            color=alt.Color("way:N", title=None, scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values()))),
        )
        .properties(width=420, height=240)
    )
