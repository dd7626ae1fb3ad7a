"""A population's account over time: the states of its charges, the sum that stands, and a charge that no longer fits."""

from __future__ import annotations

import altair as alt

BUDGET = 1.0
ACTS = [
    ("settled", 0.15),
    ("settled", 0.15),
    ("settled", 0.2),
    ("voided", 0.1),
    ("settled", 0.2),
    ("reserved", 0.1),
    ("settled", 0.1),
    ("refused", 0.35),
    ("settled", 0.05),
]
COLOURS = {"settled": "#3f6c8f", "reserved": "#c9a24f", "voided": "#b9b4ab", "refused": "#c9714f"}
WORDS = {
    "settled": "settled: the release is stored, an answer left",
    "reserved": "reserved: the work died; the charge stands",
    "voided": "voided: no private row was read",
    "refused": "refused: it would pass the budget",
}


def chart() -> alt.LayerChart:
    """Each act as a bar from the sum before it; what stands is carried to the next."""
    rows, spent = [], 0.0
    for number, (state, cost) in enumerate(ACTS, start=1):
        rows.append({"act": number, "state": WORDS[state], "from": spent, "to": spent + cost})
        spent += cost if state in ("reserved", "settled") else 0.0
        rows[-1]["stands"] = spent
    data = alt.Data(values=rows)
    across = alt.X("act:O", title="charges, in the order of the chain", axis=alt.Axis(labelAngle=0))
    colours = alt.Scale(domain=list(WORDS.values()), range=[COLOURS[state] for state in WORDS])
    bars = (
        alt.Chart(data)
        .mark_bar(size=30, cornerRadius=2)
        .encode(
            x=across,
            y=alt.Y("from:Q", title="ε spent", scale=alt.Scale(domain=[0, 1.25])),
            y2="to:Q",
            color=alt.Color("state:N", scale=colours, legend=alt.Legend(title=None, orient="bottom", columns=2, labelLimit=400)),
        )
    )
    stands = alt.Chart(data).mark_line(interpolate="step", color="#2d2823", strokeDash=[2, 2]).encode(x=across, y="stands:Q")
    limit = alt.Chart(alt.Data(values=[{"budget": BUDGET}])).mark_rule(color="#2d2823", size=2).encode(y="budget:Q")
    words = alt.Chart(alt.Data(values=[{"budget": BUDGET, "words": "the budget"}])).mark_text(
        align="left", dx=4, dy=-8, fontSize=12, color="#2d2823"
    )
    return alt.layer(bars, stands, limit, words.encode(x=alt.value(0), y="budget:Q", text="words:N")).properties(
        width=520, height=260
    )
