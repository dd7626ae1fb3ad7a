"""A cap by rows against caps by groups: the nights that each leaves out, and the noise that it needs, for the sample hospital."""

from __future__ import annotations

import altair as alt

import cloister as cl
from cloister.noise import Random
from cloister.samples import hospital

SURE = "1000"
ROWS = "SUM(stay)"
WAYS = {
    "rows": ("max_rows_contributed", ROWS, "#3f6c8f"),
    "wards, 60 nights in each": ("max_groups_contributed", "SUM(stay, contribution_bounds_per_group => (0, 60))", "#c9714f"),
    "wards, 30 nights in each": ("max_groups_contributed", "SUM(stay, contribution_bounds_per_group => (0, 30))", "#8a9a5b"),
}


def chart() -> alt.LayerChart:
    """Each cap as a point, with its number."""
    points = []
    with cl.Session({"visits": hospital()}, budget=cl.PureDP(100_000), random=Random.deterministic(1)) as session:
        whole = nights(session, f"epsilon = {SURE}", ROWS)
        for name, (option, total, _) in WAYS.items():
            for cap in range(1, 6):
                margin = session.explain(question(f"epsilon = 1, {option} = {cap}", total)).margin()["nights"][0]
                lost = 1 - nights(session, f"epsilon = {SURE}, {option} = {cap}", total) / whole
                points.append({"cap": cap, "way": name, "lost": max(0.0, lost), "margin": float(margin)})
    base = alt.Chart(alt.Data(values=points)).encode(
        x=alt.X("lost:Q", title="nights left out", axis=alt.Axis(format=".0%")),
        y=alt.Y("margin:Q", title="95 % margin of the nights in a ward, ε = 1"),
        color=alt.Color(
            "way:N",
            title="cap by",
            sort=list(WAYS),
            scale=alt.Scale(domain=list(WAYS), range=[colour for *_, colour in WAYS.values()]),
        ),
    )
    texts = base.mark_text(dx=8, dy=-7, align="left").encode(text="cap:O")
    return alt.layer(base.mark_line(opacity=0.5), base.mark_point(filled=True, size=70, opacity=1), texts).properties(
        width=440, height=260
    )


def question(options: str, total: str) -> str:
    """The nights of each ward, under a cap."""
    return f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({options}) ward, {total} AS nights FROM visits GROUP BY ward"  # noqa: S608


def nights(session: cl.Session, options: str, total: str) -> float:
    """With so large a spend that the noise is nothing: these rows are nobody's."""
    return float(sum(session.sql(question(options, total))["nights"]))
