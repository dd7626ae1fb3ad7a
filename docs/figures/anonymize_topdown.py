"""A cut through a hierarchy: which label each trade has after top-down specialisation."""

from __future__ import annotations

import altair as alt
import numpy as np

from cloister.anonymize import Anonymizer, Hierarchy, KAnonymity

TRADES = {
    "cook": ("kitchen", "manual"),
    "baker": ("kitchen", "manual"),
    "smith": ("workshop", "manual"),
    "joiner": ("workshop", "manual"),
    "nurse": ("health", "office"),
    "doctor": ("health", "office"),
    "judge": ("law", "office"),
    "notary": ("law", "office"),
}
ROWS = (40, 26, 22, 18, 30, 21, 12, 10)


def chart() -> alt.LayerChart:
    """Every label as a box over the trades under it, as wide as their rows; those that are published are coloured."""
    table = {
        "trade": [trade for trade, rows in zip(TRADES, ROWS, strict=True) for _ in range(rows)],
        "sex": ["F" if place % 3 else "M" for place in range(sum(ROWS))],
    }
    anonymizer = Anonymizer(
        quasi=["trade", "sex"],
        models=[KAnonymity(5)],
        hierarchies={
            "trade": Hierarchy.of({trade: [*labels, "*"] for trade, labels in TRADES.items()}),
            "sex": Hierarchy.flat(),
        },
        search="topdown",
        suppression=0,
    )
    published = set(anonymizer.fit_transform(table)["trade"])
    ends = np.cumsum(ROWS)
    boxes = []
    for level in range(4):
        labels = [([trade, *names, "*"])[level] for trade, names in TRADES.items()]
        for label in dict.fromkeys(labels):
            under = [place for place, each in enumerate(labels) if each == label]
            left, right = float(ends[under[0]] - ROWS[under[0]]), float(ends[under[-1]])
            boxes.append(
                {
                    "label": label,
                    "left": left,
                    "right": right,
                    "middle": (left + right) / 2,
                    "level": level,
                    "top": level + 0.92,
                    "centre": level + 0.46,
                    "what": "published" if label in published else "not published",
                }
            )
    x = alt.X("left:Q", title="rows", scale=alt.Scale(nice=False, domain=[0, int(ends[-1])]))
    y = alt.Y("level:Q", title="level", axis=alt.Axis(values=[0, 1, 2, 3], grid=False, format="d"))
    colour = alt.Color(
        "what:N",
        title=None,
        scale=alt.Scale(domain=["published", "not published"], range=["#c9714f", "#e6e0d5"]),
        legend=alt.Legend(orient="bottom"),
    )
    base = alt.Chart(alt.Data(values=boxes))
    rectangles = base.mark_rect(stroke="white", strokeWidth=2).encode(x=x, x2="right:Q", y=y, y2="top:Q", color=colour)
    names = base.mark_text(fontSize=10, color="#3b352c").encode(x="middle:Q", y="centre:Q", text="label:N")
    return alt.layer(rectangles, names).properties(width=560, height=220)
