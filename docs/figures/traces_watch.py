"""A day of visits by the hour: what a watch releases with its margins, and what was there."""

from __future__ import annotations

import altair as alt

import cloister as cl
from cloister.noise import Random

VISITS = [4, 2, 1, 1, 2, 6, 15, 40, 80, 95, 90, 85, 110, 105, 92, 88, 95, 120, 130, 96, 60, 34, 18, 9]


def chart() -> alt.Chart:
    """ρ = 0.5 for all 24 steps; each row is a person."""
    table = cl.PrivateTable({"room": []}, columns={"room": cl.Category(["hall"])})
    points = []
    with cl.Session({"visits": table}, budget=cl.ZCDP(1), random=Random.deterministic(7)) as session:
        watch = session.watch(
            "SELECT COUNT(*) AS n FROM visits",
            at="t",
            every="1 hour",
            since="2026-01-01",
            until="2026-01-02",
            spend="0.5",
            fed=True,
        )
        for hour, visits in enumerate(VISITS):
            watch.feed({"t": [f"2026-01-01T{hour:02}:30"] * visits, "room": ["hall"] * visits})
        for step in watch.until("2026-01-02"):
            value, margin = step.table["n"][0], step.table.margin()["n"][0]
            points.append(
                {
                    "hour": step.number - 1,
                    "n": int(value),
                    "low": value - margin,
                    "high": value + margin,
                    "true": VISITS[step.number - 1],
                }
            )
    base = alt.Chart(alt.Data(values=points)).encode(x=alt.X("hour:Q", title="hour of the day"))
    band = base.mark_area(opacity=0.25, color="#c9714f").encode(y=alt.Y("low:Q", title="visits in the hour"), y2="high:Q")
    line = base.mark_line(color="#c9714f", strokeWidth=2.2).encode(y="n:Q")
    true = base.mark_point(color="#2d2823", size=18, filled=True).encode(y="true:Q")
    return (band + line + true).properties(width=440, height=220)
