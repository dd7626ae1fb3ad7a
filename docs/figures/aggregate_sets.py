"""CUBE: the margins of four groupings, asked one by one and measured together."""

from __future__ import annotations

import altair as alt

import cloister as cl
from cloister.session import Count, Question

SPEND = "0.005"
GROUPINGS: dict[str, tuple[str, ...]] = {
    "education × race": ("education", "race"),
    "education": ("education",),
    "race": ("race",),
    "all rows": (),
}
COLOURS = {"one by one, a quarter of the spend each": "#c9714f", "measured together": "#3f6c8f"}


def chart() -> alt.LayerChart:
    """Two bars for each grouping, with their numbers."""
    rows = {"education": ["e0"], "race": ["r0"]}
    columns = {"education": cl.Category([f"e{n}" for n in range(16)]), "race": cl.Category([f"r{n}" for n in range(5)])}
    questions = [Question(table="people", by=keys, statistics=(Count(),)) for keys in GROUPINGS.values()]
    with cl.Session({"people": cl.PrivateTable(rows, columns=columns)}, budget=cl.ZCDP(1)) as session:
        together = [margins["count"] for _, margins in session.explain_workload(questions, SPEND).wanted]
        alone = [float(session.explain(each, cl.ZCDP(SPEND).rho / 4).margin()["count"][0]) for each in questions]
    bars = [
        {"grouping": name, "margin": margin, "way": way}
        for way, margins in zip(COLOURS, (alone, together), strict=True)
        for name, margin in zip(GROUPINGS, margins, strict=True)
    ]
    base = alt.Chart(alt.Data(values=bars)).encode(
        x=alt.X("grouping:N", title=None, sort=list(GROUPINGS), axis=alt.Axis(labelAngle=0)),
        xOffset=alt.XOffset("way:N", sort=list(COLOURS)),
        y=alt.Y("margin:Q", title=f"95 % margin of a count, ρ = {SPEND}"),
    )
    colour = alt.Color(
        "way:N",
        title=None,
        sort=list(COLOURS),
        scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values())),
        legend=alt.Legend(orient="top", labelLimit=300),
    )
    shown = base.mark_bar().encode(color=colour)
    texts = base.mark_text(dy=-7, color="#2d2823").encode(text=alt.Text("margin:Q", format=".0f"))
    return alt.layer(shown, texts).properties(width=460, height=240)
