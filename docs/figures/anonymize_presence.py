"""Presence: of those on the public list who look alike, how many are in the table?"""

from __future__ import annotations

import altair as alt

CLASSES = [("20–39", 40, 10), ("40–59", 30, 12), ("60–79", 9, 9)]


def chart() -> alt.Chart:
    """People of the list by class, those in the table set off."""
    rows = [
        {"class": f"{name}: {inside / people:.0%}", "who": who, "people": count, "order": order}
        for name, people, inside in CLASSES
        for order, (who, count) in enumerate((("in the table", inside), ("only on the list", people - inside)))
    ]
    return (
        alt.Chart(alt.Data(values=rows), title="everybody aged 60 to 79 is known to be in the table")
        .mark_bar()
        .encode(
            y=alt.Y("class:N", title=None),
            x=alt.X("people:Q", title="people on the public list"),
            color=alt.Color(
                "who:N", title=None, scale=alt.Scale(domain=["in the table", "only on the list"], range=["#c9714f", "#cdd6de"])
            ),
            order="order:Q",
        )
        .properties(width=360, height=130)
    )
