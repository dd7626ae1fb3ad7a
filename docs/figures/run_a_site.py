"""What a site does with a plan, step by step, and what it has touched by then."""

from __future__ import annotations

import altair as alt

STEPS = [
    ("a plan arrives, signed by the hub", "nothing", "refused: another hub, roster or version"),
    ("your rules, by purpose and person", "nothing", "refused: never"),
    ("its text is read by your declaration", "nothing", "refused: not a request, or too much work"),
    ("its cost to a person here, and your yes", "nothing", "refused: you are asked, or the budget is spent"),
    ("the query is compiled", "the database", "refused: the time limit is over"),
    ("the cost is charged to your ledger", "the ledger", "from here on it stays charged"),
    ("rows are read, noise and masks are added", "the rows", "stopped: the time limit is over"),
    ("masked numbers leave", "the rows", "the same bytes if they are asked for again"),
]
COLOURS = {"nothing": "#8a9a5b", "the database": "#3f6c8f", "the ledger": "#b08bbb", "the rows": "#c9714f"}


def chart() -> alt.LayerChart:
    """One box a step, coloured by what is touched; beside it, how a plan ends there."""
    rows = [
        {"place": place, "step": f"{place}. {step}", "touched": touched, "ends": ends, "from": 0, "to": 100}
        for place, (step, touched, ends) in enumerate(STEPS, 1)
    ]
    base = alt.Chart(alt.Data(values=rows)).encode(y=alt.Y("place:O", axis=None))
    boxes = base.mark_bar(height=26, cornerRadius=3, opacity=0.35).encode(
        x=alt.X("from:Q", axis=None, scale=alt.Scale(domain=[0, 215])),
        x2="to:Q",
        color=alt.Color(
            "touched:N",
            title="touched so far",
            scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values())),
            legend=alt.Legend(orient="bottom"),
        ),
    )
    steps = base.mark_text(align="left", dx=8, fontSize=12).encode(x=alt.value(0), text="step:N")
    ends = base.mark_text(align="left", dx=8, fontSize=12, fontStyle="italic").encode(x="to:Q", text="ends:N")
    return alt.layer(boxes, steps, ends).properties(width=640, height=alt.Step(36))
